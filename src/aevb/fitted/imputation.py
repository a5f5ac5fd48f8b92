"""Fill in the missing entries of tables: the posterior of z by importance sampling from the encoder and the prior."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from aevb.arguments import check_parameter
from aevb.fitted.model import FittedModel
from aevb.inference.importance import DEFENSIVE, propose_pool
from aevb.models import BayesianGenerativeModel, Datapoint
from aevb.models.compilation import compiled
from aevb.models.generative import conditions
from aevb.tasks.conditional import Completion, in_batches
from aevb.tasks.observations import Missing
from aevb.tasks.observed_models import observed_models
from aevb.training.progress import ShareDone

NUM_SAMPLES = 250  # of z for each row with missing entries


def impute(
    model: FittedModel,
    X: Any,
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
        X: The rows, or a datapoint of them and the features of what they are conditioned on.
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
    X, _, given = Datapoint.of(X)
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

        rows = X[has_holes] if given is None else Datapoint(X[has_holes], given=given[has_holes])
        guess, std, draws = in_batches(of_batch, rows, model.key(random_state), bar.update)
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
        values, _, given = Datapoint.of(y)
        is_missing, x = jnp.isnan(values), y
        if encodes_missing:
            x = Datapoint(jnp.where(is_missing, 0, values), ~is_missing, given)
        about = conditions(y)

        def of_member(member):
            pair = (member, recognition) if encodes_missing else observed_models((member, recognition), Missing())
            q = None if pair[1] is None else pair[1](x)
            z, log_weights = propose_pool(pair[0], q, x, key_pool, num_samples, DEFENSIVE)
            return z, log_weights, *jax.vmap(lambda z: _moments(member.decoder(z, *about)))(z)

        z, log_weights, *of_draws = _joined(_of_members(of_member, whole))
        weights = jax.nn.softmax(log_weights)
        statistics, mean, second = (jnp.tensordot(weights, values, 1) for values in of_draws)
        second = second + jnp.tensordot(weights, (of_draws[1] - mean) ** 2, 1)
        decoder: Any = whole.mean.decoder if isinstance(whole, BayesianGenerativeModel) else whole.decoder
        guess = decoder(z[0], *about).row_from_statistics(statistics)
        if not num_draws:  # which take most of the time to compile
            return guess, jnp.sqrt(second), guess[None]
        chosen = jax.random.categorical(key_choice, log_weights, shape=(num_draws,))
        keys = jax.random.split(key_x, num_draws)
        draws = _of_members(
            lambda member: jax.vmap(lambda z, key: member.decoder(z, *about).sample(key))(z[chosen], keys), whole
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
