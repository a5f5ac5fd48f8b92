"""How labels that may be unknown are learned together with a model of the data."""

from collections.abc import Callable
from typing import Any, NamedTuple

from aevb.estimators import UNWEIGHTED, LabelWeights, beside_label, marginal_label


class Labels(NamedTuple):
    """How labels that may be unknown are learned; see :func:`aevb.estimators.marginal_label`."""

    shares: tuple[float, ...]  # p(y)
    are_modeled: bool = True  # otherwise a classifier of codes is learned next to a model without labels
    weights: LabelWeights = UNWEIGHTED

    def learned_by(self, estimator: Callable[..., Any]) -> Callable:
        """Return the estimator of rows with and without labels, from one of rows given their labels, or of rows."""
        return (marginal_label if self.are_modeled else beside_label)(estimator, self.weights)
