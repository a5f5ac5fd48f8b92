"""Assemble models from standard and user-defined parts, and refuse parts that do not match."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from numpyro.distributions import Distribution, biject_to

from aevb.arrays import filled
from aevb.distributions import has_real_support
from aevb.errors import WrongTypeError
from aevb.models.covariates import emphasized, with_covariates
from aevb.models.datapoint import Datapoint
from aevb.models.generative import GenerativeModel, conditions
from aevb.models.parameters import join, split
from aevb.models.recognition import RecognitionModel, noise_of
from aevb.models.standard import standard_models
from aevb.models.table import table_models
from aevb.networks import NetworkKind, initialize
from aevb.settings import OWN_PARTS as OWN_PARTS


class OwnParts(NamedTuple):
    """User-defined parts of a model; None for the standard ones."""

    prior: Any = None
    encoder: Any = None
    decoder: Any = None


class Given(NamedTuple):
    """What rows are conditioned on, as their models see it."""

    size: int = 0  # the number of features; 0 for nothing
    prior: bool = False  # whether p(z) depends on it too
    indicators: tuple[int, ...] = ()  # the places of the features that are labels, which must be heard from the start

    def read_by(self, models):
        """Return models that read it; see :func:`aevb.models.covariates.with_covariates`."""
        return with_covariates(models, self.size, prior=self.prior) if self.size else models

    def emphasized(self, models):
        """Return models with initial values that react to labels; see :func:`aevb.models.covariates.emphasized`."""
        return emphasized(models, self.size, self.indicators) if self.indicators else models

    def example(self, data_dim: int) -> Any:
        """Return a datapoint (D,) of zeros, conditioned on zeros."""
        x = filled(data_dim, 0)
        return Datapoint(x, given=filled(self.size, 0)) if self.size else x


NOTHING_GIVEN = Given()


def assemble(
    sizes,
    likelihood: str,
    activation: str,
    units,
    init: str,
    key,
    *,
    posterior: str = "gaussian",
    network: str | NetworkKind = "mlp",
    **own,
) -> tuple[GenerativeModel, RecognitionModel]:
    """Return models with initial values; user-defined parts keep their own.

    Args:
        sizes: D, J and the widths of the hidden layers.
        likelihood: See :func:`standard_models`.
        activation: Activation of the hidden layers, see :func:`standard_models`.
        units: Means and standard deviations of the columns, or None; see :func:`standard_models`.
        init: See :func:`aevb.networks.initialize`.
        key: Random key for the initial values.
        posterior: See :func:`standard_models`.
        network: See :func:`standard_models`.
        own: User-defined parts, see :class:`OwnParts`, and ``given``, a :class:`Given`.
    """
    given, parts = own.pop("given", NOTHING_GIVEN), OwnParts(**own)
    likelihood = likelihood if parts.decoder is None else "gaussian"  # the standard decoder is discarded
    names = {"likelihood": likelihood, "activation": activation, "posterior": posterior, "network": network}
    models = _starting_models(sizes, names, units, key, init, given)
    return _with_own(models, parts)


def assemble_table(columns, shape, init: str, key, **own) -> tuple[GenerativeModel, RecognitionModel]:
    """Return models of a table with initial values; user-defined parts keep their own.

    Args:
        columns: The columns, see :class:`aevb.models.Column`.
        shape: J, the widths of the hidden layers, the activation, the posterior, whether entries may be missing, and
            the network; see :func:`aevb.models.table_models`.
        init: See :func:`aevb.networks.initialize`.
        key: Random key for the initial values.
        own: User-defined parts, see :class:`OwnParts`, ``posterior``, and ``given``, a :class:`Given`.
    """
    own.pop("posterior", None)
    given = own.pop("given", NOTHING_GIVEN)
    return _with_own(_starting_table(columns, shape, key, init, given), OwnParts(**own))


@eqx.filter_jit
def _starting_table(columns, shape, key, init, given):
    parameters, constants, skeleton = split(given.read_by(table_models(columns, *shape)))
    return given.emphasized(join(initialize(parameters, key, init), constants, skeleton))


def _with_own(models, own: OwnParts):
    """Return the models with user-defined parts in place of the standard ones."""
    generative, recognition = models
    prior = generative.prior if own.prior is None else own.prior
    decoder = generative.decoder if own.decoder is None else own.decoder
    encoder = recognition.encoder if own.encoder is None else own.encoder
    return GenerativeModel(prior, decoder), RecognitionModel(encoder)


@eqx.filter_jit  # one program; one per array would take a second longer
def _starting_models(sizes, names, units, key, init, given):
    parameters, constants, skeleton = split(given.read_by(standard_models(*sizes, **names, units=units)))
    return given.emphasized(join(initialize(parameters, key, init), constants, skeleton))


def check_models(
    generative: GenerativeModel,
    recognition: RecognitionModel | None,
    data_dim: int,
    latent_dim: int,
    estimator: Callable,
    num_samples: int,
    given: Given = NOTHING_GIVEN,
) -> None:
    """Refuse parts that do not match, and an estimator that cannot handle them; no estimate is computed."""
    x, z, key = given.example(data_dim), filled(latent_dim, 0), jax.random.key(0)
    parts: dict[str, tuple[Callable, tuple, str]] = {
        "prior": (lambda: generative.latent_distribution(x), z.shape, "latent_dim"),
        "decoder": (lambda: generative.decoder(z, *conditions(x)), (data_dim,), "the number of columns of X"),
    }
    if recognition is not None:
        parts["encoder"] = (lambda: recognition(x), z.shape, "latent_dim")
    for name, (part, expected, meaning) in parts.items():
        shape = jax.eval_shape(lambda part=part, name=name: _as_distribution(part, name).sample(key)).shape
        if shape != expected:
            raise ValueError(f"{name}: its draws have shape {shape}, expected {expected}: {meaning}.")
    if recognition is None:
        check_real_support(generative.latent_distribution(x))
        return
    _check_supports(recognition(x), generative.latent_distribution(x))
    noise = jax.eval_shape(lambda: noise_of(estimator, recognition, x).sample(key, (num_samples,)))
    jax.eval_shape(lambda noise: estimator(generative, recognition, x, noise), noise)


def _check_supports(q, prior):
    """Refuse a posterior whose support exceeds the prior's: the bound would be minus infinity."""
    to_support = biject_to(q.support)
    real = jnp.ones(to_support.inverse_shape(q.event_shape))
    z = jnp.stack([jnp.asarray(to_support(3 * real)), jnp.asarray(to_support(-3 * real))])
    if not jnp.all(prior.support(z)):
        raise ValueError(
            f"prior: its support is {prior.support}, but the posterior's, {q.support}, exceeds it. "
            "Give a posterior=... with the same support, such as 'gamma' for positive z, 'beta' for z between 0 and 1, "
            "'dirichlet' for z on the simplex, or another prior."
        )


def check_real_support(prior):
    """Refuse a prior whose support is not all real vectors: Hybrid Monte Carlo would leave it."""
    if not has_real_support(prior):
        raise ValueError(
            "prior: without an encoder z is sampled by Hybrid Monte Carlo over all real numbers, but the prior's "
            f"support is {prior.support}. Give a prior on the real line, leave posterior='gaussian', "
            "or use learner='aevb'."
        )


def _as_distribution(part, name):
    try:
        value = part()
    except TypeError as error:
        raise WrongTypeError(f"{name}: calling it failed: {error}") from error
    if not isinstance(value, Distribution):
        raise WrongTypeError(f"{name}: returns a {type(value).__name__}; expected a NumPyro distribution.")
    return value
