"""Frames become matrices of stored numbers, and the same frames again."""

import datetime
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aevb.data.frames import TableFormat, is_frame

N = 60
RNG = np.random.default_rng(0)
HOLES = RNG.random(N) < 0.1


def holed(values):
    return [None if hole else value for value, hole in zip(list(values), HOLES, strict=True)]


DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(day)) for day in RNG.integers(0, 900, N)]
MOMENTS = [
    datetime.datetime(2020, 1, 1) + datetime.timedelta(microseconds=int(when)) for when in RNG.integers(0, 10**14, N)
]
SPANS = [datetime.timedelta(seconds=int(when)) for when in RNG.integers(0, 10**6, N)]
WORDS = [["low", "middle", "high"][code] for code in RNG.integers(0, 3, N)]
TRUTHS = [bool(code) for code in RNG.integers(0, 2, N)]
AGES = RNG.integers(17, 90, N).tolist()
LARGE = RNG.integers(-(2**53), 2**53, N).tolist()
REALS = RNG.normal(1e6, 1e-2, N).tolist()
SKEWED = np.exp(3 * RNG.normal(size=N)).tolist()
SHARES = [0.0, 1.0, *RNG.random(N - 2)]
ORDER = ["low", "middle", "high", "never"]
PANDAS = {
    "int64": AGES,
    "int8": AGES,
    "Int16": holed(AGES),
    "int64[pyarrow]": holed(AGES),
    "float64": REALS,
    "float32": np.float32(SKEWED),
    "float16": np.float16(AGES),
    "Float64": holed(SKEWED),
    "double[pyarrow]": holed(SHARES),
    "bool": TRUTHS,
    "boolean": holed(TRUTHS),
    "bool[pyarrow]": holed(TRUTHS),
    "str": holed(WORDS),
    "string": holed(WORDS),
    "category": holed(WORDS),
    "datetime64[ns]": holed(MOMENTS),
    "datetime64[s]": holed(DAYS),
    "datetime64[us, Europe/Berlin]": holed(MOMENTS),
    "timestamp[us, tz=UTC][pyarrow]": holed(pd.Series(MOMENTS).dt.tz_localize("UTC")),
    "date32[day][pyarrow]": holed(DAYS),
    "timedelta64[ns]": holed(SPANS),
}


def pandas_frame():
    frame = pd.DataFrame({name: pd.Series(values, dtype=name) for name, values in PANDAS.items()})
    frame["large"] = LARGE
    frame["levels"] = pd.Categorical(holed(WORDS), ORDER, ordered=True)
    frame["unused"] = pd.Categorical(holed(WORDS), ORDER)
    frame["numbers as levels"] = pd.Categorical(RNG.integers(3, 7, N) * 10)
    frame["arrow text"] = pd.Series(holed(WORDS), dtype=pd.ArrowDtype(pa.string()))
    for name, values in {"a": WORDS, "b": TRUTHS, "c": AGES, "d": DAYS, "e": MOMENTS}.items():
        frame[f"object {name}"] = pd.Series(holed(values), dtype=object)
    frame[7] = RNG.normal(size=N)  # a name that is not text
    return frame.set_index(pd.Index([f"row {number}" for number in range(N)], name="who"))


def polars_frame():
    return pl.DataFrame(
        {
            "i8": pl.Series(holed(AGES), dtype=pl.Int8),
            "u64": pl.Series(AGES, dtype=pl.UInt64),
            "large": LARGE,
            "f32": pl.Series(SKEWED, dtype=pl.Float32),
            "f64": holed(REALS),
            "shares": SHARES,
            "bool": holed(TRUTHS),
            "text": holed(WORDS),
            "category": pl.Series(holed(WORDS), dtype=pl.Categorical),
            "enum": pl.Series(holed(WORDS), dtype=pl.Enum(ORDER)),
            "date": holed(DAYS),
            "us": holed(MOMENTS),
            "ms": pl.Series(MOMENTS, dtype=pl.Datetime("ms")),
            "zone": pl.Series(holed(MOMENTS), dtype=pl.Datetime("ns")).dt.replace_time_zone("Asia/Tokyo"),
            "duration": holed(SPANS),
        }
    )


def arrow_table():
    zone = pa.timestamp("us", "America/New_York")
    ordered = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    levels = pa.DictionaryArray.from_arrays(pa.array([i % 4 for i in range(N)], pa.int8()), ORDER, ordered=True)
    return pa.table(
        {
            "i16": pa.array(holed(AGES), pa.int16()),
            "large": LARGE,
            "f32": pa.array(SKEWED, pa.float32()),
            "f64": holed(REALS),
            "bool": holed(TRUTHS),
            "text": holed(WORDS),
            "large text": pa.array(holed(WORDS), pa.large_string()),
            "dictionary": pa.array(holed(WORDS)).dictionary_encode(),
            "ordered": levels.cast(ordered),
            "date": holed(DAYS),
            "moment": holed(MOMENTS),
            "seconds": pa.array(holed(DAYS)).cast(pa.timestamp("s")),
            "zone": pa.array(holed(MOMENTS), pa.timestamp("us")).cast(zone),
            "duration": holed(SPANS),
        }
    )


def same(one, other, rtol=1e-12):
    """Compare frames: types, labels, index and values."""
    assert type(one) is type(other)
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other, rtol=rtol, atol=0)
    elif isinstance(one, pl.DataFrame):
        polars.testing.assert_frame_equal(one, other, rel_tol=rtol, abs_tol=0)
    else:
        assert one.schema == other.schema
        same(pl.from_arrow(one), pl.from_arrow(other), rtol)


FRAMES = {"pandas": pandas_frame, "polars": polars_frame, "pyarrow": arrow_table}
LIKELIHOOD = {"large": "gaussian"}


@pytest.mark.parametrize("container", FRAMES)
def test_what_went_in_comes_back(container):
    frame = FRAMES[container]()
    table = TableFormat.learn(frame, LIKELIHOOD)
    assert not table.left_out
    matrix = table.encode(frame)
    assert (matrix.dtype, matrix.shape) == (np.float64, (N, len(table.columns)))
    same(table.decode(matrix, like=frame), frame)
    assert table.container == container
    described = TableFormat.from_description(json.loads(json.dumps(table.describe())))
    assert described == table
    assert hash(described) == hash(table)
    same(described.decode(matrix, like=frame), frame)


@pytest.mark.parametrize("container", FRAMES)
def test_single_precision_is_enough(container):
    frame = FRAMES[container]()
    table = TableFormat.learn(frame, LIKELIHOOD)
    back = table.decode(table.encode(frame).astype(np.float32), like=frame)
    again = table.encode(back)
    np.testing.assert_allclose(again, table.encode(frame), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("one", FRAMES)
@pytest.mark.parametrize("other", FRAMES)
def test_a_model_of_one_library_takes_frames_of_another(one, other):
    columns = {"age": holed(AGES), "word": holed(WORDS), "truth": holed(TRUTHS), "day": holed(MOMENTS), "real": REALS}
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
    table, frame = TableFormat.learn(make[one](columns)), make[other](columns)
    matrix = table.encode(frame)
    np.testing.assert_array_equal(matrix, table.encode(make[one](columns)))
    back = table.decode(matrix, like=frame)
    assert type(back) is type(frame)
    np.testing.assert_allclose(table.encode(back), matrix, rtol=1e-6)


def test_time_zones_and_orders_are_known_in_every_library():
    table = TableFormat.learn(polars_frame(), LIKELIHOOD)
    like = pd.DataFrame({column: polars_frame()[column].to_list() for column in polars_frame().columns})
    back = table.decode(table.encode(polars_frame()), like=like)
    assert str(back["zone"].dt.tz) == "Asia/Tokyo"
    assert back["enum"].cat.ordered
    kinds = {row.column: row.kind for row in TableFormat.learn(arrow_table(), LIKELIHOOD).summary()}
    assert (kinds["ordered"], kinds["dictionary"]) == ("ordinal", "categorical")


def test_stored_numbers():
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0, np.nan], "b": [0, 3, 1, 2], "c": ["x", "y", None, "z"]})
    likelihood = {"a": "lognormal", "b": "count", "c": "categorical"}
    matrix = TableFormat.learn(frame, likelihood).encode(frame)
    logs = np.log([1, 2, 4])
    np.testing.assert_allclose(matrix[:3, 0], (logs - logs.mean()) / logs.std(), atol=1e-12)
    np.testing.assert_array_equal(matrix[:, 1:], [[0, 0], [3, 1], [1, np.nan], [2, 2]])
    bounded = TableFormat.learn(pd.DataFrame({"a": [0.0, 0.2, 0.6, 1.0]}), "bounded")
    column = bounded.model_columns[0]
    assert (column.low, column.high) == pytest.approx((-0.1, 1.2))  # half of the way to the next value
    shares = (np.array([0.0, 0.2, 0.6, 1.0]) + 0.1) / 1.3
    logits = np.log(shares / (1 - shares))
    found = bounded.encode(pd.DataFrame({"a": [0.0, 0.2, 0.6, 1.0]}))[:, 0]
    np.testing.assert_allclose(found, (logits - logits.mean()) / logits.std(), atol=1e-12)


def test_draws_are_within_the_range_of_whole_numbers_and_have_no_index():
    frame = pandas_frame()[["int8", "bool", "levels", "datetime64[ns]", "str"]]
    table = TableFormat.learn(frame)
    draws = table.decode(np.random.default_rng(1).normal(size=(1000, 5)) * 5)
    assert draws["int8"].dtype == np.int8
    assert (draws["int8"].min(), draws["int8"].max()) == (min(AGES), max(AGES))
    assert draws["datetime64[ns]"].between(*frame["datetime64[ns]"].agg(["min", "max"])).all()
    assert draws.index.tolist() == list(range(1000))
    assert draws.dtypes.tolist() == frame.dtypes.tolist()


def test_missing_entries_make_whole_numbers_nullable():
    frame = pd.DataFrame({"age": np.int32(AGES), "truth": TRUTHS, "size": np.uint8(AGES)})
    back = TableFormat.learn(frame).decode(np.full((2, 3), np.nan))
    assert back.isna().all(axis=None)
    assert [str(dtype) for dtype in back.dtypes] == ["Int32", "boolean", "UInt8"]


def test_left_out_columns_come_from_the_frame_that_is_given():
    frame = pd.DataFrame({"id": range(N), "age": AGES, "note": [f"n {i}" for i in range(N)]}, index=range(100, 100 + N))
    table = TableFormat.learn(frame)
    assert [column.name for column in table.left_out] == ["id", "note"]
    matrix = table.encode(frame[["age"]])
    same(table.decode(matrix, like=frame), frame)
    assert list(table.decode(matrix).columns) == ["age"]
    assert list(table.decode(matrix, like=frame[["age"]]).columns) == ["age"]


def test_observed_entries_are_kept_as_they_are():
    table = TableFormat.learn(pd.DataFrame({"age": AGES, "word": WORDS, "day": MOMENTS}))
    day = pd.Timestamp("2031-05-06 07:08:09.123456")
    frame = pd.DataFrame({"age": [150.5, np.nan], "word": [None, "high"], "day": [day, pd.NaT]})
    drawn = np.zeros((2, 3))
    kept = table.decode(drawn, like=frame, keep_observed=True)
    assert kept["age"].tolist()[0] == 150.5
    assert kept["word"].tolist() == ["high", "high"]  # the first is drawn: code 0
    assert kept["day"][0] == day
    assert table.decode(drawn, like=frame)["age"].tolist()[0] == kept["age"].tolist()[1] != 150.5
    known = table.decode(np.full((2, 3), np.nan), like=frame, keep_observed=True)
    assert known.isna().to_numpy().tolist() == frame.isna().to_numpy().tolist()
    strange = frame.assign(word=["unheard of", "low"])
    assert table.decode(drawn, like=strange, keep_observed=True)["word"].tolist() == ["high", "low"]


def test_categories_that_are_numbers_stay_categories():
    values = pd.Categorical([30, 10, None, 20, 30], [30, 20, 10, 0], ordered=True)
    frame = pd.DataFrame({"dose": values, "batch": pd.Categorical([3, 1, 2, None, 3])})
    table = TableFormat.learn(frame)
    dose, batch = table.columns
    assert (dose.kind, dose.levels, batch.kind, batch.levels) == ("ordinal", (30, 20, 10, 0), "categorical", (1, 2, 3))
    np.testing.assert_array_equal(table.encode(frame)[:, 0], [0, 2, np.nan, 1, 0])
    same(table.decode(table.encode(frame)), frame)
    plain = pd.DataFrame({"dose": [30.0, 10, np.nan, 20, 30], "batch": [3, 1, 2, None, 3]})
    np.testing.assert_array_equal(table.encode(plain), table.encode(frame))


def test_decimals_come_back_as_numbers():
    values = [Decimal(age) / 100 for age in AGES]
    for frame in (pl.DataFrame({"price": values}), pa.table({"price": values}), pd.DataFrame({"price": values})):
        table = TableFormat.learn(frame)
        np.testing.assert_allclose(
            [float(value) for value in table.decode(table.encode(frame))["price"].to_numpy()], np.array(AGES) / 100
        )


def test_what_is_a_frame():
    assert all(is_frame(make()) for make in FRAMES.values())
    assert not any(map(is_frame, [np.ones((2, 2)), [[1.0]], "a.csv", {"a": [1]}, None]))


WHOLE = st.integers(-(2**53), 2**53)
REAL = st.floats(-1e30, 1e30).map(lambda x: x if abs(x) > 1e-30 else 0.0)
DATES = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))
COLUMNS = {
    "whole": WHOLE,
    "real": REAL,
    "text": st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5),
}
COLUMNS |= {"date": DATES.map(lambda when: when.replace(microsecond=0)), "truth": st.booleans()}


@st.composite
def columns(draw):
    size = draw(st.integers(2, 12))
    column = {name: st.lists(st.none() | values, min_size=size, max_size=size) for name, values in COLUMNS.items()}
    return {name: draw(values) for name, values in column.items()}


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(columns(), st.sampled_from([pl.DataFrame, pa.table, pd.DataFrame]))
@pytest.mark.thorough
def test_any_table_comes_back(data, make):
    schema = {"whole": pl.Int64, "real": pl.Float64, "text": pl.String, "date": pl.Datetime("us"), "truth": pl.Boolean}
    frame = pl.DataFrame(data, schema=schema)
    distinct = {name for name, values in data.items() if len({*values} - {None}) > 1 and name != "real"}
    likelihood = dict.fromkeys(distinct & {"whole"}, "gaussian")
    if make is not pl.DataFrame:
        frame = frame.to_arrow() if make is pa.table else pd.DataFrame(frame.to_dict(as_series=False), dtype=object)
    try:
        table = TableFormat.learn(frame, likelihood)
    except ValueError as error:
        assert "no column to learn from" in str(error)  # noqa: PT017
        return
    matrix = np.stack([column.encode(cells) for column, cells in zip(table.columns, _cells(table, frame), strict=True)])
    back = table.decode(matrix.T, like=frame)
    for name, values in data.items():
        found = back[name].to_pylist() if make is pa.table else back[name].to_list()
        if name == "real":
            scale = max((abs(value) for value in values if value is not None), default=1.0)
            np.testing.assert_allclose(np.array(found, float), np.array(values, float), rtol=1e-9, atol=1e-12 * scale)
        else:
            assert found == values


def _cells(table, frame):
    from aevb.data.frames.cells import read_cells
    from aevb.data.frames.containers import open_frame, series_of

    series = series_of(open_frame(frame))
    return [read_cells(series[column.name], column.name) for column in table.columns]


def test_new_numbers_have_the_decimals_and_the_range_of_the_data():
    prices = np.round(np.random.default_rng(0).lognormal(3, 1, 100), 2)
    frame = pd.DataFrame({"price": prices, "third": prices / 3})
    table = TableFormat.learn(frame)
    stored = np.repeat([[0.123456], [9.0], [-9.0]], 2, axis=1)

    new = table.decode(stored)

    assert new["price"].tolist() == [round(new["price"][0], 2), prices.max(), prices.min()]
    assert new["third"][1] > frame["third"].max()  # numbers with many decimals are a sample of more
    like = pd.DataFrame({"price": [np.nan] * 3, "third": [np.nan] * 3})
    assert table.decode(stored, like)["price"][1] > prices.max()  # an expectation is not rounded
    pd.testing.assert_frame_equal(table.decode(table.encode(frame)), frame, rtol=1e-14)
    assert (table.decode(table.encode(frame))["price"] == prices).all()


def test_time_zones_with_an_underscore_are_dates():
    """Some versions of narwhals do not know them."""
    times = pd.Series(pd.date_range("2020-01-01", periods=40, freq="7h", tz="America/New_York"))
    frame = pd.DataFrame({"time": times.where(times.index != 3), "size": np.arange(40) / 8})
    table = TableFormat.learn(frame)
    assert table.summary()[0].kind == "date"
    pd.testing.assert_frame_equal(table.decode(table.encode(frame)), frame)


def test_given_values_may_lie_outside_of_the_observed_range():
    frame = pd.DataFrame({"power": np.arange(40.0) ** 2 + 10, "size": np.arange(40.0) / 7})
    table = TableFormat.learn(frame)
    rows = table.encode(pd.DataFrame({"power": [5000.0], "size": [90.0]}))
    assert table.decode(rows)["power"].tolist() == [1531.0]
    assert table.decode(rows, given={"power"})["power"].tolist() == [5000.0]
