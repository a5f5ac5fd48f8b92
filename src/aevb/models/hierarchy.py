"""Levels of latent variables: p from the top down, q from the bottom up, or as a ladder.

Paper: §7.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from numpyro.distributions import Distribution

from aevb.distributions import Chain, LogScaleNormal, Stack
from aevb.models.conditionals import Conditional, num_outputs
from aevb.models.families import POSTERIORS
from aevb.models.generative import GenerativeModel
from aevb.models.recognition import RecognitionModel
from aevb.networks import MLP, initialize

BOTTOM_UP, LADDER = "bottom-up", "ladder"
HIERARCHIES = (BOTTOM_UP, LADDER)
GAUSSIAN = "gaussian"  # the family of p(z|next level), and of all levels of a ladder


class Given(eqx.Module):
    """A factor of a chain that depends on one of the variables drawn before it.

    Args:
        conditional: Of that variable.
        parent: Its name.
    """

    conditional: Conditional
    parent: str = eqx.field(static=True)

    def __call__(self, z: dict[str, Array]) -> Distribution:
        """Return the distribution given those drawn before."""
        return self.conditional(z[self.parent])


class Combined(eqx.Module):
    r"""A factor of a ladder: what x says about a level, combined with p given the level above it.

    .. math:: \frac{1}{\sigma^2} = \frac{1}{\hat\sigma^2} + \frac{1}{\sigma_p^2}, \qquad
        \frac{\mu}{\sigma^2} = \frac{\hat\mu}{\hat\sigma^2} + \frac{\mu_p}{\sigma_p^2}

    Args:
        loc: :math:`\hat\mu`, (J,).
        log_scale: :math:`\log \hat\sigma`, (J,).
        prior: p(z|next level), a factor of p.
    """

    loc: Array
    log_scale: Array
    prior: Given

    def __call__(self, z: dict[str, Array]) -> Distribution:
        """Return the product of the two Gaussian densities, as a distribution."""
        p: Any = self.prior(z)
        p = p.base_dist
        excess = 2 * (p.log_scale - self.log_scale)  # the log of the ratio of precisions
        mu = p.loc + jax.nn.sigmoid(excess) * (self.loc - p.loc)
        log_sigma = p.log_scale - jax.nn.softplus(excess) / 2
        return LogScaleNormal(mu, log_sigma, validate_args=False).to_event(1)


class TopDown(eqx.Module):
    r"""The prior of a hierarchy: each level is drawn given the one above it.

    .. math:: p(z) = p(z_L) \prod_{l < L} p(z_l | z_{l+1})

    Args:
        top: :math:`p(z_L)`: a distribution, or a callable that returns one, whose parameters are learned.
        lower: :math:`p(z_l | z_{l+1})`, that of the level next to the data first.
    """

    top: Any
    lower: tuple[Conditional, ...]

    def __call__(self, *given: Any) -> Stack:
        """Return p(z), which does not depend on what a datapoint is conditioned on."""
        top = self.top if isinstance(self.top, Distribution) else self.top()
        return Stack(Chain({self.names[-1]: top, **self.factors()}), dict(zip(self.names, self.sizes, strict=True)))

    def factors(self) -> dict[str, Given]:
        """Return the factors below the top, in the order of drawing."""
        pairs = list(zip(self.names, self.names[1:], self.lower, strict=False))
        return {name: Given(part, above) for name, above, part in reversed(pairs)}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the levels, the one next to the data first."""
        return names_of(len(self.lower) + 1)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of variables of each level, the one next to the data first."""
        below = tuple(part.out_size for part in self.lower)
        return (*below, self.lower[-1].network.in_size)


class BottomUp(eqx.Module):
    r"""An encoder that draws each level given the one below it.

    .. math:: q(z|x) = q(z_1 | x) \prod_{l > 1} q(z_l | z_{l-1})

    Args:
        first: :math:`q(z_1 | x)`.
        upper: :math:`q(z_l | z_{l-1})`, from l = 2 on.
    """

    first: Callable[..., Distribution]
    upper: tuple[Conditional, ...]

    def __call__(self, x: Any) -> Stack:
        """Return q(z|x)."""
        names, first = names_of(len(self.upper) + 1), self.first(x)
        pairs = zip(names[1:], names, self.upper, strict=False)
        factors = {names[0]: first, **{name: Given(part, below) for name, below, part in pairs}}
        sizes = (first.event_shape[0], *(part.out_size for part in self.upper))
        return Stack(Chain(factors), dict(zip(names, sizes, strict=True)))


class Ladder(eqx.Module):
    r"""An encoder that draws levels from the top down, as p does, and shares p's networks.

    .. math:: q(z|x) = q(z_L | x) \prod_{l < L} q(z_l | z_{l+1}, x), \qquad
        q(z_l | z_{l+1}, x) \propto N(z_l; \hat\mu_l(x), \hat\sigma_l^2(x))\, p(z_l | z_{l+1})

    From the data up, each network reads what the one below it says about its level. (Sønderby, Raiko, Maaløe, Sønderby
    and Winther, "Ladder variational autoencoders", 2016, eqs. 11 to 19; there it reads hidden units, here
    :math:`\hat\mu_l` and :math:`\log \hat\sigma_l`, so that any encoder of Gaussians can be the first.) The networks
    between levels, those of p too, have shortcuts from their inputs to the means, without which upper levels are given
    up early: see decision 43.

    Args:
        first: :math:`\hat\mu_1, \hat\sigma_1` of x, as a distribution.
        upper: Those of the other levels, from l = 2 on.
        prior: p(z), see :func:`aevb.models.sharing.tied`; None while it is learned, as part of the generative model.
    """

    first: Callable[..., Distribution]
    upper: tuple[Conditional, ...]
    prior: TopDown | None = None

    def borrowing(self, generative: Any, recognition: Any) -> "Ladder":
        """Return the encoder with the prior of this generative model; None for nothing."""
        return Ladder(self.first, self.upper, None if generative is None else generative.prior)

    def __call__(self, x: Any) -> Stack:
        """Return q(z|x)."""
        assert self.prior is not None
        found: list[Any] = [self.first(x)]
        for part in self.upper:
            below = found[-1].base_dist
            found.append(part(jnp.concatenate([below.loc, below.log_scale], axis=-1)))
        names, of_p = self.prior.names, self.prior.factors()
        factors: dict[str, Any] = {names[-1]: found[-1]}
        for name, seen in reversed(list(zip(names[:-1], found, strict=False))):
            factors[name] = Combined(seen.base_dist.loc, seen.base_dist.log_scale, of_p[name])
        return Stack(Chain(factors), dict(zip(names, self.prior.sizes, strict=True)))


class OfLowest(eqx.Module):
    """A decoder that reads the level next to the data.

    Args:
        conditional: p(x|z_1).
        size: The number of variables of that level.
    """

    conditional: Callable[..., Distribution]
    size: int = eqx.field(static=True)

    def __call__(self, z: Array, *given: Any) -> Distribution:
        """Return p(x|z) for all levels (J,)."""
        return self.conditional(z[..., : self.size], *given)

    @property
    def units(self) -> Any:
        """The units of the data, as in :class:`aevb.models.Rescaled`; None if there are none."""
        return getattr(self.conditional, "units", None)

    @property
    def shared(self) -> Any:
        """The weights that do not depend on z."""
        return getattr(self.conditional, "shared", {})


def names_of(num_levels: int) -> tuple[str, ...]:
    """Return the names of levels, the one next to the data first.

    Example:
        >>> names_of(2)
        ('z1', 'z2')
    """
    return tuple(f"z{number + 1}" for number in range(num_levels))


def with_levels(
    models: tuple[Any, Any],
    levels: Sequence[int],
    hidden: Sequence[Sequence[int]],
    activation: str,
    *,
    posterior: str = GAUSSIAN,
    hierarchy: str = BOTTOM_UP,
    top: Any = None,
    has_shortcuts: bool = True,
) -> tuple[GenerativeModel, RecognitionModel]:
    """Return models with further levels above the one of the models given; all new parameters are zero.

    Args:
        models: The pair (generative, recognition) of x and the level next to it, whose prior is replaced.
        levels: The number of variables of each level, that of the models first.
        hidden: The widths of the hidden layers between a level and the one above it.
        activation: Of these layers.
        posterior: The family of q, a key of ``POSTERIORS``.
        hierarchy: One of ``HIERARCHIES``.
        top: The prior of the last level; None for the standard one.
        has_shortcuts: Whether the networks between the levels of a ladder have shortcuts.

    Example:
        >>> from aevb.models import standard_models
        >>> pair = standard_models(4, 3, (5,), "bernoulli")
        >>> generative, recognition = with_levels(pair, (3, 2), [(5,)], "tanh")
        >>> generative.latent_distribution().event_shape, recognition(jnp.zeros(4)).event_shape
        ((5,), (5,))
    """
    generative, recognition = models
    is_ladder = hierarchy == LADDER
    has_shortcuts = is_ladder and has_shortcuts
    lower, upper = [], []
    for below, above, widths in zip(levels, levels[1:], hidden, strict=False):
        lower.append(_between(above, tuple(widths), below, activation, GAUSSIAN, has_shortcuts))
        size, backwards = (2 * below if is_ladder else below), tuple(reversed(widths))
        upper.append(_between(size, backwards, above, activation, posterior, has_shortcuts))
    top = POSTERIORS[posterior].prior(levels[-1]) if top is None else top
    encoder = (Ladder if is_ladder else BottomUp)(recognition.encoder, tuple(upper))
    decoder = OfLowest(generative.decoder, levels[0])
    return GenerativeModel(TopDown(top, tuple(lower)), decoder), RecognitionModel(encoder)


def _between(in_size, hidden, out_size, activation, family, has_shortcuts):
    """Return the distribution of one level given another one; of a Gaussian, the first outputs are the means."""
    num_shortcuts = out_size if has_shortcuts else 0
    network = MLP(in_size, hidden, num_outputs(family, out_size), activation, num_shortcuts=num_shortcuts)
    return Conditional(network, family, out_size)


@eqx.filter_jit
def initialized_levels(models, shape, init: str, key, **options):
    """Return :func:`with_levels` with initial values of the new parameters; `shape` are its arguments by position."""
    generative, recognition = with_levels(models, *shape, **options)
    encoder: Any = recognition.encoder
    prior: Any = generative.prior
    lower, upper = initialize((prior.lower, encoder.upper), key, init)
    encoder = eqx.tree_at(lambda part: part.upper, encoder, upper)
    return GenerativeModel(TopDown(prior.top, lower), generative.decoder), RecognitionModel(encoder)
