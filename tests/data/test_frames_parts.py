"""Rows and columns of frames of three libraries, files of them, and entries as texts."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aevb.data.frames import TableFormat, read_frame
from aevb.data.frames.parts import (
    complete_rows,
    labels_of,
    names_of,
    take_rows,
    with_columns,
    with_empty_columns,
    without_columns,
    write_frame,
)
from aevb.data.frames.texts import entry_texts

FRAME = pd.DataFrame(
    {
        "size": pd.array([3, None, 5], "Int64"),
        "name": ["x", "y", None],
        "day": pd.to_datetime(["2020-01-01", "2020-02-01", "2020-03-01"]),
        "share": [0.1, 1 / 3, 2.0],
    },
    index=[7, 8, 9],
)
LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.from_pandas(frame),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


@pytest.fixture(params=LIBRARIES)
def frame(request):
    return LIBRARIES[request.param](FRAME)


def test_rows_and_columns_of_any_frame(frame):
    assert labels_of(take_rows(frame, np.array([2, 0])), "share").tolist() == [2.0, 0.1]
    assert names_of(without_columns(frame, ["name", "nothing"])) == ["size", "day", "share"]
    assert complete_rows(frame).tolist() == [True, False, False]
    assert labels_of(frame, "name").tolist() == ["x", "y", "missing"]
    more = with_empty_columns(frame, ["new"])
    assert names_of(more) == [*FRAME.columns, "new"]
    assert not complete_rows(more).any()
    other = without_columns(frame, ["size", "day", "share"])
    assert names_of(with_columns(frame, other)) == list(FRAME.columns)


def test_rows_are_numbered_again():
    assert take_rows(FRAME, np.array([1, 2])).index.tolist() == [0, 1]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_frames_are_read_back_as_they_were_written(frame, tmp_path, ending):
    path = tmp_path / f"x{ending}"
    write_frame(frame, path, ending)
    found = read_frame(path)
    assert found["size"].tolist()[::2] == [3, 5]
    assert found["share"].tolist() == FRAME["share"].tolist()  # all digits
    assert found["day"].tolist() == FRAME["day"].tolist()
    assert found["name"].isna().tolist() == [False, False, True]


def test_columns_that_are_known_to_be_text_stay_text(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n1,2020-01-01,1.5\n2,,2.5\n")
    found = read_frame(path, text={"a", "b", "c"})
    assert found["a"].tolist() == ["1", "2"]
    assert found["b"].isna().tolist() == [False, True]
    assert found["c"].tolist() == ["1.5", "2.5"]


def test_entries_are_texts(frame):
    table = TableFormat.learn(frame, {"size": "gaussian", "share": "gaussian"})
    texts = entry_texts(table, table.encode(frame))
    assert texts == {
        "size": ["3", "missing", "5"],
        "name": ["x", "y", "missing"],
        "day": ["2020-01-01", "2020-02-01", "2020-03-01"],
        "share": ["0.1", "0.333333", "2"],
    }
