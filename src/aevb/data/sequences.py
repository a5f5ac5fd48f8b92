"""What users give as sequences: read as the rows of all steps, sequence after sequence, and their lengths."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from aevb.data.frames import is_frame
from aevb.data.frames.parts import take_rows
from aevb.errors import WrongTypeError, shown

FORMS = (
    "a list of arrays (T_i, D), an array (n, time, D), an array (steps, D) with lengths=[...], or a data frame with "
    "lengths=[...] or an index of two levels, (sequence, time)"
)


class Sequences(NamedTuple):
    """Sequences as the rows of all their steps.

    Args:
        rows: An array (steps, D), or a data frame.
        lengths: (n,), the number of steps of each sequence.
        times: (steps,), when each step was, increasing within a sequence; None if steps are regular.
        form: How they were given: "list", "stack" (n, time, D) or "rows".
        order: (steps,), where each row was in what was given; None if nothing was moved.
        names: (n,), what the sequences are called; None for their numbers.
    """

    rows: Any
    lengths: np.ndarray
    times: np.ndarray | None = None
    form: str = "list"
    order: np.ndarray | None = None
    names: np.ndarray | None = None

    @property
    def ends(self) -> np.ndarray:
        """(n - 1,), where the rows of the second, third, ... sequence begin."""
        return np.cumsum(self.lengths)[:-1]

    @property
    def arguments(self) -> dict[str, Any]:
        """These sequences as the arguments of `SequenceVAE`'s methods."""
        times = {} if self.times is None else {"times": self.times}
        return {"sequences": self.rows, "lengths": self.lengths, **times}

    def some(self, numbers: np.ndarray) -> "Sequences":
        """Return the sequences with these numbers, as rows."""
        steps = np.split(np.arange(self.lengths.sum()), self.ends)
        rows = np.concatenate([steps[number] for number in numbers])
        taken = self.rows[rows] if isinstance(self.rows, np.ndarray) else take_rows(self.rows, rows)
        times, names = self.times, self.names
        return Sequences(
            taken,
            self.lengths[numbers],
            None if times is None else times[rows],
            "rows",
            names=None if names is None else names[numbers],
        )

    def restored(self, parts: Sequence[np.ndarray]) -> Any:
        """Return arrays (T_i, ...), one for each sequence, in the form in which the sequences were given."""
        if self.form == "list":
            return list(parts)
        if self.form == "stack":
            return np.stack(parts)
        joined = np.concatenate(list(parts))
        if self.order is None:
            return joined
        back = np.empty_like(joined)
        back[self.order] = joined
        return back


def read_sequences(X: Any, lengths: Any = None, times: Any = None, name: str = "sequences") -> Sequences:
    """Read sequences in any of their forms.

    Args:
        X: A list of arrays (T_i, D) or (T_i,); an array (n, time, D); an array (steps, D) or a data frame, with the
            rows of all sequences; or a data frame of pandas with an index of two levels, (sequence, time).
        lengths: (n,), the number of steps of each sequence, for rows; None for one sequence.
        times: When each step was: a list of arrays (T_i,), an array (n, time), or an array (steps,); numbers or dates.
            None: regular steps, or the times in the index.
        name: Of the argument, for messages.

    Raises:
        ValueError: The lengths do not add up, a sequence is empty, times do not increase, and so on.

    Example:
        >>> read_sequences([np.zeros((3, 2)), np.ones((5, 2))]).lengths.tolist()
        [3, 5]
        >>> read_sequences(np.zeros((8, 2)), lengths=[3, 5]).rows.shape
        (8, 2)
    """
    if is_frame(X):
        found = _from_frame(X, lengths, name)
    elif isinstance(X, np.ndarray) and X.dtype != object:
        found = _from_array(X, lengths, name)
    elif isinstance(X, list | tuple | np.ndarray):
        found = _from_list(list(X), lengths, name)
    else:
        raise WrongTypeError(f"{name}={shown(X)} are not sequences. Give {FORMS}.")
    if times is not None:
        found = found._replace(times=_read_times(times, found, name))
    check_times(found, name if times is None else "times")
    return found


def read_arguments(given: Any, name: str) -> tuple[Sequences, dict[str, Any]]:
    """Read sequences that are one argument: in a form that needs no lengths, or a dictionary of the arguments of `fit`.

    Returns:
        The sequences, and their controls and covariates.

    Example:
        >>> found, conditions = read_arguments({"sequences": np.zeros((8, 2)), "lengths": [3, 5]}, "validation_data")
        >>> found.lengths.tolist(), conditions
        ([3, 5], {'controls': None, 'covariates': None})
    """
    options = dict(given) if isinstance(given, Mapping) else {"sequences": given}
    conditions = {key: options.pop(key, None) for key in ("controls", "covariates")}
    if not {"sequences"} <= set(options) <= {"sequences", "lengths", "times"}:
        known = "sequences, lengths, times, controls and covariates"
        raise ValueError(f"{name}: a dictionary of the arguments of fit has {known}, but this one has {sorted(given)}.")
    return read_sequences(options["sequences"], options.get("lengths"), options.get("times"), name), conditions


def _from_list(parts, lengths, name):
    if lengths is not None:
        raise ValueError(f"lengths: {name} is a list, whose arrays have their own lengths. Leave it out.")
    if not parts:
        raise ValueError(f"{name} is an empty list. Give at least one sequence.")
    if all(map(is_frame, parts)):
        raise WrongTypeError(f"{name} is a list of data frames. Join them, and give lengths=[...].")
    arrays = []
    for number, part in enumerate(parts):
        try:
            array = np.asarray(part)
            array = array if array.dtype.kind in "fiub" else array.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name}: sequence {number} is not an array of numbers (counted from 0). Give numbers, or a data frame "
                "for columns of text."
            ) from None
        arrays.append(array[:, None] if array.ndim == 1 else array)
        if arrays[-1].ndim != 2:
            raise ValueError(f"{name}: sequence {number} has shape {array.shape}; expected (steps, columns).")
        if arrays[-1].shape[1] != arrays[0].shape[1]:
            raise ValueError(
                f"{name}: sequence {number} has {arrays[-1].shape[1]} columns, but sequence 0 has "
                f"{arrays[0].shape[1]} (counted from 0). All need the same ones; use NaN for what is missing."
            )
    return Sequences(np.concatenate(arrays), _checked_lengths([len(a) for a in arrays], None, name))


def _from_array(X, lengths, name):
    if X.dtype.kind not in "fiub":
        raise WrongTypeError(f"{name} contains {X.dtype}, not numbers. Give numbers, or a data frame.")
    if X.ndim == 3:
        if lengths is not None and np.shape(lengths) == (len(X),):
            if len(X) and np.max(lengths) > X.shape[1]:
                number = int(np.argmax(lengths))
                raise ValueError(
                    f"lengths: sequence {number} has {np.max(lengths)} steps (counted from 0), but {name} has shape "
                    f"{X.shape}, with room for {X.shape[1]}."
                )
            return _from_list([row[:length] for row, length in zip(X, lengths, strict=True)], None, name)
        if lengths is not None:
            raise ValueError(
                f"lengths: got shape {np.shape(lengths)}; {name} has {len(X)} sequences, give one for each."
            )
        n, T, D = X.shape
        return Sequences(X.reshape(n * T, D), _checked_lengths([T] * n, None, name), form="stack")
    if X.ndim not in (1, 2):
        raise ValueError(f"{name} has shape {X.shape}. Give {FORMS}.")
    X = X[:, None] if X.ndim == 1 else X
    return Sequences(X, _checked_lengths([len(X)] if lengths is None else lengths, len(X), name), form="rows")


def _from_frame(frame, lengths, name):
    index = getattr(frame, "index", None)
    num_rows = len(frame) if hasattr(frame, "__len__") else frame.num_rows
    if lengths is None and getattr(index, "nlevels", 1) == 2:
        assert index is not None
        return by_sequence(frame, index.get_level_values(0), index.get_level_values(1), name)
    if lengths is None and getattr(index, "nlevels", 1) > 2:
        levels = getattr(index, "nlevels", 1)
        raise ValueError(
            f"{name}: the frame's index has {levels} levels; expected two, (sequence, time). Join the levels that say "
            "which sequence a row belongs to."
        )
    lengths = _checked_lengths([num_rows] if lengths is None else lengths, num_rows, name)
    return Sequences(frame, lengths, form="rows")


def by_sequence(frame: Any, labels: Any, times: Any, name: str = "sequences") -> Sequences:
    """Return the sequences of a frame, in which a label says to which of them a row belongs.

    Args:
        frame: The frame, without these two columns.
        labels: (steps,), the label of the sequence; None for one sequence.
        times: (steps,), when each step was; None if steps are regular.
        name: Of the argument, for messages.
    """
    num_rows = len(frame) if hasattr(frame, "__len__") else frame.num_rows
    labels = np.zeros(num_rows, int) if labels is None else np.asarray(labels)
    _, first, code = np.unique(labels.astype(str), return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))  # sequences in the order in which they first occur
    order = np.argsort(rank[code], kind="stable")
    lengths = np.bincount(rank[code])
    is_moved = not np.array_equal(order, np.arange(num_rows))
    rows = take_rows(frame, order) if is_moved else frame
    moved = None if times is None else _numbers(times, name)[order]
    names = labels[np.sort(first)]
    return Sequences(rows, lengths, moved, "rows", order if is_moved else None, names)


def _checked_lengths(lengths, num_rows, name):
    found = np.asarray(lengths)
    if found.ndim != 1 or not found.size or found.dtype.kind not in "iuf" or (found % 1 != 0).any():
        raise ValueError(f"lengths={shown(lengths)}: expected the number of steps of each sequence, such as [3, 5].")
    found = found.astype(int)
    if (found < 1).any():
        number = int(np.argmax(found < 1))
        raise ValueError(
            f"{name}: sequence {number} has {found[number]} steps (counted from 0), and each needs at least one. Leave "
            "it out."
        )
    if num_rows is not None and found.sum() != num_rows:
        raise ValueError(
            f"lengths: they add up to {found.sum():,}, but {name} has {num_rows:,} rows. Give the number of rows of "
            "each sequence, in their order."
        )
    return found


def _read_times(times, found, name):
    if isinstance(times, list | tuple) and len(times) and np.ndim(times[0]):
        for number, (some, length) in enumerate(zip(times, found.lengths, strict=False)):
            if np.shape(some) != (length,):
                raise ValueError(
                    f"times: those of sequence {number} have shape {np.shape(some)}; expected ({length},)."
                )
        times = np.concatenate([np.asarray(some) for some in times])
    read = _numbers(np.asarray(times).ravel(), "times")
    if len(read) != found.lengths.sum():
        raise ValueError(f"times: got {len(read):,}, but {name} has {found.lengths.sum():,} steps. Give one for each.")
    return read if found.order is None else read[found.order]


def _numbers(times, name):
    """Return times as float64; dates in seconds."""
    times = np.asarray(times)
    if times.dtype.kind in "Mm":
        if np.isnat(times).any():
            raise ValueError(f"{name}: a time is missing. Give a time for each step, or leave the step out.")
        first = times.min() if len(times) else times
        return (times - first) / np.timedelta64(1, "s")
    try:
        return times.astype(np.float64)
    except (TypeError, ValueError):
        raise WrongTypeError(
            f"{name}: the times are neither numbers nor dates, such as {shown(times[0])}. Give numbers, or dates as "
            "NumPy's datetime64."
        ) from None


def check_times(found: Sequences, name: str = "sequences") -> None:
    """Refuse times that are not numbers, or do not increase within a sequence."""
    if found.times is None:
        return
    if not np.isfinite(found.times).all():
        row = int(np.argmin(np.isfinite(found.times)))
        raise ValueError(
            f"{name}: the time in row {row} is {found.times[row]} (counted from 0). Give a time for each step, or "
            "leave the step out."
        )
    for number, times in enumerate(np.split(found.times, found.ends)):
        gaps = np.diff(times)
        if (gaps <= 0).any():
            step = int(np.argmax(gaps <= 0)) + 1
            what = "the same time as" if gaps[step - 1] == 0 else "an earlier time than"
            called = number if found.names is None else shown(found.names[number])
            raise ValueError(
                f"{name}: step {step} of sequence {called} has {what} the step before it (counted from 0). If another "
                "sequence begins there, say which rows belong to which (lengths=, an index of sequence and time, or "
                "--sequence COLUMN); otherwise sort the steps by time, and keep one step per time."
            )
