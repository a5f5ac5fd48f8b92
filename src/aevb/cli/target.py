"""`aevb fit --target` and `aevb predict`: models that predict one column of a table from the others."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from aevb.cli.console import Console, InputError, Json, Quiet
from aevb.cli.output import check_output
from aevb.cli.waiting import waiting

LABELS = ("binary", "categorical")  # kinds of a column that is predicted by a classifier


def learn_target(
    given: dict, source: str, target: str, output: Path, command: str, console: Console, *, share: float, drop=()
) -> None:
    """Train a classifier or a regressor of one column, and write its run folder.

    Args:
        given: The arguments of the estimator that were given.
        source: A .csv, .tsv or .parquet file.
        target: The column.
        output: Folder for the results.
        command: The command line.
        console: How to print.
        share: Of the rows held out for evaluation.
        drop: Columns to leave out.
    """
    import numpy as np

    from aevb import VAEClassifier, VAERegressor, runs
    from aevb.cli.learn import make_folder
    from aevb.data.frames.parts import take_rows, without_columns
    from aevb.settings import ESTIMATOR_SETTINGS

    with waiting("Reading the data"), console.notes():
        frame = read_table(source)
        values, reason = _target(frame, target, source)
    kind = VAEClassifier if values.dtype == object else VAERegressor
    known = ESTIMATOR_SETTINGS[kind.__name__]
    for name in given:
        if name not in known:
            raise InputError(f"--{name.replace('_', '-')}: {kind.__name__} has no such argument.")
    console.say(f"Target {target}: {reason}; {kind.__name__}.")
    rows = without_columns(frame, (target, *drop))
    order = np.random.default_rng(0).permutation(len(values))
    is_known = np.array([value != -1 if values.dtype == object else not np.isnan(value) for value in values])
    test = order[is_known[order]][: int(share * is_known.sum())]
    train = np.setdiff1d(np.arange(len(values)), test)
    estimator = kind(**given, progress=console.shows_progress)
    estimator._check_parameters()
    folder = make_folder(output)
    table = {"source": str(source), "test_fraction": share, "drop_columns": list(drop)}
    runs.write_config(folder, {"run": {"command": command, "target": target}, "data": table, "model": given})
    with console.notes():
        estimator.fit(take_rows(rows, train), values[train])
    estimator.save(folder / "model")
    runs.write_history(folder, estimator.history_)
    metrics = _metrics(estimator, take_rows(rows, test), values[test])
    runs.write_metrics(folder, {"target": target, "estimator": kind.__name__, **metrics})
    for name, value in metrics.items():
        console.say(f"  {name.replace('_', ' ')}: {value:.4g}" if isinstance(value, float) else f"  {name}: {value}")
    console.end(f"Results are in {folder}.", {"folder": folder, **metrics})


def _metrics(estimator, rows, values) -> dict[str, Any]:
    """Return how good predictions of held-out rows are."""
    import numpy as np

    if not len(values):
        return {"rows": 0}
    if hasattr(estimator, "classes_"):
        places = {label: place for place, label in enumerate(estimator.classes_.tolist())}
        shares = estimator.predict_proba(rows)[np.arange(len(values)), [places.get(value, 0) for value in values]]
        correct = np.mean(estimator.predict(rows) == np.array(values.tolist()))
        return {"rows": len(values), "accuracy": float(correct), "log_loss": float(-np.log(shares + 1e-12).mean())}
    found, errors = estimator.log_prob(rows, values), estimator.predict(rows) - values
    low, high = estimator.predict_interval(rows).T
    return {
        "rows": len(values),
        "log_prob": float(found.mean),
        "log_prob_std_error": float(found.std_error),
        "root_mean_squared_error": float(np.sqrt(np.mean(errors**2))),
        "within_90_percent_interval": float(np.mean((values >= low) & (values <= high))),
    }


def read_table(source: str, option: str = "--target") -> Any:
    """Return a file of a table as a frame; refuse other files, in a message about this option."""
    from aevb.data.frames import read_frame
    from aevb.data.own import WITH_LABEL_COLUMNS
    from aevb.data.tables import ending_of

    if not Path(source).is_file() or ending_of(Path(source)) not in WITH_LABEL_COLUMNS:
        raise InputError(f"{source}: {option} needs a {', '.join(WITH_LABEL_COLUMNS)} file, with a header.")
    return read_frame(source)


def _target(frame, target, source):
    """Return the target of each row, labels as objects with -1 for missing ones, or numbers, and its kind in words."""
    import numpy as np

    from aevb.data.frames.cells import read_cells
    from aevb.data.frames.column_format import ColumnFormat
    from aevb.data.frames.containers import open_frame, series_of
    from aevb.data.frames.kinds import decide, facts_of
    from aevb.errors import no_column

    series = series_of(open_frame(frame))
    if target not in series:
        raise InputError(f"--target: {source}: {no_column(target, list(series))}")
    cells = read_cells(series[target], target)
    facts = facts_of(cells)
    decision = decide(facts)
    if decision.kind == "drop":
        raise InputError(f"--target {target}: this column is {decision.reason}.")
    if decision.kind not in LABELS and cells.values.dtype == np.float64:
        return cells.values, f"numbers ({decision.reason})"
    labels, missing = ColumnFormat.learn(facts, decision._replace(kind="categorical")), cells.missing
    known = np.array(labels.levels, object)
    codes = labels.encode(cells)
    values = np.full(len(codes), -1, object)
    values[~missing] = known[codes[~missing].astype(int)]
    return values, f"labels ({decision.reason})"


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

    For labels it writes the most probable one and the probability of each; for numbers the mean and an interval.

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
    target = tables.get("run", {}).get("target")
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

    estimator = load(run / "model")
    rows = without_columns(read_table(data), (target, *drop))
    if hasattr(estimator, "classes_"):
        shares = estimator.predict_proba(rows)
        labels = estimator.classes_[shares.argmax(axis=1)]
        return {target: labels, **{f"p({label})": shares[:, k] for k, label in enumerate(estimator.classes_)}}
    low, high = estimator.predict_interval(rows, level).T
    return {target: estimator.predict(rows), f"{target}_low": low, f"{target}_high": high}


def write_columns(path: Path, columns: dict[str, Any]) -> None:
    """Write columns of equal lengths as a .csv file."""
    import csv

    from aevb.files import written_whole

    with written_whole(path) as scratch, open(scratch, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
