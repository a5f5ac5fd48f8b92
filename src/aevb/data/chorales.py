"""Bach's chorales in quarter notes, the version that sequence models are compared on."""

import json
from typing import NamedTuple

import numpy as np

from aevb.data import download
from aevb.data.download import RemoteFile

FOLDER, NAME = "jsb_chorales", "jsb-chorales-quarter.json"  # below the cache or AEVB_DATA
_COMMIT = "9a7f733ddb4ed91f48da64ac7f0f621c34aadd4d"
FILE = RemoteFile(
    NAME,
    (f"https://raw.githubusercontent.com/czhuang/JSB-Chorales-dataset/{_COMMIT}/{NAME}",),
    "sha256:2db9329f1881a1d3f49703ec556bf1d6f84b4f6c1d702c156536e93cf31e1c91",
    20_000_000,
)
LOWEST, NUM_NOTES = 21, 88  # MIDI pitches: the keys of a piano


class Chorales(NamedTuple):
    """Chorales as arrays (T_i, 88) of 0 and 1: which notes sound in each quarter."""

    train: list[np.ndarray]  # 229
    valid: list[np.ndarray]  # 76
    test: list[np.ndarray]  # 77


def load_chorales() -> Chorales:
    """Return the chorales with the split of Boulanger-Lewandowski et al. (2012), downloaded if necessary.

    Raises:
        DataFileError: The file could not be downloaded, or is not what was published.
    """
    path = download.find(FOLDER, NAME)
    if path is None:
        path = download.fetch(FILE, download.writable_folder(FOLDER) / NAME)
    download.check(FILE, path)
    pitches = json.loads(path.read_text(encoding="utf-8"))
    return Chorales(*([piano_roll(steps) for steps in pitches[part]] for part in Chorales._fields))


def piano_roll(steps: list[list[int]]) -> np.ndarray:
    """Return which notes sound in each step, (T, 88), from lists of MIDI pitches.

    Example:
        >>> piano_roll([[60], []]).sum(axis=1).tolist()
        [1.0, 0.0]
    """
    roll = np.zeros((len(steps), NUM_NOTES), np.float32)
    for row, pitches in zip(roll, steps, strict=True):
        row[np.asarray(pitches, int) - LOWEST] = 1
    return roll
