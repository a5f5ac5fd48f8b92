"""log p(x) by annealed importance sampling, from the prior to the posterior and, for simulated data, back."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from scipy.special import stdtrit

from aevb.arrays import row_keys
from aevb.inference import hmc
from aevb.inference.importance import log_mean_exp
from aevb.models import GenerativeModel
from aevb.models.compilation import compiled

CHUNK = 100  # temperatures in one compiled call
TARGET_ACCEPTANCE = 0.65  # Wu, Burda, Salakhutdinov and Grosse (2017)
SCHEDULES = ("sigmoid", "linear")


class AnnealingOptions(NamedTuple):
    """How chains are annealed.

    Args:
        num_chains: Chains per datapoint, over which w is averaged.
        num_leapfrog: Leapfrog steps per transition.
        schedule: ``"sigmoid"``, with small steps at both ends, or ``"linear"``.
        progress: Called from time to time with the fraction of the work done.
    """

    num_chains: int = 16
    num_leapfrog: int = 10
    schedule: str = "sigmoid"
    progress: Callable[[float], None] | None = None


def ais(
    generative: GenerativeModel,
    recognition: None,
    x: Array,
    keys: Array,
    num_samples: int = 1000,
    **options,
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    r"""Estimate log p(x) by annealed importance sampling with Hybrid Monte Carlo.

    .. math:: \log w = \sum_t (\beta_t - \beta_{t-1}) \log p(x | z_{t-1}), \quad
        z_t \sim T_t(z | z_{t-1}) \text{ leaving } p(z)\, p(x|z)^{\beta_t} \text{ invariant}, \quad z_0 \sim p(z)

    Neal, "Annealed importance sampling" (2001); for decoders: Wu, Burda, Salakhutdinov and Grosse, "On the quantitative
    analysis of decoder-based generative models" (2017). The average of w over chains is an unbiased estimate of p(x);
    its logarithm is too low on average. Step sizes are tuned in a first pass with a quarter of the chains and stay
    fixed in the second, because adapting them to a chain's own past would bias the estimate.

    Args:
        generative: p(z) p(x|z).
        recognition: Not used.
        x: Datapoints, (N, D).
        keys: One per datapoint, (N,).
        num_samples: Number of temperatures, each with one transition.
        options: See :class:`AnnealingOptions`.

    Returns:
        Values (N,), standard errors (N,), and the diagnostics ``effective_sample_size`` in chains and ``acceptance``.
    """
    del recognition
    how = AnnealingOptions(**options)
    betas = temperatures(num_samples, how.schedule)
    z = _prior_samples(generative, x, keys, num_chains=how.num_chains)
    step_sizes = _tuned_step_sizes(generative, x, keys, betas, how)
    log_weights, acceptance = _anneal(generative, z, x, _fold(keys, 2), betas, step_sizes, how)
    values, std_errors, sizes = _average(log_weights)
    return values, std_errors, {"effective_sample_size": sizes, "acceptance": acceptance}


class Bidirectional(NamedTuple):
    """Stochastic bounds on log p(x) for data simulated from the model, each (N,)."""

    lower: np.ndarray  # annealed from the prior: at most log p(x) on average
    upper: np.ndarray  # annealed from the posterior: at least log p(x) on average
    x: np.ndarray  # (N, D)
    z: np.ndarray  # (N, J): the z that generated x, an exact sample from its posterior


def bidirectional(
    generative: GenerativeModel,
    key: Array,
    num_datapoints: int = 100,
    num_samples: int = 1000,
    **options,
) -> Bidirectional:
    r"""Bound log p(x) of simulated data from both sides; the gap shows how far annealing can be trusted.

    .. math:: E \log \bar w_\rightarrow \le \log p(x) \le -E \log \bar w_\leftarrow

    with :math:`w_\rightarrow` annealed from the prior to the posterior and :math:`w_\leftarrow` from an exact posterior
    sample, the z that generated x, to the prior (Grosse, Ghahramani and Adams, "Sandwiching the marginal likelihood
    using bidirectional Monte Carlo", 2015).

    Args:
        generative: p(z) p(x|z).
        key: Random key for the data and for all sampling.
        num_datapoints: N, how many x to simulate.
        num_samples: Number of temperatures.
        options: See :class:`AnnealingOptions`; ``num_chains`` are per datapoint and direction, and those from the
            posterior all start at the one exact sample.
    """
    key_data, key = jax.random.split(key)
    z, x = _simulate(generative, jax.random.split(key_data, num_datapoints))
    keys = row_keys(key, x)
    how = AnnealingOptions(**options)
    betas = temperatures(num_samples, how.schedule)
    step_sizes = _tuned_step_sizes(generative, x, keys, betas, how)
    prior = _prior_samples(generative, x, keys, num_chains=how.num_chains)
    lower, _ = _anneal(generative, prior, x, _fold(keys, 2), betas, step_sizes, how)
    exact = jnp.repeat(z[:, None], how.num_chains, axis=1)
    # Step t goes from temperature t to t - 1, with the step size tuned for the latter.
    back = np.concatenate([step_sizes[-2::-1], step_sizes[:1]])
    upper, _ = _anneal(generative, exact, x, _fold(keys, 3), betas[::-1], back, how)
    return Bidirectional(log_mean_exp(lower), -log_mean_exp(upper), np.asarray(x), np.asarray(z))


def temperatures(num: int, schedule: str = "sigmoid") -> np.ndarray:
    """Return 0 = beta_0 < ... < beta_num = 1.

    Example:
        >>> temperatures(4, "linear")
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    t = np.linspace(0, 1, num + 1)
    if schedule == "linear":
        return t
    sigmoid = 1 / (1 + np.exp(-4 * (2 * t - 1)))  # from -4 to 4, as in Wu et al.
    return (sigmoid - sigmoid[0]) / (sigmoid[-1] - sigmoid[0])


def _anneal(generative, z, x, keys, betas, step_sizes, how: AnnealingOptions):
    """Return log weights (N, C) of chains z (N, C, J) along betas (T + 1,) with step sizes (T, N), and acceptance (N,).

    It runs in compiled chunks; between them Python reports progress and handles Ctrl-C.
    """
    T = len(step_sizes)
    chunk = min(CHUNK, T)
    padding = -T % chunk  # repeating the last temperature adds nothing to the weights
    betas = np.pad(betas, (0, padding), mode="edge").astype(np.float32)
    step_sizes = np.pad(step_sizes, ((0, padding), (0, 0)), mode="edge").astype(np.float32)
    log_weights, acceptance = np.zeros(z.shape[:2]), []
    for start in range(0, T, chunk):
        part = slice(start, start + chunk)
        z, added, accepted = _anneal_chunk(
            generative,
            z,
            x,
            _fold(keys, start),
            betas[start : start + chunk + 1],
            step_sizes[part],
            num_leapfrog=how.num_leapfrog,
        )
        log_weights += np.asarray(added, np.float64)
        acceptance.append(np.asarray(accepted))
        if how.progress is not None:
            how.progress(min(1.0, (start + chunk) / T))
    return log_weights, np.mean(acceptance, axis=0)


@compiled("num_leapfrog")
def _anneal_chunk(generative, z, x, keys, betas, step_sizes, *, num_leapfrog):
    def step(carry, inputs):
        z, log_weights = carry
        beta_from, beta_to, step_size, index = inputs
        log_weights = log_weights + (beta_to - beta_from) * _log_likelihoods(generative, x, z)
        z, acceptance = _move_all(generative, z, x, _fold(keys, index), beta_to, step_size, num_leapfrog)
        return (z, log_weights), acceptance.mean(1)

    inputs = (betas[:-1], betas[1:], step_sizes, jnp.arange(len(step_sizes)))
    (z, log_weights), acceptance = lax.scan(step, (z, jnp.zeros(z.shape[:2])), inputs)
    return z, log_weights, acceptance.mean(0)


def _tuned_step_sizes(generative, x, keys, betas, how: AnnealingOptions):
    """Return step sizes (T, N) from a separate pass that adapts them to the acceptance rate."""
    z = _prior_samples(generative, x, _fold(keys, 1), num_chains=max(1, how.num_chains // 4))
    log_step_sizes = jnp.full(len(keys), jnp.log(0.5))
    T = len(betas) - 1
    chunk = min(CHUNK, T)
    targets = np.pad(betas[1:], (0, -T % chunk), mode="edge").astype(np.float32)
    found = []
    for start in range(0, T, chunk):
        z, log_step_sizes, steps = _tune_chunk(
            generative,
            z,
            x,
            _fold(_fold(keys, 1), start),
            targets[start : start + chunk],
            log_step_sizes,
            num_leapfrog=how.num_leapfrog,
        )
        found.append(np.asarray(steps))
        if how.progress is not None:
            how.progress(0.0)
    return np.concatenate(found)[:T]


@compiled("num_leapfrog")
def _tune_chunk(generative, z, x, keys, betas, log_step_sizes, *, num_leapfrog):
    def step(carry, inputs):
        z, log_step_sizes = carry
        beta, index = inputs
        z, acceptance = _move_all(generative, z, x, _fold(keys, index), beta, jnp.exp(log_step_sizes), num_leapfrog)
        log_step_sizes = hmc.adapt(log_step_sizes, acceptance.mean(1), TARGET_ACCEPTANCE, gain=0.2)
        return (z, log_step_sizes), jnp.exp(log_step_sizes)

    (z, log_step_sizes), steps = lax.scan(step, (z, log_step_sizes), (betas, jnp.arange(len(betas))))
    return z, log_step_sizes, steps


def _move_all(generative, z, x, keys, beta, step_sizes, num_leapfrog):
    """Make one transition per chain, (N, C, J), that leaves p(z) p(x|z)^beta invariant."""

    def move(key, z, x, step_size):
        def log_density(z):
            return generative.latent_distribution(x).log_prob(z) + beta * generative.log_likelihood(x, z)

        return hmc.transition(log_density, key, z, step_size, num_leapfrog)

    chain_keys = jax.vmap(lambda key: jax.random.split(key, z.shape[1]))(keys)
    return jax.vmap(jax.vmap(move, (0, 0, None, None)))(chain_keys, z, x, step_sizes)


def _log_likelihoods(generative, x, z):
    return jax.vmap(lambda x, z: jax.vmap(lambda z: generative.log_likelihood(x, z))(z))(x, z)


@compiled("num_chains")
def _prior_samples(generative, x, keys, *, num_chains):
    def draw(x, key):
        return generative.latent_distribution(x).sample(key, (num_chains,))

    return jax.vmap(draw)(x, keys)  # (N, C, J)


@compiled()
def _simulate(generative, keys):
    def simulate(key):
        key_z, key_x = jax.random.split(key)
        z = generative.latent_distribution().sample(key_z)
        return z, generative.decoder(z).sample(key_x)

    return jax.vmap(simulate)(keys)


def _average(log_weights):
    """Return log of the average weight, its standard error by the delta method, and the effective number of chains."""
    C = log_weights.shape[1]
    values = log_mean_exp(log_weights)
    relative_variance = np.var(np.exp(log_weights - values[:, None]), axis=1, ddof=1)
    # The variance over a few chains is itself uncertain. Scaling by the ratio of Student's quantile to the normal one
    # makes 1.96 standard errors a 95% interval; without it, intervals with 16 chains covered 93.5%.
    student = stdtrit(C - 1, 0.975) / 1.96
    return values, student * np.sqrt(relative_variance / C), C / (1 + relative_variance * (C - 1) / C)


def _fold(keys, index):
    return jax.vmap(lambda key: jax.random.fold_in(key, index))(keys)
