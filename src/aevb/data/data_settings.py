"""Which data a run uses, as its `config.toml` says."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from aevb.arguments import check_parameter
from aevb.data.binarization import BINARIZATIONS
from aevb.data.datasets import DATASETS
from aevb.data.image_folder import PictureOptions
from aevb.errors import shown

POLARITIES = ("ink", "light")
_TEXT = str | None
_SHAPE = list | tuple | None
_NAMES = list | tuple
_WORDS = {
    str: "text",
    _TEXT: "text",
    _SHAPE: "two or three whole numbers",
    _NAMES: "a list of names",
    bool: "true or false",
}
_KINDS: dict[str, Any] = {
    "source": str, "label_column": _TEXT, "drop_columns": _NAMES, "image_shape": _SHAPE, "drop_missing": bool,
    "colour": bool, "resize": _SHAPE, "skip_broken": bool,
}  # fmt: skip


@dataclass(frozen=True)
class DataSettings:
    """Which data a run uses and how: the table [data] of a run's `config.toml`.

    Args:
        source: Name of a data set, or a path.
        binarization: How grey levels become binary; None: unchanged.
        test_fraction: Fraction of the rows that is held out; ignored for data with a published split.
        label_column: Column of labels in a `.csv` or `.parquet` file.
        drop_columns: Names of columns of such a file to leave out.
        image_shape: (height, width) or (height, width, channels).
        polarity: How images are drawn: ``"light"`` if large values are light, ``"ink"`` if they are dark; None: ink for
            the published data sets of handwriting and clothes, else light.
        drop_missing: Whether rows with missing values are left out instead of refused.
        colour: Whether the colours of a folder of pictures are kept; otherwise they become grey levels.
        resize: (height, width) that such pictures are resized to; None to refuse pictures of several sizes.
        skip_broken: Whether files that cannot be read as pictures are left out instead of refused.
        seed: Seed of the split and of the binary draws.
    """

    source: str
    binarization: str | None = None
    test_fraction: float = 0.1
    label_column: str | None = None
    drop_columns: Sequence[str] = ()
    image_shape: tuple[int, ...] | None = None
    polarity: str | None = None
    drop_missing: bool = False
    colour: bool = False
    resize: tuple[int, int] | None = None
    skip_broken: bool = False
    seed: int = 0

    estimator = "VAE"

    def __post_init__(self):
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if not (isinstance(value, kind) and (kind is bool or not isinstance(value, bool))):
                raise ValueError(f"{name}={shown(value)} is not allowed. Give {_WORDS[kind]}.")
        if not all(isinstance(name, str) for name in self.drop_columns):
            raise ValueError(f"drop_columns={shown(self.drop_columns)} is not allowed. Give a list of names.")
        if not self.source:
            raise ValueError("source='' is not allowed. Give the name of a data set, or a path.")
        if self.binarization is not None:
            check_parameter("binarization", self.binarization, choices=BINARIZATIONS)
        if self.polarity is not None:
            check_parameter("polarity", self.polarity, choices=POLARITIES)
        check_parameter("test_fraction", self.test_fraction, kind=float, above=0, high=0.9)
        check_parameter("seed", self.seed, kind=int, low=0, high=2**32 - 1)
        for name, lengths, what in (("image_shape", (2, 3), "height and width"), ("resize", (2,), "height and width")):
            sides = getattr(self, name)
            for side in sides or ():
                check_parameter(name, side, kind=int, low=1)
            if sides is not None and len(sides) not in lengths:
                raise ValueError(f"{name}={shown(sides)} is not allowed. Give {what}.")

    @property
    def pictures(self) -> PictureOptions:
        """How a folder of pictures is read."""
        height_and_width = None if self.resize is None else (int(self.resize[0]), int(self.resize[1]))
        return PictureOptions(self.colour, height_and_width, self.skip_broken)

    @classmethod
    def of(cls, table: dict[str, Any]) -> "DataSettings":
        """Return the settings in a table.

        Raises:
            ValueError: An entry is unknown, missing or invalid; the message names it.
        """
        return settings_from(cls, table)

    def written(self) -> dict[str, Any]:
        """Return the table. Its path is absolute, so that the run can be used from any folder.

        It is not relative to the run folder: runs are moved and copied more often than the data they come from.
        """
        is_path = self.source not in DATASETS and Path(self.source).exists()
        return asdict(self) | ({"source": os.path.abspath(self.source)} if is_path else {})


Settings = TypeVar("Settings")


def settings_from(kind: type[Settings], table: dict[str, Any]) -> Settings:
    """Return settings of this kind, a dataclass, from a table.

    Raises:
        ValueError: An entry is unknown, or there is no source; the message names it.
    """
    known = [field.name for field in fields(kind)]  # pyright: ignore[reportArgumentType]
    for name in table:
        if name not in known:
            raise ValueError(f"[data] {name} is unknown. Allowed entries: {', '.join(known)}.")
    if "source" not in table:
        raise ValueError("[data] has no source. Give the name of a data set, or a path.")
    return kind(**table)
