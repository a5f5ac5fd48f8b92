"""Paths through the latent space of a fitted model, and what its variables carry."""

import numpy as np

from aevb.fitted.coding import decode, posterior_means
from aevb.fitted.model import FittedModel
from aevb.tasks.latent_space import Traversal, latent_path, manifold_grid, traversal_grid


def interpolate(model: FittedModel, ends: np.ndarray, num: int, path: str) -> np.ndarray:
    """Return the decoder's means on a path between the codes of two rows (2, D): (num, D)."""
    z_start, z_end = posterior_means(model, ends)
    return decode(model, latent_path(z_start, z_end, num, path))


def traverse(
    model: FittedModel, X: np.ndarray, num: int = 9, *, reach: float = 2.5, row: np.ndarray | None = None
) -> Traversal:
    """Vary one latent variable at a time, the most informative first, and decode; see :meth:`aevb.VAE.traverse`."""
    X = X[:1000]
    codes = posterior_means(model, X)
    found = divergences(model, X)
    carried = codes.astype(np.float64).var(axis=0) if found is None else found
    dimensions, values = np.argsort(-carried, kind="stable"), np.linspace(-reach, reach, num)
    center = codes.mean(0) if row is None else posterior_means(model, row)[0]
    means = decode(model, traversal_grid(center, dimensions, values))
    return Traversal(dimensions, carried[dimensions], values, means.reshape(len(dimensions), num, -1))


def manifold(model: FittedModel, size: int = 20) -> np.ndarray:
    """Return the decoder's means at size x size points of the latent plane, (size * size, D)."""
    if model.latent_dim != 2:
        raise ValueError(
            f"manifold: needs a model with latent_dim=2, but this one has {model.latent_dim}. traverse(X) shows "
            "each latent dimension of any model."
        )
    return decode(model, manifold_grid(size))


def divergences(model: FittedModel, X: np.ndarray) -> np.ndarray | None:
    """Return the average KL(q(z_j|x) || p(z_j)) of each latent variable, (J,) in nats; None where there is none.

    Rows with missing values count only if the encoder reads them. There is none without an encoder, for latent
    variables that are not independent, or without a closed form.
    """
    from aevb.inference.diagnostics import posterior_collapse

    X = X[~model.with_holes(X)]
    if model.encoder is None or not len(X):
        return None
    reads_holes = model.format.encodes_missing
    x = model.source(X).take(np.arange(len(X))) if reads_holes else model.matrix.as_read(X)
    try:
        return posterior_collapse(model.generative, model.encoder, x).divergence
    except (ValueError, NotImplementedError):
        return None
