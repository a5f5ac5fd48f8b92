"""Forecasts of sequences: draws of the steps after their end.

Paper: §7.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from aevb.arguments import check_parameter
from aevb.arrays import fingerprint
from aevb.fitted.filtering import draws_of, log_weights_at, one_filter
from aevb.fitted.model import FittedModel
from aevb.fitted.sequences import over_sequences
from aevb.models.sequence import steps_of
from aevb.models.simulation import simulate_after

NUM_PARTICLES = 500


@final
@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """Draws of the steps after the end of sequences, in the units of the data.

    Args:
        draws: (n, num_draws, steps, D); NaN for columns that the model does not learn.

    Example:
        >>> forecast = Forecast(np.linspace(0, 1, 101).reshape(1, 101, 1, 1))
        >>> forecast.mean.ravel().round(2).tolist(), forecast.interval(0.9).ravel().round(2).tolist()
        ([0.5], [0.05, 0.95])
        >>> forecast
        Forecast of 1 sequences, 1 steps, 1 columns: 101 draws
    """

    draws: np.ndarray

    def __repr__(self) -> str:
        n, num_draws, steps, D = self.draws.shape
        return f"Forecast of {n:,} sequences, {steps:,} steps, {D:,} columns: {num_draws:,} draws"

    @property
    def mean(self) -> np.ndarray:
        """The averages, (n, steps, D): of binary columns the probabilities of 1."""
        return self.draws.mean(axis=1)

    def quantiles(self, levels: Any) -> np.ndarray:
        """Return quantiles, (n, steps, D, Q), for levels (Q,) between 0 and 1."""
        return np.moveaxis(np.quantile(self.draws, np.asarray(levels, float), axis=1), 0, -1)

    def interval(self, level: float = 0.9) -> np.ndarray:
        """Return the low and the high end of the central interval with this probability, (n, steps, D, 2)."""
        check_parameter("level", level, kind=float, above=0, high=1)
        return self.quantiles([(1 - level) / 2, (1 + level) / 2])


def forecast(model: FittedModel, encoded: Any, steps: int, num_draws: int, random_state: Any = None) -> np.ndarray:
    r"""Draw the steps after the end of each sequence, (n, num_draws, steps, D).

    .. math:: z_T \sim p(z_T|x), \quad z_{T+1}, z_{T+2}, \dots \sim p(z_t | z_{t-1}, u_t), \quad x_t \sim p(x_t|z_t)

    which may depend on x_{t-1} too, the draw before.
    """
    run = _forecast(steps, -(-num_draws // 2))
    found = over_sequences(run, model, encoded, model.key(random_state), more=steps)
    return np.stack(found)[:, :num_draws]


def last_states(models: tuple, x: Any, key: Array, num_pairs: int) -> Array:
    """Draw the state at the end of one sequence, (2 num_pairs, J): by a particle filter, or from q.

    The logarithm of the filter's estimate of p(x) and the bound of q are both below log p(x) on average, the nearer the
    better their states. The larger one decides: the filter with few state variables, q with many.
    """
    generative, recognition = models
    key_filter, key_q, key_choice = jax.random.split(key, 3)
    found = one_filter(models, x, key_filter, max(NUM_PARTICLES, 2 * num_pairs))
    chosen = jax.random.categorical(key_choice, found.log_weights, shape=(2 * num_pairs,))
    q = recognition(x)
    z = draws_of(q, key_q, num_pairs)  # (S, T, J)
    bound = jnp.mean(log_weights_at(generative, q, x, z))
    return jnp.where(found.log_likelihood > bound, found.last[chosen], z[:, x.given["length"].astype(int) - 1])


@cache
def _forecast(steps, num_pairs):
    def run(models, x, key):
        generative, _ = models
        key_last, key_steps = jax.random.split(jax.random.fold_in(key, fingerprint(x)))
        length = x.given["length"].astype(int)
        u = jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, length, steps), steps_of(x.given))
        values = jnp.where(x.observed, x.values, jnp.nan)[length - 1]

        def continued(z, key):
            return simulate_after(generative.prior, generative.decoder, (z, values), u, key)

        last = last_states(models, x, key_last, num_pairs)
        return jax.vmap(continued)(last, jax.random.split(key_steps, len(last)))

    return run
