"""Labels of classes, of which some may be unknown, as scikit-learn marks them: -1."""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from aevb.errors import shown

UNLABELED = -1


def read_labels(
    y: Any, num_rows: int, classes: Any = None, *, may_be_new: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes in order, (K,), and the place of each row's class among them, (n,), NaN if it is unknown.

    Args:
        y: (n,), labels: whole numbers or text; -1, also as text, for rows without one.
        num_rows: n.
        classes: The classes in order, if they are known; None for those in y.
        may_be_new: Whether there may be other labels, next to those of the classes; their place is K, and a warning
            names them.

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
    known = values[is_known].tolist()
    classes = _classes_of(known, is_known.all()) if classes is None else np.asarray(classes)
    place = {label: number for number, label in enumerate(classes.tolist())}
    strange = [value for value in dict.fromkeys(known) if value not in place]
    if strange and not (may_be_new and any(value in place for value in known)):
        raise ValueError(
            f"y: {_some(strange)} {'is' if len(strange) == 1 else 'are'} not among the classes {_some(place)}. Give "
            "labels of these classes, or -1 for rows without a label; to learn other classes, fit a new model."
        )
    if strange:
        warnings.warn(
            f"y: {_some(strange)} {'was' if len(strange) == 1 else 'were'} not there in training: the "
            f"{sum(value not in place for value in known):,} rows with such labels count as wrong.",
            UserWarning,
            stacklevel=3,
        )
    places = np.full(num_rows, np.nan)
    places[is_known] = [place.get(value, len(place)) for value in known]
    return classes, places


def read_classes(classes: Any) -> np.ndarray:
    """Return the classes that a user names, in order, (K,).

    Example:
        >>> read_classes(["dog", "cat"]).tolist()
        ['cat', 'dog']
    """
    found = np.unique(np.asarray(classes))
    if len(found) < 2:
        raise ValueError(f"classes={shown(classes)}: a classifier needs at least 2 classes. Give all of them.")
    if any(map(_is_unlabeled, found.tolist())):
        raise ValueError(
            f"classes={shown(classes)}: -1 marks rows without a label, and cannot be a class. Leave it out, or give "
            "the classes other names."
        )
    return found


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
        raise ValueError(
            f"y should be a 1d array, got an array of shape {array.shape} instead. Give one label for each row; "
            "VAERegressor takes several targets that are numbers."
        )
    if array.dtype.kind == "O":
        array = np.array([None if value is None or value != value else value for value in array], object)
    is_nan = np.isnan(array) if array.dtype.kind == "f" else np.array([value is None for value in array], bool)
    if is_nan.any():
        raise ValueError(
            f"y: Input y contains NaN, {np.count_nonzero(is_nan):,} of {len(array):,} entries. Mark rows without a "
            "label by -1, as scikit-learn does: np.where(pd.isna(y), -1, y)."
        )
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise ValueError("y: Input y contains infinity. Labels are whole numbers or text. Correct those entries.")
        if np.any(array % 1):
            raise ValueError(
                f"y: Unknown label type: continuous, such as {array[array % 1 != 0][0]:g}. Labels are whole numbers or "
                "text; for numbers use VAERegressor."
            )
        array = array.astype(np.int64)
    values = np.array(array.tolist(), object)
    strange = [value for value in values if not isinstance(value, str | int | float)]
    if strange:
        raise ValueError(
            f"y: {shown(strange[0])} is not a label. Labels are whole numbers or text: convert them by y.astype(str)."
        )
    return values


def _classes_of(known, are_all_known):
    """Return the different labels of these rows in order; refuse those that leave nothing to learn."""
    if not known:
        raise ValueError("y: all rows are unlabeled (-1). Give some labels, or use VAE, which needs none.")
    words, others = ([label for label in known if isinstance(label, str) == is_text] for is_text in (True, False))
    if words and others:
        raise ValueError(
            f"y has both text and numbers, such as {shown(words[0])} and {shown(others[0])}. Give labels of one type: "
            "convert the numbers to text."
        )
    classes = np.unique(np.array(known))
    if len(classes) >= 2:
        return classes
    if not are_all_known and classes.tolist() == [1]:
        raise ValueError(
            "y has the values -1 and 1, and -1 marks rows without a label, which would leave one class. If -1 is a "
            "class here, give the classes other names, such as (y > 0).astype(int)."
        )
    raise ValueError(
        f"y has one class only, {shown(classes[0])}: a classifier needs labels of at least 2 classes. Give labels of "
        "others too, or use VAE, which needs none."
    )


def _some(labels):
    labels = list(labels)
    return ", ".join(shown(label, 40) for label in labels[:20]) + ", ..." * (len(labels) > 20)
