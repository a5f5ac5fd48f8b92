"""How a user's data become stored arrays, and values of the model become data again: a part of each fitted model.

What runs on the host is here; what runs inside the compiled step is the :class:`~aevb.models.Conversion` that a format
returns with the stored arrays.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from aevb.models.conversion import Conversion, Numbers
from aevb.models.sparse_rows import SparseRows, is_sparse


@final
@dataclass(frozen=True, eq=False)
class MatrixFormat:
    """Rows of numbers.

    Args:
        num_columns: D.
        columns: (D,), the names of the columns; None if they have none.
        scale: What bytes are multiplied by: 1/255 for grey levels.
        offset: (D,), what is subtracted from the columns, in float64, before anything is computed in float32; or None.
        from_frame: Whether the data were a frame: its columns are then known by name, and plain arrays warned about.
        image_shape: (height, width) or (height, width, channels) of rows that are images; None for others.
        from_images: Whether the data were images of this shape, and not flat rows.

    Example:
        >>> stored, conversion = MatrixFormat(2, offset=np.array([1e9, 0.0])).store(np.array([[1e9 + 1, 2.0]]))
        >>> stored.tolist()
        [[1.0, 2.0]]
    """

    num_columns: int
    columns: tuple[str, ...] | None = None
    scale: float = 1.0
    offset: np.ndarray | None = None
    from_frame: bool = False
    image_shape: tuple[int, ...] | None = None
    from_images: bool = False

    @property
    def encodes_missing(self) -> bool:
        """Whether the encoder reads datapoints with missing entries: no."""
        return False

    def store(self, X: Any) -> tuple[Any, Conversion]:
        """Return rows (n, D) as they are stored on the device, and how a step reads them; sparse ones stay sparse."""
        return SparseRows.of(X) if is_sparse(X) else self.shifted(X), Conversion(Numbers(self.scale_of(X)))

    def restore(self, values: Any) -> np.ndarray:
        """Return values of the model in the units of the data; in float64 where float32 has too few digits."""
        return values if self.offset is None else np.asarray(values) + self.offset

    def shifted(self, X: np.ndarray) -> np.ndarray:
        """Return rows minus the offset."""
        return X if self.offset is None else X - self.offset

    def scale_of(self, X: np.ndarray) -> float:
        """Return what these rows are multiplied by: bytes by the scale, other numbers by 1."""
        return self.scale if X.dtype == np.uint8 else 1.0

    def levels(self, X: np.ndarray) -> np.ndarray:
        """Return rows with bytes as the numbers they stand for; other rows unchanged."""
        return X * np.float32(self.scale) if X.dtype == np.uint8 else X

    def as_read(self, X: Any) -> np.ndarray:
        """Return rows as the networks read them, on the host."""
        return X.toarray() if is_sparse(X) else self.shifted(X) * np.float32(self.scale_of(X))

    def as_given(self, values: np.ndarray) -> np.ndarray:
        """Return flat rows (..., D) in the shape of the data: images (..., height, width) if they were images."""
        return (
            values.reshape(*values.shape[:-1], *self.image_shape) if self.from_images and self.image_shape else values
        )

    def describe(self) -> dict[str, Any]:
        """Return the format as JSON can hold it."""
        columns = None if self.columns is None else list(self.columns)
        offset = None if self.offset is None else self.offset.tolist()
        facts = {"num_columns": self.num_columns, "columns": columns, "scale": self.scale, "offset": offset}
        if self.image_shape is not None:
            facts |= {"image_shape": list(self.image_shape), "from_images": self.from_images}
        return {"kind": "matrix", **facts, "from_frame": self.from_frame}

    @classmethod
    def from_description(cls, facts: Mapping[str, Any]) -> "MatrixFormat":
        """Return the format that was described."""
        columns = None if facts["columns"] is None else tuple(facts["columns"])
        offset = None if facts["offset"] is None else np.asarray(facts["offset"], np.float64)
        shape = tuple(facts["image_shape"]) if "image_shape" in facts else None
        images = shape, facts.get("from_images", False)
        return cls(facts["num_columns"], columns, facts["scale"], offset, facts["from_frame"], *images)


@final
@dataclass(frozen=True, eq=False)
class TreeFormat:
    """Trees of arrays that are stored as they come, for models with structure.

    Args:
        conversion: How a step reads them.
    """

    conversion: Conversion

    @property
    def encodes_missing(self) -> bool:
        """Whether the encoder reads datapoints with missing entries: yes, if there are any."""
        return True

    def store(self, X: Any) -> tuple[Any, Conversion]:
        """Return the arrays, and how a step reads them."""
        return X, self.conversion

    def restore(self, values: Any) -> Any:
        """Return values of the model unchanged."""
        return values

    def describe(self) -> dict[str, Any]:
        """Return the format as JSON can hold it."""
        return {"kind": "tree", **self.conversion.describe()}

    @classmethod
    def from_description(cls, facts: Mapping[str, Any]) -> "TreeFormat":
        """Return the format that was described."""
        return cls(Conversion.from_description(facts))


class Format(Protocol):
    """What a fitted model asks of its format."""

    @property
    def encodes_missing(self) -> bool:
        """Whether the encoder reads datapoints with missing entries."""
        ...

    def store(self, X: Any) -> tuple[Any, Conversion]:
        """Return data as they are stored on the device, and how a step reads them."""
        ...

    def restore(self, values: Any) -> Any:
        """Return values of the model as data."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return the format as JSON can hold it, with its ``"kind"``."""
        ...
