import jax
import numpy as np
import pytest
from scipy import sparse

from aevb.models import SparseRows
from aevb.training import Source

DENSE = np.random.default_rng(0).poisson(0.3, (20, 7))
DENSE[[3, 19]] = 0  # documents without words, one of them the last


@pytest.mark.parametrize("index", [4, 3, [0, 3, 19, 19], [[1, 2], [18, 0]]])
def test_rows_are_those_of_the_matrix(index):
    rows = Source(SparseRows.of(sparse.csr_array(DENSE)))

    np.testing.assert_array_equal(jax.jit(Source.read)(rows, np.array(index)), DENSE[np.array(index)])
    if np.ndim(index) == 1:
        np.testing.assert_array_equal(rows.take(np.array(index)), DENSE[index])


def test_an_empty_matrix_has_rows_of_zeros():
    rows = SparseRows.of(sparse.csr_array((3, 4)))

    np.testing.assert_array_equal(rows.on_host(np.array([0, 2])), np.zeros((2, 4)))
    np.testing.assert_array_equal(Source(rows).read(np.array([0, 2])), np.zeros((2, 4)))


def test_entries_in_any_order_are_added():
    parts = np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])

    np.testing.assert_array_equal(SparseRows.of(sparse.csr_array(parts, shape=(1, 3)))[np.array([0])], [[2, 0, 5]])
