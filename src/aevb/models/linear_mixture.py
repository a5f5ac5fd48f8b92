"""Mixtures of Gaussians in the latent space of a linear model, by expectation maximization (EM)."""

from typing import Any

import numpy as np
from scipy.special import logsumexp

from aevb.models.linear_model import MIN_VARIANCE, Components, LinearModel, Weighted, pca, posteriors, rotated

TOLERANCE = 1e-4  # nats per row: EM ends when an iteration adds less
NOISE_SHARE = 0.5  # of the thinnest direction of any component, if there is a latent variable for each column


def linear_mixture(
    data: Weighted, latent_dim: int, num_components: int, prior_rows: float, *, max_iter: int = 300, num_starts: int = 3
) -> LinearModel:
    r"""Return a linear model with a mixture of Gaussians over z, by EM from several starts.

    With a latent variable for each column it is a mixture of Gaussians over x, whose covariances are only limited by
    the smallest noise; with fewer it is one of factor analyzers with common loadings.

    Args:
        data: The rows, standardized.
        latent_dim: J; more than D are not used.
        num_components: K.
        prior_rows: The covariance of each component is estimated as if it had this many more rows, with the average
            covariance within components: a component with few rows would otherwise have no width in some direction
            (Fraley and Raftery, "Bayesian regularization for normal mixture estimation", 2007).
        max_iter: Iterations of EM from each start.
        num_starts: Number of starts; the best result is returned.
    """
    J = min(latent_dim, data.rows.shape[1])
    is_full = data.rows.shape[1] == J
    base = _full_base(data) if is_full else _factors(data, J)
    found = [
        _em(data, _with_components(base, data, num_components, seed), prior_rows, max_iter, is_full)
        for seed in range(num_starts)
    ]
    best = max(found, key=lambda model: np.average(model.log_prob(data.rows), weights=data.weights))
    return rotated(_with_noise(best) if is_full else best)


def _full_base(data):
    D = data.rows.shape[1]
    return LinearModel(np.eye(D), np.zeros(D), np.full(D, MIN_VARIANCE))


def _factors(data, J):
    from aevb.models.linear_model import factor_analysis

    return factor_analysis(data, J, 1, 200) if data.rows.shape[1] <= 100 else pca(data, J)


def _with_components(base, data, num_components, seed):
    """Return the model with components found by k-means on E[z|x]."""
    from sklearn.cluster import KMeans

    z = posteriors(base, data.rows).means[:, 0]
    clusters: Any = KMeans(num_components, n_init=1, random_state=seed)  # pyright: ignore[reportArgumentType]
    labels = clusters.fit(z, sample_weight=data.weights).labels_
    memberships = (labels[:, None] == np.arange(num_components)) * data.counts[:, None]
    uncertainty = np.linalg.inv(np.eye(z.shape[1]) + base.information)
    return base._replace(components=_components(z[:, None], memberships, uncertainty[None], 1.0))


def _components(means, memberships, covariances, prior_rows):
    """Return the mixture with the most likely parameters: the M-step for p(z).

    Args:
        means: E[z | x, k], (n, K, J) or (n, 1, J).
        memberships: (n, K), times the weights of the rows.
        covariances: Cov[z | x, k], (K, J, J) or (1, J, J).
        prior_rows: See :func:`linear_mixture`.
    """
    counts = memberships.sum(axis=0) + 1e-10
    centers = np.einsum("nk,nkj->kj", memberships, np.broadcast_to(means, (*memberships.shape, means.shape[2])))
    centers = centers / counts[:, None]
    apart = means - centers  # (n, K, J)
    scatter = np.matmul((apart * memberships[:, :, None]).transpose(1, 2, 0), apart.transpose(1, 0, 2))
    scatter = scatter + counts[:, None, None] * covariances  # (K, J, J)
    within = scatter.sum(axis=0) / counts.sum()
    smoothed = (scatter + prior_rows * within) / (counts + prior_rows)[:, None, None]
    tiny = 1e-6 * np.eye(len(within)) * max(np.trace(within) / len(within), 1e-6)
    return Components(counts / counts.sum(), centers, smoothed + tiny)


def _em(data, model, prior_rows, max_iter, is_full):
    """Improve a model until an iteration adds less than a tolerance; `is_full`: weight and noise stay as they are."""
    before = -np.inf
    for _ in range(max_iter):
        found = posteriors(model, data.rows)
        log_probs = np.asarray(logsumexp(found.log_joint, axis=1))
        now = np.average(log_probs, weights=data.weights)
        if now - before < TOLERANCE:
            break
        before = now
        memberships = np.exp(found.log_joint - log_probs[:, None]) * data.counts[:, None]
        components = _components(found.means, memberships, found.covariances, prior_rows)
        model = model._replace(components=components) if is_full else _decoder(data, found, memberships, components)
    return model


def _decoder(data, found, memberships, components):
    """Return the model with the most likely weight, bias and noise: the M-step for p(x|z), a regression of x on z."""
    J = found.means.shape[2]
    counts, N = data.counts, data.num_data
    z = np.einsum("nk,nkj->nj", memberships, found.means) / counts[:, None]
    weighted = (found.means * memberships[:, :, None]).reshape(-1, J)
    second = weighted.T @ found.means.reshape(-1, J) + np.einsum("k,kij->ij", memberships.sum(0), found.covariances)
    inputs = np.hstack([z, np.ones((len(z), 1))])  # (n, J + 1): the last is for the bias
    moments = np.zeros((J + 1, J + 1))
    moments[:J, :J], moments[J, J] = second, N
    moments[:J, J] = moments[J, :J] = counts @ z
    products = (inputs * counts[:, None]).T @ data.rows  # (J + 1, D)
    maps = np.linalg.solve(moments, products)
    variances = (counts @ data.rows**2 - np.sum(maps * products, axis=0)) / N
    return LinearModel(maps[:J].T, maps[J], np.maximum(variances, MIN_VARIANCE), components)


def _with_noise(model):
    """Return the same p(x), with as much noise as the thinnest component leaves room for.

    If there is a latent variable for each column, the likelihood does not tell how much of a variance is noise. With
    more noise the posterior is wider, and learning has smoother gradients.
    """
    parts = model.components
    covariances = parts.covariances + np.diag(model.variances)  # of x: the weight is the identity
    conditional = np.min(1 / np.diagonal(np.linalg.inv(covariances), axis1=1, axis2=2), axis=0)  # (D,)
    scale = np.sqrt(conditional)
    thinnest = np.linalg.eigvalsh(covariances / scale[:, None] / scale).min()
    variances = np.maximum(NOISE_SHARE * thinnest * conditional, model.variances)
    return model._replace(variances=variances, components=parts._replace(covariances=covariances - np.diag(variances)))
