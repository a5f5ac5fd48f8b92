"""The option --given of `aevb sample`: what is known of some columns of the rows to draw."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aevb.cli.console import InputError
from aevb.cli.kinds import pairs

if TYPE_CHECKING:
    from aevb.data.frames import ColumnFormat, TableFormat

_FORM = "NAME=VALUE, NAME=LOW:HIGH or NAME=VALUE,VALUE, for example sex=F or age=30:40"


def read_conditions(table: "TableFormat", options: Sequence[str]) -> dict[str, Any]:
    """Return what options such as sex=F and age=30:40 say, as the argument `given` of :meth:`aevb.VAE.sample`.

    Args:
        table: The format of the table.
        options: The options: a value, several labels with commas between them, or a range of numbers or dates, of
            which one end may be left out.

    Raises:
        InputError: An option has another form, or its value cannot be read.

    Example:
        >>> import polars as pl
        >>> from aevb.data.frames import TableFormat
        >>> table = TableFormat.learn(pl.DataFrame({"age": [31.5, 40.25, 54.75], "sex": ["F", "M", "F"]}))
        >>> read_conditions(table, ["sex=F", "age=30:40"])
        {'sex': 'F', 'age': (30.0, 40.0)}
    """
    columns = {column.name: column for column in table.columns}
    given = pairs(options, "--given", _FORM)
    return {name: _value(columns[name], text) if name in columns else text for name, text in given.items()}


def _value(column: "ColumnFormat", text: str):
    from aevb.data.frames.stored import LABELS

    if column.column.family in LABELS:
        several = [label.strip() for label in text.split(",")]
        return several if len(several) > 1 and text not in map(str, column.levels) else text
    parse = _parser(column)
    if (single := parse(text)) is not None:
        return single
    for place, letter in enumerate(text):  # times of day contain colons too
        ends = text[:place].strip(), text[place + 1 :].strip()
        if letter == ":" and any(ends) and all(not end or parse(end) is not None for end in ends):
            return tuple(parse(end) if end else None for end in ends)
    what, example = ("dates", "2024-01-01:2024-06-30") if column.kind == "date" else ("numbers", "30:40")
    raise InputError(
        f"--given {column.name}={text}: the column holds {what}. Give one, or a range such as {column.name}={example}."
    )


def _parser(column):
    """Return a function that reads one value of a column, or returns None."""
    import numpy as np

    from aevb.data.frames.column_format import TIMES

    def read(text):
        try:
            return np.datetime64(text, column.storage.unit) if is_date else float(text)
        except ValueError:
            return None

    is_date = column.storage.group in TIMES
    return read
