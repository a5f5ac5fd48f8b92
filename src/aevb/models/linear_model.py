"""Linear models of the columns of a table: p(x|z) = N(W z + b, diag(variances)), with z Gaussian or from a mixture."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

MIN_VARIANCE = 1e-4  # of the residual of a standardized column


class Weighted(NamedTuple):
    """Rows with weights, and their moments."""

    rows: np.ndarray  # (n, D)
    weights: np.ndarray | None = None  # (n,); None: they are equal

    def take(self, numbers: np.ndarray) -> "Weighted":
        """Return some of the rows, with their weights."""
        return Weighted(self.rows[numbers], None if self.weights is None else self.weights[numbers])

    @property
    def counts(self) -> np.ndarray:
        """How often each row counts, (n,)."""
        return np.ones(len(self.rows)) if self.weights is None else self.weights

    @property
    def num_data(self) -> float:
        """N: a row with weight 3 counts as three rows."""
        return len(self.rows) if self.weights is None else self.weights.sum()

    @property
    def mean(self) -> np.ndarray:
        """Mean of each column, (D,)."""
        return np.average(self.rows, axis=0, weights=self.weights)

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the columns, by maximum likelihood, (D, D)."""
        return np.atleast_2d(np.cov(self.rows.T, bias=True, aweights=self.weights))


class Components(NamedTuple):
    """A mixture of K Gaussians over z."""

    shares: np.ndarray  # (K,), which sum to 1
    means: np.ndarray  # (K, J)
    covariances: np.ndarray  # (K, J, J)

    @property
    def within(self) -> np.ndarray:
        """Average covariance within the components, (J, J)."""
        return np.einsum("k,kij->ij", self.shares, self.covariances)

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of z, (J, J)."""
        apart = self.means - self.shares @ self.means
        return self.within + np.einsum("k,ki,kj->ij", self.shares, apart, apart)

    def moved(self, matrix: np.ndarray, origin: np.ndarray) -> "Components":
        """Return the distribution of ``matrix @ (z - origin)``."""
        return Components(self.shares, (self.means - origin) @ matrix.T, matrix @ self.covariances @ matrix.T)


class LinearModel(NamedTuple):
    r"""p(x|z) = N(W z + b, diag(variances)), where p(z) is N(0, I) or a mixture of Gaussians with these moments.

    .. math:: p(x) = \sum_k \pi_k N(x; W \mu_k + b, W \Sigma_k W^T + \mathrm{diag}(\sigma^2))

    A mixture of this kind is one of factor analyzers with common loadings (Baek, McLachlan and Flack, "Mixtures of
    factor analyzers with common factor loadings", 2010).
    """

    weight: np.ndarray  # (D, J), columns orthogonal in the units of the noise
    bias: np.ndarray  # (D,)
    variances: np.ndarray  # (D,)
    components: Components | None = None  # of p(z); None for N(0, I)

    @property
    def information(self) -> np.ndarray:
        """What an x says of z: the precision of p(x|z) as a function of z, (J, J)."""
        return self.weight.T @ (self.weight / self.variances[:, None])

    @property
    def posterior_precisions(self) -> np.ndarray:
        """Precision of each latent variable given x, (J,); of a mixture, with the covariance within components."""
        if self.components is None:
            return 1 + np.diag(self.information)
        return np.diag(self.information + np.linalg.inv(self.components.within))

    def log_prob(self, rows: np.ndarray) -> np.ndarray:
        """Return log p(x) of each row, (n,)."""
        return np.asarray(logsumexp(posteriors(self, rows).log_joint, axis=1))


class Posteriors(NamedTuple):
    """The components and z given x."""

    log_joint: np.ndarray  # (n, K): log p(x, k)
    means: np.ndarray  # (n, K, J): E[z | x, k]
    covariances: np.ndarray  # (K, J, J): Cov[z | x, k], which is the same for all x


def posteriors(model: LinearModel, rows: np.ndarray) -> Posteriors:
    """Return log p(x, k) and the moments of p(z | x, k), in closed form."""
    J = model.weight.shape[1]
    parts = model.components or Components(np.ones(1), np.zeros((1, J)), np.eye(J)[None])
    residuals = (rows - model.bias) / model.variances  # (n, D), in units of precision
    precisions = np.linalg.inv(parts.covariances)  # (K, J, J)
    information = precisions + model.information
    covariances = np.linalg.inv(information)
    pull = np.einsum("kij,kj->ki", precisions, parts.means)  # (K, J)
    shifts = (residuals @ model.weight)[:, None] + pull  # (n, K, J)
    means = np.einsum("nki,kij->nkj", shifts, covariances)
    squares = np.sum(residuals * (rows - model.bias), axis=1)[:, None] + np.sum(pull * parts.means, axis=1)
    squares = squares - np.sum(shifts * means, axis=2)
    log_dets = np.linalg.slogdet(parts.covariances)[1] + np.linalg.slogdet(information)[1]  # (K,)
    constant = np.sum(np.log(2 * np.pi * model.variances))
    with np.errstate(divide="ignore"):  # an empty component has log share minus infinity
        return Posteriors(np.log(parts.shares) - (squares + log_dets + constant) / 2, means, covariances)


def pca(data: Weighted, count: int) -> LinearModel:
    """Return probabilistic PCA with this many components, by maximum likelihood."""
    from sklearn.decomposition import PCA

    if data.weights is None:
        fitted: Any = PCA(count).fit(data.rows)
        noise, variances, axes = fitted.noise_variance_, fitted.explained_variance_, fitted.components_.T
    else:  # which scikit-learn's PCA does not take
        variances, axes = np.linalg.eigh(data.covariance * data.num_data / max(data.num_data - 1, 1))
        variances, axes = variances[::-1], axes[:, ::-1]
        noise = variances[count : min(data.rows.shape)].mean()
        variances, axes = variances[:count], axes[:, :count]
    lengths = np.sqrt(np.maximum(variances - noise, 0))
    return rotated(LinearModel(axes * lengths, data.mean, np.full(data.rows.shape[1], noise)))


def factor_analysis(data: Weighted, count: int, prior_rows: float, max_iter: int = 2000) -> LinearModel:
    """Return factor analysis of the rows, with this many additional rows whose columns are independent.

    These are a weak prior: with few rows, maximum likelihood often gives some columns no noise.
    """
    from sklearn.decomposition import FactorAnalysis

    N, data_dim, covariance = data.num_data, data.rows.shape[1], data.covariance
    covariance = (N * covariance + prior_rows * np.diag(np.diag(covariance))) / (N + prior_rows)
    variances, axes = np.linalg.eigh(covariance)
    half = np.sqrt(data_dim * np.maximum(variances, 0))[:, None] * axes.T
    rows_with_covariance = np.vstack([half, -half])  # (2 D, D): all that factor analysis uses of the rows
    fitted: Any = FactorAnalysis(count, svd_method="lapack", max_iter=max_iter, tol=1e-4).fit(rows_with_covariance)
    return rotated(LinearModel(fitted.components_.T, data.mean, fitted.noise_variance_))


def rotated(model: LinearModel) -> LinearModel:
    """Return the same p(x) with Cov z = I, and rotated so that what x says of z has no correlations.

    With p(z) = N(0, I) the covariance of p(z|x) is then diagonal.
    """
    weight, bias, parts = model.weight, model.bias, model.components
    variances = np.maximum(model.variances, MIN_VARIANCE)
    if parts is not None:
        spread = np.linalg.cholesky(parts.covariance)
        origin = parts.shares @ parts.means
        bias, weight = bias + weight @ origin, weight @ spread
        parts = parts.moved(np.linalg.inv(spread), origin)
    left, singular_values, right = np.linalg.svd(weight / np.sqrt(variances)[:, None], full_matrices=False)
    if parts is not None:
        parts = parts.moved(right, np.zeros(len(right)))
    return LinearModel(np.sqrt(variances)[:, None] * left * singular_values, bias, variances, parts)


def padded(model: LinearModel, latent_dim: int) -> LinearModel:
    """Return the same p(x) with more latent variables, which are independent of x and N(0, 1)."""
    data_dim, J = model.weight.shape
    more, parts = latent_dim - J, model.components
    if parts is not None and more:
        K = len(parts.shares)
        covariances = np.tile(np.eye(latent_dim), (K, 1, 1))
        covariances[:, :J, :J] = parts.covariances
        parts = Components(parts.shares, np.hstack([parts.means, np.zeros((K, more))]), covariances)
    return model._replace(weight=np.hstack([model.weight, np.zeros((data_dim, more))]), components=parts)
