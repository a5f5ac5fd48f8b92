import numpy as np
import pytest
from sklearn.base import BaseEstimator

from aevb.data import dequantize
from aevb.data.reading import decide, read_matrix, read_training_data
from aevb.matrices import number_type


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
    assert np.shares_memory(read_matrix(BaseEstimator(), X, reset=True), X)  # not copied where possible


@pytest.mark.parametrize("dtype", ["complex128", "U3", "datetime64[s]"])
def test_types_that_are_not_numeric(dtype):
    assert number_type(np.dtype(dtype)) is None


def test_dates_are_refused_by_the_name_of_the_argument():
    with pytest.raises(ValueError, match="X: row 1 has 1 values"):
        read_matrix(BaseEstimator(), [[1, 2], [1]], reset=True)
    with pytest.raises(ValueError, match=r"new contains datetime64\[s\], not numbers"):
        read_matrix(BaseEstimator(), np.zeros((3, 2), "datetime64[s]"), reset=True, name="new")


INK = np.array([[0, 0, 1, 0.9], [1, 0, 0, 0.1]])  # more data than noise as probabilities of 0 and 1
STEPS = np.array([0, 0.001, 0.002, 0.003])
PHOTO = np.array([[0.3, 0.5, 0.4, 0.6], [0.6, 0.5, 0.4, 0.3]])


@pytest.mark.parametrize(
    ("rows", "likelihood", "expected"),
    [
        (INK, "auto", ("bernoulli", 1.0)),
        (INK.round(), "auto", ("bernoulli", 1.0)),
        (INK * 1.01, "auto", ("gaussian", 1.0)),
        (INK - 0.01, "auto", ("gaussian", 1.0)),
        (PHOTO, "auto", ("sigmoid-gaussian", 1.0)),
        (PHOTO + STEPS, "auto", ("sigmoid-gaussian", 1.0)),  # constant columns
        ((PHOTO + STEPS)[:, [0, 3]], "auto", ("gaussian", 1.0)),
        ((255 * INK).astype(np.uint8), "auto", ("bernoulli", 1 / 255)),
        ((255 * PHOTO).astype(np.uint8), "auto", ("sigmoid-gaussian", 1 / 255)),
        ((2 * INK).astype(np.uint8), "auto", ("gaussian", 1.0)),  # counts
        ((2 * INK).astype(np.uint8), "bernoulli", ("bernoulli", 1 / 255)),
        (INK.round().astype(np.uint8), "auto", ("bernoulli", 1.0)),
        ((255 * PHOTO).astype(np.uint8), "gaussian", ("gaussian", 1 / 255)),
        ((9 * PHOTO).astype(np.uint8), "gaussian", ("gaussian", 1.0)),
        ((255 * INK).astype(np.uint8), "sigmoid-gaussian", ("sigmoid-gaussian", 1 / 255)),
        ((255 * INK).astype(int), "auto", ("gaussian", 1.0)),
        ((255 * INK).astype(np.float32), "bernoulli", ("bernoulli", 1.0)),  # and refused afterwards
    ],
)
def test_how_data_are_interpreted(rows, likelihood, expected):
    reading = decide(rows, rows.min(), rows.max(), likelihood)
    assert reading[:2] == expected
    assert bool(reading.reason) == (likelihood == "auto")


def test_with_an_own_decoder_no_likelihood_is_claimed():
    assert decide(INK, 0, 1, "auto", own_decoder=True)[:2] == ("custom", 1.0)
    grey, counts = (255 * INK).astype(np.uint8), (9 * INK).astype(np.uint8)
    assert decide(grey, 0, 255, "gaussian", own_decoder=True)[:2] == ("custom", 1 / 255)
    assert decide(counts, 0, 9, "auto", own_decoder=True)[:2] == ("custom", 1.0)
    assert decide(counts, 0, 9, "bernoulli", own_decoder=True)[:2] == ("custom", 1 / 255)


def test_matrices_are_checked():
    estimator = BaseEstimator()
    read_matrix(estimator, np.ones((3, 2)), reset=True)
    assert estimator.n_features_in_ == 2
    with pytest.raises(ValueError, match="2 features"):
        read_matrix(estimator, np.ones((3, 3)), reset=False)
    assert read_matrix(estimator, np.full((3, 2), np.nan), reset=False).shape == (
        3,
        2,
    )  # the values are checked later
    with pytest.raises(
        ValueError, match=r"dim 3.*\. Flatten images and similar arrays first: X\.reshape\(len\(X\), -1\)\.$"
    ):
        read_matrix(estimator, np.ones((3, 2, 2)), reset=True)
    with pytest.raises(ValueError, match=r"For 16-bit grey levels: X\.reshape\(len\(X\), -1\) / 65535\.$"):
        read_matrix(estimator, np.ones((3, 2, 2), np.uint16), reset=True)
    with pytest.raises(ValueError, match="Expected 2D array") as error:
        read_matrix(estimator, np.ones(3), reset=True)
    assert "Flatten" not in str(error.value)
    with pytest.raises(ValueError, match="row 0, column 1 is 'red', not a number"):
        read_matrix(estimator, np.array([[1, "red"]], dtype=object), reset=True)


def test_training_data_are_checked_for_the_chosen_likelihood():
    constant = np.c_[np.arange(4.0), np.ones(4)]
    assert read_training_data(constant[2:], "gaussian", own_decoder=True)[:2] == ("custom", 1.0)
    with pytest.raises(ValueError, match="column 1 is constant"):
        read_training_data(constant, "auto")
    with pytest.raises(ValueError, match=r"expects values in \[0, 1\]"):
        read_training_data(constant, "bernoulli")
    assert read_training_data(constant, "bernoulli", own_decoder=True)[:2] == ("custom", 1.0)
    assert read_training_data(np.ones((2, 2)), "auto")[:2] == ("bernoulli", 1.0)
    assert read_training_data(np.full((2, 2), 255, np.uint8), "auto")[:2] == ("bernoulli", 1 / 255)
    with pytest.raises(ValueError, match="n_samples = 1; training needs at least 2 rows"):
        read_training_data(constant[:1], "auto")


def test_images_may_have_constant_pixels_and_tables_may_not():
    faces = np.random.default_rng(0).integers(60, 190, (50, 6)).astype(np.uint8)
    faces[:, 0] = 0
    for likelihood in ("gaussian", "sigmoid-gaussian"):
        assert read_training_data(faces, likelihood).likelihood == likelihood
    with pytest.raises(ValueError, match="column 0 is constant"):
        read_training_data(faces.astype(float), "gaussian")  # six columns of numbers are not images
    with pytest.raises(ValueError, match="column 0 is constant"):
        read_training_data(np.full((5, 3), 200, np.uint8), "gaussian")


def test_a_density_on_columns_with_few_values_gives_a_warning_that_names_them():
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=200), rng.poisson(2, 200), rng.integers(0, 2, 200), rng.normal(size=200).round(1)]
    with pytest.warns(UserWarning, match=r"2 of 4 columns \('visits', 'sex'\) take few values.*dequantize") as caught:
        read_training_data(X, "auto", columns=["age", "visits", "sex", "height"])
    assert len(caught) == 1
    with pytest.warns(UserWarning, match=r"columns \('1', '2'\).* Leave them out, or add noise to them in Python"):
        read_training_data(X, "auto")
    with pytest.warns(UserWarning, match=r"mean little\. Add noise to them in Python.*dequantize"):  # all of them
        read_training_data(X[:, 1:3], "gaussian")
    read_training_data(X, "auto", own_decoder=True)  # whose p(x|z) may be discrete
    read_training_data(dequantize(X), "auto")
    ink = np.round(255 * rng.random((200, 6)) * rng.integers(0, 2, (200, 6))).astype(np.uint8)
    with pytest.warns(UserWarning, match="'bernoulli', which suits ink on paper, or"):
        read_training_data(ink, "sigmoid-gaussian")
