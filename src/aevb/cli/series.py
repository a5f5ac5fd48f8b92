"""`aevb fit --sequence --time` and `aevb forecast`: models of sequences, such as time series."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from aevb.cli.console import Console, InputError, Json, Quiet, whole
from aevb.cli.output import check_output
from aevb.cli.waiting import waiting

SHOWN = 3  # sequences and columns in the picture


def learn_series(
    given: dict, source: str, columns: dict[str, Any], output: Path, command: str, console: Console, *, share: float
) -> None:
    """Train a model of sequences, and write its run folder.

    Args:
        given: The arguments of the estimator that were given.
        source: A .csv, .tsv or .parquet file with a row for each step.
        columns: The names of the columns ``"time"`` and ``"sequence"``, None if there is none, and those to ``"drop"``.
        output: Folder for the results.
        command: The command line.
        console: How to print.
        share: Of the sequences held out for evaluation.
    """
    import numpy as np

    from aevb import SequenceVAE, runs
    from aevb.cli.learn import make_folder
    from aevb.settings import SEQUENCE_SETTINGS

    for name in given:
        if name not in SEQUENCE_SETTINGS:
            raise InputError(f"--{name.replace('_', '-')}: SequenceVAE has no such argument.")
    with waiting("Reading the data"), console.notes():
        found = read_series(source, columns)
        model = SequenceVAE(**given, progress=console.shows_progress)
        model._check_parameters()
    num = len(found.lengths)
    test = np.sort(np.random.default_rng(0).permutation(num)[: int(share * num)])
    train = np.setdiff1d(np.arange(num), test)
    console.say(
        f"{num:,} sequences of {found.lengths.min():,} to {found.lengths.max():,} steps; {len(test):,} held out."
    )
    folder = make_folder(output)
    table = {"source": str(source), "test_fraction": share, **{k: v for k, v in columns.items() if v}}
    runs.write_config(folder, {"run": {"command": command, "series": True}, "data": table, "model": given})
    with console.notes():
        model.fit(**_given(found, train))
    model.save(folder / "model")
    runs.write_history(folder, model.history_)
    metrics: dict[str, Any] = {"sequences": num, "training_bound_per_step": model.score(**_given(found, train))}
    if len(test):
        metrics["held_out_bound_per_step"] = model.score(**_given(found, test))
    runs.write_metrics(
        folder, {"estimator": "SequenceVAE", "how": "sum of bounds / sum of lengths, in nats", **metrics}
    )
    for name, value in metrics.items():
        console.say(f"  {name.replace('_', ' ')}: {value:.4g}")
    console.end(f"Results are in {folder}. Try: aevb forecast {folder} --steps 12", {"folder": folder, **metrics})


def read_series(source: str, columns: dict[str, Any]) -> Any:
    """Return the sequences in a file; see :func:`learn_series`."""
    import numpy as np

    from aevb.cli.target import read_table
    from aevb.data.frames.cells import read_cells
    from aevb.data.frames.containers import open_frame, series_of
    from aevb.data.frames.parts import without_columns
    from aevb.data.sequences import by_sequence, check_times
    from aevb.errors import no_column

    frame = read_table(source, "--sequence and --time")
    series = series_of(open_frame(frame))
    for option in ("time", "sequence"):
        if columns[option] is not None and columns[option] not in series:
            raise InputError(f"--{option}: {source}: {no_column(columns[option], list(series))}")

    def values(option):
        name = columns[option]
        if name is None:
            return None
        cells = read_cells(series[name], name)
        if cells.missing.any():
            raise InputError(f"--{option} {name}: row {int(np.argmax(cells.missing))} has no value (counted from 0).")
        return cells.values

    times = values("time")
    if times is not None and times.dtype == object:
        try:
            times = np.array(times, "M8[s]")
        except ValueError:
            raise InputError(f"--time {columns['time']}: neither numbers nor dates, such as {times[0]!r}.") from None
    rows = without_columns(frame, (columns["time"], columns["sequence"], *columns["drop"]))
    found = by_sequence(rows, values("sequence"), times, str(source))
    check_times(found, str(source))
    return found


def _given(found, numbers) -> dict[str, Any]:
    """Return some sequences as the arguments of `SequenceVAE`'s methods."""
    import numpy as np

    from aevb.data.frames.parts import take_rows

    steps = np.split(np.arange(found.lengths.sum()), found.ends)
    rows = np.concatenate([steps[number] for number in numbers])
    times = {} if found.times is None else {"times": found.times[rows]}
    return {"sequences": take_rows(found.rows, rows), "lengths": found.lengths[numbers], **times}


def forecast(
    run: Path,
    data: str | None = None,
    *,
    steps: Annotated[int, Parameter(converter=whole, validator=Number(gte=1))],
    draws: Annotated[int, Parameter(converter=whole, validator=Number(gte=2))] = 200,
    level: Annotated[float, Parameter(validator=Number(gt=0, lt=1))] = 0.9,
    output: Path | None = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Forecast the steps after the end of sequences, with a run of `aevb fit --sequence ID --time T`.

    It writes a table with the mean and an interval of each column, and a picture of a few sequences.

    Args:
        run: Folder of the run.
        data: A file with the columns of the one that was learned from; by default that one.
        steps: Number of steps after the end of each sequence.
        draws: Number of draws.
        level: Probability with which an interval contains the value.
        output: A .csv file; by default forecast.csv in the run folder.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    import numpy as np

    from aevb.cli.run_folder import config_of
    from aevb.cli.target import write_columns
    from aevb.runs import read_config

    console = Console(quiet, json)
    tables = read_config(config_of(run))
    if not tables.get("run", {}).get("series"):
        raise InputError(f"{run}: not a run of sequences. Train one with aevb fit data.csv --sequence ID --time T.")
    output = run / "forecast.csv" if output is None else output
    check_output(output, ".csv")
    with waiting("Forecasting"), console.notes():
        from aevb import load
        from aevb.report.canvas import save
        from aevb.report.series import plot_forecasts

        model, about = load(run / "model"), tables["data"]
        columns = {"time": about.get("time"), "sequence": about.get("sequence"), "drop": about.get("drop", ())}
        found = read_series(about["source"] if data is None else data, columns)
        n, arguments = len(found.lengths), _given(found, np.arange(len(found.lengths)))
        drawn = model.forecast(steps=steps, num_draws=draws, **arguments)
        names = [str(name) for name in model.model_.format.table.names]
        mean, ends = drawn.mean, drawn.interval(level)
        labels = np.arange(n) if found.names is None else found.names
        table = {"sequence": np.repeat(labels, steps), "step": np.tile(np.arange(1, steps + 1), n)}
        for place, name in enumerate(names):
            if not np.isnan(mean[..., place]).all():
                table |= {name: mean[..., place].ravel()}
                table |= {f"{name}_low": ends[..., place, 0].ravel(), f"{name}_high": ends[..., place, 1].ravel()}
        write_columns(output, table)
        observed = [model.model_.format.in_units(rows) for rows in model._read_rows(**arguments)]
        figure = plot_forecasts(observed[:SHOWN], drawn, names[:SHOWN], [str(label) for label in labels])
        picture = save(figure, output.with_suffix(".png"))
    console.end(
        f"Wrote {steps} steps for {n:,} sequences to {output}, and {picture}", {"output": output, "sequences": n}
    )
