"""Ten small tables of real numbers that ship with scikit-learn, statsmodels and palmerpenguins.

Columns that have no bounded density are left out: those that take few distinct values (counts, codes, years), and those
that are sums of others.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

TEST_SHARE = 0.2
SPLIT_SEED = 0


class Table(NamedTuple):
    """A small table, and how many latent variables a model of it gets."""

    title: str
    read: Callable[[], np.ndarray]
    latent_dim: int  # 1 up to 3 columns, 2 up to 8, 3 up to 12, else 5
    columns: str  # which


def _sklearn(name, without=()):
    def read():
        from sklearn import datasets

        found = getattr(datasets, f"load_{name}")()
        kept = [number for number, column in enumerate(found.feature_names) if column not in without]
        return found.data[:, kept]

    return read


def _penguins():
    import palmerpenguins

    frame = palmerpenguins.load_penguins()
    return frame[[name for name in frame if name.endswith(("_mm", "_g"))]].dropna().to_numpy(np.float64)


def _statsmodels(name, columns=None, without=(), log=False):
    def read():
        import statsmodels.api

        frame = getattr(statsmodels.api.datasets, name).load_pandas().data
        frame = frame[columns] if columns else frame.drop(columns=list(without))
        values = frame.to_numpy(np.float64)
        return np.log(values) if log else values

    return read


_STAR98 = [
    *("LOWINC", "PERASIAN", "PERBLACK", "PERHISP", "PERMINTE"),
    *("AVYRSEXP", "AVSALK", "PERSPENK", "PTRATIO", "PCTAF"),
]
TABLES = {
    "iris": Table("Iris", _sklearn("iris"), 2, "all"),
    "wine": Table("Wine", _sklearn("wine"), 5, "all"),
    "breast-cancer": Table("Breast cancer", _sklearn("breast_cancer"), 5, "all"),
    "diabetes": Table("Diabetes", _sklearn("diabetes", without=("sex", "s4")), 2, "all but sex and s4 (few values)"),
    "penguins": Table("Penguins", _penguins, 2, "the four measurements, of complete rows"),
    "macrodata": Table(
        "US macroeconomy",
        _statsmodels("macrodata", without=("year", "quarter", "realint")),
        3,
        "all but year, quarter (discrete) and realint (tbilrate - infl)",
    ),
    "star98": Table(
        "Star98 schools",
        _statsmodels("star98", _STAR98),
        3,
        "LOWINC to PCTAF, without the counts before and the percentages with many zeros and products behind",
    ),
    "grunfeld": Table(
        "Grunfeld", _statsmodels("grunfeld", ["invest", "value", "capital"], log=True), 1, "logarithms, without year"
    ),
    "engel": Table("Engel", _statsmodels("engel"), 1, "all"),
    "elnino": Table("El Niño", _statsmodels("elnino", without=("YEAR",)), 3, "the months, without YEAR"),
}


def split(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the training and the test rows of the fixed split, standardized by the training rows.

    Example:
        >>> train, test = split(np.arange(20.0).reshape(10, 2))
        >>> train.shape, test.shape, bool(np.allclose(train.mean(axis=0), 0))
        ((8, 2), (2, 2), True)
    """
    order = np.random.default_rng(SPLIT_SEED).permutation(len(rows))
    num_test = int(TEST_SHARE * len(rows))
    test, train = rows[order[:num_test]], rows[order[num_test:]]
    mean, std = train.mean(axis=0), train.std(axis=0)
    return (train - mean) / std, (test - mean) / std
