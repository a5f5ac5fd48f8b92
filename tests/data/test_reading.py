import numpy as np
import pytest
from sklearn.base import BaseEstimator

from aevb.data.reading import decide, number_type, read_matrix, read_training_data


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("bool", "bool"),
        ("uint8", "uint8"),
        ("float32", "float32"),
        ("float64", "float64"),
        ("float16", "float32"),
        ("int8", "float32"),
        ("int16", "float32"),
        ("uint16", "float32"),
        ("int32", "float64"),
        ("uint64", "float64"),
    ],
)
def test_types_that_are_kept(given, kept):
    assert number_type(np.dtype(given)) == np.dtype(kept)
    matrix = read_matrix(BaseEstimator(), np.ones((3, 2), given), reset=True)
    assert matrix.dtype == np.dtype(kept)
    X = np.ones((3, 2), kept)
    assert np.shares_memory(read_matrix(BaseEstimator(), X, reset=True), X)  # what can be kept is not copied


@pytest.mark.parametrize("dtype", ["complex128", "U3", "datetime64[s]"])
def test_types_that_are_no_numbers(dtype):
    assert number_type(np.dtype(dtype)) is None


def test_dates_are_refused_by_the_name_of_the_argument():
    with pytest.raises(ValueError, match="X: row 1 has 1 values"):
        read_matrix(BaseEstimator(), [[1, 2], [1]], reset=True)
    with pytest.raises(ValueError, match=r"new holds datetime64\[s\], which are no numbers"):
        read_matrix(BaseEstimator(), np.zeros((3, 2), "datetime64[s]"), reset=True, name="new")


@pytest.mark.parametrize(
    ("dtype", "low", "high", "likelihood", "expected"),
    [
        ("float64", 0, 1, "auto", ("bernoulli", 1.0)),
        ("float64", 0, 1.01, "auto", ("gaussian", 1.0)),
        ("float64", -0.01, 1, "auto", ("gaussian", 1.0)),
        ("uint8", 0, 255, "auto", ("bernoulli", 1 / 255)),
        ("uint8", 0, 2, "auto", ("bernoulli", 1 / 255)),
        ("uint8", 0, 1, "auto", ("bernoulli", 1.0)),
        ("uint8", 0, 255, "gaussian", ("gaussian", 1.0)),
        ("uint8", 0, 255, "sigmoid-gaussian", ("sigmoid-gaussian", 1 / 255)),
        ("int64", 0, 255, "auto", ("gaussian", 1.0)),
        ("float32", 0, 255, "bernoulli", ("bernoulli", 1.0)),  # and refused afterwards
    ],
)
def test_how_data_are_read(dtype, low, high, likelihood, expected):
    assert decide(np.dtype(dtype), low, high, likelihood) == expected


def test_matrices_are_checked():
    estimator = BaseEstimator()
    read_matrix(estimator, np.ones((3, 2)), reset=True)
    assert estimator.n_features_in_ == 2
    with pytest.raises(ValueError, match="2 features"):
        read_matrix(estimator, np.ones((3, 3)), reset=False)
    assert read_matrix(estimator, np.full((3, 2), np.nan), reset=False).shape == (
        3,
        2,
    )  # the values are looked at later
    with pytest.raises(ValueError, match=r"dim 3.*\. Flatten images and the like first: X\.reshape\(len\(X\), -1\)\.$"):
        read_matrix(estimator, np.ones((3, 2, 2)), reset=True)
    with pytest.raises(ValueError, match="Expected 2D array") as error:
        read_matrix(estimator, np.ones(3), reset=True)
    assert "Flatten" not in str(error.value)
    with pytest.raises(ValueError, match="row 0, column 1 is 'red', not a number"):
        read_matrix(estimator, np.array([[1, "red"]], dtype=object), reset=True)


def test_training_data_are_checked_for_the_likelihood_that_was_decided_on():
    constant = np.c_[np.arange(4.0), np.ones(4)]
    assert read_training_data(constant[2:], "gaussian", any_support=True) == ("gaussian", 1.0)
    with pytest.raises(ValueError, match="column 1 is constant"):
        read_training_data(constant, "auto", any_support=False)
    with pytest.raises(ValueError, match=r"takes values in \[0, 1\]"):
        read_training_data(constant, "bernoulli", any_support=False)
    assert read_training_data(constant, "bernoulli", any_support=True) == ("bernoulli", 1.0)
    assert read_training_data(np.ones((2, 2)), "auto", any_support=False) == ("bernoulli", 1.0)
    assert read_training_data(np.full((2, 2), 255, np.uint8), "auto", any_support=False) == ("bernoulli", 1 / 255)
    with pytest.raises(ValueError, match="n_samples = 1; learning needs at least 2 rows"):
        read_training_data(constant[:1], "auto", any_support=False)
