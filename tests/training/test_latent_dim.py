"""The rule by which the number of latent variables is chosen, on bounds that are given."""

import numpy as np
import pytest

from aevb.files import plain
from aevb.training.latent_dim import MAX_LATENT_DIM, Search, candidates, compare, grow, paired

ROWS = np.array([-1.0, -2.0, -4.0, -1.0])  # bounds of held-out rows
NOISE = np.array([1.0, -1.0, 1.0, -1.0])  # its mean has a standard error of 1 / sqrt(3)
STD_ERROR = 1 / np.sqrt(3)


@pytest.mark.parametrize(
    ("data_dim", "num_rows", "sizes"),
    [(1, 1000, [1]), (3, 1000, [1, 2]), (8, 79, [1, 2, 4]), (8, 80, [1, 2, 4, 8]), (5, 3, [1])],
)
def test_candidates_are_limited_by_columns_and_rows(data_dim, num_rows, sizes):
    assert candidates(data_dim, num_rows) == sizes


def test_candidates_have_an_upper_and_a_lower_limit():
    assert candidates(10**4, 10**6) == [1, 2, 4, 8, 16, 32, 64, 128, MAX_LATENT_DIM]
    assert candidates(4, 1000, smallest=2) == [2, 4]
    assert candidates(1, 1000, smallest=2) == [2]


@pytest.mark.parametrize(
    ("gains", "tried", "chosen"),
    [
        ({1: 0.0, 2: 5.0, 4: 9.0, 8: 9.0 + 0.9 * STD_ERROR, 16: 20.0}, [1, 2, 4, 8], 4),
        ({1: 0.0, 2: 5.0, 4: 9.0, 8: 9.0 + 1.1 * STD_ERROR, 16: 0.0}, [1, 2, 4, 8, 16], 4),
        ({1: 0.0, 2: 5.0, 4: 9.0, 8: 9.0 + 2.1 * STD_ERROR, 16: 0.0}, [1, 2, 4, 8, 16], 8),
        ({1: 0.0, 2: -3.0, 4: 9.0}, [1, 2], 1),
        ({1: 0.0, 2: 5.0, 4: 9.0}, [1, 2, 4], 4),
    ],
)
def test_it_grows_until_the_gain_is_within_its_standard_error(gains, tried, chosen):
    sizes = list(gains)
    asked = []

    def bounds_of(size):
        asked.append(size)
        bounds = (
            ROWS + gains[size] + NOISE * (-1) ** sizes.index(size) / 2
        )  # differences of neighbours are gain + NOISE
        return bounds, size

    search = grow(bounds_of, sizes)
    assert asked == tried == [row["latent_dim"] for row in search.rows]
    assert search.latent_dim == chosen


def test_variables_that_are_not_active_do_not_count():
    """Eight variables of which four are active are better by far, and not because there are eight."""
    num_active = {1: 1, 2: 2, 4: 3, 8: 4, 16: 16}
    search = grow(lambda size: (ROWS + size, num_active[size]), [1, 2, 4, 8, 16])
    assert [row["latent_dim"] for row in search.rows] == [1, 2, 4, 8]
    assert search.latent_dim == 4


def test_the_comparison_is_paired():
    """The rows differ by far more than the numbers of latent variables do; the standard error does not see that."""
    search = compare({1: 1000 * ROWS, 2: 1000 * ROWS + 1})
    assert search.latent_dim == 2
    assert [row["below_best"] for row in search.rows] == [1, 0]
    assert [row["std_error"] for row in search.rows] == [0, 0]
    assert [row["validation_lower_bound"] for row in search.rows] == [-2000, -1999]


def test_the_standard_error_is_that_of_the_mean_difference():
    np.testing.assert_allclose(paired(ROWS + 3 + NOISE, ROWS), (3, STD_ERROR))


def test_the_result_in_words():
    search = compare({1: ROWS - 3, 2: ROWS, 4: ROWS})
    assert str(search) == "latent_dim: 2 (held-out bound -2.00; with 1: -5.00; with 4: -2.00, in nats per row)"


def grow_with(bounds):
    return grow(lambda size: (bounds[size], size), list(bounds))


def test_a_saved_search_is_restored():
    search = grow_with({1: ROWS, 2: np.full(4, np.nan)})
    again = Search.restored(**plain(search._asdict()))
    assert str(again) == str(search) == "latent_dim: 1 (held-out bound -2.00; with 2: nan, in nats per row)"


def test_bounds_that_are_not_finite_are_never_better():
    bad = np.full(4, np.nan)
    assert grow_with({1: ROWS, 2: bad}).latent_dim == 1
    assert grow_with({1: bad, 2: ROWS}).latent_dim == 2
    assert grow_with({1: bad, 2: bad}).latent_dim == 1
    one_bad = np.array([-np.inf, 0, 0, 0]) + ROWS
    assert grow_with({1: one_bad, 2: ROWS + 1}).latent_dim == 2
