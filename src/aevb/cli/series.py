"""`aevb forecast`: the steps after the end of sequences, with a run of `aevb fit --time --sequence`."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from aevb.cli.console import Console, Json, Quiet, whole
from aevb.cli.output import check_output
from aevb.cli.run_folder import open_run
from aevb.cli.waiting import waiting

SHOWN = 2  # sequences in the picture and on the terminal
SHOWN_STEPS, SHOWN_COLUMNS = 12, 4  # on the terminal


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

    It writes a table with a row for each sequence and step, and a picture of the first sequences. Of a column of
    numbers there are the mean and both ends of an interval; of a binary one the probability; of labels the most
    probable one and its probability.

    Args:
        run: Folder of the run.
        data: A file with the columns of the one that was learned from; by default that one.
        steps: Number of steps after the end of each sequence; of irregular ones, in units of their median gap.
        draws: Number of draws.
        level: Probability with which an interval contains the value.
        output: A .csv file; by default forecast.csv in the run folder.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    console = Console(quiet, json)
    output = run / "forecast.csv" if output is None else output
    check_output(output, ".csv")
    opened = open_run(run, of=("SequenceVAE",))
    with waiting("Forecasting"), console.notes():
        import numpy as np

        from aevb.cli.target import write_columns
        from aevb.data.series import prepare_series
        from aevb.explorer.views import views_of
        from aevb.fitted.forecasts import forecast as draw
        from aevb.report.canvas import save
        from aevb.report.series import plot_forecasts

        settings = replace(opened.data, test_fraction=0.0)  # of all sequences
        series = prepare_series(settings if data is None else replace(settings, source=data))
        model = opened.vae.model_
        known = series.stored_by(model)
        drawn = draw(model, known.test, steps, draws)
        when, texts = _times(series, settings.time, model.format.time_unit, steps), {}
        table = {settings.sequence or "sequence": np.repeat(series.names, steps)} | when
        for place, column in enumerate(model.format.columns):
            columns, texts[column.name] = _forecast_of(column, drawn[..., place], level)
            table |= columns
        write_columns(output, table)
        picture = save(plot_forecasts(views_of(model, known, SHOWN, steps), SHOWN), output.with_suffix(".png"))
    n = len(series.names)
    for line in _lines(series.names, when, texts, level):
        console.say(line)
    words = f"{steps} step{'s' * (steps != 1)} for {n:,} sequence{'s' * (n != 1)}"
    console.end(f"Wrote {words} to {output}, and {picture}", {"output": output, "picture": picture, "sequences": n})


def _times(series, name, unit, steps) -> dict[str, Any]:
    """Return the columns that say which step a row is, and when it is, if that is known."""
    from aevb.data.series import as_text, times_after

    columns: dict[str, Any] = {"step": list(range(1, steps + 1)) * len(series.names)}
    if name is not None and unit is not None:
        columns[name] = [as_text(time) for time in times_after(series, unit, steps).ravel().tolist()]
    return columns


def _forecast_of(column, drawn, level) -> tuple[dict[str, Any], list[str]]:
    """Return the columns of the table for one of the data, and their entries as text.

    Args:
        column: The column.
        drawn: (n, draws, steps), draws of its stored numbers.
        level: Of the intervals.
    """
    import numpy as np

    from aevb.data.frames.stored import LABELS

    name = column.name
    if column.column.family == "bernoulli":
        shares = drawn.mean(axis=1).ravel()
        said = name if len(column.levels) < 2 else f"{name}={column.levels[1]}"
        return {f"p({said})": shares}, [f"p({said}) = {share:.2f}" for share in shares]
    if column.column.family in LABELS:
        shares = np.stack([(drawn == code).mean(axis=1) for code in range(len(column.levels))], axis=-1)
        best, most = [column.levels[code] for code in shares.argmax(axis=-1).ravel()], shares.max(axis=-1).ravel()
        return {name: best, f"{name}_probability": most}, [f"{b} ({p:.0%})" for b, p in zip(best, most, strict=True)]
    values = column.column.in_units(np.asarray(drawn, np.float64))
    low, high = (end.ravel() for end in np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=1))
    mean = values.mean(axis=1).ravel()
    texts = [f"{m:.4g} ({a:.4g} to {b:.4g})" for m, a, b in zip(mean, low, high, strict=True)]
    return {name: mean, f"{name}_low": low, f"{name}_high": high}, texts


def _lines(names, when, texts, level):
    """Return the first sequences, steps and columns as aligned text.

    Args:
        names: Of the sequences.
        when: The columns that say which step a row is.
        texts: The entries of each column of the data.
        level: Of the intervals.
    """
    steps, columns = len(when["step"]) // len(names), dict(list(texts.items())[:SHOWN_COLUMNS])
    table = {name: list(map(str, values)) for name, values in (when | columns).items()}
    widths = {name: max(len(name), *map(len, values[: SHOWN * steps])) for name, values in table.items()}
    lines = [f"Mean, and in parentheses {level:.0%} interval, of the first sequences:"]
    for number, sequence in enumerate(names[:SHOWN]):
        lines += ["", str(sequence), "  " + "  ".join(f"{name:>{width}}" for name, width in widths.items())]
        for row in range(number * steps, number * steps + min(steps, SHOWN_STEPS)):
            lines.append("  " + "  ".join(f"{table[name][row]:>{width}}" for name, width in widths.items()))
        if steps > SHOWN_STEPS:
            lines.append(f"  ... and {steps - SHOWN_STEPS} more steps")
    more = {"sequences": len(names) - SHOWN, "columns": len(texts) - SHOWN_COLUMNS}
    if left := [f"{count:,} more {what}" for what, count in more.items() if count > 0]:
        lines += ["", f"... and {' and '.join(left)}, in the file."]
    return [*lines, ""]
