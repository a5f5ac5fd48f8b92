"""`aevb anomalies`: the rows of data that are least likely under the model."""

import warnings
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from aevb.cli.console import Console, Json, Quiet, whole
from aevb.cli.output import check_output
from aevb.cli.rows import naming, read_named_rows
from aevb.cli.run_folder import open_run
from aevb.cli.table_rows import read_table_rows
from aevb.cli.waiting import waiting

NUM_REASONS = 3  # columns that are named for each row
_BECAUSE = "because of"


def anomalies(
    run: Path,
    data: str,
    *,
    method: Literal["bound", "importance", "laplace", "hmc", "ais", "quadrature"] = "bound",
    num_samples: Annotated[int, Parameter(converter=whole, validator=Number(gte=1))] | None = None,
    top: Annotated[int, Parameter(converter=whole, validator=Number(gte=1))] = 10,
    output: Path | None = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Rank the rows of data by how unlikely they are under the model.

    Args:
        run: Folder of the run.
        data: Name of a data set, or a file, as for `aevb fit`. Only the observed values of a row count: rows with
            different missing values are not comparable.
        method: bound (the lower bound of log p(x)), or log p(x) itself by one of the methods of `aevb evaluate`.
        num_samples: Draws of z per row; by default 10 for the bound and 1000 for the other methods.
        top: How many rows to print.
        output: A .csv file for all rows, the least likely first: rank, row, score (minus log p(x) or its bound, in
            nats), the row's file or label, if it has one, and for tables the three columns that made it unlikely
            (column_1, value_1, nats_1, ...); by default anomalies.csv in the run folder.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    import numpy as np

    console = Console(quiet, json)
    if output is not None:
        check_output(output, ".csv")
    opened = open_run(run)
    check_output(output := output or run / "anomalies.csv", ".csv")
    with waiting("Reading the data"), console.notes():
        rows, names = _read(opened, data)
    num_samples = num_samples or (10 if method == "bound" else 1000)
    with waiting("Scoring"), console.notes(), naming(data):
        ranking = opened.vae.rank_anomalies(rows, method=method, num_samples=num_samples)
    because = _because(opened, rows, console)
    table = [
        {"rank": rank, "row": int(row), "score": float(ranking.scores[row])}
        | {name: str(values[row]) for name, values in names.items()}
        | (because[row] if because else {})
        for rank, row in enumerate(ranking.order, start=1)
    ]
    _write(output, table)
    for line in _lines(table[:top]):
        console.say(line)
    what = "minus the lower bound of log p(x)" if method == "bound" else f"minus log p(x) by {method}"
    console.say(f"Scores are {what}, in nats. Rows are counted from 0.")
    if because:
        console.say(
            "In parentheses: how much more surprising an entry is, given the rest of its row, than entries of its "
            "column usually are, in nats."
        )
    if np.isnan(_stored(opened, rows)).any():
        console.say(
            "Some rows have missing values. Only observed values count, so the scores of rows with different missing "
            "values are not comparable."
        )
    facts = {"rows": len(table), "method": method, "num_samples": num_samples, "anomalies": table[:top]}
    console.end(f"Wrote {len(table):,} rows, the least likely first, to {output}", {"output": output, **facts})


def _read(run, data):
    """Return the rows, those of a table as a data frame, and their names."""
    if not run.has_frames:
        return read_named_rows(run, data)
    found = read_table_rows(run, data)
    return found.known, found.names


def _stored(run, rows):
    """Return rows as numbers, NaN where they are missing."""
    return run.vae.model_.format.encode(rows) if run.vae.model_.is_table else rows


def _because(run, rows, console):
    """Return for each row of a table the columns that made it unlikely, most important first; nothing otherwise."""
    from aevb.data.frames.texts import entry_texts
    from aevb.fitted.surprise import most_surprising, surprises

    model = run.vae.model_
    if not model.is_table:
        return None
    with warnings.catch_warnings(), waiting("Explaining"):
        warnings.simplefilter("ignore", UserWarning)  # about unknown labels: shown before
        stored = _stored(run, rows)
    found, texts = surprises(model, stored), entry_texts(model.format, stored)
    names = list(texts)
    return [
        {
            f"{what}_{number}": value
            for number, place in enumerate(places, start=1)
            for what, value in (
                ("column", names[place]),
                ("value", texts[names[place]][row]),
                ("nats", float(found[row, place])),
            )
        }
        for row, places in enumerate(most_surprising(found, NUM_REASONS))
    ]


def _write(path, table):
    import csv

    from aevb.files import written_whole

    with written_whole(path) as scratch, open(scratch, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)


def _lines(table):
    """Return the aligned lines of a table with a column for each key; the reasons are in one column."""
    table = [_short(row) for row in table]
    cells = [list(table[0])] + [[_shown(value) for value in row.values()] for row in table]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    places = ["<" if name == _BECAUSE else ">" for name in cells[0]]
    return [
        "  ".join(f"{text:{place}{width}}" for text, place, width in zip(row, places, widths, strict=True)).rstrip()
        for row in cells
    ]


def _short(row):
    """Return a row of the table with its reasons as one text."""
    reasons = [
        f"{row[f'column_{number}']}={row[f'value_{number}']} ({row[f'nats_{number}']:.1f})"
        for number in range(1, NUM_REASONS + 1)
        if row.get(f"nats_{number}", 0) >= 0.05
    ]
    told = {f"{what}_{number}" for what in ("column", "value", "nats") for number in range(1, NUM_REASONS + 1)}
    kept = {name: value for name, value in row.items() if "nats_1" not in row or name not in told}
    return kept | ({_BECAUSE: ", ".join(reasons) or "nothing in particular"} if "nats_1" in row else {})


def _shown(value):
    return f"{value:.2f}" if isinstance(value, float) else str(value)
