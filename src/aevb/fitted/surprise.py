"""Which columns made a row of a table an anomaly: surprise beyond what is typical of a column."""

import numpy as np

from aevb.fitted.coding import sample
from aevb.fitted.model import FittedModel
from aevb.fitted.tables import contributions

NUM_TYPICAL = 256  # rows drawn from the model, whose surprise is typical


def surprises(model: FittedModel, X: np.ndarray, *, progress: bool = False) -> np.ndarray:
    r"""Return how much more surprising each entry is than entries of its column usually are, in nats: (n, D).

    .. math:: -\log p(x_d | x_{-d}) - \mathrm{median}_{x' \sim p} \left(-\log p(x'_d | x'_{-d})\right)

    The difference does not depend on the unit of a column, unlike a density, so that columns can be compared. It is 0
    where an entry is missing.

    Args:
        model: A model of a table.
        X: Stored rows (n, D), NaN where entries are missing.
        progress: Whether to show a progress bar.
    """
    drawn = sample(model, NUM_TYPICAL).astype(np.float64)
    typical = np.median(contributions(model, drawn), axis=0)
    return np.where(np.isnan(X), 0.0, contributions(model, X, progress=progress) - typical)


def most_surprising(found: np.ndarray, most: int = 3) -> np.ndarray:
    """Return the places of the most surprising entries of each row, the most surprising first: (n, most).

    Example:
        >>> most_surprising(np.array([[0.1, 5.0, 2.0]]), most=2).tolist()
        [[1, 2]]
    """
    return np.argsort(-found, axis=1, kind="stable")[:, :most]
