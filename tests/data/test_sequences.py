"""Sequences in all their forms, and what is refused."""

import numpy as np
import pytest

from aevb.data.encoded_sequences import Encoded
from aevb.data.sequence_format import SequenceFormat
from aevb.data.sequences import read_sequences

RNG = np.random.default_rng(0)
PARTS = [RNG.normal(size=(length, 2)) for length in (3, 5, 1)]
ROWS, LENGTHS = np.concatenate(PARTS), [3, 5, 1]


@pytest.mark.thorough
def test_all_forms_mean_the_same():
    pd = pytest.importorskip("pandas")
    labels = np.repeat(["c", "a", "b"], LENGTHS)
    times = np.concatenate([np.arange(length) for length in LENGTHS])
    mixed = np.argsort(times, kind="stable")  # the sequences interleaved
    index = pd.MultiIndex.from_arrays([labels[mixed], times[mixed]])
    frame = pd.DataFrame(ROWS[mixed], index=index, columns=["x0", "x1"])

    found = {
        "list": read_sequences(PARTS),
        "rows": read_sequences(ROWS, lengths=LENGTHS),
        "frame": read_sequences(frame),
        "frame with lengths": read_sequences(pd.DataFrame(ROWS, columns=["x0", "x1"]), LENGTHS),
    }

    for form, sequences in found.items():
        assert sequences.lengths.tolist() == LENGTHS, form
        np.testing.assert_array_equal(np.asarray(sequences.rows), ROWS)
    assert found["frame"].names.tolist() == ["c", "a", "b"]
    np.testing.assert_array_equal(found["frame"].restored(PARTS), ROWS[mixed])
    np.testing.assert_array_equal(found["rows"].restored(PARTS), ROWS)
    stack = RNG.normal(size=(2, 4, 3))
    assert read_sequences(stack).restored([stack[0], stack[1]]).shape == (2, 4, 3)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("X", "options", "words"),
    [
        ([], {}, "sequences is an empty list"),
        ([np.zeros((0, 2)), np.zeros((3, 2))], {}, "sequence 0 has 0 steps"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], {}, "sequence 1 has 1 columns, but sequence 0 has 2"),
        (ROWS, {"lengths": [3, 5]}, "lengths: they add up to 8, but sequences has 9 rows"),
        (ROWS, {"lengths": [3.5, 5.5]}, "lengths=.* expected the number of steps"),
        (ROWS, {"lengths": [9, 0]}, "sequence 1 has 0 steps"),
        (PARTS, {"lengths": LENGTHS}, "lengths: sequences is a list"),
        (PARTS, {"times": [[0, 1, 1], [0, 1, 2, 3, 4], [0]]}, "step 2 of sequence 0 has the same time as"),
        (PARTS, {"times": [[0, 1, 2], [0, 1, 5, 3, 4], [0]]}, "step 3 of sequence 1 has an earlier time than"),
        (PARTS, {"times": np.arange(4)}, "times: got 4, but sequences has 9 steps"),
        (PARTS, {"times": [[0, 1], [0], [0]]}, "times: those of sequence 0"),
        (PARTS, {"times": [[0, 1, np.nan], np.arange(5), [0]]}, "times: the time in row 2 is nan"),
        (np.zeros((2, 3, 1)), {"lengths": [3, 4]}, "lengths: sequence 1 has 4 steps .* room for 3"),
        (PARTS, {"times": [list("abc"), list("abcde"), ["a"]]}, "times: .* neither numbers nor dates, .* Give numbers"),
        ("x.csv", {}, "are not sequences. Give a list of arrays"),
        (np.array([["a"]]), {}, "contains <U1, not numbers"),
        ([["a", "b"]], {}, "sequence 0 is not an array of numbers"),
        (np.zeros((2, 3, 4, 5)), {}, "has shape"),
    ],
)
def test_bad_sequences_are_refused(X, options, words):
    with pytest.raises(ValueError, match=words):
        read_sequences(X, **options)


@pytest.mark.thorough
def test_times_are_counted_in_their_median_gap():
    times = [
        np.array(["2024-01-01", "2024-01-02", "2024-01-04"], "M8[D]"),
        np.arange(5).astype("M8[D]"),
        ["2024-01-01"],
    ]
    found = read_sequences(PARTS, times=[*times[:2], np.array(times[2], "M8[D]")])
    format = SequenceFormat.learn(found)

    encoded = format.encode(found)

    assert format.time_unit == 86400
    assert [gaps.tolist() for gaps in encoded.elapsed] == [[1, 1, 2], [1, 1, 1, 1, 1], [1]]
    with pytest.raises(ValueError, match="times: the model was fitted to steps with times"):
        format.encode(read_sequences(PARTS))


@pytest.mark.thorough
def test_notes_that_are_never_played_are_columns_too():
    notes = [np.array([[0, 0, 1], [0, 1, 1]]), np.array([[0, 1, 1]])]
    format = SequenceFormat.learn(read_sequences(notes), "bernoulli")

    assert [column.kind for column in format.columns] == ["binary"] * 3
    played = [np.array([[1.0, 0, 0]])]
    np.testing.assert_array_equal(format.encode(read_sequences(played)).values[0], played[0])
    np.testing.assert_array_equal(format.in_units(np.array([[1.0, np.nan, 0]])), [[1, np.nan, 0]])


def test_windows_know_the_step_before_them_and_the_window_after_them():
    values = [np.arange(7.0)[:, None], np.arange(3.0)[:, None]]
    encoded = Encoded(np.array([7, 3]), values, [np.ones(7), np.full(3, 2.0)], covariates=np.array([[1.0], [2.0]]))

    found = encoded.windows(3)

    assert found.lengths.tolist() == [3, 3, 1, 3]
    assert found.following.tolist() == [1, 2, 4, 4]
    np.testing.assert_array_equal(np.ravel(found.before), [np.nan, 2, 5, np.nan])
    assert found.covariates.ravel().tolist() == [1, 1, 1, 2]
    assert [rows.ravel().tolist() for rows in found.values] == [[0, 1, 2], [3, 4, 5], [6], [0, 1, 2]]
