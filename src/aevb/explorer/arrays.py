"""Arrays on their way into a page: named, in half precision where that is enough, compressed, as text."""

import base64
import zlib

import numpy as np

ALIGNMENT = 4  # bytes: a typed array of JavaScript cannot begin between two of its elements


def pack(arrays: dict[str, np.ndarray]) -> tuple[list[dict], str]:
    """Return what lies where, and all arrays as one text: base64 of zlib of their bytes, one after the other.

    Args:
        arrays: By name; of types float16, float32, uint8, uint16 or int32.

    Returns:
        For each array its name, type, shape and the place of its first byte; and the text.

    Example:
        >>> table, text = pack({"z": np.zeros((2, 3), np.float16)})
        >>> table
        [{'name': 'z', 'type': 'float16', 'shape': [2, 3], 'start': 0}]
    """
    table, pieces, start = [], [], 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
        table.append({"name": name, "type": array.dtype.name, "shape": list(array.shape), "start": start})
        padding = -len(data) % ALIGNMENT
        pieces.append(data + bytes(padding))
        start += len(data) + padding
    return table, base64.b64encode(zlib.compress(b"".join(pieces), 9)).decode("ascii")


def as_half(array: np.ndarray) -> np.ndarray:
    """Return numbers in half precision, or in single where one of them is too large for that.

    Example:
        >>> as_half(np.array([0.1])).dtype, as_half(np.array([1e6])).dtype
        (dtype('float16'), dtype('float32'))
    """
    largest = np.max(np.abs(array), initial=0.0)
    return array.astype(np.float16 if largest < np.finfo(np.float16).max else np.float32)
