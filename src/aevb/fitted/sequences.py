"""What can be done with a fitted model of sequences: states, bounds, likelihoods, draws.

Sequences are :class:`aevb.data.sequence_format.Encoded`; results are lists with one entry per sequence, in stored
numbers where they are values.

Paper: §7.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from aevb.arrays import fingerprint
from aevb.distributions import reparameterize
from aevb.estimators import Terms
from aevb.fitted.filtering import (
    NUM_FILTERS,
    draws_of,
    filter_with,
    filters_with,
    log_weights_at,
    states_given_all,
)
from aevb.fitted.model import FittedModel
from aevb.inference.importance import estimate_from
from aevb.inference.result import LogLikelihood
from aevb.models.sequence import steps_of
from aevb.models.simulation import simulate
from aevb.training.buckets import buckets_of
from aevb.training.evaluation import rowwise, terms_of_row

STEPS_AT_ONCE = 2048  # of all sequences in a batch
MAX_BATCH = 32
DRAWS_AT_ONCE, STEPS_OF_DRAWS = 50, 50_000  # of one sequence, and their steps
MAX_K_HAT = 0.7  # of reliable importance weights


def over_sequences(function: Callable, model: FittedModel, encoded: Any, *arguments: Any, more: int = 0) -> list:
    """Return ``function(models, x, *arguments)`` for each sequence, padded to one of a few lengths.

    Args:
        function: Of the pair (generative, recognition) and one padded datapoint.
        model: The model.
        encoded: The sequences.
        arguments: Other arguments, arrays.
        more: Steps of padding at least.
    """
    models, found = (model.generative, model.recognition), [None] * len(encoded.lengths)
    every = np.arange(len(encoded.lengths))
    together = encoded.padded_to
    for length, numbers in [(together + more, every)] if together else buckets_of(encoded.lengths + more):
        source = model.format.source(encoded.some(numbers), length)
        size = max(min(STEPS_AT_ONCE // length, MAX_BATCH, 1 << (len(numbers) - 1).bit_length()), 1)
        results = rowwise(function, models, source, np.arange(len(numbers)), *arguments, size=size)
        for place, number in enumerate(numbers):
            found[number] = jax.tree.map(lambda leaf, place=place: leaf[place], results)
    return found


def _trimmed(parts, lengths):
    """Return arrays (T, ...) without their padding."""
    return [part[:length] for part, length in zip(parts, lengths, strict=True)]


# ---- bounds and likelihoods ------------------------------------------------------------------------------------------


def lower_bound_terms(model: FittedModel, encoded: Any, num_samples: int, random_state: Any = None) -> Terms:
    """Return the bound of each sequence and its two terms, (n,), in nats: of the whole sequence, not per step."""
    parts = over_sequences(terms_of_row(model.bound, num_samples), model, encoded, model.key(random_state))
    return jax.tree.map(lambda *values: np.array(values), *parts)


def log_likelihood(
    model: FittedModel, encoded: Any, method: str = "importance", num_samples: int = 1000, random_state: Any = None
) -> LogLikelihood:
    r"""Estimate log p(x) of each sequence, with standard errors.

    Args:
        model: The model.
        encoded: The sequences.
        method: ``"importance"``, with draws of all states from q(z|x), or ``"particle-filter"``: 10 independent
            filters, among which the particles are divided.
        num_samples: Draws, or particles in all filters together.
        random_state: As in scikit-learn; None for the model's own.
    """
    weigh = _log_weights(num_samples) if method == "importance" else filters_with(-(-num_samples // NUM_FILTERS))
    log_weights = np.array(over_sequences(weigh, model, encoded, model.key(random_state)))
    values, std_errors, diagnostics = estimate_from(log_weights)
    if method != "importance":
        diagnostics = {}
    effort = f"{num_samples:,} {'samples' if method == 'importance' else f'particles in {NUM_FILTERS} filters'}"
    reasons = _doubts(method, num_samples, std_errors, diagnostics)
    return LogLikelihood(values, std_errors, method, effort, diagnostics, reasons)


def _doubts(method, num_samples, std_errors, diagnostics) -> tuple[str, ...]:
    """Return why estimates should not be trusted, one sentence per reason."""
    n, reasons = len(std_errors), []
    if len(poor := np.flatnonzero(std_errors > 1)):
        reasons.append(
            f"{len(poor)} of {n} sequences have a standard error above 1 nat, the first of them sequence {poor[0]}: "
            f"give more than num_samples={num_samples}."
        )
    if method == "importance" and len(poor := np.flatnonzero(diagnostics["k_hat"] > MAX_K_HAT)):
        reasons.append(
            f"{len(poor)} of {n} sequences have k-hat above {MAX_K_HAT}: few draws decide, and the estimate is too "
            'low. Use method="particle-filter", or train for longer.'
        )
    return tuple(reasons)


@cache  # one function for the same number, so that its compiled program is reused
def _log_weights(num_samples):
    def log_weights(models, x, key):
        generative, recognition = models
        q = recognition(x)
        noise, transform = reparameterize(q)

        at_once = max(min(DRAWS_AT_ONCE, STEPS_OF_DRAWS // q.num_steps), 1)

        def chunk(key):
            epsilon: Any = noise.sample(key, (at_once,))
            z = transform(epsilon)
            return log_weights_at(generative, q, x, z)

        keys = jax.random.split(jax.random.fold_in(key, fingerprint(x)), -(-num_samples // at_once))
        return lax.map(chunk, keys).ravel()[:num_samples]

    return log_weights


# ---- filtering -------------------------------------------------------------------------------------------------------


def filtered(model: FittedModel, encoded: Any, num_particles: int, random_state: Any = None) -> list:
    """Return the filtered mean and standard deviation of each state, and log p(x_t | x_{1:t-1}), for each sequence."""
    found = over_sequences(filter_with(num_particles), model, encoded, model.key(random_state))
    return [
        (mean[:length], std[:length], log_p[:length])
        for (mean, std, log_p), length in zip(found, encoded.lengths, strict=True)
    ]


# ---- states and values -----------------------------------------------------------------------------------------------


def smoothed(model: FittedModel, encoded: Any, num_draws: int) -> tuple[list, list]:
    """Return mean and standard deviation of q(z_t|x) for each sequence, (T_i, J), from this many draws.

    Draws are in pairs of opposite noise: for a linear chain the means are exact.
    """
    found = over_sequences(_moments(-(-num_draws // 2)), model, encoded, model.key())
    means, stds = zip(*found, strict=True)
    return _trimmed(means, encoded.lengths), _trimmed(stds, encoded.lengths)


@cache
def _moments(num_pairs):
    def moments(models, x, key):
        z = states_of_q(models, x, jax.random.fold_in(key, fingerprint(x)), num_pairs)
        return jnp.mean(z, axis=0), jnp.std(z, axis=0)

    return moments


def states_of_q(models: tuple, x: Any, key: Array, num_pairs: int) -> Array:
    """Return draws of all states from q(z|x), (2 num_pairs, T, J)."""
    return draws_of(models[1](x), key, num_pairs)


def sample(model: FittedModel, encoded: Any, random_state: Any = None, *, mean: bool = False) -> list:
    """Draw sequences like these (their lengths, times and what they are conditioned on), (T_i, D) each."""
    keys = jax.random.split(model.key(random_state), len(encoded.lengths))
    data = jax.random.key_data(keys)
    parts = over_sequences(_sample_mean if mean else _sample, model, _numbered(encoded), data)
    return _trimmed(parts, encoded.lengths)


def _numbered(encoded):
    """Return sequences whose first value is their number, by which they find their key."""
    values = [np.full_like(rows, number) for number, rows in enumerate(encoded.values)]
    return encoded._replace(values=values)


def _sample(models, x, data, mean=False):
    key = jax.random.wrap_key_data(data[x.values[0, 0].astype(int)])
    return simulate(models[0].prior, models[0].decoder, steps_of(x.given), key, mean=mean)


def _sample_mean(models, x, data):
    return _sample(models, x, data, mean=True)


def impute(model: FittedModel, encoded: Any, num_draws: int, random_state: Any = None) -> tuple[list, list]:
    """Return the best guess of each entry given all that is observed, (T_i, D), and draws, (num_draws, T_i, D).

    Numbers are expectations, labels the most probable ones; observed entries are returned unchanged. States are those
    of q, or of a particle filter where it is closer to the posterior, see
    :func:`~aevb.fitted.filtering.states_given_all`.
    """
    guesses, draws, _ = replicate(model, encoded, num_draws, random_state, states_given_all)

    def kept(parts):
        pairs = zip(encoded.values, parts, strict=True)
        return [np.where(np.isnan(rows), part, rows) for rows, part in pairs]

    return kept(guesses), kept(draws)


def replicate(
    model: FittedModel, encoded: Any, num_draws: int, random_state: Any = None, states: Callable = states_of_q
) -> tuple[list, list, list]:
    """Draw each entry, observed or not: states from q(z|x), or as `states` draws them, entries from p(x_t|z_t).

    Returns:
        Lists of the best guesses, (T_i, D), of the draws, (num_draws, T_i, D), and of the states' means, (T_i, J).
    """
    found = over_sequences(_complete(num_draws, states), model, encoded, model.key(random_state))
    guesses, draws, means = zip(*found, strict=True)
    steps = [np.swapaxes(drawn, 0, 1) for drawn in draws]
    draws = [np.swapaxes(part, 0, 1)[:num_draws] for part in _trimmed(steps, encoded.lengths)]
    return _trimmed(guesses, encoded.lengths), draws, _trimmed(means, encoded.lengths)


NUM_IMPUTED = 100  # draws of all states for an imputation


@cache
def _complete(num_draws, states):
    num_pairs = max(NUM_IMPUTED, num_draws + 1) // 2

    def complete(models, x, key):
        generative, _ = models
        z = states(models, x, jax.random.fold_in(key, fingerprint(x)), num_pairs)
        p = generative.decoder.at(z, x.given)
        guess = p.row_from_statistics(jnp.mean(p.statistics(), axis=0))
        key = jax.random.fold_in(key, fingerprint(x) + 1)
        drawn = generative.decoder.at(z[:num_draws], x.given).sample(key) if num_draws else guess[None]
        return guess, drawn, jnp.mean(z, axis=0)

    return complete


def reconstruct(model: FittedModel, encoded: Any) -> list:
    """Return E[x_t|z_t] averaged over q(z|x), (T_i, D): of binary columns probabilities, of labels the modes."""
    return _trimmed(over_sequences(_expectation, model, encoded, model.key()), encoded.lengths)


def _expectation(models, x, key):
    z = states_of_q(models, x, jax.random.fold_in(key, fingerprint(x)), NUM_IMPUTED // 2)
    return jnp.mean(models[0].decoder.at(z, x.given).expectation, axis=0)
