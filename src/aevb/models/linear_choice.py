"""The linear model that a deep one starts from, chosen by cross-validation."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from aevb.models.cross_validation import NUM_FOLDS, best_candidate, fitting_small_models, is_clearly_better
from aevb.models.linear_mixture import linear_mixture
from aevb.models.linear_model import LinearModel, Weighted, factor_analysis, padded, pca
from aevb.models.priors import MIXTURE, STANDARD

MAX_ROWS = 2000  # for fitting the linear model
MAX_FACTOR_ANALYSIS = 100  # columns; with more, its iterations take too long, and PCA is used
PRIOR_ROWS = 0, 1  # candidates for the number of rows with independent columns that factor analysis adds to the data
NUM_COMPONENTS = 2, 3, 5  # candidates for the size of a mixture
ROWS_PER_COMPONENT = 10  # at least
MAX_MIXTURE = 5000  # rows; with more, the prior stays N(0, I) unless it is given


class Candidate(NamedTuple):
    """A kind of linear model: PCA or factor analysis if there is one component, otherwise a mixture."""

    num_factors: int
    num_components: int = 1
    prior_rows: float | None = None  # None: PCA

    def fit(self, data: Weighted, *, quickly: bool = False) -> LinearModel:
        """Return the model of this kind that fits the rows best; `quickly`: precise enough to compare folds."""
        if self.prior_rows is None:
            return pca(data, self.num_factors)
        if self.num_components == 1:
            return factor_analysis(data, self.num_factors, self.prior_rows, 200 if quickly else 2000)
        effort = {"max_iter": 100, "num_starts": 1} if quickly else {}
        return linear_mixture(data, self.num_factors, self.num_components, self.prior_rows, **effort)


def fit_linear(
    rows: np.ndarray,
    latent_dim: int,
    weights: np.ndarray | None = None,
    priors: Sequence[str] = (STANDARD,),
    sizes: Sequence[int] = NUM_COMPONENTS,
) -> LinearModel:
    """Return the linear model that cross-validation on the rows prefers.

    The candidates are PCA and factor analysis, without and with a weak prior, with J factors or half as many, and
    mixtures. A mixture has to be better than the best of the others by one standard error.

    Args:
        rows: (n, D), standardized.
        latent_dim: J; unused columns of the weight are zero.
        weights: (n,), above 0, which multiply the terms of the log-likelihood; None if they are equal.
        priors: What p(z) may be: ``"standard"`` for N(0, I), ``"mixture"`` for a mixture of Gaussians, or either.
        sizes: Numbers of components of a mixture to choose from.
    """
    data = Weighted(np.asarray(rows, np.float64), weights)
    if len(rows) > MAX_ROWS:
        data = data.take(np.random.default_rng(0).choice(len(rows), MAX_ROWS, replace=False))
    numbers = np.arange(len(data.rows))
    standard, mixtures = candidates(len(rows), data.rows.shape[1], latent_dim, priors, sizes)
    with fitting_small_models():
        found = [best_candidate(group, numbers, partial(_score, data)) for group in (standard, mixtures) if group]
        best = found[-1]
        if len(found) == 2 and not is_clearly_better(best, found[0], numbers, partial(_scores, data)):
            best = found[0]
        return padded(best.fit(data), latent_dim)


def candidates(
    num_rows: int, data_dim: int, latent_dim: int, priors: Sequence[str], sizes: Sequence[int] = NUM_COMPONENTS
) -> tuple[list[Candidate], list[Candidate]]:
    """Return the kinds of linear models that are compared: those with p(z) = N(0, I), and mixtures."""
    most = min(latent_dim, data_dim - 1, num_rows - num_rows // NUM_FOLDS - 1)
    is_narrow = data_dim <= MAX_FACTOR_ANALYSIS
    prior_rows = (None, *PRIOR_ROWS) if is_narrow else (None,)
    standard = [Candidate(count, 1, number) for number in prior_rows for count in sorted({most, max(most // 2, 1)})]
    J = min(latent_dim, data_dim)
    sizes = [size for size in sizes if size * ROWS_PER_COMPONENT <= num_rows]
    mixtures = [Candidate(J, size, number) for size in sizes for number in (2.0, J + 2.0)]
    if STANDARD in priors:
        return standard, mixtures if MIXTURE in priors and is_narrow and num_rows < MAX_MIXTURE else []
    return ([], mixtures) if mixtures else (standard, [])


def _scores(data, candidate, train, test):
    return candidate.fit(data.take(train), quickly=True).log_prob(data.rows[test])


def _score(data, candidate, train, test):
    weights = None if data.weights is None else data.weights[test]
    return float(np.average(_scores(data, candidate, train, test), weights=weights))
