"""Labels as colours: classes, quantities, or too many names to tell apart."""

import numpy as np

MAX_CLASSES = 20  # more distinct numbers are a quantity; more distinct names cannot be told apart by colour


def label_kind(labels: np.ndarray | None) -> str:
    """Return how labels can be shown: ``"none"``, ``"classes"``, ``"quantity"`` or ``"too many"``.

    Example:
        >>> label_kind(np.array(["a", "b"])), label_kind(np.linspace(0, 1, 30)), label_kind(np.arange(40).astype(str))
        ('classes', 'quantity', 'too many')
    """
    if labels is None:
        return "none"
    if len(np.unique(labels)) <= MAX_CLASSES:
        return "classes"
    return "quantity" if np.asarray(labels).dtype.kind in "iufb" else "too many"
