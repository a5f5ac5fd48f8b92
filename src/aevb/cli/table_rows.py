"""Rows of a file for the model of a table: a data frame with its columns, and writing such frames."""

import warnings
from pathlib import Path
from typing import Any, NamedTuple

from aevb.cli.console import InputError
from aevb.cli.run_folder import Run


class TableRows(NamedTuple):
    """The rows of a file."""

    whole: Any  # the frame with all columns of the file, and those of the model that it lacks, which are missing
    known: Any  # the frame without labels and columns that the run leaves out
    names: dict[str, Any]  # the labels, by the name of their column


def read_table_rows(run: Run, data: str, *, may_lack: bool = False) -> TableRows:
    """Return the rows of a file for the model of a table.

    Args:
        run: The run.
        data: A .csv, .csv.gz, .tsv or .parquet file.
        may_lack: Whether columns that the file lacks are missing entries, with a warning.

    Raises:
        ValueError: It is not such a file, or has other columns.
    """
    from aevb.data.frames import read_frame
    from aevb.data.frames.cells import TEXT
    from aevb.data.frames.parts import labels_of, names_of, with_empty_columns, without_columns
    from aevb.data.own import WITH_LABEL_COLUMNS
    from aevb.data.tables import ending_of

    if not Path(data).is_file() or ending_of(Path(data)) not in WITH_LABEL_COLUMNS:
        missing = "" if Path(data).exists() else f" (there is no such file, looked from {Path.cwd()})"
        raise InputError(
            f"{data}: this run learned a table, so it needs a {', '.join(WITH_LABEL_COLUMNS)} file with the same "
            f"columns{missing}."
        )
    columns = run.vae.model_.format.columns
    # Text stays text if the cells of this file happen to look like numbers.
    frame = read_frame(data, text={column.name for column in columns if column.storage.group == TEXT})
    lacking = [column.name for column in columns if column.name not in names_of(frame)]
    if may_lack and lacking and len(lacking) < len(columns):
        names = ", ".join(map(repr, lacking))
        warnings.warn(f"{data} lacks {names}: filled in as missing values in all rows.", stacklevel=2)
        frame = with_empty_columns(frame, lacking)
    label = run.data.label_column
    names = {label: labels_of(frame, label)} if label in names_of(frame) else {}
    return TableRows(frame, without_columns(frame, (label, *run.data.drop_columns)), names)


def write_table(path: Path, frame: Any) -> None:
    """Write a data frame to a .csv or .parquet file, atomically."""
    from aevb.data.frames.parts import write_frame
    from aevb.files import written_whole

    with written_whole(path) as scratch:
        write_frame(frame, scratch, path.suffix)
