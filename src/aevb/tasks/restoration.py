"""Denoising, imputation and super-resolution: the observations that they are about.

Paper: §2.1.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from aevb.arguments import check_parameter
from aevb.arrays import row_keys
from aevb.errors import shown
from aevb.models import GenerativeModel, RecognitionModel
from aevb.tasks.conditional import Completion, complete, sampling_options
from aevb.tasks.observations import GaussianNoise, Missing, Observation, Pooled, Replaced
from aevb.tasks.observed_models import observed_models

LEVELS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7)
NUM_ROWS_FOR_LEVEL = 64
GREY_LEVELS = 255


def impute(
    generative: GenerativeModel, recognition: RecognitionModel | None, x: np.ndarray, key: Array, **options
) -> Completion:
    """Estimate the missing values of x (n, D), which are NaN, from those that were observed.

    Rows without missing values cost nothing: they are what they are.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x), or None.
        x: (n, D).
        key: All randomness.
        options: Of :func:`aevb.tasks.conditional.complete`.

    Paper: §2.1.
    """
    has_holes = np.isnan(x).any(axis=1)
    if has_holes.all():
        return complete(generative, recognition, Missing(), x, key, **options)
    progress = options.pop("progress", None)
    num_draws = sampling_options(generative, recognition, **options)["num_draws"]
    mean = np.array(x, jnp.result_type(float))
    found = Completion(mean, np.zeros_like(mean), np.repeat(mean[None], num_draws, axis=0))
    if has_holes.any():
        part = complete(generative, recognition, Missing(), x[has_holes], key, progress=progress, **options)
        found.mean[has_holes], found.std[has_holes] = part.mean, part.std
        found.draws[:, has_holes] = part.draws
    return found


def denoise(
    generative: GenerativeModel,
    recognition: RecognitionModel | None,
    y: np.ndarray,
    key: Array,
    *,
    noise: str = "gaussian",
    level: float | np.ndarray | None = None,
    scale: np.ndarray | float = 1.0,
    values: tuple[float, float] = (0.0, 1.0),
    **options,
) -> Completion:
    """Estimate x from y, which is x after a known kind of noise.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x), or None.
        y: (n, D).
        key: All randomness.
        noise: A key of ``NOISES``.
        level: Standard deviation of Gaussian noise, in the units of y (a number or one a column), None for the one of
            ``LEVELS`` under which y is most likely; else the share of values that were replaced.
        scale: What ``LEVELS`` are multiplied by: the spread of the columns.
        values: Pepper and salt, the values of black and white.
        options: Of :func:`aevb.tasks.conditional.complete`.

    Paper: §2.1.
    """
    check_level(noise, level, y.shape[1])
    if level is None:
        level = most_likely_std(generative, recognition, y, key, scale=scale)
    return complete(generative, recognition, noise_model(noise, level, values), y, key, **options)


def most_likely_std(
    generative: GenerativeModel,
    recognition: RecognitionModel | None,
    y: np.ndarray,
    key: Array,
    *,
    scale: np.ndarray | float = 1.0,
    num_samples: int = 200,
) -> float | np.ndarray:
    """Return the standard deviation of Gaussian noise with the largest p(y), among ``LEVELS`` times the scale.

    It is judged by importance sampling over the first rows of y.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x), or None.
        y: (n, D).
        key: All randomness.
        scale: See :func:`denoise`.
        num_samples: Samples of z for each row.
    """
    from aevb.inference.importance import importance

    rows = jnp.asarray(np.resize(y[:NUM_ROWS_FOR_LEVEL], (NUM_ROWS_FOR_LEVEL, y.shape[1])), jnp.result_type(float))
    keys = row_keys(key, rows)
    levels = [level * scale for level in LEVELS]

    def log_likelihood(level):
        observed, encoder = observed_models((generative, recognition), noise_model("gaussian", level))
        return importance(observed, encoder or _PriorEncoder(generative), rows, keys, num_samples=num_samples)[0].mean()  # pyright: ignore[reportArgumentType]

    return levels[int(np.argmax([log_likelihood(level) for level in levels]))]


def noise_model(noise: str, level: float | np.ndarray, values: tuple[float, float] = (0.0, 1.0)) -> Observation:
    """Return the observation behind a kind of noise.

    Args:
        noise: A key of ``NOISES``.
        level: See :func:`denoise`.
        values: See :func:`denoise`.

    Example:
        >>> noise_model("salt-and-pepper", 0.2).rates.tolist()
        [0.10000000149011612, 0.10000000149011612]
    """
    check_level(noise, level)
    return NOISES[noise](level, values)


def check_level(noise: str, level, num_columns: int | None = None) -> None:
    """Refuse a kind of noise that is not known, and a level that is none of it: one number, or one a column."""
    check_parameter("noise", noise, choices=NOISES)
    if level is None:
        if noise != "gaussian":
            # Grey levels under a Bernoulli likelihood have no probabilities: a rate could not be judged by them.
            raise ValueError(
                f"level=None: noise={noise!r} needs the share of values that were replaced, such as level=0.2."
            )
        return
    shape = np.shape(level)
    if shape != () and (noise != "gaussian" or len(shape) != 1 or shape[0] != (num_columns or shape[0])):
        wanted = "a number, or one for each column" if noise == "gaussian" else "a number"
        raise ValueError(f"level={shown(level)}: noise={noise!r} has {wanted}.")
    for number in np.ravel(level).tolist():
        check_parameter("level", number, kind=float, above=0, high=None if noise == "gaussian" else 0.99)


def _salt_and_pepper(rate, values):
    return _replaced(values, [rate / 2, rate / 2], values)


def _masking(rate, values):
    return _replaced([0.0], [rate], values)


def _replaced(constants, rates, values):
    dtype = jnp.result_type(float)
    cell = (values[1] - values[0]) / GREY_LEVELS
    return Replaced(jnp.asarray(constants, dtype), jnp.asarray(rates, dtype), jnp.asarray(cell, dtype))


# Name -> observation by level and (black, white).
NOISES = {
    "gaussian": lambda std, values: GaussianNoise(jnp.asarray(std, jnp.result_type(float))),
    "salt-and-pepper": _salt_and_pepper,
    "masking": _masking,
}


def super_resolve(
    generative: GenerativeModel,
    recognition: RecognitionModel | None,
    y: np.ndarray,
    key: Array,
    *,
    factor: int,
    image_shape: tuple[int, ...],
    noise_std: float = 0.02,
    **options,
) -> Completion:
    """Estimate images from their averages over squares of factor x factor pixels.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x), or None.
        y: The small images, one a row, (n, height * width / factor²).
        key: All randomness.
        factor: Side of a square.
        image_shape: (height, width) of the large images, or (height, width, channels).
        noise_std: Standard deviation of what was added to the averages.
        options: Of :func:`aevb.tasks.conditional.complete`.

    Paper: §2.1.
    """
    check_parameter("factor", factor, kind=int, low=2)
    check_parameter("noise_std", noise_std, kind=float, above=0)
    height, width, *channels = image_shape
    if height % factor or width % factor:
        raise ValueError(f"factor={factor} does not divide the sides of images of {height} x {width} pixels.")
    wanted = height * width * int(np.prod(channels)) // factor**2
    if y.shape[1] != wanted:
        raise ValueError(
            f"X_low has {y.shape[1]} columns; images of shape {tuple(image_shape)}, made smaller by factor={factor}, "
            f"have {wanted}."
        )
    observation = Pooled(jnp.asarray(noise_std, jnp.result_type(float)), tuple(map(int, image_shape)), int(factor))
    return complete(generative, recognition, observation, y, key, **options)


class _PriorEncoder(eqx.Module):
    """An encoder that knows nothing: q(z|y) = p(z)."""

    generative: GenerativeModel

    def __call__(self, y):
        return self.generative.latent_distribution()
