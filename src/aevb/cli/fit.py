"""`aevb fit`: from data to a run folder with a model and a report."""

import os
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from aevb.cli.console import Console, InputError, Json, Quiet
from aevb.cli.data import estimator_for, settings_of
from aevb.cli.kinds import with_kinds
from aevb.cli.learn import Keeping, learn
from aevb.cli.options import model_options, settings, value_of
from aevb.cli.run_folder import config_of
from aevb.cli.together import ALONE, Launch, ShardParameters
from aevb.runs import read_config

ModelOptions = model_options()
_DATA = Group("Data", sort_key=0)
PICTURE_NETWORKS = ("conv", "resnet")  # whose pictures keep their colours
_KEEPING = Group("Checkpoints", sort_key=2)


def fit(
    data: str | None = None,
    *,
    binarization: Annotated[Literal["grey", "static", "dynamic", "threshold"] | None, Parameter(group=_DATA)] = None,
    test_fraction: Annotated[float | None, Parameter(group=_DATA)] = None,
    label_column: Annotated[str | None, Parameter(group=_DATA)] = None,
    target: Annotated[str | None, Parameter(group=_DATA)] = None,
    time: Annotated[str | None, Parameter(group=_DATA)] = None,
    sequence: Annotated[str | None, Parameter(group=_DATA)] = None,
    drop_columns: Annotated[str | None, Parameter(group=_DATA)] = None,
    image_shape: Annotated[tuple[int, ...] | None, Parameter(group=_DATA, consume_multiple=True, negative=())] = None,
    colour: Annotated[bool | None, Parameter(group=_DATA)] = None,
    resize: Annotated[tuple[int, int] | None, Parameter(group=_DATA, negative=())] = None,
    skip_broken: Annotated[bool | None, Parameter(group=_DATA, negative=())] = None,
    polarity: Annotated[Literal["light", "ink"] | None, Parameter(group=_DATA)] = None,
    drop_missing: Annotated[bool | None, Parameter(group=_DATA, negative=())] = None,
    column: Annotated[list[str] | None, Parameter(group=_DATA, negative=())] = None,
    own_model: Annotated[Path | None, Parameter(name="--model")] = None,
    config: Path | None = None,
    name: str | None = None,
    out: Path = Path("runs"),
    checkpoint_every: Annotated[float | Literal["never"], Parameter(group=_KEEPING)] = 60.0,
    resume: Annotated[Path | None, Parameter(group=_KEEPING)] = None,
    launch: Launch = ALONE,
    shard_parameters: ShardParameters = False,
    model: Annotated[ModelOptions | None, Parameter(name="*")] = None,  # pyright: ignore[reportInvalidTypeForm]
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a model of your data, and write a report.

    The results go to a new folder in runs/; an earlier run is never overwritten. Ctrl-C stops training; the model so
    far is saved and reported. Checkpoints are written during training: after Ctrl-C, a power cut or too few epochs,
    --resume continues the run.

    Args:
        data: Name of a data set (see `aevb data list`), or a .npy, .npz, .csv or .parquet file, or a folder of such
            files or of pictures. Tables may have columns of text, numbers and dates, and missing entries. A URL of such
            a file or folder, as s3:// or https://, is copied to the cache first (pip install 'aevb[remote]').
        binarization: How grey levels are used: as they are (grey), drawn once as 0 or 1 (static), drawn again in each
            epoch (dynamic), or compared with 0.5 (threshold).
        test_fraction: Share of the rows held out for evaluation (0.1); a published split takes precedence.
        label_column: Column of a .csv or .parquet file with labels. They colour pictures; the model does not see them.
        target: Column of a .csv or .parquet file to predict from the others: a classifier is trained if it has labels,
            a regressor if it has numbers; rows where it is missing are used as far as they can be. `aevb predict`
            applies it. Of the options of the model, those of aevb.VAEClassifier or aevb.VAERegressor are available.
        time: Column of such a file with the time of each row: rows are steps of sequences, of which a state-space model
            is learned; `aevb forecast` continues them. Of the options of the model, those of aevb.SequenceVAE are
            available.
        sequence: Column of such a file that says to which sequence a row belongs; without it there is one sequence.
        drop_columns: Names of columns of such a file to leave out, separated by commas.
        image_shape: Height and width, and channels if there are several, if rows are images.
        colour: Whether the colours of a folder of pictures are kept, or become grey levels; by default they are kept
            for --network conv and resnet.
        resize: Height and width that the pictures of a folder are resized to.
        skip_broken: Leave out files that cannot be read as pictures; they are named.
        polarity: How images are drawn: light if large values are light (the default, except for the published data sets
            of handwriting and clothes), ink if they are dark.
        drop_missing: Train on the complete rows if some have missing values; `aevb inpaint` then fills in the others.
            Without it, a table is learned with its missing entries.
        column: The kind of a column of a table, such as age=gaussian, or id=drop to leave it out; may be repeated. The
            kinds are gaussian, student-t, lognormal, bounded, quantile-gaussian, histogram, count, poisson,
            negative-binomial, binary, categorical, ordinal and date. Other columns get the kind that suits their
            values; it is printed.
        own_model: A Python file with your own networks: a function model(data_dim, latent_dim) that returns a
            dictionary with some of "prior", "encoder" and "decoder". The run keeps a copy.
        config: A file with all settings, such as config.toml of an earlier run; other options take precedence.
        name: Name of the run folder in --out; by default that of the data.
        out: Folder for all runs.
        checkpoint_every: Seconds between two checkpoints.
        resume: Folder of a run to continue, as if it had never been interrupted. Its settings and data stay the same;
            only --max-epochs may differ.
        launch: How several processes are started.
        shard_parameters: Divide large weight matrices, and what the optimizer keeps for them, among all devices, for
            models that do not fit on one.
        model: The arguments of VAE.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    from aevb.arguments import check_parameter

    given = {name: value for name, value in asdict(model).items() if value is not None} if model else {}
    own = {
        "source": data,
        "binarization": binarization,
        "test_fraction": test_fraction,
        "label_column": label_column,
        "drop_columns": None if drop_columns is None else [name.strip() for name in drop_columns.split(",")],
        "image_shape": image_shape,
        "colour": colour,
        "resize": resize,
        "skip_broken": skip_broken,
        "polarity": polarity,
        "drop_missing": drop_missing,
    }
    others = {"time": time, "sequence": sequence, "column": column, "model": own_model}

    def started():
        is_first = launch.start(shard_parameters)
        return Console(quiet or not is_first, json and is_first)

    if target is not None:
        refused = own | others | {"config": config, "resume": resume}
        return _fit_target({"target": target}, given, refused, out, name)(started())
    if given.get("conditional"):
        raise InputError("--conditional: y cannot be given here. In Python: VAE(conditional=True).fit(X, y).")
    if resume is not None:
        _check_alone({**own, **others, "config": config, "name": name, **given, "max_epochs": None})
        config = config_of(resume)
    tables = read_config(config) if config else {}
    stored = tables.get("data", {})
    if estimator_for(stored) == "target":
        if resume is not None:
            raise InputError(
                f"--resume {resume}: a run with --target has no checkpoints. Train it again, in a new folder."
            )
        return _fit_target(stored, tables.get("model", {}) | given, own | others, out, name, config)(started())
    table = stored | _given({"time": time, "sequence": sequence})
    if own_model is None and config is not None and "own_model" in tables.get("run", {}):
        own_model = config.parent / str(tables["run"]["own_model"])
    if estimator_for(table) == "SequenceVAE":
        own = _of_tables(own | {"model": own_model}, "--time and --sequence")
    chosen = _named(config, settings, given, tables.get("model", {}), estimator_for(table))
    if colour is None and "colour" not in table and chosen.get("network") in PICTURE_NETWORKS:
        own["colour"] = True
    if column:
        chosen["likelihood"] = with_kinds(chosen["likelihood"], column)
    source = _data_settings(own, table, chosen["random_state"], config)
    command = shlex.join(["aevb", *sys.argv[1:]]) if Path(sys.argv[0]).name in ("aevb", "__main__.py") else "aevb fit"
    if resume is not None:
        folder, command = resume, tables.get("run", {}).get("command", command)
    else:
        folder = out / _folder_name(name, source.source, out)
    every = None if checkpoint_every == "never" else checkpoint_every
    if every is not None:
        check_parameter("checkpoint_every", every, kind=float, low=0)
    options = {"keeping": Keeping(every, resume is not None), "own_model": own_model}
    raise SystemExit(learn(chosen, source, folder, command, started(), **options))


def _fit_target(table, given, own, out, name, config=None):
    """Return the training of a model that predicts a column, as a function of the console; refuse other options.

    Args:
        table: The settings of the data that a config has, or only the target.
        given: The arguments of the estimator.
        own: The options of `fit`, None where they were not given.
        out: Folder for all runs.
        name: Name of the run; None for that of the data.
        config: The file that `table` is from.
    """
    from aevb.cli.target import learn_target

    table = table | _given(_of_tables(own, "--target"))
    if "source" not in table:
        raise InputError("Which data? Give a file, for example: aevb fit people.csv --target income")
    given = {option: value_of(value, option) for option, value in given.items()}
    source = _named(config, settings_of, table)
    folder, command = out / _folder_name(name, table["source"], out), shlex.join(["aevb", *sys.argv[1:]])
    return lambda console: learn_target(given, source, folder, command, console)


def _of_tables(own, with_what):
    """Return the settings of data that sequences and tables with a target have; refuse the others."""
    allowed = ("source", "test_fraction", "drop_columns")
    for option in _given(own):
        if option not in allowed:
            raise InputError(f"--{option.replace('_', '-')} cannot be combined with {with_what}.")
    return {option: own[option] for option in allowed}


def _given(options):
    return {name: value for name, value in options.items() if value is not None}


def _folder_name(name, source, out):
    """Return the name of the run folder; a name that would lie outside of --out is refused.

    Raises:
        InputError: It is not the name of a single folder.
    """
    if name is None:
        return Path(os.path.abspath(source)).stem or "data"
    if name in ("", ".", "..") or set(name) & {"/", "\\", "\0"}:
        raise InputError(
            f"--name {shlex.quote(name)}: expected the name of a folder inside {out}, without slashes. "
            "Choose the parent folder with --out."
        )
    return name


def _check_alone(given):
    """Refuse options that would change the run to resume."""
    names = [
        "the data" if name == "source" else "--" + name.replace("_", "-")
        for name, value in given.items()
        if value is not None
    ]
    if names:
        raise InputError(f"--resume continues a run with its own settings; remove {', '.join(names)}.")


def _data_settings(given, config, random_state, path):
    """Return the data's settings: what was given, else what the config says, else the defaults."""
    seed = random_state if isinstance(random_state, int) and random_state >= 0 else 0  # VAE refuses those
    chosen = {"seed": seed, **config, **_given(given)}
    if "source" not in chosen:
        example = "series.csv --time t --sequence id" if "time" in chosen or "sequence" in chosen else "digits"
        raise InputError(f"Which data? Give a name (see `aevb data list`) or a file, for example: aevb fit {example}")
    return _named(path, settings_of, chosen)


def _named(path, function, *arguments):
    """Call a function; its errors name the file."""
    try:
        return function(*arguments)
    except InputError:  # about an option
        raise
    except ValueError as error:
        raise InputError(f"{path}: {error}" if path else str(error)) from None
