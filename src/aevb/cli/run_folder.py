"""An existing run: its model, settings and data."""

import warnings
from pathlib import Path
from typing import Any, NamedTuple

from aevb.cli.console import InputError, shell
from aevb.cli.data import settings_of
from aevb.cli.own_model import own_parts
from aevb.cli.waiting import waiting
from aevb.runs import CHECKPOINTS, read_config

_OTHERS = {  # what can be done with the run of an estimator that a command does not support
    "VAE": "is not a run of sequences. Train one with aevb fit data.csv --time T --sequence ID.",
    "SequenceVAE": "is a run of sequences, for which there are the commands forecast, report, plot and explore. In "
    "Python, aevb.load({model!r}) has impute, sample, transform, surprise and others.",
    "target": "is a run with a target, for which there are the commands predict, report, plot and explore. In Python, "
    "aevb.load({model!r}) has predict, sample and others.",
}


class Run(NamedTuple):
    """The contents of a run folder."""

    folder: Path
    vae: Any  # a VAE or a SequenceVAE
    data: Any  # DataSettings or SeriesSettings
    command: str
    columns: tuple[str, ...] = ()  # of the training data, if they have names

    @property
    def has_frames(self) -> bool:
        """Whether its rows are those of a data frame, with columns of different kinds or missing entries."""
        model = self.vae.model_
        return model.is_table and model.format.container != "numpy"

    def load_data(self) -> Any:
        """Load the data of the run, a `RunData` or a `SequenceData`, with the same split."""
        from aevb.cli.data import load_data
        from aevb.data.own import DataFileError

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # about how the data were read: shown by `fit`
                return load_data(self.data, self.vae.likelihood).stored_by(self.vae.model_)
        except DataFileError as error:
            where = self.folder / "config.toml"
            raise InputError(
                f"{error} These are the data of the run; if they have moved, edit source in {where}."
            ) from None


def config_of(folder: Path) -> Path:
    """Return the path of a run's settings.

    Raises:
        InputError: This is not the folder of a run.
    """
    if not (folder / "config.toml").is_file():
        found = {
            place: sorted(path.parent.name for path in place.glob("*/config.toml")) for place in (folder, folder.parent)
        }
        hint = next((f" Runs in {place}: {', '.join(names)}." for place, names in found.items() if names), "")
        raise InputError(f"{folder} is not a run folder: it has no config.toml.{hint}")
    return folder / "config.toml"


def open_run(folder: Path, *, of: tuple[str, ...] = ("VAE",)) -> Run:
    """Read a run folder.

    Args:
        folder: The folder.
        of: The estimators whose runs are allowed.

    Raises:
        ValueError: It is not a run folder, or is damaged.
    """
    tables = read_config(config_of(folder))
    try:
        data = settings_of(tables.get("data", {}))
    except ValueError as error:
        raise InputError(f"{folder / 'config.toml'}: {error}") from None
    if data.estimator not in of:
        raise InputError(f"{folder} {_OTHERS[data.estimator].format(model=str(folder / 'model'))}")
    if not (folder / "model").is_dir():
        raise InputError(
            f"{folder} has no model yet. Continue the run with: {shell('aevb', 'fit', '--resume', folder)}"
        )
    with waiting("Loading JAX and the model"):
        from aevb import ModelFileError, load
        from aevb.training.checkpoint import samples_saved

        try:
            vae = load(folder / "model", **_own_parts(folder, tables))
        except ModelFileError as error:
            if not samples_saved(folder / CHECKPOINTS):
                raise
            raise InputError(f"{error} To write it again: {shell('aevb', 'fit', '--resume', folder)}") from None
    vae.progress = False
    told = {"command": "", "columns": [], **tables.get("run", {})}
    if not isinstance(told["columns"], list):
        raise InputError(
            f"{folder / 'config.toml'}: columns={told['columns']!r} is not allowed. Expected a list of names."
        )
    return Run(folder, vae, data, str(told["command"]), tuple(map(str, told["columns"])))


def _own_parts(folder, tables):
    """Return the user's own networks of a run, by name; none if it has none."""
    told = tables.get("run", {})
    if "own_model" not in told:
        return {}
    return own_parts(
        folder / str(told["own_model"]), told.get("data_dim", 0), tables.get("model", {}).get("latent_dim")
    )
