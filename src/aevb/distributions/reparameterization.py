"""The reparameterization trick: z = g_phi(epsilon), where epsilon has no parameters.

This file contains the dispatch; each of the paper's routes has its own file: `inverse_cdf`, `location_scale`,
`composition`, and `numerical` for what none of the three covers.

Paper: §2.4.
"""

from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple

from jax import Array
from jax.tree_util import Partial
from numpyro.distributions import Distribution, Uniform

from aevb.errors import WrongTypeError


class Reparameterization(NamedTuple):
    """The two halves of a reparameterized distribution: p(epsilon) and g_phi."""

    noise: Distribution
    transform: Callable[[Array], Array]


@singledispatch
def reparameterize(distribution: Distribution) -> Reparameterization:
    r"""Split a distribution into noise without parameters and a differentiable transformation of it.

    .. math:: z = g_\phi(\epsilon), \qquad \epsilon \sim p(\epsilon)

    The route is chosen from the distribution's type: location-scale or a closed-form inverse CDF where there is one, a
    composition of other reparameterizations, and a numerical inverse CDF for any other univariate density. To add your
    own distribution, register a function that returns the pair: ``@reparameterize.register(MyDistribution)``.

    Args:
        distribution: A continuous numpyro distribution, with any batch and event shape.

    Returns:
        ``noise``, a distribution without parameters and with the same batch shape, and ``transform``, which maps noise
        of any leading sample shape to draws of ``distribution``. ``transform`` is a pytree that contains the
        distribution's parameters: gradients flow to them, and it can be passed through ``jit`` and ``vmap``.

    Raises:
        WrongTypeError: ``distribution`` is discrete, or multivariate without a route. It is both a TypeError and a
            ValueError.

    Example:
        >>> import jax
        >>> from aevb.distributions import Gamma, reparameterize
        >>> def mean_of_draws(concentration):
        ...     noise, transform = reparameterize(Gamma(concentration, 2.0))
        ...     return transform(noise.sample(jax.random.key(0), (10_000,))).mean()
        >>> print(f"{jax.grad(mean_of_draws)(3.0):.1f}")  # the mean is concentration / 2
        0.5

    Paper: eqs. (4), (5), and (17), §2.4.
    """
    given = f"the class {distribution.__name__}" if isinstance(distribution, type) else repr(distribution)
    raise WrongTypeError(
        f"reparameterize(distribution): expected a numpyro distribution, got {given}. "
        "Pass an instance such as aevb.distributions.Normal(0.0, 1.0)."
    )


def register(family: type[Distribution], noise: Callable[[Distribution], Distribution]):
    """Register `function(q, epsilon)` as g_phi of `family`, with `noise(q)` as p(epsilon)."""

    def decorate(function):
        def reparameterize_family(q):
            return Reparameterization(noise(q), Partial(function, q))

        reparameterize.register(family, reparameterize_family)
        return function

    return decorate


def uniform_noise(q: Distribution) -> Distribution:
    """Return epsilon ~ U(0, 1) for each element of a draw of `q`."""
    return elementwise(Uniform(0.0, 1.0), q.batch_shape, q.event_shape)


def elementwise(standard: Distribution, batch_shape, event_shape) -> Distribution:
    """Return independent copies of a univariate `standard`, one for each element."""
    noise = standard.expand((*batch_shape, *event_shape))
    return noise.to_event(len(event_shape)) if event_shape else noise
