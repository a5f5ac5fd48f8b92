"""Encoder diagnostics: active units, unused dimensions, and the gap between the bound and log p(x)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import optax
from jax import Array, lax
from numpyro.distributions.kl import kl_divergence

from aevb.arrays import row_keys
from aevb.inference.result import LogLikelihood
from aevb.models import Datapoint, GenerativeModel, RecognitionModel
from aevb.models.compilation import compiled

THRESHOLD = 0.01  # share of the prior variance; Burda, Grosse and Salakhutdinov (2016) with the prior N(0, I)


class ActiveUnits(NamedTuple):
    """Which latent dimensions respond to the data."""

    variance: np.ndarray  # (J,): of the posterior means over the data, in units of the prior variance
    is_active: np.ndarray  # (J,)

    @property
    def num_active(self) -> int:
        """Number of active dimensions."""
        return int(self.is_active.sum())


def active_codes(
    codes: np.ndarray, prior: dist.Distribution | None = None, threshold: float = THRESHOLD
) -> ActiveUnits:
    r"""Find the active latent dimensions, those whose posterior mean depends on the datapoint.

    .. math:: \mathrm{Var}_x \left( E_{q(z|x)}[z_j] \right) > 0.01 \, \mathrm{Var}_{p(z)}(z_j)

    Burda, Grosse and Salakhutdinov, "Importance weighted autoencoders" (2016), section 5.2, where the prior is N(0, I).
    This is the definition that the report, the interactive page and all messages use.

    Args:
        codes: Posterior means, (N, J), as returned by :meth:`aevb.VAE.transform`.
        prior: p(z), with event shape (J,); None for N(0, I).
        threshold: Share of the prior variance above which a dimension is active.

    Example:
        >>> active_codes(np.array([[1.0, 0.01], [-1.0, -0.01]])).is_active.tolist()
        [True, False]
    """
    variance = np.var(np.asarray(codes, np.float64), axis=0) / _prior_variance(prior)
    return ActiveUnits(variance, variance > threshold)


def active_units(recognition: RecognitionModel, x: Array | np.ndarray, threshold: float = THRESHOLD) -> ActiveUnits:
    r"""Find the latent dimensions whose posterior mean depends on the datapoint, under the prior N(0, I).

    It is :func:`active_codes` of the means of q(z|x).

    Args:
        recognition: q(z|x).
        x: Datapoints, (N, D).
        threshold: The variance above which a dimension is active.

    Example:
        >>> from aevb.models import GaussianMLP
        >>> active_units(RecognitionModel(GaussianMLP(3, (5,), 2)), np.ones((4, 3))).is_active.tolist()
        [False, False]
    """
    return active_codes(np.asarray(_means(recognition, jnp.asarray(x, jnp.result_type(float)))), threshold=threshold)


@dataclass(frozen=True)
class Collapse:
    """How much information each latent dimension carries about the data."""

    divergence: np.ndarray  # (J,): KL(q(z_j|x) || p(z_j)) in nats, averaged over the data
    dead: tuple[int, ...]  # the dimensions that are not active, see :func:`active_codes`

    def __str__(self) -> str:
        J = len(self.divergence)
        if not self.dead:
            return f"all {J} latent dimensions carry information"
        return f"{len(self.dead)} of {J} latent dimensions carry no information: {', '.join(map(str, self.dead))}"


def posterior_collapse(
    generative: GenerativeModel, recognition: RecognitionModel, x: Any, threshold: float = THRESHOLD
) -> Collapse:
    r"""Find the latent dimensions that are not active, and measure the average KL divergence of each in nats.

    .. math:: \frac{1}{N} \sum_i D_{KL}(q(z_j | x^{(i)}) \| p(z_j))

    Args:
        generative: p(z) p(x|z), with a prior of independent dimensions.
        recognition: q(z|x), of independent dimensions.
        x: Datapoints, (N, D); a batched :class:`aevb.models.Datapoint` if entries are missing.
        threshold: See :func:`active_codes`.

    Raises:
        ValueError: The dimensions of q(z|x) or of p(z) are not independent.

    Example:
        >>> from aevb.models import BernoulliMLP, GaussianMLP, standard_normal
        >>> generative = GenerativeModel(standard_normal(2), BernoulliMLP(2, (5,), 3))
        >>> recognition = RecognitionModel(GaussianMLP(3, (5,), 2))
        >>> print(posterior_collapse(generative, recognition, np.ones((4, 3))))
        2 of 2 latent dimensions carry no information: 0, 1
    """
    x = x if isinstance(x, Datapoint) else jnp.asarray(x, jnp.result_type(float))
    divergence = np.asarray(_divergences((generative, recognition), x)).mean(axis=0)
    active = active_codes(np.asarray(_means(recognition, x)), generative.latent_distribution(), threshold)
    return Collapse(divergence, tuple(np.flatnonzero(~active.is_active).tolist()))


@dataclass(frozen=True)
class Gap:
    """log p(x) - lower bound in nats, split by its causes; arrays (N,), with sampling errors."""

    log_likelihood: LogLikelihood
    lower_bound: np.ndarray
    amortization: np.ndarray  # a better encoder network would recover this
    amortization_std_errors: np.ndarray
    approximation: np.ndarray  # a better family of posteriors would recover this
    approximation_std_errors: np.ndarray

    def __str__(self) -> str:
        return (
            f"log p(x) {self.log_likelihood.mean:.2f} = lower bound {self.lower_bound.mean():.2f} + amortization gap "
            f"{self.amortization.mean():.2f} + approximation gap {self.approximation.mean():.2f}"
        )


def gap(
    generative: GenerativeModel,
    recognition: RecognitionModel,
    x: Array | np.ndarray,
    key: Array,
    num_samples: int = 1000,
    num_steps: int = 500,
    learning_rate: float = 0.02,
    **options,
) -> Gap:
    r"""Split log p(x) - lower bound into what a better encoder and what a better posterior family would recover.

    .. math:: \log p(x) - L(q_\phi) = \underbrace{\log p(x) - L(q^*)}_{\text{approximation}}
        + \underbrace{L(q^*) - L(q_\phi)}_{\text{amortization}}, \quad q^* = \arg\max_q L(q)

    with q* the best Gaussian with diagonal covariance for that one datapoint (Cremer, Li and Duvenaud, "Inference
    suboptimality in variational autoencoders", 2018), found by Adam starting from the encoder's output.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x).
        x: Datapoints, (N, D).
        key: Random key.
        num_samples: Samples for each bound, and for log p(x).
        num_steps: Steps of Adam, with a learning rate that falls to zero.
        learning_rate: Initial learning rate of Adam, in units of the encoder's standard deviations.
        options: Passed to :func:`~aevb.inference.marginal_likelihood.log_likelihood`, such as ``method``.
    """
    from aevb.inference.marginal_likelihood import log_likelihood  # BlackJAX is slow to import

    x = jnp.asarray(x, jnp.result_type(float))
    evidence = log_likelihood(generative, recognition, x, key, num_samples=num_samples, **options)
    keys = row_keys(jax.random.fold_in(key, 1), x)
    settings = {"num_samples": num_samples, "num_steps": num_steps, "learning_rate": learning_rate}
    terms, best_terms = (
        np.asarray(a, np.float64) for a in _bound_terms((generative, recognition), x, keys, **settings)
    )
    bound, best = terms.mean(axis=1), best_terms.mean(axis=1)
    bound_errors = best_terms.std(axis=1) / np.sqrt(num_samples)
    return Gap(
        evidence,
        bound,
        best - bound,
        (best_terms - terms).std(axis=1) / np.sqrt(num_samples),
        evidence.values - best,
        np.hypot(evidence.std_errors, bound_errors),
    )


@compiled("num_samples", "num_steps", "learning_rate")
def _bound_terms(models, x, keys, *, num_samples, num_steps, learning_rate):
    """Return samples of log p(x, z) - log q(z), (N, L), for the encoder's q and for the best Gaussian of each row."""
    generative, recognition = models
    optimizer = optax.adam(optax.cosine_decay_schedule(learning_rate, num_steps))

    def log_ratio(q, x, z):
        return generative.log_joint(x, z) - q.log_prob(z)

    def of_row(x, key):
        q = recognition(x)
        key_steps, key_terms = jax.random.split(key)

        def gaussian(change):
            shift, log_stretch = change  # in units of the encoder's q; all start near 0
            std = jnp.sqrt(q.variance)
            return dist.Normal(q.mean + std * shift, std * jnp.exp(log_stretch), validate_args=False).to_event(1)

        def negative_bound(change, key):
            best = gaussian(change)
            z = best.rsample(key, (8,))
            return -jnp.mean(jax.vmap(lambda z: log_ratio(best, x, z))(z))

        def ascend(carry, key):
            change, memory = carry
            updates, memory = optimizer.update(jax.grad(negative_bound)(change, key), memory)
            return (optax.apply_updates(change, updates), memory), None

        start = (jnp.zeros(q.event_shape), jnp.zeros(q.event_shape))
        (change, _), _ = lax.scan(ascend, (start, optimizer.init(start)), jax.random.split(key_steps, num_steps))
        best: Any = gaussian(change)

        def terms(key):
            # The same noise for both, if q is Gaussian.
            return log_ratio(q, x, q.sample(key)), log_ratio(best, x, best.sample(key))

        return lax.map(terms, jax.random.split(key_terms, num_samples), batch_size=50)

    return jax.vmap(of_row)(x, keys)


def _prior_variance(prior):
    """Return the variance of each latent dimension under the prior; 1 where it is unknown, zero or infinite."""
    if prior is None:
        return 1.0
    try:
        variance = np.asarray(prior.variance, np.float64)
    except NotImplementedError:
        return 1.0
    return np.where(np.isfinite(variance) & (variance > 0), variance, 1.0)


@compiled()
def _means(recognition, x):
    return jax.vmap(lambda x: recognition(x).mean)(x)


@compiled()
def _divergences(models, x):
    generative, recognition = models
    p = _factors("the prior", generative.latent_distribution())
    return jax.vmap(lambda x: kl_divergence(_factors("q(z|x)", recognition(x)), p))(x)


def _factors(name, distribution):
    """Return the independent dimensions of a distribution, as a batch."""
    if not isinstance(distribution, dist.Independent):
        raise ValueError(
            f"posterior_collapse compares single dimensions, but those of {name} are not independent: it is a "
            f"{type(distribution).__name__}. Use active_units, which works for any q(z|x)."
        )
    return distribution.base_dist
