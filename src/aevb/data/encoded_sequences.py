"""Sequences as numbers, whole or cut into windows."""

from typing import NamedTuple

import numpy as np


class Encoded(NamedTuple):
    """Sequences as numbers, before they are padded.

    Args:
        lengths: (n,).
        values: Stored numbers of each sequence, (T_i, D), NaN where missing.
        elapsed: Time before each step in units of the format, (T_i,); 1 for the first.
        controls: Stored numbers of the controls, (T_i, U) each; None if there are none.
        covariates: Stored numbers of the covariates, (n, C); None if there are none.
        before: Stored numbers of the step before the first one of each window, (D,) each; None for whole sequences.
        following: (n,), the number of the window that follows each, n if none does; None for whole sequences.
        padded_to: The length to which all are padded, so that one program is compiled; None to pad each to one of a few
            lengths, by its own length, so that its noise does not depend on the others.
    """

    lengths: np.ndarray
    values: list[np.ndarray]
    elapsed: list[np.ndarray]
    controls: list[np.ndarray] | None = None
    covariates: np.ndarray | None = None
    before: list[np.ndarray] | None = None
    following: np.ndarray | None = None
    padded_to: int | None = None

    def windows(self, size: int) -> "Encoded":
        """Return the sequences cut into windows of at most this many steps, those of a sequence in their order."""
        owners = np.repeat(np.arange(len(self.lengths)), -(-self.lengths // size))
        firsts = np.concatenate([np.arange(0, length, size) for length in self.lengths])

        def cut(parts):
            return [parts[i][first : first + size] for i, first in zip(owners, firsts, strict=True)]

        values = cut(self.values)
        before = [
            self.values[i][first - 1] if first else np.full(self.values[i].shape[1], np.nan)
            for i, first in zip(owners, firsts, strict=True)
        ]
        n = len(owners)
        following = np.where(np.append(np.diff(owners) == 0, False), np.arange(1, n + 1), n)
        return Encoded(
            np.array([len(rows) for rows in values]),
            values,
            cut(self.elapsed),
            None if self.controls is None else cut(self.controls),
            None if self.covariates is None else self.covariates[owners],
            before,
            following,
        )

    def some(self, numbers: np.ndarray) -> "Encoded":
        """Return the sequences with these numbers."""
        values, elapsed = ([part[i] for i in numbers] for part in (self.values, self.elapsed))
        controls = None if self.controls is None else [self.controls[i] for i in numbers]
        covariates = None if self.covariates is None else self.covariates[numbers]
        some = Encoded(self.lengths[numbers], values, elapsed, controls, covariates)
        return some._replace(padded_to=self.padded_to)

    def first(self, lengths: np.ndarray) -> "Encoded":
        """Return the first steps of each sequence, as many as `lengths` (n,) says."""

        def cut(parts):
            return [part[:length] for part, length in zip(parts, lengths, strict=True)]

        controls = None if self.controls is None else cut(self.controls)
        cut_parts = {"values": cut(self.values), "elapsed": cut(self.elapsed), "controls": controls}
        return self._replace(lengths=np.asarray(lengths), **cut_parts)
