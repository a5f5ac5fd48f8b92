"""A matrix of numbers as a frame of columns x0, x1, ..., so that arrays with missing entries are tables too."""

from typing import Any, final

import numpy as np

from aevb.data.frames.cells import NUMBER, Cells, Storage
from aevb.matrices import check_number_type, read_array


@final
class MatrixFrame:
    """An array (n, D) with NaN for missing entries, with the names and columns of a frame.

    Args:
        X: The array.

    Example:
        >>> frame = MatrixFrame(np.array([[1.0, np.nan]]))
        >>> frame.columns, len(frame)
        (['x0', 'x1'], 1)
    """

    implementation = "numpy"

    def __init__(self, X: Any):
        check_number_type(X, "X")
        self.values = read_array(X, "X").astype(np.float64)
        self.dtype = str(np.asarray(X).dtype)
        self.columns = [f"x{number}" for number in range(self.values.shape[1])]

    def __len__(self) -> int:
        return len(self.values)

    def cells(self) -> dict[str, "MatrixColumn"]:
        """Return the columns by name."""
        return {name: MatrixColumn(self.values[:, place], self.dtype) for place, name in enumerate(self.columns)}


@final
class MatrixColumn:
    """One column of a matrix."""

    def __init__(self, values: np.ndarray, dtype: str):
        self.values, self.dtype = values, dtype

    def read(self, name: str) -> Cells:
        """Return its entries.

        Raises:
            ValueError: An entry is infinite.
        """
        if np.isinf(self.values).any():
            row = int(np.argmax(np.isinf(self.values)))
            raise ValueError(
                f"X: the value at row {row}, column {name!r} is {self.values[row]} (rows counted from 0): infinity is "
                "not allowed here. Correct those values, or mark them as missing (NaN)."
            )
        kind = {"f": "Float64", "i": "Int64", "u": "UInt64", "b": "Boolean"}.get(np.dtype(self.dtype).kind, "Float64")
        return Cells(name, self.values, np.isnan(self.values), Storage(NUMBER, kind, self.dtype))
