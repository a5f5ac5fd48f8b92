"""A mixture of Gaussians with full covariances."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import validate_sample


class GaussianMixture(Distribution):
    r"""A mixture of K Gaussians, each given by the matrix that whitens it.

    .. math:: p(z) = \sum_k \pi_k N(z; \mu_k, (A_k^T A_k)^{-1}), \qquad A_k (z - \mu_k) \sim N(0, I)

    A density needs only products with :math:`A_k`, where Cholesky factors of the covariances would need solutions of
    linear systems for each z.

    Args:
        log_weights: :math:`\log \pi` up to a constant, (..., K).
        loc: :math:`\mu`, (..., K, J).
        whitening: A, lower triangular with positive diagonals, (..., K, J, J).

    Example:
        >>> p = GaussianMixture(jnp.zeros(2), jnp.array([[-1.0], [1.0]]), jnp.ones((2, 1, 1)))
        >>> print(f"{p.log_prob(jnp.zeros(1)):.3f} {p.variance[0]:.1f}")
        -1.419 2.0
    """

    arg_constraints = {
        "log_weights": constraints.real_vector,
        "loc": constraints.independent(constraints.real, 2),
        "whitening": constraints.independent(constraints.lower_cholesky, 1),
    }
    support: Any = constraints.real_vector
    pytree_data_fields = ("log_weights", "loc", "whitening")

    def __init__(self, log_weights: Any, loc: Any, whitening: Any, *, validate_args: bool | None = None):
        self.log_weights, self.loc, self.whitening = log_weights, loc, whitening
        batch_shape = jnp.broadcast_shapes(jnp.shape(log_weights)[:-1], jnp.shape(loc)[:-2], jnp.shape(whitening)[:-3])
        super().__init__(batch_shape, jnp.shape(loc)[-1:], validate_args=validate_args)

    @property
    def weights(self) -> Array:
        """Share of each component, (..., K)."""
        return jax.nn.softmax(self.log_weights, axis=-1)

    @property
    def covariances(self) -> Array:
        """Covariance of each component, (..., K, J, J)."""
        scale = self._scale()
        return scale @ jnp.swapaxes(scale, -1, -2)

    def _scale(self):
        """Return the inverses of the whitening matrices, lower triangular, (..., K, J, J)."""
        identity = jnp.broadcast_to(jnp.eye(self.event_shape[0]), jnp.shape(self.whitening))
        return solve_triangular(self.whitening, identity.astype(jnp.result_type(self.whitening)), lower=True)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        key_choice, key_noise = jax.random.split(jnp.asarray(key))
        shape, (K, J) = (*sample_shape, *self.batch_shape), jnp.shape(self.loc)[-2:]
        choice = jax.random.categorical(key_choice, self.log_weights, shape=shape)
        chosen = jax.nn.one_hot(choice, K, dtype=jnp.result_type(self.loc))
        epsilon = jax.random.normal(key_noise, (*shape, J), jnp.result_type(self.loc))
        deviations = jnp.einsum("...k,...kij,...j->...i", chosen, self._scale(), epsilon)
        return jnp.einsum("...k,...kj->...j", chosen, self.loc) + deviations

    @validate_sample
    def log_prob(self, value: Any) -> Array:
        return jax.nn.logsumexp(self.log_joint(value), axis=-1)

    def log_joint(self, value: Any) -> Array:
        """Return log p(z, k) of each component, (..., K)."""
        shifts = jnp.einsum("...kij,...kj->...ki", self.whitening, self.loc)  # apart from z: once for all z
        epsilon = jnp.einsum("...kij,...j->...ki", self.whitening, value) - shifts  # (..., K, J)
        log_dets = jnp.sum(jnp.log(jnp.diagonal(self.whitening, axis1=-2, axis2=-1)), axis=-1)
        constant = self.event_shape[0] / 2 * np.log(2 * np.pi)
        return jax.nn.log_softmax(self.log_weights, axis=-1) + log_dets - constant - jnp.sum(epsilon**2, axis=-1) / 2

    @property
    def mean(self) -> Array:
        return jnp.einsum("...k,...kj->...j", self.weights, self.loc)

    @property
    def covariance(self) -> Array:
        """Covariance of z, (..., J, J)."""
        apart = self.loc - self.mean[..., None, :]
        second = self.covariances + apart[..., :, None] * apart[..., None, :]
        return jnp.einsum("...k,...kij->...ij", self.weights, second)

    @property
    def variance(self) -> Array:
        return jnp.diagonal(self.covariance, axis1=-2, axis2=-1)
