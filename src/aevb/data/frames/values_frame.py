"""Named arrays of numbers or text as a frame, so that labels need no data frame library."""

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from aevb.data.frames.cells import TEXT, Cells, Storage, object_cells
from aevb.data.frames.matrix_frame import MatrixColumn


@final
class ValuesFrame:
    """Arrays of equal lengths, with the names and columns of a frame.

    Args:
        columns: By name, a list or array (n,), or a single value.

    Example:
        >>> frame = ValuesFrame({"y": ["cat", "dog"]})
        >>> frame.columns, len(frame)
        (['y'], 2)
    """

    implementation = "numpy"

    def __init__(self, columns: Mapping[str, Any]):
        self.arrays = {str(name): _array(values) for name, values in columns.items()}
        self.columns = list(self.arrays)

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    def cells(self) -> dict[str, Any]:
        """Return the columns by name."""
        return {name: _column(values) for name, values in self.arrays.items()}


@final
class ObjectColumn:
    """A column of text, or of Python's own objects."""

    def __init__(self, values: np.ndarray):
        self.values = values

    def read(self, name: str) -> Cells:
        """Return its entries; None and NaN are missing."""
        missing = np.array([value is None or value != value for value in self.values], bool)
        return object_cells(self.values, name, missing, Storage(TEXT, "Object", "object"))


def _array(values):
    array = np.atleast_1d(np.asarray(values))
    if array.ndim != 1:
        raise ValueError(f"an array of shape {array.shape} is not a column; give one value for each row.")
    return array


def _column(values):
    if values.dtype.kind in "fiub":
        return MatrixColumn(values.astype(np.float64), str(values.dtype))
    return ObjectColumn(values.astype(object))
