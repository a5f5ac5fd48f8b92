"""Encoding named arrays as text for a page: in half precision where that is enough, and compressed."""

import base64
import zlib

import numpy as np

ALIGNMENT = 4  # bytes: a typed array in JavaScript must start at a multiple of its element size


def pack(arrays: dict[str, np.ndarray]) -> tuple[list[dict], str]:
    """Return an index of the arrays, and all of them as one text: base64 of zlib of their concatenated bytes.

    Args:
        arrays: The arrays by name; of type float16, float32, uint8, uint16 or int32.

    Returns:
        The name, type, shape and first byte of each array; and the text.

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
    """Return numbers in half precision, or in single precision if one of them is too large.

    Example:
        >>> as_half(np.array([0.1])).dtype, as_half(np.array([1e6])).dtype
        (dtype('float16'), dtype('float32'))
    """
    largest = np.max(np.abs(array), initial=0.0)
    return array.astype(np.float16 if largest < np.finfo(np.float16).max else np.float32)
