import jax
import numpy as np
import pytest

from aevb import VAE
from aevb.data.checks import column_units
from aevb.data.training_data import DataRequest, open_training_data
from aevb.data.weights import read_weights, used_rows
from aevb.matrices import _BLOCK_BYTES, row_blocks

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, 2], r"has shape \(2,\), not \(3,\)\. Give one number for each of the 3 rows, at least 0"),
        (2.0, r"has shape \(\), not \(3,\)"),
        (np.ones((3, 1)), r"has shape \(3, 1\), not \(3,\)"),
        ([1, -0.5, -1], r"row 1 has -0\.5 \(2 such weights, rows counted from 0\)\. .* at least 0"),
        ([1, 2, np.nan], "row 2 has nan"),
        ([np.inf, 2, 1], "row 0 has inf"),
        ([0, 0, 0], "all weights are zero"),
        ([1e308, 1e308, 1], "the sum of the weights is infinite"),
        (["a", "b", "c"], r"=\['a', 'b', 'c'\] is not an array of numbers"),
        ([[1], [1, 2], [3]], "is not an array of numbers"),
        ([0, 3, 0], "only one row has a weight above 0, but training needs at least 2"),
    ],
)
def test_weights_that_cannot_be_used(weights, words):
    with pytest.raises(ValueError, match=f"sample_weight.*{words}"):
        used_rows(np.zeros((3, 2)), weights)


def test_weights_are_copied():
    given = np.array([1.0, 2.0])
    read = read_weights(given, 2)
    read[:] = 0
    np.testing.assert_array_equal(given, [1, 2])


def test_rows_without_weight_are_left_out():
    X = RNG.normal(size=(4, 2))
    assert used_rows(X, None) == (X, None, None)
    rows, weights, numbers = used_rows(X, [0, 2, 0, 3])
    np.testing.assert_array_equal(rows, X[[1, 3]])
    np.testing.assert_array_equal(weights, [2, 3])
    np.testing.assert_array_equal(numbers, [1, 3])
    rows, weights, _ = used_rows(X, [True, True, False, True])
    assert weights is None
    np.testing.assert_array_equal(rows, X[[0, 1, 3]])


@pytest.mark.parametrize("weights", [[0, 2, 0, 3], [0, 1, 0, 1]])
def test_rows_in_use_are_named_by_their_numbers_in_the_data(weights):
    request = DataRequest("gaussian", False, "auto", 0, False, sample_weight=weights)
    feed = open_training_data(VAE(), RNG.normal(size=(4, 2)), request, lambda: jax.random.key(0)).feed
    np.testing.assert_array_equal(feed.names.numbers, [1, 3])
    assert feed.num_data == sum(weights)


def test_normalized_weights_are_noticed():
    with pytest.warns(
        UserWarning, match=r"sample_weight: the weights of 50 rows sum to 1, .* sum to the number of rows"
    ):
        used_rows(np.zeros((50, 2)), np.full(50, 1 / 50))


@pytest.mark.parametrize("is_shared", [False, True])
def test_the_units_are_those_of_repeated_rows(is_shared):
    X, counts = RNG.normal(1e6, 1.0, size=(30, 3)), RNG.integers(1, 5, size=30)
    found = column_units(X, counts.astype(float), is_shared=is_shared)
    np.testing.assert_allclose(found, column_units(np.repeat(X, counts, axis=0), is_shared=is_shared), rtol=1e-9)


def test_the_units_of_several_blocks_of_rows():
    X = RNG.integers(256, size=(9, _BLOCK_BYTES // 32), dtype=np.uint8)
    assert len(list(row_blocks(X))) == 3
    weights = RNG.exponential(size=9)
    mean = np.average(X, axis=0, weights=weights)
    variance = np.average((X - mean) ** 2, axis=0, weights=weights)
    np.testing.assert_allclose(column_units(X, weights), (mean, np.sqrt(variance)))
