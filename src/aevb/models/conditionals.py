"""Conditional distributions: pairs of a network and a family, such as the encoders and decoders of appendix C.

Paper: App. C.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from aevb.arguments import check_parameter
from aevb.distributions import LogScaleNormal
from aevb.models.datapoint import Datapoint
from aevb.models.families import FAMILIES
from aevb.networks import MLP, NETWORKS, ConvNet, Network, NetworkKind


class Conditional(eqx.Module):
    r"""A distribution of a named family, with parameters that a network computes from the condition.

    .. math:: q(z|x) = f(z; \lambda), \qquad \lambda = b(\mathrm{network}(x) + c)

    The function b maps real numbers to the parameters' domains, and c is such that an output of zero gives the initial
    member of the family. A flow also has additional weights, which are the same for all x.

    Args:
        network: Maps arrays to arrays, with :func:`num_outputs` outputs.
        family: A key of ``FAMILIES``.
        out_size: Number of variables.

    Example:
        >>> from aevb.networks import MLP
        >>> encoder = Conditional(MLP(784, (500,), num_outputs("gamma", 2)), "gamma", 2)
        >>> encoder(jnp.zeros(784)).mean.shape
        (2,)

    Paper: §2.1, §2.4.
    """

    network: Network
    shared: dict[str, Any]
    family: str = eqx.field(static=True)
    out_size: int = eqx.field(static=True)

    def __init__(self, network: Network, family: str, out_size: int):
        if network.out_size != num_outputs(family, out_size):
            raise ValueError(
                f"network: it has {network.out_size} outputs, but a {family!r} distribution over {out_size} variables "
                f"needs {num_outputs(family, out_size)}."
            )
        self.network, self.shared = network, FAMILIES[family].shared(out_size)
        self.family, self.out_size = family, out_size

    def __call__(self, *conditions: Any) -> dist.Distribution:
        """Return the distribution given one condition, or given each of a batch (..., in_size).

        Several arguments, trees of arrays, and datapoints with missing entries are combined by :func:`outputs_of`.
        """
        return FAMILIES[self.family].at(outputs_of(self.network, *conditions), self.out_size, **self.shared)


def conditional(
    in_size: int,
    hidden: Sequence[int],
    out_size: int,
    activation: str = "tanh",
    *,
    family: str,
    network: str | NetworkKind = "mlp",
    side: str = "input",
) -> Conditional:
    """Return the pair of a named network and a named family, with all parameters zero.

    Args:
        in_size: Width of the condition; 0 for a distribution without one.
        hidden: Widths of the hidden layers.
        out_size: Number of variables.
        activation: A key of :data:`aevb.networks.ACTIVATIONS`.
        family: A key of ``FAMILIES``.
        network: A key of :data:`aevb.networks.NETWORKS`, or a :class:`aevb.networks.NetworkKind`.
        side: Where the image is, for networks of images: ``"input"`` or ``"output"``.

    Example:
        >>> conditional(784, (500,), 2, family="student-t")(jnp.zeros(784)).event_shape
        (2,)
    """
    kind = NetworkKind(network) if isinstance(network, str) else network
    check_parameter("network", kind.name, choices=NETWORKS)
    check_parameter("family", family, choices=FAMILIES)
    built = kind.build(in_size, hidden, num_outputs(family, out_size), activation, side=side)
    return Conditional(built, family, out_size)


def num_outputs(family: str, out_size: int) -> int:
    """Return the number of outputs that a network needs for this family over `out_size` variables."""
    return FAMILIES[family].num_outputs(out_size)


def outputs_of(network: Network, *conditions: Any) -> Array:
    """Return the outputs of a network whose input is a single array, or the arrays of several conditions together.

    A datapoint's missing entries become zero, and its mask of observed entries is part of the input.

    Example:
        >>> from aevb.networks import MLP
        >>> outputs_of(MLP(4, (), 3), {"upper": jnp.ones(2), "lower": jnp.zeros(1)}, jnp.full(1, 7.0)).shape
        (3,)
    """
    if len(conditions) == 1 and eqx.is_array_like(conditions[0]):
        return network(conditions[0])
    takes_parts = isinstance(network, MLP | ConvNet)
    return network(*_parts(conditions)) if takes_parts else network(as_vector(*conditions))


def as_vector(*conditions: Any) -> Array:
    """Return the conditions as one vector, a single array unchanged; see :func:`outputs_of`.

    Example:
        >>> as_vector({"upper": jnp.ones(2), "lower": jnp.zeros(1)}, jnp.full(1, 7.0)).tolist()
        [0.0, 1.0, 1.0, 7.0]
    """
    if len(conditions) == 1 and eqx.is_array_like(conditions[0]):
        return conditions[0]
    return jnp.concatenate(_parts(conditions))


def _parts(conditions):
    leaves = jax.tree.leaves([c.filled() if isinstance(c, Datapoint) else c for c in conditions])
    return [jnp.ravel(leaf).astype(jnp.result_type(float)) for leaf in leaves]


def BernoulliMLP(in_size: int, hidden: Sequence[int], out_size: int, activation: str = "tanh") -> Conditional:  # noqa: N802
    r"""Return a factorized Bernoulli whose logits are an MLP of the condition.

    .. math:: \log p(x|z) = \sum_i x_i \log y_i + (1 - x_i) \log(1 - y_i), \quad y = \sigma(\mathrm{MLP}(z))

    Values of x between 0 and 1 (grey levels) are allowed in this expression; it is then not a log-probability, but the
    expectation of one under random binarization of x with probabilities x.

    Args:
        in_size: Width of the condition.
        hidden: Widths of the hidden layers.
        out_size: Number of binary variables.
        activation: See :class:`aevb.networks.MLP`.

    Example:
        >>> decoder = BernoulliMLP(2, (5,), 3)
        >>> decoder(jnp.zeros(2)).event_shape
        (3,)

    Paper: eq. (11), App. C.1.
    """
    return conditional(in_size, hidden, out_size, activation, family="bernoulli")


_GAUSSIANS = {"identity": "gaussian", "sigmoid": "sigmoid-gaussian"}


def GaussianMLP(  # noqa: N802
    in_size: int, hidden: Sequence[int], out_size: int, activation: str = "tanh", mean: str = "identity"
) -> Conditional:
    r"""Return a Gaussian with diagonal covariance whose mean and log variance are an MLP of the condition.

    .. math::
        \log p(x|z) = \log N(x; \mu, \sigma^2 I), \quad
        \mu = W_4 h + b_4, \quad \log \sigma^2 = W_5 h + b_5, \quad h = \tanh(W_3 z + b_3)

    As an encoder it is q(z|x), with x and z swapped. The two output layers are one matrix, :math:`(W_4, W_5)`. Log
    variances beyond ±10 are limited, see :func:`aevb.models.families.limited`.

    Args:
        in_size: Width of the condition.
        hidden: Widths of the hidden layers.
        out_size: Number of variables.
        activation: See :class:`aevb.networks.MLP`.
        mean: ``"identity"``, or ``"sigmoid"`` to keep the means in (0, 1), as for Frey Face.

    Example:
        >>> encoder = GaussianMLP(784, (500,), 2)
        >>> encoder(jnp.zeros(784)).mean.shape
        (2,)

    Paper: eq. (9), eq. (12), §3, App. C.2.
    """
    if mean not in _GAUSSIANS:
        raise ValueError(f"mean: got {mean!r}, expected one of {tuple(_GAUSSIANS)}.")
    return conditional(in_size, hidden, out_size, activation, family=_GAUSSIANS[mean])


class Rescaled(eqx.Module):
    """An encoder or decoder of real numbers, standardized inside and in the data's units outside.

    The networks see columns of mean 0 and standard deviation 1; densities, draws and bounds stay in the units of x,
    because the decoder's distribution is shifted and scaled back. The units are data, and are not learned.

    Args:
        conditional: The encoder or decoder inside.
        units: Gaussian with the columns' means and standard deviations, (D,).
        side: ``"input"`` to rescale the encoder's input, ``"output"`` to rescale the decoder's distribution.
    """

    conditional: Callable[..., dist.Distribution]
    units: dist.Normal
    side: str = eqx.field(static=True)

    def __call__(self, condition: Any, *given: Any) -> dist.Distribution:
        """Return q(z|x) for x in its own units, or p(x|z) over x in its own units.

        Args:
            condition: x, an array or a datapoint; or z.
            given: What a datapoint is conditioned on, if anything, next to z.
        """
        loc, scale = jnp.asarray(self.units.loc), jnp.asarray(self.units.scale)
        if self.side == "input":
            x = Datapoint.of(condition)
            return self.conditional(x.with_values((x.values - loc) / scale))
        return rescaled(self.conditional(condition, *given), loc, scale)


def rescaled(p: Any, loc: Array, scale: Array) -> dist.Distribution:
    """Return the distribution of ``loc + scale * x``, where x has independent entries of a location-scale family.

    Raises:
        TypeError: The family has no parameters `loc` and `scale`.
    """
    base: Any = p.base_dist
    if isinstance(base, LogScaleNormal):
        mu, log_sigma = loc + scale * jnp.asarray(base.loc), jnp.log(scale) + jnp.asarray(base.log_scale)
        return LogScaleNormal(mu, log_sigma, validate_args=False).to_event(1)
    parameters = {name: getattr(base, name) for name in base.arg_constraints}
    if not {"loc", "scale"} <= set(parameters):
        raise TypeError(f"{type(base).__name__} has no loc and scale, so its columns cannot be standardized.")
    parameters |= {"loc": loc + scale * base.loc, "scale": scale * base.scale}
    return type(base)(**parameters, validate_args=False).to_event(1)
