"""`aevb fit --target` and `aevb predict`: models that predict one column of a table from the others."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from aevb.cli.console import Console, InputError, Json, Quiet, shell
from aevb.cli.new_run import make_folder, say_files
from aevb.cli.options import written
from aevb.cli.output import check_output
from aevb.cli.said import TARGET_HINTS, choices_said
from aevb.cli.waiting import waiting

if TYPE_CHECKING:
    from aevb.data.target import TargetSettings

SAID = (  # of the numbers in the report
    "accuracy",
    "log_loss",
    "expected_calibration_error",
    "log_prob",
    "root_mean_squared_error",
    "within_90_percent_interval",
)


def learn_target(given: dict, data: "TargetSettings", output: Path, command: str, console: Console) -> None:
    """Train a classifier or a regressor of one column, and write its run folder with a report.

    Args:
        given: The arguments of the estimator that were given.
        data: Which file, and which column.
        output: Folder for the results.
        command: The command line.
        console: How to print.
    """
    from aevb import VAEClassifier, VAERegressor, runs
    from aevb.cli.learn import fill
    from aevb.data.target import prepare_target
    from aevb.parallel import group
    from aevb.settings import ESTIMATOR_SETTINGS

    with waiting("Reading the data"), console.notes():
        found = prepare_target(data)
    kind = VAEClassifier if found.are_labels else VAERegressor
    known = ESTIMATOR_SETTINGS[kind.__name__]
    for name in given:
        if name not in known:
            raise InputError(f"--{name.replace('_', '-')}: {kind.__name__} has no such argument.")
    console.say(f"Target {data.target}: {found.reason}; {kind.__name__}.")
    estimator = kind(**given, progress=console.shows_progress)
    estimator._check_parameters()
    if not group().is_first:  # which writes all files
        estimator.fit(*found.arguments)
        return
    folder = make_folder(output, console)
    runs.write_config(folder, {"run": {"command": command}, "data": data.written(), "model": written(given)})
    with console.notes(), choices_said(console, TARGET_HINTS):
        estimator.fit(*found.arguments)
    estimator.save(folder / "model")
    with waiting("Measuring and drawing", after=0.5, says=console.shows_progress), console.notes():
        metrics = fill(folder, estimator, found.stored_by(estimator.model_), data.seed, command)
    rows = "held-out rows" if metrics["held_out"] else "training rows, as no other has a known target"
    console.say(f"\nOf {metrics['rows']:,} {rows}:")
    for name in SAID:
        if name in metrics:
            console.say(f"  {name.replace('_', ' ')}: {_said(metrics, name)}")
    for warning in metrics["warnings"]:
        console.warn(warning)
    console.say("")
    say_files(console, folder, estimator)
    console.say(f"Predict the target of new rows with: {shell('aevb', 'predict', folder, 'new.csv')}")
    console.end(f"Results are in {folder}. Open {folder / 'report.html'}", {"folder": folder, **metrics})


def _said(metrics, name):
    """Return a number of the report, with how uncertain it is, and what predictions without inputs reach."""
    from aevb.report.label_baselines import baseline_words

    value, baseline = metrics[name], baseline_words(metrics, name, ".4g")
    if isinstance(value, dict):
        return f"{value['value']:.4g} ({value['by_chance']:.4g} expected by chance)"
    said, error = f"{value:.4g}", metrics.get(f"{name}_std_error")
    if error is not None:
        said += f" ± {error:.2g}"
    if (ends := metrics.get(f"{name}_interval")) is not None:
        said += f" (95% interval {ends[0]:.2g} to {ends[1]:.2g})"
    return f"{said}; {baseline}" if baseline else said


def predict(
    run: Path,
    data: str,
    *,
    level: Annotated[float, Parameter(validator=Number(gt=0, lt=1))] = 0.9,
    output: Path | None = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Predict the target of new rows, with a run of `aevb fit --target`.

    For labels it writes the most probable one and the probability of each; for numbers the mean and an interval. Each
    line begins with the number of its row in the data, counted from 0, and with columns that identify it: those that
    the model left out as identifiers, or that were dropped by --drop-columns.

    Args:
        run: Folder of the run.
        data: A .csv or .parquet file with the columns that the model learned from.
        level: Probability with which the interval contains the target.
        output: A .csv file; by default predictions.csv in the run folder.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    from aevb.cli.run_folder import config_of
    from aevb.runs import read_config

    console = Console(quiet, json)
    tables = read_config(config_of(run))
    target = tables.get("data", {}).get("target") or tables.get("run", {}).get("target")  # as in earlier versions
    if target is None:
        raise InputError(f"{run}: this run has no target. Train one with aevb fit data.csv --target COLUMN.")
    output = run / "predictions.csv" if output is None else output
    check_output(output, ".csv")
    with waiting("Predicting"), console.notes():
        columns = _predictions(run, data, target, tables["data"]["drop_columns"], level)
    write_columns(output, columns)
    num_rows = len(next(iter(columns.values())))
    console.end(f"Wrote {num_rows:,} predictions to {output}", {"output": output, "rows": num_rows})


def _predictions(run, data, target, drop, level):
    from aevb import load
    from aevb.data.frames.parts import without_columns
    from aevb.data.target import read_table

    estimator = load(run / "model")
    table = read_table(data)
    rows = without_columns(table, (target, *drop))
    names = _names(estimator.model_, table, drop)
    if hasattr(estimator, "classes_"):
        shares = estimator.predict_proba(rows)
        labels = estimator.classes_[shares.argmax(axis=1)]
        return {**names, target: labels, **{f"p({label})": shares[:, k] for k, label in enumerate(estimator.classes_)}}
    low, high = estimator.predict_interval(rows, level).T
    return {**names, target: estimator.predict(rows), f"{target}_low": low, f"{target}_high": high}


def _names(model, table, drop):
    """Return the numbers of the rows, and the columns that identify them, by name."""
    from aevb.data.frames.containers import open_frame, series_of
    from aevb.data.frames.kinds import IDENTIFIER
    from aevb.data.label_data import REGRESSOR, kind_of_labels

    format = model.given if kind_of_labels(model) == REGRESSOR else model.of_data.format
    left_out = getattr(format, "left_out", ())
    series = series_of(open_frame(table))
    known = [*drop, *(column.name for column in left_out if column.reason.startswith(IDENTIFIER))]
    named = {name: series[name].to_list() for name in dict.fromkeys(map(str, known)) if name in series}
    return {"row": range(len(open_frame(table))), **named}


def write_columns(path: Path, columns: dict[str, Any]) -> None:
    """Write columns of equal lengths as a .csv file."""
    import csv

    from aevb.files import written_whole

    with written_whole(path) as scratch, open(scratch, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
