"""`aevb anomalies`: which rows of data the model finds least likely."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from aevb.cli.console import Console, Json, Quiet, whole
from aevb.cli.output import check_output
from aevb.cli.rows import naming, read_named_rows
from aevb.cli.run_folder import open_run
from aevb.cli.waiting import waiting


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
    """Rank the rows of data by how unlikely the model finds them.

    Args:
        run: Folder of the run.
        data: Name of a data set, or a file, as for `aevb fit`. Only the observed values of a row count: rows with
            different missing values are not comparable.
        method: bound (the lower bound of log p(x)), or log p(x) itself by one of the methods of `aevb evaluate`.
        num_samples: Draws of z for each row; 10 for the bound and 1000 for the others if it is not given.
        top: How many rows to show.
        output: A .csv file with all rows, the strangest first: rank, row, score (minus log p(x) or its bound, in nats),
            and what names a row: its file, its label. anomalies.csv in the run's folder if it is not given.
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
        rows, names = read_named_rows(opened, data)
    num_samples = num_samples or (10 if method == "bound" else 1000)
    with waiting("Scoring"), console.notes(), naming(data):
        ranking = opened.vae.rank_anomalies(rows, method=method, num_samples=num_samples)
    table = [
        {"rank": rank, "row": int(row), "score": float(ranking.scores[row])}
        | {name: str(values[row]) for name, values in names.items()}
        for rank, row in enumerate(ranking.order, start=1)
    ]
    _write(output, table)
    for line in _lines(table[:top]):
        console.say(line)
    what = "minus the lower bound of log p(x)" if method == "bound" else f"minus log p(x) by {method}"
    console.say(f"Scores are {what}, in nats. Rows are counted from 0.")
    if np.isnan(rows).any():
        console.say(
            "Some rows have missing values. A score is that of the observed values, so rows with fewer of them have "
            "fewer terms: do not compare rows with different holes."
        )
    facts = {"rows": len(table), "method": method, "num_samples": num_samples, "strangest": table[:top]}
    console.end(f"Wrote {len(table):,} rows, the strangest first, to {output}", {"output": output, **facts})


def _write(path, table):
    import csv

    from aevb.files import written_whole

    with written_whole(path) as scratch, open(scratch, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)


def _lines(table):
    """Return the lines of a table with a column for each key, aligned."""
    cells = [list(table[0])] + [[_shown(value) for value in row.values()] for row in table]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in cells]


def _shown(value):
    return f"{value:.2f}" if isinstance(value, float) else str(value)
