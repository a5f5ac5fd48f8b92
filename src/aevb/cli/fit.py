"""`aevb fit`: from data to a run folder with a model and a report."""

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from aevb.cli.learn import learn
from aevb.cli.options import model_options, settings
from aevb.cli.run_folder import config_of
from aevb.cli.talk import InputError, Json, Quiet, Talk
from aevb.runs import read_config

ModelOptions = model_options()
_DATA = Group("Data", sort_key=0)
_KEEPING = Group("Keeping what is learned", sort_key=2)


def fit(
    data: str | None = None,
    *,
    binarization: Annotated[Literal["grey", "static", "dynamic", "threshold"] | None, Parameter(group=_DATA)] = None,
    test_fraction: Annotated[float | None, Parameter(group=_DATA)] = None,
    label_column: Annotated[str | None, Parameter(group=_DATA)] = None,
    image_shape: Annotated[tuple[int, int] | None, Parameter(group=_DATA)] = None,
    drop_missing: Annotated[bool | None, Parameter(group=_DATA, negative=())] = None,
    config: Path | None = None,
    name: str | None = None,
    out: Path = Path("runs"),
    checkpoint_every: Annotated[float | Literal["never"], Parameter(group=_KEEPING)] = 60.0,
    resume: Annotated[Path | None, Parameter(group=_KEEPING)] = None,
    model: Annotated[ModelOptions | None, Parameter(name="*")] = None,  # pyright: ignore[reportInvalidTypeForm]
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn a model of data, and write a report about it.

    The results go to a folder of their own in runs/; an earlier run is never overwritten. Ctrl-C ends the learning, and
    what was learned is kept, measured and drawn. The run itself is saved on the way: after Ctrl-C, a power cut or too
    few epochs, --resume goes on with it.

    Args:
        data: Name of a data set (see `aevb data list`), or a .npy, .npz, .csv or .parquet file, or a folder of such
            files or of pictures.
        binarization: What grey levels are taken for: as they are, drawn once as 0 or 1, drawn anew in each epoch, or
            cut at a half.
        test_fraction: Share of the rows kept aside to judge the model (0.1); a published split goes before it.
        label_column: Column of a .csv or .parquet file with labels: they colour pictures, and are not learned from.
        image_shape: Height and width of rows that are images.
        drop_missing: Learn from the complete rows, if some have missing values; `aevb inpaint` then fills the others.
        config: A file with all settings, such as an earlier run's config.toml; what is given besides goes before it.
        name: Of the run; that of the data if it is not given.
        out: Folder of the runs.
        checkpoint_every: Seconds between two moments at which the run is saved.
        resume: Folder of a run to go on with, to the same end as if it had never been cut off. Its settings and data
            stay; --max-epochs may be another one.
        model: The arguments of VAE.
        quiet: Say only where the results are.
        json: Print one JSON object.
    """
    from aevb.arguments import check_parameter

    given = {name: value for name, value in asdict(model).items() if value is not None} if model else {}
    own = {
        "source": data,
        "binarization": binarization,
        "test_fraction": test_fraction,
        "label_column": label_column,
        "image_shape": image_shape,
        "drop_missing": drop_missing,
    }
    if resume is not None:
        _check_alone({**own, "config": config, "name": name, **given, "max_epochs": None})
        config = config_of(resume)
    tables = read_config(config) if config else {}
    chosen = _named(config, settings, given, tables.get("model", {}))
    source = _data_settings(own, tables.get("data", {}), chosen["random_state"], config)
    command = shlex.join(["aevb", *sys.argv[1:]]) if Path(sys.argv[0]).name in ("aevb", "__main__.py") else "aevb fit"
    if resume is not None:
        folder, command = resume, tables.get("run", {}).get("command", command)
    else:
        folder = out / (name or Path(source.source).stem)
    every = None if checkpoint_every == "never" else checkpoint_every
    if every is not None:
        check_parameter("checkpoint_every", every, kind=float, low=0)
    options = {"checkpoint_every": every, "goes_on": resume is not None}
    raise SystemExit(learn(chosen, source, folder, command, Talk(quiet, json), **options))


def _check_alone(given):
    """Refuse what would make another run of the one that goes on."""
    names = [
        "the data" if name == "source" else "--" + name.replace("_", "-")
        for name, value in given.items()
        if value is not None
    ]
    if names:
        raise InputError(f"--resume goes on with a run as it was begun; leave out {', '.join(names)}.")


def _data_settings(given, config, random_state, path):
    """Return the data's settings: what was given, else what the config says, else the defaults."""
    from aevb.data.trial import DataSettings

    seed = random_state if isinstance(random_state, int) and random_state >= 0 else 0  # VAE refuses those
    chosen = {"seed": seed, **config, **{name: value for name, value in given.items() if value is not None}}
    if "source" not in chosen:
        raise InputError("Which data? Give a name (see `aevb data list`) or a file: aevb fit digits")
    return _named(path, DataSettings.of, chosen)


def _named(path, function, *arguments):
    """Call a function; its refusals name the file."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise InputError(f"{path}: {error}" if path else str(error)) from None
