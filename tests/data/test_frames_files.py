"""CSV and Parquet files with words, dates and holes."""

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from aevb.data.frames import TableFormat, read_frame
from aevb.errors import DataFileError

LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}
SEEN = ["2020-01-31 10:20:00", "2020-01-31 10:20:30.5"]
COLUMNS = {  # the cells, and the entries
    "name": (["ann", "bob", "?", "cy"], ["ann", "bob", None, "cy"]),
    "age": (["31", "NA", "?", "-5"], [31, None, None, -5]),
    "weight": (["1.5", "", "2e3", "nan"], [1.5, None, 2000.0, None]),
    "postal code": (["01234", "99999", "00001", ""], ["01234", "99999", "00001", None]),
    "since": (["2020-01-31", "null", "2019-05-06", "?"], ["2020-01-31", None, "2019-05-06", None]),
    "seen": (["2020-01-31 10:20", "2020-01-31T10:20:30.5", "", "NaN"], [*SEEN, None, None]),
    "ok": (["True", "false", "N/A", "TRUE"], [True, False, None, True]),
    "punctuation": (["?", "!", "?", "..."], ["?", "!", "?", "..."]),
    "day first": (["31.12.2020", "01.02.2020", "", "05.06.2021"], ["31.12.2020", "01.02.2020", None, "05.06.2021"]),
    "no date": (["2020-13-01", "2020-01-01", "", ""], ["2020-13-01", "2020-01-01", None, None]),
    "long number": ([str(2**70), "1", "2", "3"], [str(2**70), "1", "2", "3"]),
    "underscore": (["1_000", "2", "3", "4"], ["1_000", "2", "3", "4"]),
    "empty": (["", "NA", "", "?"], [None, None, None, None]),
}  # fmt: skip
TYPES = {
    "age": ("Int64", pl.Int64, pa.int64()),
    "weight": ("float64", pl.Float64, pa.float64()),
    "postal code": ("str", pl.String, pa.string()),
    "since": ("datetime64[s]", pl.Date, pa.date32()),
    "seen": ("datetime64[us]", pl.Datetime("us"), pa.timestamp("us")),
    "ok": ("boolean", pl.Boolean, pa.bool_()),
}


def write(path, columns, separator=",", encoding="utf-8"):
    lines = [list(columns), *zip(*columns.values(), strict=True)]
    text = "\n".join(separator.join(line) for line in lines)
    content = text.encode(encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.fixture(params=LIBRARIES)
def library(request, monkeypatch):
    monkeypatch.setattr("aevb.data.frames.files.CONTAINERS", (request.param,))
    return request.param


def entries(frame, name):
    column = frame[name]
    return [
        None if value is None or value is pd.NA or value != value else value
        for value in (column.to_pylist() if isinstance(frame, pa.Table) else column.to_list())
    ]


@pytest.mark.parametrize("name", COLUMNS)
def test_cells_of_each_kind(tmp_path, library, name):
    cells, expected = COLUMNS[name]
    frame = read_frame(write(tmp_path / "a.csv", {name: cells, "other": ["a", "b", "a", "c"]}))
    assert type(frame) is LIBRARIES[library]
    found = entries(frame, name)
    if name in ("since", "seen"):
        found = [value if value is None else pd.Timestamp(value) for value in found]
        expected = [value if value is None else pd.Timestamp(value) for value in expected]
    assert found == expected
    if name in TYPES:
        type_ = {"pandas": lambda: str(frame.dtypes[name]), "polars": lambda: frame.schema[name]}
        found_type = type_.get(library, lambda: frame.schema.field(name).type)()
        assert found_type == TYPES[name][list(LIBRARIES).index(library)]


@pytest.mark.parametrize(("name", "separator"), [("a.csv.gz", ","), ("a.csv", ";"), ("a.tsv", "\t")])
def test_forms_of_files(tmp_path, name, separator):
    comma = "." if separator == "," else ","
    cells = {"größe": ["1.5".replace(".", comma), "2", ""], "wort": ["a", "b", "a"]}
    frame = read_frame(write(tmp_path / name, cells, separator))
    assert entries(frame, "größe") == [1.5, 2.0, None]
    assert entries(frame, "wort") == ["a", "b", "a"]


def test_latin_1(tmp_path):
    path = write(tmp_path / "a.csv", {"größe": ["a", "b"]}, encoding="latin-1")
    with pytest.warns(UserWarning, match="read as Latin-1"):
        assert list(read_frame(path).columns) == ["größe"]


def test_a_file_without_a_header(tmp_path):
    rows = [
        f"{20 + number % 9},{'Private' if number % 3 else '?'},{'<=50K' if number % 2 else '>50K'}"
        for number in range(40)
    ]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    with pytest.warns(UserWarning, match="no header: its first line looks like the others.*named x0, x1"):
        frame = read_frame(tmp_path / "a.csv")
    assert (list(frame.columns), len(frame)) == (["x0", "x1", "x2"], 40)
    (tmp_path / "b.csv").write_text("age,work,income\n" + "\n".join(rows))
    assert list(read_frame(tmp_path / "b.csv").columns) == ["age", "work", "income"]


def test_the_index_that_pandas_writes_is_left_out(tmp_path):
    pd.DataFrame({"a": ["x", "y"], "b": [1.5, 2.5]}).to_csv(tmp_path / "a.csv")
    with pytest.warns(UserWarning, match="as pandas writes an index; it is left out"):
        assert list(read_frame(tmp_path / "a.csv").columns) == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\nx,1\ny\n", "line 3 has 1 cells separated by commas, but the first line has 2"),
        ("a,b\n", "has no rows"),
        ("a,a\nx,1\n", "repeats the column name 'a'"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, content, words):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(DataFileError, match=rf"a.csv.*{words}"):
        read_frame(tmp_path / "a.csv")


def test_files_that_are_not_there_or_damaged(tmp_path, library):
    for ending in ("csv", "parquet"):
        with pytest.raises(DataFileError, match="cannot be read"):
            read_frame(tmp_path / f"none.{ending}")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(DataFileError, match=r"a.parquet cannot be read"):
        read_frame(tmp_path / "a.parquet")


def test_parquet(tmp_path, library):
    columns = {"word": ["a", None, "b"], "when": np.array(["2020-01-01", "NaT", "2021-01-01"], "M8[s]")}
    pa.parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    frame = read_frame(tmp_path / "a.parquet")
    assert type(frame) is LIBRARIES[library]
    assert entries(frame, "word") == ["a", None, "b"]


def test_no_library_is_installed(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"a.csv: .* needs pandas, polars or pyarrow: pip install pandas"):
        read_frame(write(tmp_path / "a.csv", {"a": ["x"]}))


TABLES = {"Adult": 12, "Wine": 13, "defaultCredit": 24}


@pytest.mark.thorough
@pytest.mark.parametrize("name", TABLES)
def test_published_tables_come_back(name):
    path = Path(os.environ.get("AEVB_DATA", "")) / "mixed_tables" / name / "data.csv.gz"
    if not path.exists():
        pytest.skip(f"AEVB_DATA does not point to a folder with mixed_tables/{name}")
    frame = read_frame(path)
    table = TableFormat.learn(frame)
    assert len(table.columns) == TABLES[name]
    pd.testing.assert_frame_equal(table.decode(table.encode(frame)), frame)
