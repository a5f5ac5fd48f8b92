"""The entries of a table as short texts, for people."""

import numpy as np

from aevb.data.frames.column_format import TIMES, ColumnFormat
from aevb.data.frames.containers import python_values, times
from aevb.data.frames.format import TableFormat

MISSING = "missing"


def entry_texts(table: TableFormat, stored: np.ndarray) -> dict[str, list[str]]:
    """Return the entries that stored numbers (n, D) stand for as texts, by the names of the columns.

    Example:
        >>> import polars as pl
        >>> people = pl.DataFrame({"height": [1.75, None, 1.6], "sex": ["F", "M", "F"]})
        >>> table = TableFormat.learn(people, {"height": "gaussian"})
        >>> entry_texts(table, table.encode(people))
        {'height': ['1.75', 'missing', '1.6'], 'sex': ['F', 'M', 'F']}
    """
    numbers = np.asarray(stored).T
    texts = {column.name: _texts(column, of) for column, of in zip(table.columns, numbers, strict=False)}
    flags = zip(table.model_columns[len(texts) :], numbers[len(texts) :], strict=True)  # whether entries are missing
    return texts | {column.name: ["yes" if flag == 1 else "no" for flag in of] for column, of in flags}


def _texts(column: ColumnFormat, stored):
    values, missing = column.decode(stored, is_observed=True)
    if column.storage.group in TIMES:
        ticks = times(column.storage, values, missing)
        unit = "D" if column.storage.unit == "D" else "s"
        texts = [
            str(tick).replace("T", " ").removesuffix(" 00:00:00")
            for tick in ticks.astype(f"{ticks.dtype.kind}8[{unit}]")
        ]
    else:
        entries = python_values(column.storage, values, missing)
        texts = [f"{entry:.6g}" if isinstance(entry, float) else str(entry) for entry in entries]
    return [MISSING if hole else text for text, hole in zip(texts, missing, strict=True)]
