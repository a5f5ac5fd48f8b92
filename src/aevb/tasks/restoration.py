"""Denoising, imputation and super-resolution: inference from different kinds of observations.

Paper: §2.1.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from aevb.arguments import check_parameter
from aevb.arrays import row_keys
from aevb.errors import shown
from aevb.models import Datapoint, GenerativeModel, RecognitionModel
from aevb.models.compilation import compiled
from aevb.tasks.conditional import NUM_TUNING, Completion, complete, sampling_options
from aevb.tasks.latent_posterior import SAMPLERS
from aevb.tasks.observations import GaussianNoise, Missing, Observation, Pooled, Replaced
from aevb.tasks.observed_models import log_likelihood

LEVELS = np.geomspace(0.002, 5.0, 100)  # each is 1.08 times the one before
START = 71  # 0.54
NUM_ROUNDS = 10
NUM_ROWS_FOR_LEVEL = 64
GREY_LEVELS = 255


def impute(
    generative: GenerativeModel, recognition: RecognitionModel | None, x: Any, key: Array, **options
) -> Completion:
    """Estimate the missing values of x (n, D), which are NaN, from the observed ones.

    Rows without missing values are returned unchanged.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x), or None.
        x: (n, D), or a datapoint of such rows and what they are conditioned on.
        key: Random key.
        options: Options of :func:`aevb.tasks.conditional.complete`.

    Paper: §2.1.
    """
    values = Datapoint.of(x).values
    has_holes = np.isnan(values).any(axis=1)
    if has_holes.all():
        return complete(generative, recognition, Missing(), x, key, **options)
    progress = options.pop("progress", None)
    num_draws = sampling_options(generative, recognition, **options)["num_draws"]
    mean = np.array(values, jnp.result_type(float))
    found = Completion(mean, np.zeros_like(mean), np.repeat(mean[None], num_draws, axis=0))
    if has_holes.any():
        rows = jax.tree.map(lambda array: array[has_holes], x)
        part = complete(generative, recognition, Missing(), rows, key, progress=progress, **options)
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
        key: Random key.
        noise: A key of ``NOISES``.
        level: Standard deviation of Gaussian noise in the units of y (one number, or one per column), None for the
            one under which y is most likely; for other noise, the fraction of values that were replaced.
        scale: Factor for ``LEVELS``: the spread of the columns.
        values: Pepper and salt, the values of black and white.
        options: Options of :func:`aevb.tasks.conditional.complete`.

    Paper: §2.1.
    """
    check_level(noise, level, y.shape[1])
    if level is None:
        level = most_likely_std(generative, recognition, y, key, scale=scale, method=options.get("method", "hmc"))
    return complete(generative, recognition, noise_model(noise, level, values), y, key, **options)


def most_likely_std(
    generative: GenerativeModel,
    recognition: RecognitionModel | None,
    y: np.ndarray,
    key: Array,
    *,
    scale: np.ndarray | float = 1.0,
    method: str = "hmc",
) -> float | np.ndarray:
    r"""Return the standard deviation s of Gaussian noise under which some rows of y are most likely.

    Found by expectation maximization over ``LEVELS`` times the scale. It starts from a large s, with which z is found
    even where the encoder, which was not trained on such rows, fails:

    .. math:: s \leftarrow \arg\max_s E_{p(z | y, s_{old})}[\log p(y | z, s)]

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x), or None.
        y: (n, D).
        key: Random key.
        scale: See :func:`denoise`.
        method: How z is sampled, see :func:`aevb.tasks.conditional.complete`.
    """
    chosen = np.linspace(0, len(y) - 1, NUM_ROWS_FOR_LEVEL).astype(int)  # some rows twice, if there are few
    rows = jnp.asarray(y[chosen], jnp.result_type(float))
    stds = jnp.asarray(np.multiply.outer(LEVELS, scale), jnp.result_type(float))  # (K,) or (K, D)
    place, keys = START, row_keys(key, rows)
    for _ in range(NUM_ROUNDS):
        before = place
        model = generative, recognition, noise_model("gaussian", np.asarray(stds[before]))
        place = int(np.argmax(_expected_log_likelihoods(model, rows, keys, stds, method=method)))
        if abs(place - before) <= 1:
            break
    return np.asarray(stds[place]) if np.ndim(scale) else float(stds[place])


@compiled("method")
def _expected_log_likelihoods(model, y, keys, stds, *, method):
    """Return log p(y|z, s) for each s (K,), averaged over samples of z given y and over the rows."""
    generative, recognition, observation = model
    options = {"num_samples": 5, "num_tuning": NUM_TUNING[method], "num_chains": 4, "num_leapfrog": 5}
    z = SAMPLERS[method]((generative, recognition), observation, y, keys, **options)
    S, N, C, J = z.shape
    p = jax.vmap(jax.vmap(generative.decoder))(jnp.moveaxis(z, 2, 1).reshape(S * C, N, J))  # a tree of (S * C, N, D)

    def average(std):
        by_rows = jax.vmap(lambda p, y: log_likelihood(GaussianNoise(std), p, y))
        return jnp.mean(lax.map(lambda p: by_rows(p, y), p))

    return lax.map(average, stds)


def noise_model(noise: str, level: float | np.ndarray, values: tuple[float, float] = (0.0, 1.0)) -> Observation:
    """Return the observation model of a kind of noise.

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
    """Refuse an unknown kind of noise, and a level that does not suit it: one number, or one per column."""
    check_parameter("noise", noise, choices=NOISES)
    if level is None:
        if noise != "gaussian":
            # Grey levels have no probability under a Bernoulli likelihood, so a rate cannot be estimated from them.
            raise ValueError(
                f"level=None: noise={noise!r} needs the fraction of values that were replaced, such as level=0.2."
            )
        return
    shape = np.shape(level)
    if shape != () and (noise != "gaussian" or len(shape) != 1 or shape[0] != (num_columns or shape[0])):
        expected = "one number, or one per column" if noise == "gaussian" else "one number"
        raise ValueError(f"level={shown(level)}: noise={noise!r} needs {expected}.")
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


# Name -> observation model for a level and (black, white).
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
        y: The small images, one per row, (n, height * width / factor²).
        key: Random key.
        factor: Side of a square.
        image_shape: (height, width) of the large images, or (height, width, channels).
        noise_std: Standard deviation of the noise added to the averages.
        options: Options of :func:`aevb.tasks.conditional.complete`.

    Paper: §2.1.
    """
    check_parameter("factor", factor, kind=int, low=2)
    check_parameter("noise_std", noise_std, kind=float, above=0)
    height, width, *channels = image_shape
    if height % factor or width % factor:
        raise ValueError(f"factor={factor} does not divide the sides of images of {height} x {width} pixels.")
    expected = height * width * int(np.prod(channels)) // factor**2
    if y.shape[1] != expected:
        raise ValueError(
            f"X_low has {y.shape[1]} columns; images of shape {tuple(image_shape)}, reduced by factor={factor}, have "
            f"{expected}."
        )
    observation = Pooled(jnp.asarray(noise_std, jnp.result_type(float)), tuple(map(int, image_shape)), int(factor))
    return complete(generative, recognition, observation, y, key, **options)
