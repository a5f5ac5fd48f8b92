"""How similar two tables with mixed columns are: their columns, pairs of columns, and what a classifier learns."""

from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import ks_2samp


def is_number(column: Any) -> bool:
    """Return whether a pandas column holds numbers."""
    from pandas.api.types import is_numeric_dtype

    return is_numeric_dtype(column) and not hasattr(column, "cat")


def column_distances(real: Any, synthetic: Any) -> dict[str, float]:
    r"""Return a distance in [0, 1] for each column of two frames: Kolmogorov-Smirnov or total variation.

    .. math:: \max_x |F(x) - G(x)| \quad\text{(numbers)}, \qquad
        \tfrac12 \sum_k |p_k - q_k| \quad\text{(categories)}

    Example:
        >>> import pandas
        >>> a = pandas.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", "a", "a", "b"]})
        >>> b = pandas.DataFrame({"x": [1.0, 2.0, 5.0, 6.0], "y": ["a", "a", "b", "c"]})
        >>> column_distances(a, b)
        {'x': 0.5, 'y': 0.25}
    """
    return {name: _distance(real[name], synthetic[name]) for name in real}


def _distance(real, synthetic):
    if is_number(real):
        return float(ks_2samp(real.to_numpy(np.float64), synthetic.to_numpy(np.float64)).statistic)  # pyright: ignore
    shares = [column.astype(str).value_counts(normalize=True) for column in (real, synthetic)]
    return float(0.5 * shares[0].sub(shares[1], fill_value=0.0).abs().sum())


def associations(frame: Any) -> dict[tuple[str, str], float]:
    """Return the association of each pair of columns; 0 if one of them is constant.

    It is Pearson's correlation for two columns of numbers, Cramér's V for two columns of categories, else the
    correlation ratio: the root of the share of the numbers' variance that lies between the categories.

    Example:
        >>> import pandas
        >>> frame = pandas.DataFrame({"x": [1.0, 2.0, 3.0], "y": [3.0, 2.0, 1.0], "k": ["a", "b", "c"]})
        >>> {pair: round(value, 6) for pair, value in associations(frame).items()}
        {('x', 'y'): -1.0, ('x', 'k'): 1.0, ('y', 'k'): 1.0}
    """
    columns = {name: _values(frame[name]) for name in frame}
    return {(a, b): _association(columns[a], columns[b]) for a, b in combinations(columns, 2)}


def _values(column):
    """Return float numbers, or whole numbers that stand for categories."""
    if is_number(column):
        return column.to_numpy(np.float64)
    return np.unique(column.astype(str).to_numpy(), return_inverse=True)[1]


def _association(a, b):
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    kinds = a.dtype.kind + b.dtype.kind
    if kinds == "ff":
        return float(np.corrcoef(a, b)[0, 1])
    if "f" not in kinds:
        return _cramers_v(a, b)
    return _correlation_ratio(a, b) if kinds[0] == "f" else _correlation_ratio(b, a)


def _cramers_v(a, b):
    counts = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(counts, (a, b), 1)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / len(a)
    chi_squared = np.sum((counts - expected) ** 2 / expected)
    return float(np.sqrt(chi_squared / len(a) / (min(counts.shape) - 1)))


def _correlation_ratio(numbers, categories):
    sizes = np.bincount(categories)
    means = np.bincount(categories, numbers) / sizes
    between = np.sum(sizes * (means - numbers.mean()) ** 2)
    return float(np.sqrt(between / np.sum((numbers - numbers.mean()) ** 2)))


def classifier_auc(train: Any, test: Any, target: str, positive: str, seed: int = 0) -> float:
    """Return the area under the ROC curve on test rows of gradient-boosted trees that learn from training rows.

    Args:
        train: A pandas frame, real or synthetic.
        test: A frame of real rows with the same columns.
        target: The column to predict.
        positive: Its value whose probability ranks the rows.
        seed: Random seed of the trees.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    truth = test[target].astype(str) == positive
    learned = train[target].astype(str) == positive
    if learned.nunique() < 2:
        return 0.5  # nothing to learn from
    labels = [name for name in test if name != target and not is_number(test[name])]
    trees = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=seed)
    trees.fit(_inputs(train, test, target, labels), learned)
    return float(roc_auc_score(truth, trees.predict_proba(_inputs(test, test, target, labels))[:, 1]))


def _inputs(frame, test, target, labels):
    """Return the other columns, labels as categories of the test rows: no others matter there."""
    import pandas

    inputs = frame[[name for name in test if name != target]].copy()
    for name in labels:
        categories = sorted(test[name].astype(str).unique())
        inputs[name] = pandas.Categorical(inputs[name].astype(str), categories)
    return inputs
