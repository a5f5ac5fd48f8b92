"""Encode rows, decode codes, and generate new rows with a fitted model."""

from typing import Any

import jax
import numpy as np
from numpyro.distributions import Distribution

from aevb import tasks
from aevb.arguments import check_parameter
from aevb.arrays import num_rows, on_device
from aevb.fitted.model import FittedModel, given_source
from aevb.fitted.row_posterior import RowPosterior
from aevb.models import Conversion, Numbers, has_real_support
from aevb.tasks.observations import Missing
from aevb.training import Source, rowwise
from aevb.training.progress import ShareDone


def posterior_means(model: FittedModel, X: np.ndarray, *, progress: bool = False) -> np.ndarray:
    """Return the posterior mean of z for each row of X (n, D), which may have missing values (NaN): (n, J).

    It is the mean of q(z|x), or without an encoder the mean of samples by Hybrid Monte Carlo; for rows with missing
    values E[z | observed values], by Hybrid Monte Carlo or importance sampling.
    """

    def given_observed(X):
        has_hmc = has_real_support(model.generative.latent_distribution())
        options = {"method": "hmc" if has_hmc else "importance", "num_samples": 100}
        with ShareDone(progress, "sampling z") as bar:
            x = model.format.store(X)[0]
            models = model.generative, model.encoder, Missing()
            return tasks.latent_means(*models, x, model.key(), progress=bar.update, **options)

    return model.by_completeness(X, lambda X: _means_of_complete_rows(model, X), given_observed)


def _means_of_complete_rows(model, X):
    rows, source = np.arange(num_rows(X)), model.source(X)
    if model.recognition is None:
        return rowwise(tasks.posterior_mean_by_hmc, model.generative, source, rows, model.key())
    return rowwise(tasks.posterior_mean, model.recognition, source, rows)


def posterior(model: FittedModel, X: np.ndarray, *, progress: bool = False) -> Distribution:
    """Return q(z|x) for the rows of X (n, D), one distribution with batch shape (n,).

    For rows with missing values it is q(z | observed values), see :func:`aevb.tasks.given_observed`.
    """
    if model.arguments.levels:
        has_holes = model.with_holes(X).any()
        recognition = models_given_observed(model, model.recognition)[1] if has_holes else model.recognition
        x = model.format.store(X)[0] if has_holes else model.source(X).take(np.arange(num_rows(X)))
        return RowPosterior(recognition, jax.tree.map(on_device, x), model.latent_dim)

    def of_complete(X):
        return rowwise(tasks.encode, model.recognition, model.source(X), np.arange(num_rows(X)))

    def of_observed(X):
        with ShareDone(progress, "finding q(z | observed values)") as bar:
            x = model.format.store(X)[0]
            return tasks.observed_posterior(models_given_observed(model, model.recognition), x, model.key(), bar.update)

    return tasks.promote_batch(model.by_completeness(X, of_complete, of_observed))


def models_given_observed(model: FittedModel, recognition: Any, *, searches: bool = True) -> tuple:
    """Return p(z) p(x_observed|z) and q(z|x_observed); see :func:`aevb.tasks.given_observed`.

    Args:
        model: The model.
        recognition: q(z|x), or None.
        searches: Whether q is found by gradient ascent on the bound of each row; otherwise it is a guess.
    """
    is_standard = searches and model.arguments.encoder is None and not model.arguments.levels
    family = (model.arguments.posterior, model.latent_dim) if is_standard else None
    return tasks.given_observed(model.generative, recognition, family, model.bound)


def decode(model: FittedModel, Z: np.ndarray, given: np.ndarray | None = None) -> np.ndarray:
    """Return the decoder's mean for each code (n, J), in the units of the data: (n, D).

    Args:
        model: The model.
        Z: The codes.
        given: (n, D'), stored numbers of what the rows are conditioned on; None if they are not.
    """
    source = _with_given(model, Source(Z), given)
    return model.format.restore(rowwise(tasks.decoder_mean, model.generative, source, np.arange(len(Z))))


def _with_given(model, source, given):
    return source if given is None else given_source(source, model.given, given)


def reconstruct(model: FittedModel, X: Any, *, progress: bool = False, given: np.ndarray | None = None) -> np.ndarray:
    """Return the decoder's mean at the posterior mean of each row of X, (n, D).

    Args:
        model: The model.
        X: (n, D), or a datapoint of such rows and what they are conditioned on.
        progress: Whether to show a progress bar where it takes long.
        given: What the reconstructions are conditioned on, if not the same as the rows.
    """
    given = getattr(X, "given", None) if given is None else given
    return decode(model, posterior_means(model, X, progress=progress), given)


def sample(
    model: FittedModel,
    num_samples: int,
    *,
    given: np.ndarray | None = None,
    mean: bool = False,
    temperature: float = 1.0,
    random_state: Any = None,
) -> np.ndarray:
    """Draw new rows from the model, in the units of the data: (num_samples, D).

    Args:
        model: The model.
        num_samples: Number of rows.
        given: (num_samples, D'), stored numbers of what the rows are conditioned on; None if they are not.
        mean: Whether to return the decoder's means instead of draws from them.
        temperature: Factor for the deviations of z from the prior's mean.
        random_state: As in scikit-learn; None for the model's own.
    """
    check_parameter("num_samples", num_samples, kind=int, low=1)
    source, rows = _with_given(model, Source(tasks.numbers_of_rows(num_samples)), given), np.arange(num_samples)
    draw = tasks.sample_mean if mean else tasks.sample
    cooling = _cooling(model, temperature)
    return model.format.restore(rowwise(draw, model.generative, source, rows, model.key(random_state), *cooling))


def sample_at(model: FittedModel, Z: np.ndarray, *, mean: bool = False, random_state: Any = None) -> np.ndarray:
    """Draw a row from p(x|z) for each code (n, J), in the units of the data: (n, D); or return the decoder's means.

    Args:
        model: The model.
        Z: The codes.
        mean: Whether to return means.
        random_state: As in scikit-learn; None for the model's own.
    """
    if mean:
        return decode(model, Z)
    readers: Any = {"number": Numbers(), "z": Numbers()}
    source = Source({"number": tasks.numbers_of_rows(len(Z)), "z": Z}, Conversion(readers))
    return model.format.restore(
        rowwise(tasks.sample_at, model.generative, source, np.arange(len(Z)), model.key(random_state))
    )


def _cooling(model, temperature):
    """Return the temperature as an argument for `tasks.sample`; nothing for 1."""
    check_parameter("temperature", temperature, kind=float, above=0)
    if temperature == 1:
        return ()
    prior = model.generative.latent_distribution()
    if not has_real_support(prior):
        raise ValueError(f"temperature={temperature}: the prior's support is {prior.support}. Leave it at 1.")
    return (np.float32(temperature),)
