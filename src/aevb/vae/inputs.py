"""Estimators that predict y from X: how they read X, which their model is conditioned on."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aevb.data.frames import TableFormat, frame_of, is_frame
from aevb.data.reading import read_matrix, set_table_columns
from aevb.vae.base import ModelEstimator


class InputMethods(ModelEstimator):
    """Estimators whose model is conditioned on X: `model_.given` is the format of X."""

    def _learn_inputs(self, X: Any) -> tuple[TableFormat, np.ndarray]:
        """Return the format of X and its stored numbers (N, D'), and keep the number and names of its columns.

        Columns of an array are numbers; those of a frame, or of a file, may be of any kind.
        """
        frame = frame_of(X)
        if is_frame(frame):
            table = TableFormat.learn(frame)
            set_table_columns(self, table)
        else:
            frame = read_matrix(self, X, reset=True)
            table = TableFormat.learn(frame, "gaussian")
        return table, table.encode(frame)

    def _read_inputs(self, X: Any) -> np.ndarray:
        """Return new rows of X as stored numbers (n, D')."""
        check_is_fitted(self)
        table = self.model_.given
        if table.container != "numpy":
            return table.encode(frame_of(X))
        rows = table.encode(read_matrix(self, X, reset=False))
        if np.isnan(rows).any() and not table.encodes_missing:
            row = int(np.argmax(np.isnan(rows).any(axis=1)))
            raise ValueError(
                f"X: row {row} has NaN (rows counted from 0), but there were no missing values in the rows that the "
                "model was fitted to. Fill them in, or fit rows with missing values too."
            )
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
