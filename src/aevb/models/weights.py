"""A generative model whose weights are random variables: q(theta), and predictions that average over it.

Paper: App. F.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array
from jax.flatten_util import ravel_pytree
from numpyro.distributions import Distribution
from numpyro.distributions.batch_util import promote_batch_shape

from aevb.distributions.log_scale_normal import exp_minus_line
from aevb.models.domains import limited
from aevb.models.generative import AbstractGenerativeModel, GenerativeModel, conditions
from aevb.models.parameters import join, split

START_LOG_VARIANCE = -9.0  # narrow: at first, mainly the means of the weights are learned


class BayesianGenerativeModel(AbstractGenerativeModel):
    r"""A Gaussian over all weights of a generative model, and the model averaged over draws of them.

    .. math:: q_\phi(\theta) = N(\theta; \mu_\theta, \sigma_\theta^2 I), \quad p_\alpha(\theta) = N(\theta; 0, I),
        \quad p(x, z) = E_{q(\theta)}[p_\theta(z)\, p_\theta(x|z)] \approx \frac{1}{S} \sum_s p_{\theta_s}(x, z)

    Its densities are averages over S draws of the weights, which are always the same, so its bounds and
    log-likelihoods are those of the posterior predictive distribution.

    Args:
        mean: A generative model with the means as its weights; everything in it that is not learned stays fixed.
        num_draws: S.

    Example:
        >>> from aevb.models import BernoulliMLP, standard_normal
        >>> weights = BayesianGenerativeModel(GenerativeModel(standard_normal(2), BernoulliMLP(2, (5,), 3)))
        >>> weights.decoder(jnp.zeros(2)).mean.shape
        (3,)

    Paper: eqs. (19) and (23), App. F, App. F.1.
    """

    mean: GenerativeModel
    log_variance: Any  # like the parameters of the mean; limited when it is used, see `limited`
    num_draws: int = eqx.field(static=True)

    def __init__(self, mean: GenerativeModel, num_draws: int = 20):
        self.mean = mean
        self.log_variance = jax.tree.map(lambda p: jnp.full_like(p, START_LOG_VARIANCE), split(mean).parameters)
        self.num_draws = num_draws

    # ---- q(theta) ----------------------------------------------------------------------------------------------------

    def noise(self, key: Array) -> Any:
        """Draw zeta ~ N(0, I), a pytree like the parameters of the mean."""
        vector, unravel = ravel_pytree(self.log_variance)
        return unravel(jax.random.normal(key, vector.shape, vector.dtype))

    def transform(self, zeta: Any) -> GenerativeModel:
        """Return the generative model with the weights theta = mu + sigma * zeta."""
        parameters, constants, skeleton = split(self.mean)
        theta = jax.tree.map(
            lambda mu, v, zeta: mu + jnp.exp(limited(v) / 2) * zeta, parameters, self.log_variance, zeta
        )
        return join(theta, constants, skeleton)

    def log_ratio(self, theta: GenerativeModel) -> Array:
        """Return log p(theta) - log q(theta)."""

        def terms(theta, mu, v):
            v = limited(v)
            return (v + (theta - mu) ** 2 * jnp.exp(-v) - theta**2) / 2

        return self._sum(terms, split(theta).parameters, split(self.mean).parameters, self.log_variance)

    def kl(self) -> Array:
        """Return KL(q(theta) || p(theta)), by appendix B."""

        def terms(mu, v):
            return (mu**2 + exp_minus_line(limited(v))) / 2

        return self._sum(terms, split(self.mean).parameters, self.log_variance)

    def _sum(self, function, *trees):
        terms = jax.tree.leaves(jax.tree.map(lambda *leaves: jnp.sum(function(*leaves)), *trees))
        return sum(terms, start=jnp.zeros(()))

    # ---- the average over q(theta) -----------------------------------------------------------------------------------

    @property
    def prior(self) -> Distribution | Callable[..., Distribution]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """p(z): the fixed prior, or a mixture of the S priors if it is learned."""
        return self.mean.prior if isinstance(self.mean.prior, Distribution) else self._mixture_of_priors

    @property
    def decoder(self) -> Callable[..., Distribution]:
        """p(x|z), a mixture of the S decoders; with a learned prior, weighted by the prior density of z under each."""
        return self._mixture_of_decoders

    def log_likelihood(self, x: Any, z: Any) -> Array:
        """Return log p(x|z) for one x (D,) and one z (J,)."""
        log_likelihoods = jax.vmap(lambda theta: theta.log_likelihood(x, z))(self.draws())
        return jax.nn.logsumexp(jax.nn.log_softmax(self._log_weights(z, *conditions(x))) + log_likelihoods)

    def _mixture_of_priors(self, *given):
        components = self._over_draws(lambda theta: theta.prior(*given))
        return self._mixture(jnp.zeros(self.num_draws), components)

    def _mixture_of_decoders(self, z, *given):
        return self._mixture(self._log_weights(z, *given), self._over_draws(lambda theta: theta.decoder(z, *given)))

    def _log_weights(self, z, *given):
        if isinstance(self.mean.prior, Distribution):
            return jnp.zeros(self.num_draws)
        return jax.vmap(lambda theta: jnp.asarray(theta.prior(*given).log_prob(z)))(self.draws())

    def draws(self) -> GenerativeModel:
        """Return the S models, stacked."""
        keys = jax.random.split(jax.random.key(0), self.num_draws)
        return jax.vmap(lambda key: self.transform(self.noise(key)))(keys)

    def _over_draws(self, function):
        return promote_batch_shape(jax.vmap(function)(self.draws()))

    def _mixture(self, log_weights, components):
        return dist.MixtureSameFamily(dist.Categorical(logits=log_weights), components, validate_args=False)
