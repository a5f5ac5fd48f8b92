"""Published tables with numbers, counts, categories and ordered categories, as data frames of pandas.

Adult, Wine and Default Credit come from the repository of HI-VAE, with the entries to remove
(https://github.com/probabilistic-learning/HI-VAE). That Adult has no income column; the one with it comes from the
repository of CTGAN (https://github.com/sdv-dev/CTGAN).
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aevb.data import download
from aevb.data.download import RemoteFile

_HI_VAE = "https://raw.githubusercontent.com/probabilistic-learning/HI-VAE/1ac9c3166a03b5f8c2dc0d7be21676e1fb1c270b"
_CTGAN = "https://raw.githubusercontent.com/sdv-dev/CTGAN/39f8cba525375ad1877eecdf041043b393a14ef9/examples/csv"
_SHA256 = {
    "Adult/data.csv": "a38d3e228cc9cc12eca35ea3439706906aae966372fdd791ef8f9c347b37cb77",
    "Adult/Missing10_1.csv": "8328666a0c79bccd541e0a3ddce5ae8fb4b1bbb2451036e1aac17094eab94d3a",
    "Adult/Missing20_1.csv": "5640540fcbb8424d1b24edddb9b7edd9985e4e4a9011dc76210185fb65f1dfcb",
    "Adult/Missing50_1.csv": "93b254301c76b5c9acc8148e4e502020c5b41d1b6fb791585bf2888ff868c4d6",
    "Wine/data.csv": "e53e2d65da18808d241fd0fd743b7a40fbf4117727a104c1a342a0a789a955fb",
    "Wine/Missing10_1.csv": "97de56e4c2cd05ef39ff67034b4a30e8678d6f48baa0dfc95940a93d68c041f3",
    "Wine/Missing20_1.csv": "52e90483c7f11905a23955208fac5d235f2991b3bcdbd840d185f8b2b49ca8bf",
    "Wine/Missing50_1.csv": "f304bb0712a745909cd6f97af7104e469bf3555dcf03c4ee6872682acc65c3f2",
    "defaultCredit/data.csv": "c0ebdc2f1016ed1f252492571ef553b5a0c71ef2d693dac9406a7f2ff0aff613",
    "defaultCredit/Missing10_1.csv": "3ce84f699df6a24626c15d1d3ef1484f06851727651846cb96de45f7e8570d6d",
    "defaultCredit/Missing20_1.csv": "f740419252b4d5a0b7053c8de57f222a4b02d4fd6f1c8faa888c3853d5a27a03",
    "defaultCredit/Missing50_1.csv": "cd587ce42dd375f54c02e74be658a67ea13f08eb0401ebb150b60763debe10c7",
}
_INCOME_SHA256 = "b1ee59153ff6055037ada6074d5cbed507af97f4d4d4b1fffcd7f62133c283a5"
_MAX_BYTES = 10_000_000
NUMBER, CATEGORY, ORDINAL = "number", "category", "ordinal"


class Published(NamedTuple):
    """A table of HI-VAE's repository."""

    title: str
    columns: str  # name, or name:number of categories, or name<number of ordered categories


_MONTHS = range(1, 7)
PUBLISHED = {
    "Adult": Published(
        "Adult",
        "age workclass:7 fnlwgt education<16 marital_status:7 occupation:14 relationship:6 race:5 sex:2 capital_gain "
        "capital_loss hours_per_week",
    ),
    "Wine": Published(
        "Wine quality",
        "fixed_acidity volatile_acidity citric_acid residual_sugar chlorides free_sulfur_dioxide total_sulfur_dioxide "
        "density ph sulphates alcohol quality colour:2",
    ),
    "defaultCredit": Published(
        "Default Credit",
        "limit sex:3 education:7 marriage:4 age "
        + " ".join([f"status_{month}<11" for month in _MONTHS])
        + " "
        + " ".join([f"bill_{month}" for month in _MONTHS] + [f"paid_{month}" for month in _MONTHS])
        + " default:2",
    ),
}
SHARES = (10, 20, 50)  # percent of the entries that the published masks remove


class MixedTable(NamedTuple):
    """A table with columns of different kinds.

    Args:
        frame: A pandas frame: numbers as float64, categories as `Categorical`, ordered ones where they have an order.
        kinds: By the name of a column: "number", "category" or "ordinal".
        num_classes: By the name of a column, the number of its categories, as published; 0 for numbers.
        ranges: By the name of a column of numbers, its largest minus its smallest number in the whole table.
    """

    frame: Any
    kinds: dict[str, str]
    num_classes: dict[str, int]
    ranges: dict[str, float]

    def take(self, rows: np.ndarray) -> "MixedTable":
        """Return these rows; the ranges stay those of the whole table."""
        return self._replace(frame=self.frame.iloc[rows].reset_index(drop=True))


def read_table(name: str) -> MixedTable:
    """Return a table of HI-VAE's repository, entries that are missing in the original as NaN.

    Args:
        name: A key of ``PUBLISHED``.

    Raises:
        DataFileError: Its file is not in the folder of ``AEVB_DATA`` and could not be downloaded.
    """
    import pandas

    values = pandas.read_csv(_path(f"{name}/data.csv"), header=None)
    columns, kinds, num_classes, ranges = {}, {}, {}, {}
    for (_, column), word in zip(values.items(), PUBLISHED[name].columns.split(), strict=True):
        title, kind, classes = _parsed(word)
        kinds[title], num_classes[title] = kind, classes
        if kind == NUMBER:
            columns[title] = column.astype(np.float64)
            ranges[title] = float(column.max() - column.min())
        else:
            labels = column.map(lambda code: f"{code:g}", na_action="ignore")
            categories = [f"{code:g}" for code in sorted(column.dropna().unique())]
            columns[title] = pandas.Categorical(labels, categories, ordered=kind == ORDINAL)
    return MixedTable(pandas.DataFrame(columns), kinds, num_classes, ranges)


def removed_entries(name: str, percent: int, shape: tuple[int, int]) -> np.ndarray:
    """Return which entries (n, D) the first published mask of this percentage removes."""
    places = np.loadtxt(_path(f"{name}/Missing{percent}_1.csv"), np.int64, delimiter=",") - 1
    removed = np.zeros(shape, bool)
    removed[places[:, 0], places[:, 1]] = True
    return removed


def read_income():
    """Return the Adult table with `income`, 32,561 rows; unknown entries as missing."""
    import pandas

    path = _found("adult", "adult.csv") or download.fetch(
        RemoteFile("adult.csv", (f"{_CTGAN}/adult.csv",), f"sha256:{_INCOME_SHA256}", _MAX_BYTES),
        download.cache_folder() / "adult" / "adult.csv",
    )
    return pandas.read_csv(path, skipinitialspace=True, na_values="?")


def _parsed(word):
    """Return name, kind and number of classes of a word such as "sex:2" or "education<16"."""
    for sign, kind in ((":", CATEGORY), ("<", ORDINAL)):
        if sign in word:
            name, classes = word.split(sign)
            return name, kind, int(classes)
    return word, NUMBER, 0


def _path(name) -> Path:
    """Return where a file of HI-VAE's repository is, after downloading it if necessary."""
    table, file = name.split("/")
    folder = f"mixed_tables/{table}"
    remote = RemoteFile(file, (f"{_HI_VAE}/{name}",), f"sha256:{_SHA256[name]}", _MAX_BYTES)
    return _found(folder, file) or download.fetch(remote, download.cache_folder() / folder / file)


def _found(folder, name):
    return download.find(folder, name) or download.find(folder, f"{name}.gz")
