import numpy as np
import pytest

from aevb import matrices
from aevb.matrices import check_number_type, check_row_lengths, explained


def test_text_cells_are_checked_row_by_row(monkeypatch):
    calls, is_number = [], matrices._is_number
    monkeypatch.setattr(matrices, "_is_number", lambda value: calls.append(1) or is_number(value))
    cells = np.full((1000, 16), "1.0")
    with pytest.raises(ValueError, match=r"row 0, column 0 is text, '1.0'"):
        check_number_type(cells)
    cells[-1, -1] = "red"
    with pytest.raises(TypeError, match="row 999, column 15 is 'red', not a number"):
        check_number_type(cells)
    assert len(calls) <= 2 * len(cells) + 16


def test_an_integer_too_large_for_a_float_is_named():
    huge = [[1, 2], [10**400, 3]]
    with pytest.raises(TypeError, match=r"row 1, column 0 is 1000.*not a number"), explained(huge):
        np.asarray(huge, float)


def test_number_type_names_the_first_word():
    with pytest.raises(ValueError, match=r"row 1, column 0 is 'red', not a number .*OneHotEncoder"):
        check_number_type(np.array([["1", "2.5"], ["red", "blue"]], dtype=object))
    check_number_type(np.array([[1, 2.5]], dtype=object))
    with pytest.raises(ValueError, match=r"^X: "):
        check_number_type(np.array([["a"]], dtype=object))


def test_a_row_of_a_different_length_is_named():
    with pytest.raises(ValueError, match="X: row 1 has 3 values, but row 0 has 2"):
        check_row_lengths([[1, 2], [1, 2, 3], [1, 2]])
    with pytest.raises(ValueError, match="new: row 2 has 1 values, but row 0 has 2"):
        check_row_lengths([[1, 2], [1, 2], [1]], "new")


def test_scikit_learns_message_is_kept_if_there_is_no_advice():
    with pytest.raises(ValueError, match=r"^X: strange$"), explained(np.ones((2, 2))):
        raise ValueError("strange")
