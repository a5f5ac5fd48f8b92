import numpy as np
import pytest

from aevb.arguments import check_options, check_parameter
from aevb.data.checks import check_columns_vary, check_rows, column_units, offset_of


@pytest.fixture
def small_blocks(monkeypatch):
    """Data are checked three rows at a time."""
    monkeypatch.setattr("aevb.matrices._BLOCK_BYTES", 3 * 8 * 4)


def data(**bad):
    X = np.full((10, 4), 0.5)
    for place, value in bad.items():
        row, column = place[1:].split("_")
        X[int(row), int(column)] = value
    return X


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("X", "likelihood", "words"),
    [
        (data(_7_2=np.nan), "gaussian", "row 7, column 2 is nan (1 such value, rows counted from 0): NaN and infinity"),
        (data(_0_3=np.inf, _9_0=np.nan), "bernoulli", "row 0, column 3 is inf (2 such values"),
        (data(_4_1=-np.inf).astype(np.float32), "gaussian", "row 4, column 1 is -inf"),
        (
            data(_5_0=1e39),
            "gaussian",
            "row 5, column 0 is 1e+39 (1 such value, rows counted from 0): the model computes in float32",
        ),
        (data(_5_1=-1e39), None, "row 5, column 1 is -1e+39"),
        (
            data(_8_3=1.5, _9_3=-1),
            "bernoulli",
            "row 8, column 3 is 1.5 (2 such values, rows counted from 0): likelihood='bernoulli'",
        ),
        (
            data(_2_0=-0.25),
            "sigmoid-gaussian",
            "row 2, column 0 is -0.25 (1 such value, rows counted from 0): likelihood='sigmoid-",
        ),
        (np.full((4, 4), 2, np.uint8), "bernoulli", "row 0, column 0 is 2 (16 such values"),
        (np.full((4, 4), -1, np.int8), "bernoulli", "row 0, column 0 is -1 (16 such values"),
    ],
)
def test_rows_are_refused_with_place_value_and_advice(X, likelihood, words):
    with pytest.raises(ValueError, match=r"To fix it: .+") as error:
        check_rows(X, likelihood)
    assert words in str(error.value)


def test_messages_use_the_row_numbers_and_column_names_of_the_source():
    with pytest.raises(ValueError, match=r"big.parquet: the value at row 90, column 'age' is nan"):
        check_rows(
            data(_1_2=np.nan), None, name="big.parquet", row_numbers=range(89, 99), columns=["a", "b", "age", "d"]
        )
    with pytest.raises(ValueError, match="X: column 'b' is constant"):
        check_columns_vary(np.zeros(2), np.array([1.0, 0.0]), ["a", "b"])


@pytest.mark.parametrize(
    ("X", "likelihood", "scale"),
    [
        (data(_1_1=0, _2_2=1), "bernoulli", 1.0),
        (np.array([[0, 255]], np.uint8), "bernoulli", 1 / 255),
        (data(_1_1=-3e38, _2_2=3e38), "gaussian", 1.0),
        (data(_1_1=-7), None, 1.0),
        (np.array([[True, False]]), "bernoulli", 1.0),
    ],
)
def test_good_rows_pass(X, likelihood, scale):
    check_rows(X, likelihood, scale=scale)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (np.full(50, 3.0), "column 1 is constant (every row has 3.0; 1 such column)"),
        (
            1e15 + np.arange(50.0),
            "all rows lie between 1000000000000000.0 and 1000000000000049.0, equal up to rounding",
        ),
        (1e-42 * np.arange(50.0), "equal up to rounding"),
    ],
)
def test_constant_columns_are_refused(column, words):
    X = np.c_[np.arange(50.0), column]
    with pytest.raises(ValueError, match="VarianceThreshold") as error:
        check_columns_vary(X.min(axis=0), X.max(axis=0))
    assert words in str(error.value)
    check_columns_vary(np.array([0, 1.7e9]), np.array([49, 1.7e9 + 49]))
    with pytest.raises(ValueError, match="column 1 is constant"):  # float32 has too few digits for the differences
        check_columns_vary(np.float32([0, 1.7e9]), np.float32([49, 1.7e9 + 128]))


def test_constant_pixels_need_a_unit():
    low, high = np.zeros(100), np.append(np.zeros(20), np.full(80, 40000.0))
    with pytest.raises(ValueError, match=r"16-bit grey levels, give X / 65535") as error:
        check_columns_vary(low, high)
    assert "VarianceThreshold" not in str(error.value)
    for table in (high[:40], high * 1.00001, 2 * high):  # few columns, fractions, more than 16 bits
        with pytest.raises(ValueError, match="VarianceThreshold"):
            check_columns_vary(low[: len(table)], table)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_column_units(dtype):
    X = np.random.default_rng(0).integers(0, 256, (10, 4)).astype(dtype)
    X[:, 3] = 7
    mean, std = column_units(X)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(std[:3], X.astype(float).std(axis=0)[:3], rtol=1e-6)
    assert std[3] == 1
    assert mean.dtype == std.dtype == np.float64


def test_columns_far_from_zero_have_an_offset():
    assert offset_of(None) is None
    assert offset_of((np.array([-999.0, 0]), np.ones(2))) is None
    np.testing.assert_array_equal(offset_of((np.array([-1e7, 5, 1e3]), np.array([1, 1, 2.0]))), [-1e7, 0, 0])


@pytest.mark.parametrize(
    ("value", "rules", "words"),
    [
        (
            "adm",
            {"choices": ("adam", "sgd")},
            "size='adm' is not known. Did you mean 'adam'? Choose one of 'adam', 'sgd'.",
        ),
        ("SGD", {"choices": ("adam", "sgd")}, "Did you mean 'sgd'?"),
        ("zzz", {"choices": ("adam", None)}, "size='zzz' is not known. Choose one of 'adam', None."),
        (["adam"], {"choices": {"adam": 1}}, "size=['adam'] is not known."),
        (np.arange(3), {"choices": ("adam", None)}, "is not known."),
        (0, {"kind": int, "low": 1}, "size=0 is not allowed. Give a whole number of at least 1."),
        (1.5, {"kind": int, "low": 1}, "size=1.5 is not allowed. Give a whole number"),
        (True, {"kind": int, "low": 1}, "size=True"),
        ("3", {"kind": int, "low": 1}, "size='3'"),
        (float("nan"), {"kind": float, "low": 0}, "size=nan"),
        (float("inf"), {"kind": float, "low": 0}, "size=inf"),
        (0, {"kind": float, "above": 0}, "Give a number of more than 0."),
        (0.95, {"kind": float, "low": 0, "high": 0.9}, "Give a number of at least 0 and at most 0.9."),
    ],
)
def test_parameters_are_refused_with_what_is_allowed(value, rules, words):
    with pytest.raises(ValueError, match="size=") as error:
        check_parameter("size", value, **rules)
    assert words in str(error.value)


def test_the_largest_whole_number():
    check_parameter("size", 2**31 - 1, kind=int, low=1)
    with pytest.raises(ValueError, match="size=2147483648"):
        check_parameter("size", 2**31, kind=int, low=1)


def test_unknown_options_of_a_function_are_refused():
    check_options("f", {"size": 1}, lambda size: size)
    with pytest.raises(ValueError, match=r"f has no option 'sise'\. Did you mean 'size'\? Its options are: size\."):
        check_options("f", {"sise": 1}, lambda first, size: size, first=1)
    with pytest.raises(ValueError, match=r"f has no option 'sise'\. Its options are: none\."):
        check_options("f", {"sise": 1}, lambda: None)


@pytest.mark.parametrize(
    ("value", "rules"),
    [
        (None, {"choices": ("normal", None)}),
        (np.int64(3), {"kind": int, "low": 1}),
        (np.float32(0.5), {"kind": float, "low": 0, "high": 1}),
        (0, {"kind": float, "low": 0, "high": 1}),
    ],
)
def test_good_parameters_pass(value, rules):
    check_parameter("size", value, **rules)
