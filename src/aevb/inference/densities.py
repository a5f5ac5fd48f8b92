"""Densities fitted to posterior samples: stage two of appendix D. All are mixtures of Gaussians.

Paper: App. D.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.linalg import solve_triangular

NUM_COMPONENTS = 4
NUM_EM_STEPS = 30


class GaussianMixture(NamedTuple):
    """A mixture of K Gaussians in J dimensions."""

    log_weights: Array  # (K,)
    means: Array  # (K, J)
    whitenings: Array  # (K, J, J): inverses of the Cholesky factors of the covariances

    def log_prob(self, z: Array) -> Array:
        """Return the log density at one z, (J,)."""
        return jax.nn.logsumexp(self.log_weights + self.log_components(z))

    def log_components(self, z: Array) -> Array:
        """Return the log densities of the components at one z, (K,)."""
        white = jnp.einsum("kij,kj->ki", self.whitenings, z - self.means)
        log_determinants = jnp.sum(jnp.log(jnp.diagonal(self.whitenings, axis1=1, axis2=2)), axis=1)
        return log_determinants - jnp.sum(white**2, axis=1) / 2 - len(z) / 2 * jnp.log(2 * jnp.pi)

    def narrowed(self, variance_scale: float) -> "GaussianMixture":
        """Return the mixture with each component's covariance scaled."""
        return self._replace(whitenings=self.whitenings / jnp.sqrt(variance_scale))


def fit_gaussian(z: Array, key: Array) -> GaussianMixture:
    """Fit one Gaussian with full covariance to samples (L, J)."""
    del key
    mean, covariance = _moments(z, jnp.ones(len(z)))
    return GaussianMixture(jnp.zeros(1), mean[None], _whitening(covariance)[None])


def fit_mixture(z: Array, key: Array) -> GaussianMixture:
    """Fit a mixture of Gaussians with full covariances to samples (L, J), by expectation maximization.

    It starts with means at samples that are far apart, and the covariance of all samples.
    """
    _, covariance = _moments(z, jnp.ones(len(z)))
    K, J = NUM_COMPONENTS, z.shape[1]
    whitening = _whitening(covariance)
    floor = 1e-3 * covariance  # keeps components from collapsing onto a sample

    def em_step(mixture, _):
        log_joint = mixture.log_weights + jax.vmap(mixture.log_components)(z)  # (L, K)
        responsibilities = jax.nn.softmax(log_joint, axis=1)
        means, covariances = jax.vmap(_moments, (None, 1))(z, responsibilities)
        weights = jnp.mean(responsibilities, axis=0)
        return GaussianMixture(jnp.log(weights), means, jax.vmap(_whitening)(covariances + floor)), None

    means = _spread_out(z, (z - z.mean(0)) @ whitening.T, key)
    start = GaussianMixture(jnp.full(K, -jnp.log(K)), means, jnp.broadcast_to(2 * whitening, (K, J, J)))
    return lax.scan(em_step, start, length=NUM_EM_STEPS)[0]


def fit_kernel(z: Array, key: Array) -> GaussianMixture:
    """Fit a kernel density with Gaussian kernels to samples (L, J).

    The bandwidth is Scott's rule, and the kernels are shrunk towards the mean so that the mixture has the covariance of
    the samples (West, "Approximating posterior distributions by mixtures", 1993).
    """
    del key
    L, J = z.shape
    mean, covariance = _moments(z, jnp.ones(L))
    bandwidth = L ** (-1 / (J + 4))
    means = mean + jnp.sqrt(1 - bandwidth**2) * (z - mean)
    whitenings = jnp.broadcast_to(_whitening(covariance) / bandwidth, (L, J, J))
    return GaussianMixture(jnp.full(L, -jnp.log(L)), means, whitenings)


# Name -> function(samples (L, J), key) that fits a density.
DENSITIES: dict[str, Callable[[Array, Array], GaussianMixture]] = {
    "mixture": fit_mixture,
    "gaussian": fit_gaussian,
    "kernel": fit_kernel,
}


def _whitening(covariance):
    return solve_triangular(jnp.linalg.cholesky(covariance), jnp.eye(len(covariance)), lower=True)


def _moments(z, weights):
    """Return the weighted mean (J,) and covariance (J, J), with a small diagonal added so that it can be inverted."""
    weights = weights / jnp.maximum(weights.sum(), jnp.finfo(z.dtype).tiny)
    mean = weights @ z
    centred = z - mean
    covariance = (weights[:, None] * centred).T @ centred
    return mean, covariance + jnp.diag(1e-5 * jnp.diagonal(covariance) + 1e-12)


def _spread_out(z, white, key):
    """Choose samples z as initial means, each as far as possible, in whitened axes, from the previous ones."""

    def choose(distances, _):
        far = jnp.argmax(distances)
        return jnp.minimum(distances, jnp.sum((white - white[far]) ** 2, axis=1)), z[far]

    first = jnp.sum((white - white[jax.random.randint(key, (), 0, len(z))]) ** 2, axis=1)
    return lax.scan(choose, first, length=NUM_COMPONENTS)[1]
