"""What kind of numbers data are, on the data sets that people try first."""

import numpy as np
import pytest
import sklearn.datasets
from scipy.stats import uniform

from aevb.data import dequantize, load_dataset
from aevb.data.kinds import are_grey_levels, choose_likelihood, discrete_columns, sample_rows


def chosen(X):
    sample, low, high = sample_rows(X), X.min(), X.max()
    return choose_likelihood(sample, low, high, are_grey_levels(sample, low, high))[0]


def table(name):
    return np.asarray(getattr(sklearn.datasets, f"load_{name}")().data)


def blurred_faces(num=200, side=12):
    """Smooth grey pictures with all levels, like photographs of one scene in different light."""
    rng = np.random.default_rng(0)
    across, down = np.meshgrid(np.linspace(0, 1, side), np.linspace(0, 1, side))
    slopes = rng.uniform(-0.3, 0.3, (num, 2, 1, 1))
    scene = 0.5 + slopes[:, 0] * across + slopes[:, 1] * down + 0.02 * rng.normal(size=(num, side, side))
    return np.clip(255 * scene, 0, 255).astype(np.uint8).reshape(num, -1)


@pytest.mark.parametrize("as_floats", [False, True])
def test_ink_is_bernoulli_and_photographs_are_not(as_floats):
    digits, faces = np.round(255 * load_dataset("digits").rows).astype(np.uint8), blurred_faces()
    framed = faces.copy()
    framed[:, :12] = 0
    if as_floats:
        digits, faces, framed = digits / 255, faces / 255, (framed / 255).astype(np.float32)
    assert [chosen(X) for X in (digits, faces, framed)] == ["bernoulli", "sigmoid-gaussian", "sigmoid-gaussian"]


@pytest.mark.parametrize("name", ["iris", "wine", "diabetes", "breast_cancer", "linnerud"])
def test_scaled_tables_are_gaussian_even_with_columns_of_zeros_and_ones(name):
    X = table(name)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    assert chosen(X) == "gaussian"
    one_hot = np.eye(5)[np.arange(len(X)) % 5]
    assert chosen(np.c_[X, one_hot]) == "gaussian"
    assert chosen(one_hot) == "bernoulli"


def test_small_bytes_are_counts():
    counts = np.random.default_rng(0).poisson(3, (300, 18)).astype(np.uint8)
    assert not are_grey_levels(counts, 0, counts.max())
    assert chosen(counts) == "gaussian"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("iris", []),
        ("wine", []),
        ("breast_cancer", []),
        ("linnerud", []),
        ("diabetes", [1, 7]),  # sex, and a ratio that is 2, 3, 4 or 5 in most rows
    ],
)
def test_rounded_measurements_are_not_discrete(name, expected):
    assert discrete_columns(table(name)).tolist() == expected


def test_counts_codes_and_many_zeros_are_discrete():
    rng = np.random.default_rng(0)
    counts = rng.poisson([0.1, 1, 3, 5, 20, 100], (2000, 6))
    assert discrete_columns(counts).tolist() == [0, 1, 2, 3]
    amounts = rng.exponential(size=(2000, 2)) * (rng.random((2000, 2)) < [0.3, 1.0])
    assert discrete_columns(amounts).tolist() == [0]
    assert discrete_columns(np.ones((50, 2))).size == 0  # refused, without a warning
    assert discrete_columns(counts[:10]).size == 0  # too few to decide


def test_pairs_are_counted_exactly():
    X = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], 20)[:, None]  # 950 of 4,950 pairs
    assert discrete_columns(X).tolist() == [0]
    X = np.concatenate([np.repeat(np.arange(10.0), 10), [0, 1]])[:, None]  # 470 of 5,151 pairs: 0.091
    assert discrete_columns(X).size == 0


def test_dequantized_values_stay_in_their_cells_and_a_uniform_density_scores_the_entropy():
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=500), 0.5 * rng.integers(0, 4, 500)]
    found = dequantize(X, random_state=1)
    np.testing.assert_array_equal(found[:, 0], X[:, 0])
    np.testing.assert_array_equal(np.floor(2 * found[:, 1]), 2 * X[:, 1])
    assert discrete_columns(found).size == 0
    # A uniform density on [0, 2), plus log step, is log(1/4), that of four equally likely values.
    assert uniform(0, 2).logpdf(found[:, 1]).mean() + np.log(0.5) == pytest.approx(np.log(1 / 4))
    np.testing.assert_array_equal(dequantize(X[:, [1, 1]], columns=[0])[:, 1], X[:, 1])
    np.testing.assert_array_equal(found, dequantize(X, random_state=1))


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0, 2, 5], 1),  # no two of which differ by the step
        ([-0.04, 0.05], 0.09),
        (np.arange(1000, dtype=np.float32) / 10, 0.1),  # the smallest difference of which is off by rounding
        ([0.3, 0.1 + 0.2, 0.1], 0.2),
    ],
)
def test_the_step_of_values_that_are_multiples_up_to_rounding(values, step):
    X = np.repeat(np.asarray(values, float), 20)[:, None]
    noise = dequantize(X, columns=[0]) - X
    assert 0 <= noise.min() < 0.1 * step
    assert 0.9 * step < noise.max() <= step * (1 + 1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeros_among_continuous_values_are_left_and_named(dtype):
    rng = np.random.default_rng(0)
    pandas = pytest.importorskip("pandas")
    amounts = rng.random(20_000, dtype) * (rng.random(20_000) > 0.6)
    X = pandas.DataFrame({"visits": rng.poisson(2, 20_000), "paid": amounts})
    with pytest.warns(
        UserWarning, match=r"columns 'paid' are left unchanged: .* mix repeated values with continuous ones"
    ):
        found = dequantize(X)
    np.testing.assert_array_equal(found[:, 1], amounts)
    assert discrete_columns(sample_rows(found)).tolist() == [1]  # so that `fit` still warns
