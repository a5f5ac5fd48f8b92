"""Models of tables: fill in missing entries, generate rows with some columns given, and explain anomalies.

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

from aevb.arguments import check_parameter
from aevb.fitted.model import FittedModel
from aevb.inference.importance import DEFENSIVE, propose_pool
from aevb.inference.pareto import pareto_k_hat
from aevb.models import BayesianGenerativeModel, Datapoint
from aevb.models.compilation import compiled
from aevb.tasks.conditional import Completion, in_batches
from aevb.tasks.observations import Missing, entry_log_probs
from aevb.tasks.observed_models import observed_models
from aevb.training.progress import ShareDone

NUM_SAMPLES = 250  # of z for each row with missing entries
POOL = 20_000  # of z for rows with given columns; at least ten for each row that is drawn
MAX_K_HAT = 0.7  # above, an importance-sampling estimate cannot be trusted


# ---- missing entries -------------------------------------------------------------------------------------------------


def impute(
    model: FittedModel,
    X: np.ndarray,
    *,
    num_draws: int = 0,
    num_samples: int | None = None,
    random_state: Any = None,
    progress: bool = False,
) -> Completion:
    r"""Fill in the missing entries (NaN) of stored rows (n, D).

    .. math:: E[f(x_m) | x_o] \approx \sum_l w_l\, E[f(x_m) | z^{(l)}], \quad
        w_l \propto \frac{p(x_o | z^{(l)})\, p(z^{(l)})}{r(z^{(l)})}, \quad z^{(l)} \sim r

    where r is a mixture of the encoder's q(z|x_o) and the prior. Numbers are filled in with their expectation, ordered
    labels with their median, others with the most probable one (Mattei and Frellsen, "MIWAE", 2019, section 3.2). After
    full variational Bayes, draws of the weights are weighted in the same way.

    Args:
        model: A model of a table.
        X: The rows.
        num_draws: Number of draws of the rows to return with the expectation.
        num_samples: L; None for 250.
        random_state: As in scikit-learn; None for the model's own.
        progress: Whether to show a progress bar.

    Returns:
        :class:`aevb.tasks.Completion` of stored numbers; ``std`` is NaN for labels, whose codes are only names.
    """
    check_parameter("num_draws", num_draws, kind=int, low=0)
    if num_samples is not None:
        check_parameter("num_samples", num_samples, kind=int, low=1)
    has_holes, is_missing = np.isnan(X).any(axis=1), np.isnan(X)
    mean = np.array(X, np.float64)
    found = Completion(mean, np.zeros_like(mean), np.repeat(mean[None], num_draws, axis=0))
    if not has_holes.any():
        return found
    options = {"num_samples": max(num_samples or NUM_SAMPLES, num_draws), "num_draws": num_draws}
    options["encodes_missing"] = model.format.encodes_missing
    models = model.generative, model.recognition
    with ShareDone(progress, "imputing") as bar:

        def of_batch(x, keys):
            return _complete(models, x, keys, **options)

        guess, std, draws = in_batches(of_batch, X[has_holes], model.key(random_state), bar.update)
    holes = is_missing[has_holes]
    mean[has_holes] = np.where(holes, guess, X[has_holes])
    found.std[has_holes] = np.where(holes, std, 0)
    found.draws[:, has_holes] = np.where(holes, np.moveaxis(draws, 1, 0)[:num_draws], X[has_holes])
    return found


@compiled("num_samples", "num_draws", "encodes_missing")
def _complete(models, x, keys, *, num_samples, num_draws, encodes_missing):
    """Return a best guess of each row, standard deviations (N, D), and draws (N, num_draws, D)."""
    whole, recognition = models
    num_members = whole.num_draws if isinstance(whole, BayesianGenerativeModel) else 1
    num_samples = -(-num_samples // num_members)  # of each

    def of_row(row):
        y, key = row
        key_pool, key_choice, key_x = jax.random.split(key, 3)
        x = Datapoint(jnp.where(jnp.isnan(y), 0, y), ~jnp.isnan(y)) if encodes_missing else y

        def of_member(member):
            pair = (member, recognition) if encodes_missing else observed_models((member, recognition), Missing())
            q = None if pair[1] is None else pair[1](x)
            z, log_weights = propose_pool(pair[0], q, x, key_pool, num_samples, DEFENSIVE)
            return z, log_weights, *jax.vmap(lambda z: _moments(member.decoder(z)))(z)

        z, log_weights, *of_draws = _joined(_of_members(of_member, whole))
        weights = jax.nn.softmax(log_weights)
        statistics, mean, second = (jnp.tensordot(weights, values, 1) for values in of_draws)
        second = second + jnp.tensordot(weights, (of_draws[1] - mean) ** 2, 1)
        decoder: Any = whole.mean.decoder if isinstance(whole, BayesianGenerativeModel) else whole.decoder
        guess = decoder(z[0]).row_from_statistics(statistics)
        if not num_draws:  # which take most of the time to compile
            return guess, jnp.sqrt(second), guess[None]
        chosen = jax.random.categorical(key_choice, log_weights, shape=(num_draws,))
        keys = jax.random.split(key_x, num_draws)
        draws = _of_members(
            lambda member: jax.vmap(lambda z, key: member.decoder(z).sample(key))(z[chosen], keys), whole
        )
        return guess, jnp.sqrt(second), draws[chosen // num_samples, jnp.arange(num_draws)]

    return lax.map(of_row, (x, keys), batch_size=8)


def _moments(p):
    return p.statistics(), p.expectation, p.variance


def _of_members(function, generative):
    """Return a function of each model whose average a model is, (S, ...): of draws of its weights, or of itself.

    The weights of a draw (theta, z) given y are those of z in the model with the weights theta.
    """
    if isinstance(generative, BayesianGenerativeModel):
        return jax.vmap(function)(generative.draws())
    return jax.tree.map(lambda array: array[None], function(generative))


def _joined(of_members):
    """Return arrays (S, L, ...) as (S L, ...)."""
    return jax.tree.map(lambda array: array.reshape(-1, *array.shape[2:]), of_members)


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
