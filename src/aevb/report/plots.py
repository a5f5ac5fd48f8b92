"""Plots of the latent codes."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.patheffects import withStroke

from aevb.data.labels import label_kind
from aevb.fitted import coding, with_rows
from aevb.report.canvas import COLOURS, FAINT, INK, new_figure, plot_axes, save, write_title


def latent_scatter(
    vae: Any, path: str | Path | None, rows: np.ndarray, labels: np.ndarray | None = None, *, circles: bool = True
) -> Path:
    """Draw the posterior means of rows in the latent plane, coloured by their labels if there are any.

    With more than two latent variables, it shows the two whose posterior means vary most.

    Args:
        vae: A fitted model with two latent variables or more.
        path: Path of the PNG.
        rows: (n, D), as for ``fit``.
        labels: (n,), classes (at most 20) or quantities; the model does not use them.
        circles: Whether to draw the circles that contain 50 % and 95 % of the prior N(0, I).

    Returns:
        The path.

    Raises:
        ValueError: The model has one latent variable.
    """
    model, rows = with_rows(vae, rows)
    if model.latent_dim < 2:
        raise ValueError(
            f"latent_dim={model.latent_dim}: a picture of the latent plane needs at least 2 latent variables."
        )
    codes = coding.posterior_means(model, rows)  # (n, J)
    (first, second), codes = shown_axes(codes)  # (n, 2)
    figure = new_figure(7.0, 7.4)
    subtitle = f"codes (posterior means) of {len(codes):,} rows"
    subtitle += "; the circles contain 50 % and 95 % of the prior" * circles
    write_title(figure, "The data in the latent space", subtitle)
    axes = plot_axes(figure, (0.7, 0.6, 6.0, 6.0))
    dots: dict[str, Any] = {"s": 10 if len(codes) < 10_000 else 3, "linewidths": 0, "alpha": 0.8, "rasterized": True}
    if labels is None:
        axes.scatter(*codes.T, color=COLOURS[0], **dots)
    elif label_kind(labels) == "quantity":
        figure.colorbar(axes.scatter(*codes.T, c=labels, cmap="viridis", **dots), ax=axes, fraction=0.04)
    else:
        _draw_classes(axes, codes, np.asarray(labels), dots)
    if circles:
        _draw_prior(axes)
    reach = max(3.0, 1.05 * float(np.abs(codes).max()))
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    axes.set_xlabel(f"$z_{{{first + 1}}}$", color=INK)
    axes.set_ylabel(f"$z_{{{second + 1}}}$", color=INK, rotation=0)
    return save(figure, path)


def shown_axes(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the two latent variables that vary most, and the codes (n, 2) of these."""
    axes = np.sort(np.argsort(-codes.var(axis=0))[:2])
    return axes, codes[:, axes]


def _draw_classes(axes, codes, labels, dots):
    """Draw each class in its colour, with its name where the class is densest relative to the others."""
    classes, numbers = np.unique(labels, return_inverse=True)
    colours = [COLOURS[number % len(COLOURS)] for number in range(len(classes))]
    axes.scatter(*codes.T, color=[colours[number] for number in numbers], **dots)
    for number, label in enumerate(classes):
        x, y = _own_place(codes, numbers == number)
        axes.text(x, y, str(label), color=colours[number], **_HEADING)


def _own_place(codes, is_member, most=2000):
    """Return the member with the largest majority of members over others in its neighbourhood."""
    members = codes[is_member][:most]
    near = 0.25 * float(codes.std())
    votes = np.where(is_member, 1, -1)[: 5 * most]
    distances = np.linalg.norm(members[:, None] - codes[None, : 5 * most], axis=-1)
    return members[np.argmax((distances < near) @ votes)]


_HEADING: dict[str, Any] = {
    "fontsize": 18,
    "weight": "bold",
    "ha": "center",
    "va": "center",
    "path_effects": [withStroke(linewidth=4, foreground="white")],
}


def _draw_prior(axes):
    """Draw the circles that contain 50 % and 95 % of a two-dimensional standard Gaussian."""
    angle = np.linspace(0, 2 * np.pi, 200)
    for share in (0.5, 0.95):
        radius = np.sqrt(-2 * np.log(1 - share))
        axes.plot(radius * np.cos(angle), radius * np.sin(angle), color=FAINT, linewidth=0.8, linestyle=(0, (4, 4)))
