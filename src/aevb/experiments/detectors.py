"""Ways to rank rows by how anomalous they are: ours, and those to compare it with."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from aevb.vae import VAE


class Detector(NamedTuple):
    """A way to score rows."""

    detail: str
    score: Callable[..., np.ndarray]  # of training rows, test rows and seed; high for anomalies
    package: str | None = None  # that it needs, besides those of aevb


def _isolation_forest(train, test, seed):
    from sklearn.ensemble import IsolationForest

    return -IsolationForest(random_state=seed).fit(train).score_samples(test)


def _local_outlier_factor(train, test, seed):
    from sklearn.neighbors import LocalOutlierFactor

    neighbours = min(20, len(train) - 1)
    return -LocalOutlierFactor(n_neighbors=neighbours, novelty=True).fit(train).score_samples(test)


def ecod(train: np.ndarray, test: np.ndarray) -> np.ndarray:
    r"""Return the scores (n,) of ECOD: how far a row is in the tails of the columns' empirical distributions.

    .. math:: \sum_j \max(-\log \hat F_j(x_j), -\log \hat G_j(x_j))

    where :math:`\hat F_j(x)` and :math:`\hat G_j(x)` are the shares of entries at most and at least as large as x,
    among the training rows and the row itself. PyOD also counts the other rows that are scored, which is worse if many
    of them are anomalies, as here; row by row it gives the same scores.

    Li et al. (2022), https://arxiv.org/abs/2201.00382; the maximum is by columns, as in PyOD.

    Example:
        >>> ecod(np.array([[1.0], [2.0], [3.0]]), np.array([[2.0], [9.0]])).round(2).tolist()
        [0.29, 1.39]
    """
    tails = [-np.log(_share_at_most(sign * train, sign * test)) for sign in (1, -1)]
    return np.maximum(*tails).sum(axis=1)


def _share_at_most(train, test):
    """Return the share (n, D) of a column's training entries, and the entry itself, that are at most as large as it."""
    counts = [np.searchsorted(np.sort(known), new, side="right") for known, new in zip(train.T, test.T, strict=True)]
    return (np.stack(counts, axis=1) + 1) / (len(train) + 1)


def _pyod_vae(train, test, seed):
    from pyod.models import vae  # pyright: ignore[reportMissingImports]

    return vae.VAE(random_state=seed, verbose=0).fit(train).decision_function(test)


def _vae(train, test, seed):
    return VAE(random_state=seed, progress=False).fit(train).rank_anomalies(test).scores


OURS = "VAE"
DETECTORS = {
    "isolation forest": Detector("IsolationForest with its default settings", _isolation_forest),
    "ECOD": Detector("tails of the columns' empirical distributions", lambda train, test, *_: ecod(train, test)),
    "LOF": Detector("LocalOutlierFactor, 20 neighbours, novelty=True", _local_outlier_factor),
    "VAE of PyOD": Detector("VAE of the package pyod with its default settings", _pyod_vae, "pyod"),
    OURS: Detector("rank_anomalies with default settings", _vae),
}
