"""log p(x) by importance sampling around the modes of the posterior."""

import math
from math import lgamma
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.linalg import solve_triangular

from aevb.inference.importance import CHUNK, draw_from, estimate_from, propose_pool
from aevb.inference.parallel import leaves_a_core
from aevb.models import GenerativeModel, RecognitionModel
from aevb.models.compilation import compiled

DEGREES_OF_FREEDOM = 8  # heavier tails than a nearly Gaussian posterior
SHARES = (0.75, 0.1, 0.15)  # fractions of samples from around the modes, from the prior, from the encoder
ROWS_AT_ONCE = 16  # rows whose modes are searched for together
STEP_LENGTHS = np.array([0.0, 0.01, 0.1, 0.4, 1.0])  # candidate fractions of Newton's step
DIFFERENCE = 0.01  # for finite differences, in units of a standard prior
SMALLEST_CURVATURE = 0.25  # a quarter of the standard prior's: limits the width of a mode


def laplace(
    generative: GenerativeModel,
    recognition: RecognitionModel | None,
    x: Array,
    keys: Array,
    num_samples: int = 1000,
    num_modes: int = 3,
    num_steps: int = 8,
    num_proposals: int = 100,
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    r"""Estimate log p(x) by importance sampling from Laplace approximations at the modes of the posterior.

    .. math:: r(z) \approx \sum_k \pi_k\, t_\nu(z; z_k, \Sigma_k), \quad z_k = \arg\max_z \log p(x, z),
        \quad \Sigma_k^{-1} = -\nabla^2 \log p(x, z_k)

    An encoder uses one network for all rows, and for unusual rows it may be far off; its samples then miss the bulk of
    the posterior. Here Newton's method finds modes for each row separately, starting from the best samples of the
    encoder and of the prior, and from random samples of the prior. The proposal is a mixture of Student's t
    distributions at the modes, with covariances from the curvature and weights from the masses under them, plus a small
    fraction each of q(z|x) and of the prior for safety (Kuk, "Laplace importance sampling for generalized linear mixed
    models", 1999). Value, error and k-hat are as for :func:`~aevb.inference.importance.importance`.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x), or None.
        x: Datapoints, (N, D).
        keys: One per datapoint, (N,).
        num_samples: L.
        num_modes: Number of searches from the best proposals, and from samples of the prior; several may end in one
            mode.
        num_steps: Steps of Newton's method.
        num_proposals: Samples of encoder and prior, the best of which start a search.

    Returns:
        Values (N,), standard errors (N,), and the diagnostics ``effective_sample_size`` and ``k_hat``.
    """
    options = {"num_modes": num_modes, "num_steps": num_steps, "num_proposals": num_proposals}
    return estimate_from(_log_weights((generative, recognition), x, keys, num_samples=num_samples, **options))


class Modes(NamedTuple):
    """Student's t distributions around the modes of one posterior."""

    centres: Array  # (K, J)
    scales: Array  # (K, J, J): square roots of the covariances, lower triangular
    log_masses: Array  # (K,), up to a constant

    def sample(self, key: Array, shape: tuple[int]) -> Array:
        """Draw some z, (n, J)."""
        (n,), (_, J) = shape, self.centres.shape
        key_mode, key_noise = jax.random.split(key)
        k = jax.random.categorical(key_mode, self.log_masses, shape=shape)
        noise = jax.random.normal(key_noise, (n, J + DEGREES_OF_FREEDOM))
        stretch = jnp.sqrt(DEGREES_OF_FREEDOM / jnp.sum(noise[:, J:] ** 2, axis=1, keepdims=True))
        return self.centres[k] + jnp.einsum("nij,nj->ni", self.scales[k], noise[:, :J]) * stretch

    def log_prob(self, z: Array) -> Array:
        """Return the log density at one z, (J,)."""
        nu, J = DEGREES_OF_FREEDOM, len(z)
        identity = jnp.eye(J, dtype=z.dtype)
        # Inverses, which are the same for all z; solving for each z would take many times as long.
        whitenings = jax.vmap(lambda scale: solve_triangular(scale, identity, lower=True))(self.scales)
        white = jnp.einsum("kij,kj->ki", whitenings, z - self.centres)
        log_dets = jnp.sum(jnp.log(jnp.diagonal(self.scales, axis1=1, axis2=2)), axis=1)
        constant = lgamma((nu + J) / 2) - lgamma(nu / 2) - J / 2 * math.log(nu * math.pi)
        log_densities = constant - log_dets - (nu + J) / 2 * jnp.log1p(jnp.sum(white**2, axis=1) / nu)
        return jax.nn.logsumexp(jax.nn.log_softmax(self.log_masses) + log_densities)


@leaves_a_core
@compiled("num_samples", "num_modes", "num_steps", "num_proposals")
def _log_weights(models, x, keys, *, num_samples, num_modes, num_steps, num_proposals):
    """Return log w, (N, L)."""
    generative, recognition = models

    def find_modes(x, q, key):
        key_pool, key_prior = jax.random.split(key)
        pool, log_weights = propose_pool(generative, q, x, key_pool, num_proposals)
        best = pool[lax.top_k(log_weights, num_modes)[1]]  # (K, J)
        prior = generative.latent_distribution(x)
        anywhere = jnp.asarray(prior.sample(key_prior, (num_modes,)))  # for modes that no proposal found
        return Modes(*jax.vmap(lambda z: _mode(generative, x, z, num_steps))(jnp.concatenate([best, anywhere])))

    def propose(x, key):
        key_modes, key_draws = jax.random.split(key)
        q = None if recognition is None else recognition(x)
        prior = generative.latent_distribution(x)
        sources = [prior] if q is None else [prior, q]
        return draw_from([find_modes(x, q, key_modes), *sources], SHARES, key_draws, num_samples)

    z, log_mixture = lax.map(lambda row: propose(*row), (x, keys), batch_size=ROWS_AT_ONCE)  # (N, L, J), (N, L)
    # A few samples of all rows at a time, so that memory stays bounded.
    log_joint = jax.vmap(generative.log_joint)
    return lax.map(lambda z: log_joint(x, z), jnp.moveaxis(z, 1, 0), batch_size=CHUNK).T - log_mixture


def _mode(generative, x, z, num_steps):
    """Climb from z; return the mode (J,), a square root of the covariance there (J, J), and the log mass."""

    def log_joint(z):
        return generative.log_joint(x, z)

    def climb(z, _):
        # Second derivatives by finite differences take a fifth of the time to compile, and only shape the proposals.
        aside = DIFFERENCE * jnp.eye(len(z), dtype=z.dtype)
        gradients = jax.vmap(jax.grad(log_joint))(jnp.concatenate([z[None], z + aside, z - aside]))
        gradient, above, below = gradients[0], *jnp.split(gradients[1:], 2)
        scale = _scale((below - above) / (2 * DIFFERENCE))
        tried = z + STEP_LENGTHS[:, None].astype(z.dtype) * (scale @ (scale.T @ gradient))
        heights = jax.vmap(log_joint)(tried)
        best = jnp.argmax(jnp.where(jnp.isfinite(heights), heights, -jnp.inf))
        return tried[best], (z, scale, heights[0])  # the first step has length zero

    _, visited = lax.scan(climb, z, length=num_steps + 1)
    z, scale, height = jax.tree.map(lambda array: array[-1], visited)
    return z, scale, height + jnp.sum(jnp.log(jnp.diagonal(scale)))


def _scale(precision):
    """Return the Cholesky factor of the covariance, from the absolute value of the curvature."""
    curvature, axes = jnp.linalg.eigh((precision + precision.T) / 2)
    variances = 1 / jnp.maximum(jnp.abs(curvature), SMALLEST_CURVATURE)
    scale = jnp.linalg.cholesky((axes * variances) @ axes.T)
    return jnp.where(jnp.isfinite(scale).all(), scale, jnp.eye(len(scale), dtype=scale.dtype))
