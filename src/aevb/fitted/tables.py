"""Models of tables: generate rows with some columns given, and explain anomalies.

The posterior of z given some entries of a row is sampled by importance sampling from a mixture of the encoder and the
prior, and never by rejection.
"""

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from aevb.fitted.model import FittedModel
from aevb.inference.importance import propose_pool
from aevb.inference.pareto import pareto_k_hat
from aevb.models import Datapoint
from aevb.models.compilation import compiled
from aevb.tasks.conditional import in_batches
from aevb.tasks.observations import Missing, entry_log_probs
from aevb.tasks.observed_models import observed_models
from aevb.training.progress import ShareDone

POOL = 20_000  # of z for rows with given columns; at least ten for each row that is drawn
MAX_K_HAT = 0.7  # above, an importance-sampling estimate cannot be trusted


# ---- rows with some columns given ------------------------------------------------------------------------------------


class Evidence(NamedTuple):
    """What is given of a row: for each column the stored numbers that it may have."""

    values: Any  # (K, D), candidates; any number where there are fewer
    widths: Any  # (K, D), of the cell of numbers around each candidate; 0 for single values
    is_candidate: Any  # (K, D), bool; a column without any is not given


class GivenRows(NamedTuple):
    """Rows drawn with some columns given, and how far they can be trusted."""

    rows: np.ndarray  # (n, D), stored numbers
    k_hat: float  # Pareto shape of the weights of z; above 0.7 the draws are dominated by a few of them
    effective_sample_size: float  # how many independent draws of z the weights are worth


def sample_given(model: FittedModel, num_samples: int, evidence: Evidence, *, random_state: Any = None) -> GivenRows:
    r"""Draw rows from p(x | evidence): z by importance resampling, then the other columns from the decoder.

    .. math:: z \sim p(z | e) \propto p(z) \prod_{d\ \mathrm{given}} p(e_d | z), \qquad
        x_d \sim p(x_d | z, e_d)

    Args:
        model: A model of a table.
        num_samples: Number of rows.
        evidence: What is given.
        random_state: As in scikit-learn; None for the model's own.
    """
    key_z, key_choice, key_x = jax.random.split(model.key(random_state), 3)
    size = max(POOL, 10 * num_samples)
    parts = Evidence(*(jnp.asarray(_on_device(part)) for part in evidence))
    z, log_weights = _weighted_pool(model.generative, key_z, parts, size=size)
    log_weights = np.asarray(log_weights, np.float64)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key_choice)))
    chosen = generator.permutation(_systematic(weights, num_samples, generator))
    keys = jax.random.split(key_x, num_samples)
    rows = in_chunks(lambda z, keys: _rows_given(model.generative, z, keys, parts), np.asarray(z)[chosen], keys)
    k_hat = float(pareto_k_hat(log_weights))
    return GivenRows(_exactly(rows, evidence), k_hat, float(1 / np.sum(weights**2)))


def _on_device(array):
    return array if array.dtype == bool else array.astype(np.float32)


def _exactly(rows, evidence):
    """Return rows (n, D) in which given columns are what is given in float64, not only in float32."""
    rows = rows.astype(np.float64)
    for place in np.flatnonzero(evidence.is_candidate.any(axis=0)):
        is_candidate = evidence.is_candidate[:, place]
        values, widths = evidence.values[is_candidate, place], evidence.widths[is_candidate, place]
        if widths.any():
            ends = np.min(values - widths / 2), np.max(values + widths / 2)
            rows[:, place] = np.clip(rows[:, place], *ends)
        else:
            rows[:, place] = values[np.abs(rows[:, [place]] - values).argmin(axis=1)]
    return rows


def in_chunks(function, z: np.ndarray, keys: Array, size: int = 1024) -> np.ndarray:
    """Return a function of draws and keys for all of them, computed for 1,024 at a time."""
    parts = []
    for start in range(0, len(z), size):
        numbers = np.resize(np.arange(start, min(start + size, len(z))), size)  # one shape, one program
        parts.append(np.asarray(function(jnp.asarray(z[numbers]), keys[numbers])))
    return np.concatenate(parts)[: len(z)]


@compiled("size")
def _weighted_pool(generative, key, evidence, *, size):
    """Return draws of z from the prior, (size, J), and the log probability of the evidence given each."""
    z = generative.latent_distribution().sample(key, (size,))
    return z, lax.map(lambda z: _log_evidence(generative.decoder(z), evidence)[0], z, batch_size=250)


def _log_evidence(p, evidence):
    """Return log p(evidence|z), and the log probabilities of the candidates of each column, (K, D)."""
    values, widths, is_candidate = evidence
    # In stored units, as the widths are.
    each = jax.vmap(p.entry_log_probs)(values) - jax.vmap(p.log_jacobians)(values)
    each = jnp.where(is_candidate, each + jnp.log(jnp.where(widths > 0, widths, 1)), -jnp.inf)
    is_given = is_candidate.any(axis=0)
    of_columns = jax.nn.logsumexp(jnp.where(is_given, each, 0), axis=0)
    return jnp.sum(jnp.where(is_given, of_columns, 0)), each


@compiled()
def _rows_given(generative, z, keys, evidence):
    """Draw a row (D,) at each z: given columns among their candidates, the others from p(x|z)."""
    values, widths, is_candidate = evidence
    is_given = is_candidate.any(axis=0)

    def draw(z, key):
        key_x, key_candidate, key_cell = jax.random.split(key, 3)
        p = generative.decoder(z)
        _, each = _log_evidence(p, evidence)
        chosen = jax.random.categorical(key_candidate, jnp.where(is_given, each, 0), axis=0)[None]  # (1, D)
        value, width = (jnp.take_along_axis(array, chosen, axis=0)[0] for array in (values, widths))
        inside = value + width * (jax.random.uniform(key_cell, value.shape) - 0.5)
        return jnp.where(is_given, inside, p.sample(key_x))

    return jax.vmap(draw)(z, keys)


def _systematic(weights, num, generator):
    """Return indices with these expected frequencies, each drawn the floor or ceiling of its number of times."""
    points = (generator.random() + np.arange(num)) / num
    return np.minimum(np.searchsorted(np.cumsum(weights), points), len(weights) - 1)


def warn_about_evidence(found: GivenRows, given: Mapping) -> None:
    """Warn if few draws of z explain what is given."""
    if not found.k_hat < MAX_K_HAT:
        warnings.warn(
            f"given={dict(given)!r} is unlikely under the model: the {len(found.rows):,} rows come from about "
            f"{found.effective_sample_size:.0f} independent draws of z (k-hat {found.k_hat:.2f}, above {MAX_K_HAT}). "
            "They differ less than they should; give fewer columns, or wider ranges.",
            UserWarning,
            stacklevel=4,
        )


# ---- which column made a row an anomaly ------------------------------------------------------------------------------


def contributions(model: FittedModel, X: np.ndarray, *, num_samples: int = 100, progress: bool = False) -> np.ndarray:
    r"""Return how surprising each entry is given the others of its row, in nats: (n, D), 0 where it is missing.

    .. math:: -\log p(x_d | x_{-d}) = \log \sum_l \frac{w_l}{p(x_d | z^{(l)})} - \log \sum_l w_l

    Args:
        model: A model whose columns are independent given z, with an encoder.
        X: The rows.
        num_samples: L, draws of z per row.
        progress: Whether to show a progress bar.
    """
    stored, conversion = model.format.store(X)
    scale = np.asarray(conversion.values.scale)
    models = model.generative, model.encoder
    encodes_missing = model.format.encodes_missing
    with ShareDone(progress, "explaining rows") as bar:

        def of_batch(x, keys):
            return _contributions(models, x, keys, num_samples=num_samples, encodes_missing=encodes_missing)

        return in_batches(of_batch, stored * scale, model.key(), bar.update)


@compiled("num_samples", "encodes_missing")
def _contributions(models, x, keys, *, num_samples, encodes_missing):
    generative = models[0]
    joint, encoder = models if encodes_missing else observed_models(models, Missing())

    def of_row(row):
        y, key = row
        observed = ~jnp.isnan(y)
        x = Datapoint(jnp.where(observed, y, 0), observed) if encodes_missing else y
        z, log_weights = propose_pool(joint, None if encoder is None else encoder(x), x, key, num_samples)
        each = jax.vmap(lambda z: entry_log_probs(generative.decoder(z), y, observed))(z)  # (L, D)
        without = jax.nn.logsumexp(log_weights[:, None] - each, axis=0)
        return jnp.where(observed, without - jax.nn.logsumexp(log_weights), 0)

    return lax.map(of_row, (x, keys), batch_size=8)
