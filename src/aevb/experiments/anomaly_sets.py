"""Six tables of numbers with normal rows and anomalies, from scikit-learn and palmerpenguins."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

TRAIN_SHARE = 0.6  # of the normal rows
CONTAMINATION = 0.05  # share of anomalies among contaminated training rows


class AnomalySet(NamedTuple):
    """A table, and which of its rows count as normal."""

    title: str
    read: Callable[[], tuple[np.ndarray, np.ndarray]]  # returns rows (n, D), and which are anomalies (n,)
    normal: str
    anomalies: str


class Split(NamedTuple):
    """Rows to learn from and to judge by, standardized by the training rows."""

    train: np.ndarray
    test: np.ndarray
    is_anomaly: np.ndarray  # of the test rows


def split(rows: np.ndarray, is_anomaly: np.ndarray, contaminated: bool, seed: int) -> Split:
    """Return 60% of the normal rows for training, with 5% anomalies if contaminated, and all others for testing.

    Columns that are constant among the training rows are left out.

    Example:
        >>> rows, is_anomaly = np.random.default_rng(0).normal(size=(130, 3)), np.arange(130) >= 100
        >>> found = split(rows, is_anomaly, contaminated=True, seed=0)
        >>> found.train.shape, found.test.shape, int(found.is_anomaly.sum())
        ((63, 3), (67, 3), 27)
    """
    rng = np.random.default_rng(seed)
    normal, odd = (rng.permutation(np.flatnonzero(is_anomaly == kind)) for kind in (False, True))
    num_normal = int(TRAIN_SHARE * len(normal))
    num_odd = round(CONTAMINATION / (1 - CONTAMINATION) * num_normal) if contaminated else 0
    train = np.concatenate([normal[:num_normal], odd[:num_odd]])
    test = np.concatenate([normal[num_normal:], odd[num_odd:]])
    varies = rows[train].std(axis=0) > 0
    mean, std = rows[train].mean(axis=0)[varies], rows[train].std(axis=0)[varies]
    train, test, truth = rows[rng.permutation(train)][:, varies], rows[test][:, varies], is_anomaly[test]
    return Split((train - mean) / std, (test - mean) / std, truth)


def _sklearn(name, anomalies):
    def read():
        from sklearn import datasets

        found = getattr(datasets, f"load_{name}")()
        return found.data, np.isin(found.target, anomalies)

    return read


def _penguins():
    import palmerpenguins

    frame = palmerpenguins.load_penguins()
    columns = [name for name in frame if name.endswith(("_mm", "_g"))]
    rows, species = frame[columns].to_numpy(np.float64), frame["species"].to_numpy()
    kept = (species != "Gentoo") & ~np.isnan(rows).any(axis=1)
    return rows[kept], species[kept] == "Chinstrap"


def _shuffled_diabetes():
    """Anomalies have a usual value in each column, but those of different patients."""
    from sklearn import datasets

    rows = np.asarray(datasets.load_diabetes(return_X_y=True)[0])
    rng = np.random.default_rng(0)
    odd = np.stack([rng.choice(column, 100) for column in rows.T], axis=1)
    return np.concatenate([rows, odd]), np.arange(len(rows) + 100) >= len(rows)


ANOMALY_SETS = {
    "breast-cancer": AnomalySet("Breast cancer", _sklearn("breast_cancer", [0]), "benign", "malignant"),
    "wine": AnomalySet("Wine", _sklearn("wine", [0]), "cultivars 2 and 3", "cultivar 1"),
    "digits": AnomalySet("Digits", _sklearn("digits", [0]), "1 to 9", "0"),
    "iris": AnomalySet("Iris", _sklearn("iris", [2]), "setosa and versicolor", "virginica"),
    "penguins": AnomalySet("Penguins", _penguins, "Adelie", "Chinstrap"),
    "diabetes": AnomalySet("Diabetes", _shuffled_diabetes, "patients", "columns of different patients"),
}
