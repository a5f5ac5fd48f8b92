"""Pictures made of a model's images: the latent manifold, reconstructions, samples.

Paper: Figure 4, Figure 5, App. A.
"""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

from aevb.fitted import FittedModel, coding, fitted_model, latent_space, with_rows
from aevb.models import LIKELIHOODS
from aevb.report.canvas import FAINT, INK, image_axes, new_figure, save, tile, write_title

INK_ON_PAPER = "gray_r"  # large values are dark: right for handwriting; "gray" is right for photographs


def manifold(
    vae: Any, path: str | Path | None, image_shape: tuple[int, ...], *, size: int = 20, cmap: str = INK_ON_PAPER
) -> Path:
    """Draw the decoder's output over the latent plane, for a model with two latent variables and the prior N(0, I).

    Args:
        vae: A fitted model with ``latent_dim=2``.
        path: Path of the PNG.
        image_shape: (height, width) or (height, width, 3) of a row as an image.
        size: Tiles along each side.
        cmap: Name of a Matplotlib colour map.

    Returns:
        The path.

    Raises:
        ValueError: The model does not have two latent variables.

    Paper: Figure 4, App. A.
    """
    model = fitted_model(vae)
    means = latent_space.manifold(model, size).reshape(-1, *image_shape)
    whole = tile(means, size)
    width, left, bottom, top = 7.0, 0.62, 0.62, 0.86
    height = width * whole.shape[0] / whole.shape[1]
    figure = new_figure(left + width + 0.3, bottom + height + top)
    subtitle = f"means of p(x|z) at {size} × {size} points that are equally likely under the prior"
    write_title(figure, "The latent plane, decoded", subtitle, left)
    axes = image_axes(figure, (left, bottom, width, height))
    show(axes, whole, limits_of(model, means), cmap)
    # The axes are linear in the Gaussian's CDF; the ticks are at integer values of z.
    marks = np.array([-2, -1, 0, 1, 2])
    names = [str(mark).replace("-", "−") for mark in marks]
    shares = ndtr(marks)
    axes.set_xticks(shares * whole.shape[1] - 0.5, names)
    axes.set_yticks((1 - shares) * whole.shape[0] - 0.5, names)
    axes.tick_params(colors=FAINT, labelcolor=INK, labelsize=9, width=0.8, length=3)
    axes.set_xlabel("$z_1$", color=INK, labelpad=2)
    axes.set_ylabel("$z_2$", color=INK, rotation=0, labelpad=8, va="center")
    return save(figure, path)


def reconstructions(
    vae: Any,
    path: str | Path | None,
    rows: np.ndarray,
    image_shape: tuple[int, ...],
    *,
    columns: int = 10,
    cmap: str = INK_ON_PAPER,
) -> Path:
    """Draw images above their reconstructions, the decoder's mean at the posterior mean.

    Args:
        vae: A fitted model, or its estimator.
        path: Path of the PNG.
        rows: (n, D), as for ``fit``.
        image_shape: (height, width) or (height, width, 3) of a row as an image.
        columns: Images in a row.
        cmap: Name of a Matplotlib colour map.

    Returns:
        The path.
    """
    model, rows = with_rows(vae, rows)
    subtitle = "below each image the decoder's mean at its code, the posterior mean of z"
    originals = as_values(model, rows)
    bands = {"original": originals, "reconstruction": coding.reconstruct(model, rows)}
    look = {"image_shape": image_shape, "limits": limits_of(model, originals), "columns": columns, "cmap": cmap}
    return pairs(path, bands, "Reconstructions", subtitle, **look)


def compare(
    path: str | Path | None, bands: dict[str, np.ndarray], image_shape: tuple[int, ...], *, cmap: str = INK_ON_PAPER
) -> Path:
    """Draw several versions of the same grey images, in [0, 1], below each other; missing values (NaN) are grey.

    Args:
        path: Path of the PNG.
        bands: The versions by name, (n, D) each.
        image_shape: (height, width) or (height, width, 3) of a row as an image.
        cmap: Name of a Matplotlib colour map.

    Returns:
        The path.
    """
    bands = {name: np.where(np.isnan(rows), 0.35, rows) for name, rows in bands.items()}
    return pairs(path, bands, "", "", image_shape=image_shape, limits=(0.0, 1.0), cmap=cmap)


def pairs(
    path,
    bands: dict[str, np.ndarray],
    title: str,
    subtitle: str,
    *,
    image_shape: tuple[int, ...],
    limits: tuple[float, float],
    columns: int = 10,
    cmap: str = INK_ON_PAPER,
) -> Path:
    """Draw several versions of the same images below each other.

    Args:
        path: Path of the PNG.
        bands: The versions by name, (n, D) each.
        title: Title of the picture.
        subtitle: Line below the title.
        image_shape: (height, width) or (height, width, 3) of a row as an image.
        limits: Values at the two ends of the colour map.
        columns: Images in a row.
        cmap: Name of a Matplotlib colour map.

    Returns:
        The path.
    """
    starts = range(0, len(next(iter(bands.values()))), columns)
    cell, left, space, top = 0.7, 1.35, 0.3, 0.92 if title else 0.0
    cell_height = cell * image_shape[0] / image_shape[1]
    block_height = len(bands) * cell_height + space
    figure = new_figure(left + columns * cell + 0.3, top + len(starts) * block_height)
    write_title(figure, title, subtitle)
    for number, start in enumerate(starts):
        for place, (name, rows) in enumerate(bands.items()):
            images = _apart(rows[start : start + columns].reshape(-1, *image_shape))
            width = len(images) * cell
            bottom = (len(starts) - number) * block_height - (place + 1) * cell_height
            axes = image_axes(figure, (left, bottom, width, cell_height))
            show(axes, tile(images, len(images)), limits, cmap)
            axes.text(
                -0.12 / width, 0.5, name, color=INK, fontsize=9, ha="right", va="center", transform=axes.transAxes
            )
    return save(figure, path)


def samples(
    vae: Any,
    path: str | Path | None,
    image_shape: tuple[int, ...],
    *,
    size: int = 10,
    seed: int = 0,
    cmap: str = INK_ON_PAPER,
) -> Path:
    """Draw new images: means of p(x|z) for z drawn from the prior and, next to them, draws from p(x|z) at the same z.

    For a Bernoulli model of grey levels, more means are shown instead: its draws would be black and white.

    Args:
        vae: A fitted model, or its estimator.
        path: Path of the PNG.
        image_shape: (height, width) or (height, width, 3) of a row as an image.
        size: Images along each side of the two panels.
        seed: Random seed of the draws.
        cmap: Name of a Matplotlib colour map.

    Returns:
        The path.

    Paper: Figure 5, App. A.
    """
    model = fitted_model(vae)
    count, are_levels = size**2, model.likelihood == "bernoulli" and model.dispersion < 1
    means = coding.sample(model, 2 * count, mean=True, random_state=seed).reshape(-1, *image_shape)
    panels = {
        "means of p(x|z)": means[:count],
        "means at other z: draws of grey levels would be black and white": means[count:],
    }
    if not are_levels:
        draws = coding.sample(model, count, random_state=seed).reshape(-1, *image_shape)
        panels = {"means of p(x|z)": means[:count], "draws from p(x|z), at the same z": draws}
    limits = limits_of(model, means)
    width, left, space, bottom, top = 4.2, 0.3, 0.4, 0.3, 1.2
    height = width * image_shape[0] / image_shape[1]
    figure = new_figure(2 * left + 2 * width + space, bottom + height + top)
    write_title(figure, "New images from the model", f"z drawn from the prior; {model.latent_dim} latent variables")
    for place, (name, images) in enumerate(panels.items()):
        axes = image_axes(figure, (left + place * (width + space), bottom, width, height))
        show(axes, tile(images, size), limits, cmap)
        axes.text(0, 1.02, name, color=INK, fontsize=10, transform=axes.transAxes, va="bottom")
    return save(figure, path)


def sheet(
    vae: Any,
    path: str | Path | None,
    rows: np.ndarray,
    image_shape: tuple[int, ...],
    *,
    columns: int = 10,
    cmap: str = INK_ON_PAPER,
) -> Path:
    """Draw rows as images, starting at the top left, without text.

    Args:
        vae: The model that they come from.
        path: Path of the PNG.
        rows: (n, D), in the decoder's units.
        image_shape: (height, width) or (height, width, 3) of a row as an image.
        columns: Images in a row.
        cmap: Name of a Matplotlib colour map.

    Returns:
        The path.
    """
    model = fitted_model(vae)
    images = _apart(np.asarray(rows).reshape(-1, *image_shape))
    columns = min(columns, len(images))
    whole = tile(images, columns)
    width = 0.7 * columns
    height = width * whole.shape[0] / whole.shape[1]
    figure = new_figure(width, height)
    show(image_axes(figure, (0, 0, width, height)), whole, limits_of(model, rows), cmap)
    return save(figure, path)


def _apart(images):
    """Return images with an empty line of pixels on the right and at the bottom."""
    images = np.asarray(images, float)
    lines = ((0, 0), (0, 1), (0, 1), (0, 0))[: images.ndim]
    return np.pad(images, lines, constant_values=np.nan)


def show(axes, sheet, limits, cmap) -> None:
    """Draw a sheet of images without smoothing: in colour if it has three channels, else the first channel."""
    if sheet.ndim == 3 and sheet.shape[-1] == 3:
        low, high = limits
        shares = np.clip((sheet - low) / max(high - low, 1e-12), 0, 1)
        sheet = np.where(np.isnan(shares), 1.0, shares)  # white between the images
    elif sheet.ndim == 3:
        sheet = sheet[..., 0]
    axes.imshow(sheet, cmap=cmap, vmin=limits[0], vmax=limits[1], interpolation="nearest", aspect="auto")


def as_values(model: FittedModel, rows: np.ndarray) -> np.ndarray:
    """Return rows in the units that the decoder speaks."""
    return model.matrix.levels(np.asarray(rows))


def limits_of(model: FittedModel, images: np.ndarray) -> tuple[float, float]:
    """Return the values at the two ends of the colour map."""
    if LIKELIHOODS[model.likelihood].unit_interval or model.matrix.scale != 1:  # in which bytes are grey levels
        return 0.0, 1.0
    return float(images.min()), float(images.max())
