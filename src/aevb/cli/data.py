"""`aevb data`: list and download data sets."""

from dataclasses import replace
from typing import Any

import cyclopts

from aevb.cli.console import Console, Json

data = cyclopts.App(name="data", help="List and download data sets.")


@data.command(name="list")
def list_datasets(*, json: Json = False) -> None:
    """List the named data sets: shape, whether they are installed, and licence."""
    from aevb.data import DATASETS, is_here
    from aevb.data.download import data_folders

    rows = []
    for name, entry in DATASETS.items():
        state = "here" if is_here(name) else f"{entry.megabytes:.0f} MB to download" if entry.megabytes else "missing"
        rows.append({"name": name, "shape": entry.shape, "state": state, "licence": entry.licence})
    if json:
        return Console(as_json=True).end("", {"datasets": rows, "folders": data_folders()})
    widths = [max(len(row[column]) for row in rows) for column in ("name", "shape", "state")]
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row.values(), widths, strict=False)]
        print("  ".join([*cells, row["licence"]]))
    print(f"Searched {', '.join(map(str, data_folders()))}. `aevb data get NAME` downloads a set.")


@data.command
def get(name: str) -> None:
    """Download a data set, and verify it.

    Args:
        name: Name of the data set, see `aevb data list`.
    """
    from aevb.data import load_dataset
    from aevb.data.download import cache_folder
    from aevb.data.published import PUBLISHED, paths

    with downloads() as report:
        dataset = load_dataset(name, report)
    where = paths(PUBLISHED[name]) if name in PUBLISHED else None
    place = where[0].parent if where else "an installed package"
    print(f"{name}: {len(dataset.rows):,} rows of {dataset.rows.shape[1]} columns, checked.")
    print(f"It is in {place}" + (f" (the cache is {cache_folder()})." if not where else "."))


class downloads:  # noqa: N801
    """Context manager for reporting downloads: with a bar on a terminal, with a line per file elsewhere."""

    def __enter__(self):
        import sys

        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        self._is_terminal = sys.stderr.isatty()
        columns = TextColumn("{task.description}"), BarColumn(bar_width=24), DownloadColumn(), TransferSpeedColumn()
        self._bar = Progress(*columns, console=Console(stderr=True), disable=not self._is_terminal)
        self._tasks = {}
        self._bar.start()
        return self.report

    def report(self, file: str, received: int, most: int) -> None:
        """Show the bytes received so far."""
        import sys

        if file not in self._tasks:
            self._tasks[file] = self._bar.add_task(file, total=None)
            if not self._is_terminal:
                print(f"Downloading {file}", file=sys.stderr, flush=True)
        self._bar.update(self._tasks[file], completed=received)

    def __exit__(self, *_) -> None:
        self._bar.stop()


def load_data(settings: Any, likelihood: Any) -> Any:
    """Load the data of a run: rows, sequences, or rows with a target.

    Args:
        settings: `DataSettings`, `SeriesSettings` or `TargetSettings`.
        likelihood: Of the model.
    """
    from aevb.data.remote import nearby
    from aevb.data.run_data import prepare
    from aevb.data.series import SeriesSettings, prepare_series
    from aevb.data.target import TargetSettings, prepare_target

    with downloads() as report:
        if not isinstance(settings, TargetSettings | SeriesSettings):
            return prepare(settings, report, likelihood)
        settings = replace(settings, source=str(nearby(settings.source, report)))
        return prepare_target(settings) if isinstance(settings, TargetSettings) else prepare_series(settings)


def estimator_for(table: dict[str, Any]) -> str:
    """Return the estimator for the data in the table [data] of a `config.toml`: a column of time means sequences.

    With a target it is ``"target"``: a classifier or a regressor, which depends on the column.
    """
    if "target" in table:
        return "target"
    return "SequenceVAE" if {"time", "sequence"} & set(table) else "VAE"


def settings_of(table: dict[str, Any]) -> Any:
    """Return the settings in such a table."""
    from aevb.data.data_settings import DataSettings
    from aevb.data.series import SeriesSettings
    from aevb.data.target import TargetSettings

    kinds: dict[str, Any] = {"VAE": DataSettings, "SequenceVAE": SeriesSettings, "target": TargetSettings}
    return kinds[estimator_for(table)].of(table)
