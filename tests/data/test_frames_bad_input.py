"""Tables that cannot be learned or used: refused before any work, with what is wrong, or used with a warning."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aevb.data.frames import TableFormat
from aevb.errors import WrongTypeError

N = 60
RNG = np.random.default_rng(0)
REAL = RNG.normal(size=N)
WORDS = RNG.choice(["red", "green", "blue"], N)
UTC, BERLIN = (pd.Timestamp("2020-01-01", tz=zone) for zone in ("UTC", "Europe/Berlin"))
LARGE = RNG.integers(2**60, 2**61, N)


def with_entry(entry, row=3, values=REAL):
    changed = list(values)
    changed[row] = entry
    return pd.DataFrame({"real": REAL, "x": pd.Series(changed, dtype=None if isinstance(entry, float) else object)})


TWICE = pd.DataFrame(np.ones((3, 2)), columns=["a", "a"])
PAIRS = pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])
TWICE_AS_TEXT = pd.DataFrame(np.ones((3, 2)), columns=["1", 1])
UNUSABLE = {
    "a list": ([[1.0, 2.0]], "is not a data frame of pandas or polars, nor an Arrow table"),
    "a lazy frame": (pl.LazyFrame({"a": [1, 2]}), r"lazy frame.*Give X.collect\(\)"),
    "one row": (pl.DataFrame({"a": [1.0]}), "n_samples = 1; training needs at least 2 rows"),
    "no rows": (pl.DataFrame({"a": []}), "n_samples = 0"),
    "no columns": (pd.DataFrame(index=range(3)), "X has no columns"),
    "a name twice": (TWICE, "more than one column of the name 'a'"),
    "a name twice as text": (TWICE_AS_TEXT, "more than one column of the name '1'"),
    "a name twice in Arrow": (pa.table([[1, 2], [3, 4]], names=["a", "a"]), "more than one column of the name 'a'"),
    "levels of names": (pd.DataFrame(np.ones((2, 2)), columns=PAIRS), "a column of the name .'a', 'b'.; names must be"),
    "identifiers only": (pd.DataFrame({"id": range(N), "s": [f"{i}" for i in range(N)]}), "no column.*'id' is an id"),
    "nothing observed": (pd.DataFrame({"a": [np.nan] * 3}), "no column to learn from: 'a' is empty"),
    "mixed types": (with_entry("ten"), "column 'x' mixes numbers and text: .* in row 0, 'ten' in row 3"),
    "text and dates": (with_entry(datetime.date(2020, 1, 1), values=WORDS), "mixes text and dates"),
    "infinity": (with_entry(np.inf), "column 'x' holds inf in row 3 .1 such.*: infinity is not allowed"),
    "minus infinity": (with_entry(-np.inf), "column 'x' holds -inf in row 3"),
    "beyond float32": (with_entry(1e300), "exceeds the range of float32"),
    "large whole numbers": (pd.DataFrame({"x": LARGE}), r"column 'x' holds 2\d+, beyond 2\^53.*{'x': 'drop'}"),
    "zones": (with_entry(UTC, values=[BERLIN] * N), "several time zones.*pandas.to_datetime"),
    "complex": (pd.DataFrame({"x": REAL + 1j}), "column 'x' holds complex numbers. Give two columns"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNUSABLE)
def test_unusable_tables(name):
    frame, words = UNUSABLE[name]
    with pytest.raises(ValueError, match=words):
        TableFormat.learn(frame)


def test_what_is_no_table_is_a_type_error_too():
    with pytest.raises(WrongTypeError):
        TableFormat.learn([[1.0]])


TRAINED = pd.DataFrame(
    {
        "real": REAL,
        "word": WORDS,
        "positive": np.exp(2 * REAL),
        "count": RNG.poisson(1.0, N),
        "share": RNG.uniform(size=N),
        "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, N), "D"),
        "id": np.arange(N),
    }
)
LIKELIHOOD = {"share": "bounded", "count": "poisson"}
UNSUITABLE = {
    "a column less": (TRAINED.drop(columns="word"), "X lacks 'word'. The model learned from the columns 'real'"),
    "a column more": (TRAINED.assign(other=1), "X has in addition 'other'"),
    "another name": (TRAINED.rename(columns={"real": "reel"}), "X lacks 'real'; it has in addition 'reel'"),
    "text for numbers": (TRAINED.assign(real=WORDS), r"column 'real' holds text \(str\), but the model learned num"),
    "numbers for text": (TRAINED.assign(word=REAL), "column 'word' holds numbers .* learned text"),
    "text for dates": (TRAINED.assign(day="2020-01-01"), "column 'day' holds text .* learned dates"),
    "lists": (TRAINED.assign(word=[["red"]] * N), "column 'word' holds another type"),
    "another zone": (TRAINED.assign(day=TRAINED["day"].dt.tz_localize("UTC")), "the time zone UTC, but .* have none"),
    "infinity": (TRAINED.assign(real=np.inf), "column 'real' holds inf in row 0"),
    "not positive": (TRAINED.assign(positive=0.0), "column 'positive' holds 0 in row 0 .60 such.* numbers above 0"),
    "negative counts": (TRAINED.assign(count=-1), "it is 'poisson', which allows whole numbers from 0"),
    "parts of counts": (TRAINED.assign(count=0.5), "column 'count' holds 0.5 in row 0"),
    "beyond the ends": (TRAINED.assign(share=1.5), "which allows numbers from 0 to 1"),
    "a name twice": (TRAINED.rename(columns={"real": "word"}), "more than one column of the name 'word'"),
}  # fmt: skip


@pytest.fixture(scope="module")
def table():
    return TableFormat.learn(TRAINED, LIKELIHOOD)


@pytest.mark.parametrize("name", UNSUITABLE)
def test_tables_unlike_the_one_learned_from(table, name):
    frame, words = UNSUITABLE[name]
    with pytest.raises(ValueError, match=words):
        table.encode(frame)


def test_new_labels_count_as_missing(table):
    frame = TRAINED.assign(word=["purple", "pink", "pink", *WORDS[3:]])
    words = r"column 'word' has values that were not there in training, 'pink' \(2\), 'purple' \(1\); these 3 entries"
    with pytest.warns(UserWarning, match=words + ".*The known values are 'blue', 'green', 'red'") as caught:
        matrix = table.encode(frame)
    assert caught[0].filename == __file__
    assert np.isnan(matrix[:3, 1]).all()
    np.testing.assert_array_equal(matrix[3:, 1], table.encode(TRAINED)[3:, 1])


def test_new_codes_count_as_missing():
    codes = np.arange(N) % 3
    table = TableFormat.learn(pd.DataFrame({"code": codes}))
    with pytest.warns(UserWarning, match=r"column 'code' has values .*, 7 \(60\).*known values are 0, 1, 2"):
        table.columns[0].encode(_cells(pd.Series(codes * 0 + 7)))


def _cells(series):
    import narwhals as nw

    from aevb.data.frames.cells import read_cells

    return read_cells(nw.from_native(series, series_only=True), "code")


def test_empty_rows_and_columns_are_used_with_a_warning(table):
    empty = TRAINED.drop(columns="id").astype(object)
    empty.iloc[5] = None
    with pytest.warns(UserWarning, match="1 of 60 rows has no observed entry"):
        matrix = table.encode(empty)
    assert np.isnan(matrix[5]).all()
    for nothing in (None, np.nan, pd.NA):  # whatever the type of an empty column is
        assert np.isnan(table.encode(TRAINED.assign(word=nothing, day=nothing, real=nothing))[:, [0, 1, 5]]).all()
    lacking = pl.DataFrame(TRAINED.to_dict("list")).with_columns(word=pl.lit(None))
    assert np.isnan(table.encode(lacking)[:, 1]).all()


def test_types_that_mean_the_same_are_taken(table):
    expected = table.encode(TRAINED)
    frame = TRAINED.assign(
        word=pd.Categorical(WORDS),
        count=TRAINED["count"].astype("Float32"),
        day=TRAINED["day"].astype("datetime64[ms]"),
    )
    np.testing.assert_array_equal(table.encode(frame[frame.columns[::-1]]), expected)
    truths = TableFormat.learn(pd.DataFrame({"x": [True, False, True]}))
    np.testing.assert_array_equal(truths.encode(pd.DataFrame({"x": [0, 1, 1]})), [[0], [1], [1]])


def test_a_value_at_the_end_of_a_range_is_finite(table):
    stored = table.encode(TRAINED.assign(share=[0.0, 1.0] * (N // 2)))
    assert np.isfinite(stored).all()
    assert table.decode(stored)["share"].between(0, 1).all()


@pytest.mark.parametrize(
    ("matrix", "like", "words"),
    [
        (np.zeros((2, 5)), None, r"matrix has shape \(2, 5\); expected \(n, 6\)"),
        (np.zeros(6), None, r"matrix has shape \(6,\)"),
        (np.zeros((2, 6)), TRAINED, "like has 60 rows, but the matrix has 2"),
    ],
)
def test_matrices_that_cannot_be_decoded(table, matrix, like, words):
    with pytest.raises(ValueError, match=words):
        table.decode(matrix, like=like)


def test_a_library_that_is_not_installed(table, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match="a data frame of pandas, which is not installed: pip install pandas"):
        table.decode(np.zeros((1, 6)))


@pytest.mark.parametrize("kind", ["categorical", "ordinal"])
def test_more_labels_than_the_limit(kind):
    values = np.arange(3000) % 1001
    with pytest.raises(ValueError, match=r"at most 1,000 different values.*1,001 different values"):
        TableFormat.learn(pd.DataFrame({"x": values}), {"x": kind})
    frame = pd.DataFrame({"x": [f"word {value}" for value in values], "y": values})
    assert TableFormat.learn(frame).summary()[0].reason == "free text: 1,001 different values in 3,000 entries"
