"""Labels of classes, of which some may be unknown, as scikit-learn marks them: -1."""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from aevb.errors import shown

UNLABELED = -1


def read_labels(y: Any, num_rows: int, classes: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes in order, (K,), and the place of each row's class among them, (n,), NaN if it is unknown.

    Args:
        y: (n,), labels: whole numbers or text; -1, also as text, for rows without one.
        num_rows: n.
        classes: The classes, if they are known; None for those in y.

    Raises:
        ValueError: The message says what was given and what is allowed.

    Example:
        >>> classes, places = read_labels(["dog", -1, "cat"], 3)
        >>> classes.tolist(), places.tolist()
        (['cat', 'dog'], [1.0, nan, 0.0])
    """
    values = _values(y)
    if len(values) != num_rows:
        raise ValueError(f"y has {len(values):,} rows, but X has {num_rows:,}. Give a label for each row, -1 for none.")
    is_known = np.array([not _is_unlabeled(value) for value in values], bool)
    known = values[is_known]
    if not len(known) and classes is None:
        raise ValueError("y: all rows are unlabeled (-1). Give some labels, or use VAE, which needs none.")
    if classes is None:
        classes = np.unique(np.array(known.tolist()))
        _check_classes(classes, is_known.all())
    else:
        classes = np.unique(np.asarray(classes))
        if len(classes) < 2:
            raise ValueError(f"classes={shown(classes)}: a classifier needs at least 2 classes.")
    place = {label: number for number, label in enumerate(classes.tolist())}
    strange = [value for value in dict.fromkeys(known.tolist()) if value not in place]
    if strange:
        raise ValueError(f"y: {', '.join(map(shown, strange[:5]))} not among the classes {shown(classes.tolist())}.")
    places = np.full(num_rows, np.nan)
    places[is_known] = [place[value] for value in known.tolist()]
    return classes, places


def without_column_axis(y: np.ndarray) -> np.ndarray:
    """Return y, (n,); as (n, 1) with a warning, as in scikit-learn."""
    if y.ndim != 2 or y.shape[1] != 1:
        return y
    message = "A column-vector y was passed when a 1d array was expected. Give y.ravel()."
    warnings.warn(message, DataConversionWarning, stacklevel=5)
    return y[:, 0]


def _is_unlabeled(value):
    return value == str(UNLABELED) if isinstance(value, str) else value == UNLABELED


def _values(y):
    """Return labels as an array of Python's own objects, after checks of their type."""
    if y is None:
        raise ValueError("VAEClassifier requires y to be passed, but the target y is None. Give a label for each row.")
    has_words = isinstance(y, list | tuple) and any(isinstance(value, str) for value in y)
    array = np.array(y, object) if has_words else np.asarray(y)  # which would make -1 a word among words
    array = without_column_axis(array)
    if array.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {array.shape} instead.")
    if array.dtype.kind == "O":
        array = np.array([None if value is None or value != value else value for value in array], object)
    has_nan = (array.dtype.kind == "f" and np.isnan(array).any()) or (
        array.dtype.kind == "O" and any(value is None for value in array)
    )
    if has_nan:
        raise ValueError("y: Input y contains NaN. Mark rows without a label by -1, as scikit-learn does.")
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise ValueError("y: Input y contains infinity. Labels are whole numbers or text.")
        if np.any(array % 1):
            raise ValueError(
                f"y: Unknown label type: continuous, such as {array[array % 1 != 0][0]:g}. Labels are whole numbers or "
                "text; for numbers use VAERegressor."
            )
        array = array.astype(np.int64)
    return np.array(array.tolist(), object)


def _check_classes(classes, are_all_known):
    if len(classes) >= 2:
        return
    if not are_all_known and classes.tolist() == [1]:
        raise ValueError(
            "y has the values -1 and 1, and -1 marks rows without a label, which would leave one class. If -1 is a "
            "class here, give the classes other names, such as (y > 0).astype(int)."
        )
    raise ValueError(f"y has one class only, {shown(classes[0])}: a classifier needs labels of at least 2 classes.")
