"""Ways to fill in the missing entries of a table with mixed columns: ours, and those that one would try first."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from aevb.experiments.mixed_tables import CATEGORY, NUMBER, ORDINAL, MixedTable
from aevb.vae import VAE

NEIGHBOURS = 5
RIDGE_ROUNDS = 10
ITERATED_TREES, TREE_ROUNDS = 10, 3
CHAINED_TREES, CHAIN_ROUNDS = 50, 3
LEAST_IN_A_LEAF = 5  # rows, in all trees: fewer fit the noise


class Imputer(NamedTuple):
    """A way to fill in a table."""

    detail: str
    fill: Callable[[MixedTable, int], Any]  # of a table and a seed; returns the filled frame


class Design(NamedTuple):
    """A table as a matrix: standardized numbers and ranks, and an indicator for each category.

    Args:
        matrix: (n, K), NaN where entries are missing.
        blocks: The columns of the matrix that belong to a column of the table, by its name.
        locs: By the name of a column, what is subtracted from its numbers.
        scales: By the name of a column, what they are divided by.
    """

    matrix: np.ndarray
    blocks: dict[str, slice]
    locs: dict[str, float]
    scales: dict[str, float]

    @classmethod
    def of(cls, table: MixedTable) -> "Design":
        """Return the matrix of a table."""
        parts, blocks, locs, scales, start = [], {}, {}, {}, 0
        for name, kind in table.kinds.items():
            values = numbers_of(table, name)
            if kind == CATEGORY:
                part = (values[:, None] == np.arange(len(table.frame[name].cat.categories))).astype(np.float64)
                part[np.isnan(values)] = np.nan
            else:
                locs[name], scales[name] = float(np.nanmean(values)), float(np.nanstd(values)) or 1.0
                part = ((values - locs[name]) / scales[name])[:, None]
            blocks[name] = slice(start, start := start + part.shape[1])
            parts.append(part)
        return cls(np.concatenate(parts, axis=1), blocks, locs, scales)

    def filled(self, table: MixedTable, matrix: np.ndarray) -> Any:
        """Return the table with its missing entries from a matrix: the largest indicator, and rounded ranks."""
        columns = {}
        for name, kind in table.kinds.items():
            part = matrix[:, self.blocks[name]]
            if kind == CATEGORY:
                columns[name] = part.argmax(axis=1).astype(np.float64)
            else:
                columns[name] = part[:, 0] * self.scales[name] + self.locs[name]
        return fill_in(table, columns)


def numbers_of(table: MixedTable, name: str) -> np.ndarray:
    """Return a column (n,): its numbers, or the places of its categories from 0, NaN where missing."""
    column = table.frame[name]
    if table.kinds[name] == NUMBER:
        return column.to_numpy(np.float64)
    codes = column.cat.codes.to_numpy(np.float64)
    return np.where(codes < 0, np.nan, codes)


def fill_in(table: MixedTable, columns: dict[str, np.ndarray]) -> Any:
    """Return the frame with missing entries from `columns`: numbers, or places of categories, rounded if need be."""
    import pandas

    filled = table.frame.copy()
    for name, kind in table.kinds.items():
        known = numbers_of(table, name)
        values = np.where(np.isnan(known), columns[name], known)
        if kind == NUMBER:
            filled[name] = values
        else:
            dtype = table.frame[name].dtype
            codes = np.clip(np.rint(values), 0, len(dtype.categories) - 1).astype(int)
            filled[name] = pandas.Categorical.from_codes(codes, dtype=dtype)
    return filled


def _mean_or_mode(table, seed):
    """Fill in means of numbers, medians of ordered categories and the most frequent of the others."""
    columns = {}
    for name, kind in table.kinds.items():
        known = numbers_of(table, name)
        known = known[~np.isnan(known)]
        if kind == CATEGORY:
            typical = float(np.bincount(known.astype(int)).argmax())
        else:
            typical = np.median(known) if kind == ORDINAL else known.mean()
        columns[name] = np.full(len(table.frame), typical)
    return fill_in(table, columns)


def _knn(table, seed):
    from sklearn.impute import KNNImputer

    design = Design.of(table)
    return design.filled(table, KNNImputer(n_neighbors=NEIGHBOURS).fit_transform(design.matrix))


def _ridge_of_indicators(table, seed):
    from sklearn.linear_model import BayesianRidge

    design = Design.of(table)
    return design.filled(table, _iterated(BayesianRidge(), RIDGE_ROUNDS, seed, design.matrix))


def _trees_of_places(table, seed):
    """Take the places of categories for numbers, which trees can split: better here than indicators on two tables."""
    from sklearn.ensemble import ExtraTreesRegressor

    matrix = np.stack(list(_columns(table).values()), axis=1)
    trees = ExtraTreesRegressor(ITERATED_TREES, min_samples_leaf=LEAST_IN_A_LEAF, random_state=seed)
    matrix = _iterated(trees, TREE_ROUNDS, seed, matrix)
    return fill_in(table, dict(zip(table.kinds, matrix.T, strict=True)))


def _iterated(regressor, rounds, seed, matrix):
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    return np.asarray(IterativeImputer(regressor, max_iter=rounds, random_state=seed).fit_transform(matrix))


def _chained(make_regressor, make_classifier):
    """Return an imputer that predicts each column from all others, the one with the fewest missing entries first.

    Unlike `IterativeImputer` it classifies categories, and does not predict an indicator of a category from the others
    of the same column, whose sum is 1: with them the first guess never changes.
    """

    def fill(table, seed):
        missing = table.frame.isna()
        current = table._replace(frame=_mean_or_mode(table, seed))
        names = [name for name in missing.sum().sort_values(kind="stable").index if missing[name].any()]
        for _ in range(CHAIN_ROUNDS):
            for name in names:
                rows = missing[name].to_numpy()
                design = Design.of(current)
                others = np.delete(design.matrix, design.blocks[name], axis=1)
                values = numbers_of(current, name).copy()
                model = (make_classifier if table.kinds[name] == CATEGORY else make_regressor)(seed)
                values[rows] = model.fit(others[~rows], values[~rows]).predict(others[rows])
                current = current._replace(frame=fill_in(table, {**_columns(current), name: values}))
        return current.frame

    return fill


def _columns(table):
    return {name: numbers_of(table, name) for name in table.kinds}


def _ridge(seed):
    from sklearn.linear_model import BayesianRidge

    return BayesianRidge()


def _logistic(seed):
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=200)


def _forest_regressor(seed):
    from sklearn.ensemble import RandomForestRegressor

    options = {"min_samples_leaf": LEAST_IN_A_LEAF, "max_features": 1 / 3, "random_state": seed}  # as MissForest
    return RandomForestRegressor(CHAINED_TREES, **options)


def _forest_classifier(seed):
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(CHAINED_TREES, min_samples_leaf=LEAST_IN_A_LEAF, random_state=seed)


def _vae(table, seed):
    return VAE(random_state=seed, progress=False).fit(table.frame).impute(table.frame)


OURS = "VAE"
IMPUTERS = {
    "mean or mode": Imputer("mean of numbers, median of ordered categories, most frequent category", _mean_or_mode),
    "nearest neighbours": Imputer(f"KNNImputer, {NEIGHBOURS} neighbours among all rows", _knn),
    "iterated ridge": Imputer(
        f"IterativeImputer, BayesianRidge, indicators of categories, at most {RIDGE_ROUNDS} rounds",
        _ridge_of_indicators,
    ),
    "iterated trees": Imputer(
        f"IterativeImputer, ExtraTreesRegressor of {ITERATED_TREES} trees with at least {LEAST_IN_A_LEAF} rows in a "
        f"leaf, categories by their places, at most {TREE_ROUNDS} rounds",
        _trees_of_places,
    ),
    "chained regressions": Imputer(
        f"BayesianRidge or LogisticRegression for each column, {CHAIN_ROUNDS} rounds", _chained(_ridge, _logistic)
    ),
    "chained forests": Imputer(
        f"as MissForest: a random forest of {CHAINED_TREES} trees with at least {LEAST_IN_A_LEAF} rows in a leaf for "
        f"each column, {CHAIN_ROUNDS} rounds",
        _chained(_forest_regressor, _forest_classifier),
    ),
    OURS: Imputer("default settings", _vae),
}
