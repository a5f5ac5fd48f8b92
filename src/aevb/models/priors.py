"""Priors p(z) by name: the standard one, and ones whose parameters are learned."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.distributions import Distribution
from numpyro.distributions.util import vec_to_tril_matrix

from aevb.arrays import filled, on_device
from aevb.distributions import GaussianMixture

STANDARD, MIXTURE = "standard", "mixture"
NUM_COMPONENTS = 10  # of a mixture that is not found by a fit to the data


class MixturePrior(eqx.Module):
    r"""A mixture of K Gaussians whose weights, means and covariances are learned, as changes of those it starts with.

    .. math:: p(z) = \sum_k \pi_k N(z; \mu_k, \Sigma_k), \quad \log \pi = \log \pi^0 + a,
        \quad \mu_k = \mu_k^0 + b_k, \quad A_k = C_k A_k^0

    with :math:`A_k` the whitening matrix of component k and :math:`C_k` lower triangular. The changes are zero or the
    identity at first, and a prior on the parameters (weight decay) pulls towards the start.

    Args:
        start: Where it starts; it is not learned.

    Example:
        >>> prior = mixture_prior(2, num_components=3)
        >>> prior().event_shape, prior().loc.shape
        ((2,), (3, 2))
    """

    start: GaussianMixture
    log_weights: Array  # (K,)
    shifts: Array  # (K, J), of the means
    log_precisions: Array  # (K, J)
    mixing: Array  # (K, J (J - 1) / 2), below the diagonal

    def __init__(self, start: GaussianMixture):
        K, J = np.shape(start.loc)
        self.start, self.log_weights, self.shifts = start, filled(K, 0), filled((K, J), 0)
        self.log_precisions, self.mixing = filled((K, J), 0), filled((K, J * (J - 1) // 2), 0)

    def __call__(self, *given: Any) -> Distribution:
        """Return p(z), which does not depend on what a datapoint is conditioned on."""
        start, J = self.start, self.shifts.shape[1]
        below = vec_to_tril_matrix(self.mixing, diagonal=-1) if J > 1 else 0.0
        change = jnp.exp(self.log_precisions)[..., None] * (jnp.eye(J) + below)
        whitening = change @ start.whitening
        return GaussianMixture(
            start.log_weights + self.log_weights, start.loc + self.shifts, whitening, validate_args=False
        )


def mixture_prior(latent_dim: int, num_components: int = NUM_COMPONENTS, seed: int = 0) -> MixturePrior:
    """Return a mixture with Cov z = I at the start, whose means are apart: equal components would stay equal.

    Args:
        latent_dim: J.
        num_components: K.
        seed: Of the means.
    """
    means = np.random.default_rng(seed).normal(size=(num_components, latent_dim))
    means -= means.mean(axis=0)
    spread = np.linalg.eigvalsh(means.T @ means / num_components)[-1]
    means *= np.sqrt(0.5 / max(spread, 1e-12)) if num_components > 1 else 0.0
    within = np.eye(latent_dim) - means.T @ means / num_components
    covariances = np.tile(within, (num_components, 1, 1))
    return prior_from(np.full(num_components, 1 / num_components), means, covariances)


def prior_from(shares: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> MixturePrior:
    """Return the prior that starts as the mixture with these shares (K,), means (K, J) and covariances (K, J, J)."""
    whitening = np.linalg.inv(np.linalg.cholesky(covariances))
    dtype = jnp.result_type(float)
    arrays = np.log(np.maximum(shares, 1e-6)), means, np.tril(whitening)
    start = GaussianMixture(*(on_device(np.asarray(array, dtype)) for array in arrays), validate_args=False)
    return MixturePrior(start)


class PriorForm(NamedTuple):
    """The form of a prior by name, from which it can be built."""

    name: str  # one of ``PRIOR_NAMES``
    size: int = 1  # such as the number of components

    def build(self, latent_dim: int) -> Any:
        """Return a prior of this form over J variables, at its start; None for the standard one."""
        return None if self.name == STANDARD else PRIORS[self.name](latent_dim, self.size)


# Functions from J and a size to a learned prior.
PRIORS: dict[str, Callable[..., Any]] = {MIXTURE: mixture_prior}
PRIOR_NAMES = (STANDARD, *PRIORS)  # that can be selected by name


def form_of(prior: Any) -> PriorForm | None:
    """Return the form of a learned prior; None for others.

    Example:
        >>> form_of(mixture_prior(2, 3))
        PriorForm(name='mixture', size=3)
    """
    prior = getattr(prior, "top", prior)  # of a hierarchy
    return PriorForm(MIXTURE, prior.shifts.shape[0]) if isinstance(prior, MixturePrior) else None
