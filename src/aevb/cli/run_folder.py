"""A run that is there already: its model, its settings, its data."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aevb.cli.talk import InputError
from aevb.cli.waiting import waiting
from aevb.runs import CHECKPOINTS, read_config

if TYPE_CHECKING:
    from aevb.data.trial import DataSettings, Trial
    from aevb.vae import VAE


class Run(NamedTuple):
    """What a run folder holds."""

    folder: Path
    vae: "VAE"
    data: "DataSettings"
    command: str
    columns: tuple[str, ...] = ()  # that the model learned from, if they have names

    def trial(self) -> "Trial":
        """Load the data of the run, cut as they were."""
        from aevb.cli.data import downloads
        from aevb.data.trial import prepare

        with downloads() as report, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of how the data were read, said when they were learned from
            return prepare(self.data, report)


def config_of(folder: Path) -> Path:
    """Return where a run's settings are.

    Raises:
        InputError: This is not the folder of a run.
    """
    if not (folder / "config.toml").is_file():
        found = {
            place: sorted(path.parent.name for path in place.glob("*/config.toml")) for place in (folder, folder.parent)
        }
        hint = next((f" Runs in {place}: {', '.join(names)}." for place, names in found.items() if names), "")
        raise InputError(f"{folder} is not the folder of a run: it has no config.toml.{hint}")
    return folder / "config.toml"


def open_run(folder: Path) -> Run:
    """Read a run's folder.

    Raises:
        ValueError: It is not one, or is damaged.
    """
    tables = read_config(config_of(folder))
    if not (folder / "model").is_dir():
        raise InputError(f"{folder} has no model yet; aevb fit --resume {folder} goes on with the run.")
    with waiting("Loading JAX and the model"):
        from aevb import ModelFileError, load
        from aevb.data.trial import DataSettings
        from aevb.training.checkpoint import samples_saved

        try:
            vae = load(folder / "model")
        except ModelFileError as error:
            if not samples_saved(folder / CHECKPOINTS):
                raise
            raise InputError(f"{error} aevb fit --resume {folder} writes it anew.") from None
    vae.progress = False
    try:
        data = DataSettings.of(tables.get("data", {}))
    except ValueError as error:
        raise InputError(f"{folder / 'config.toml'}: {error}") from None
    told = {"command": "", "columns": [], **tables.get("run", {})}
    if not isinstance(told["columns"], list):
        raise InputError(f"{folder / 'config.toml'}: columns={told['columns']!r} is not allowed. Give their names.")
    return Run(folder, vae, data, str(told["command"]), tuple(map(str, told["columns"])))
