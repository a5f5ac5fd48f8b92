"""What was observed of x, and what that says about z and about x: missing values, noise, a coarser picture.

An observation y of a datapoint x comes about by p(y|x), which is known. With a decoder whose variables are independent,
both p(y|z) and p(x|y, z) then have closed forms, and these are all that a task needs.
"""

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array
from numpyro.distributions import Distribution

BERNOULLI = (dist.BernoulliLogits, dist.BernoulliProbs)


class Conditional(NamedTuple):
    """p(x|y, z) of one datapoint: its moments (D,), and one draw of it (D,)."""

    mean: Array
    variance: Array
    draw: Array


class Observation(eqx.Module):
    r"""How y comes from x.

    .. math:: p(y | z) = \int p(y | x)\, p(x | z)\, dx, \qquad p(x | y, z) = p(y | x)\, p(x | z) / p(y | z)
    """

    @abstractmethod
    def log_likelihood(self, p: Distribution, y: Array) -> Array:
        """Return log p(y|z) for one y, where p is p(x|z)."""

    @abstractmethod
    def condition(self, p: Distribution, y: Array, key: Array) -> Conditional:
        """Return p(x|y, z) for one y, where p is p(x|z)."""


class Missing(Observation):
    r"""Some values of x were not observed: they are NaN in y.

    .. math:: \log p(y | z) = \sum_{i \text{ observed}} \log p(x_i | z)
    """

    def log_likelihood(self, p: Distribution, y: Array) -> Array:
        """Sum over what was observed."""
        factors = independent(p)
        is_observed, filled = _filled(factors, y)
        return jnp.sum(jnp.where(is_observed, factors.log_prob(filled), 0.0))

    def condition(self, p: Distribution, y: Array, key: Array) -> Conditional:
        """Keep what was observed; the rest is p(x|z)."""
        factors = independent(p)
        is_observed, filled = _filled(factors, y)
        return _kept_or_new(factors, filled, is_observed.astype(filled.dtype), key)


class GaussianNoise(Observation):
    r"""Gaussian noise was added to each value.

    .. math:: y_i = x_i + s_i\, \epsilon_i, \quad \epsilon_i \sim N(0, 1)

    A Gaussian decoder's variances and the noise's add up, and E[x|y, z] is the mean of the decoder's mean and y,
    weighted by precision. Under a Bernoulli decoder x is 0 or 1, so that y has a mixture of two Gaussians; grey levels
    are taken for probabilities of ones, as in learning.

    Args:
        std: s, a number or (D,).
    """

    std: Array

    def log_likelihood(self, p: Distribution, y: Array) -> Array:
        """Sum over the values."""
        return jnp.sum(_WITH_GAUSSIAN_NOISE[_kind(p, "noise='gaussian'")](independent(p), y, self.std)[0])

    def condition(self, p: Distribution, y: Array, key: Array) -> Conditional:
        """Weigh y against p(x|z)."""
        x = _WITH_GAUSSIAN_NOISE[_kind(p, "noise='gaussian'")](independent(p), y, self.std)[1]
        return Conditional(x.mean, x.variance, x.sample(key))


class Replaced(Observation):
    r"""Some values, nobody knows which, were replaced by one of a few constants.

    .. math:: p(y_i | z) = (1 - r)\, p(x_i = y_i | z) + \sum_c r_c\, [y_i = c], \quad r = \sum_c r_c

    Salt and pepper are the constants black and white with half of the rate each; masking is the constant 0. A value
    between the constants was certainly kept. For a density, p(x = y) is the probability of a cell as wide as `cell`.

    Args:
        constants: c, (C,).
        rates: r_c, (C,).
        cell: Resolution of x; it plays no part where x is 0 or 1.
    """

    constants: Array
    rates: Array
    cell: Array

    def log_likelihood(self, p: Distribution, y: Array) -> Array:
        """Sum over the values."""
        return jnp.sum(jnp.logaddexp(*self._log_kept_or_replaced(independent(p), y)))

    def condition(self, p: Distribution, y: Array, key: Array) -> Conditional:
        """Keep y with the probability that it was not replaced; else x is p(x|z)."""
        factors = independent(p)
        log_kept, log_replaced = self._log_kept_or_replaced(factors, y)
        return _kept_or_new(factors, y, jax.nn.sigmoid(log_kept - log_replaced), key)

    def _log_kept_or_replaced(self, factors, y):
        log_cell = 0.0 if isinstance(factors, BERNOULLI) else jnp.log(self.cell)
        rate = jnp.sum((y[:, None] == self.constants) * self.rates, axis=1)  # (D,)
        tiny = jnp.finfo(rate.dtype).tiny  # log 0 has no gradient
        return jnp.log1p(-self.rates.sum()) + factors.log_prob(y) + log_cell, jnp.log(jnp.maximum(rate, tiny))


class Pooled(Observation):
    r"""Each value of y is the average of a square of pixels, and a little noise.

    .. math:: y = A x + s\, \epsilon, \quad y | z \sim N(A \mu, A \Sigma A^T + s^2 I), \quad
        E[x | y, z] = \mu + \Sigma A^T (A \Sigma A^T + s^2 I)^{-1} (y - A \mu)

    with the decoder's mean and variances. This is exact for a Gaussian decoder. For others, averages of many pixels are
    taken for Gaussian, E[x|y, z] is the best linear estimate, and under a Bernoulli decoder it stays in [0, 1].

    Args:
        std: s.
        image_shape: (height, width) of x, or (height, width, channels).
        factor: Side of a square in pixels.
    """

    std: Array
    image_shape: tuple[int, ...] = eqx.field(static=True)
    factor: int = eqx.field(static=True)

    def log_likelihood(self, p: Distribution, y: Array) -> Array:
        """Sum over the squares."""
        factors = independent(p)
        return jnp.sum(dist.Normal(self.pool(factors.mean), jnp.sqrt(self._variance(factors))).log_prob(y))

    def condition(self, p: Distribution, y: Array, key: Array) -> Conditional:
        """Spread the residual of a square over its pixels, in proportion to their variances."""
        factors = independent(p)
        mu, variance = factors.mean, factors.variance
        gain = variance / self.factor**2 * self._repeat(1 / self._variance(factors))  # (D,)
        key_x, key_noise = jax.random.split(key)
        x, noise = factors.sample(key_x), self.std * jax.random.normal(key_noise, y.shape, y.dtype)
        # Matheron's rule: a draw of (x, y), moved to the y that was seen.
        draw = x + gain * self._repeat(y - self.pool(x) - noise)
        mean = mu + gain * self._repeat(y - self.pool(mu))
        low, high = (0.0, 1.0) if isinstance(factors, BERNOULLI) else (-jnp.inf, jnp.inf)
        return Conditional(jnp.clip(mean, low, high), variance * (1 - gain / self.factor**2), jnp.clip(draw, low, high))

    def pool(self, x: Array) -> Array:
        """Return A x, the averages over squares."""
        height, width, *channels = self.image_shape
        blocks = x.reshape(height // self.factor, self.factor, width // self.factor, self.factor, *channels)
        return blocks.mean((1, 3)).ravel()

    def _repeat(self, y):
        height, width, *channels = self.image_shape
        y = y.reshape(height // self.factor, width // self.factor, *channels)
        return jnp.repeat(jnp.repeat(y, self.factor, 0), self.factor, 1).ravel()

    def _variance(self, factors):
        return self.pool(jnp.broadcast_to(factors.variance, factors.batch_shape)) / self.factor**2 + self.std**2


def independent(p: Distribution) -> Any:
    """Return the factors of p(x|z), a batch of distributions of single values; refuse a decoder that has none."""
    if isinstance(p, dist.Independent) and not p.base_dist.event_shape:
        return p.base_dist
    raise ValueError(
        f"decoder: p(x|z) is a {type(p).__name__}, whose variables are not independent of each other given z. "
        "Conditioning on a part of x, or on a noisy x, needs a decoder that returns distribution.to_event(1)."
    )


def _filled(factors, y):
    """Return where y was observed, and y with something harmless elsewhere, so that no gradient becomes NaN."""
    is_observed = ~jnp.isnan(y)
    return is_observed, jnp.where(is_observed, y, jax.lax.stop_gradient(factors.mean))


def _kept_or_new(factors, y, probability, key):
    """Return the mixture of y, which has this probability, and p(x|z)."""
    key_choice, key_x = jax.random.split(key)
    x = factors.sample(key_x)
    is_kept = jax.random.uniform(key_choice, y.shape, probability.dtype) < probability
    mean = probability * y + (1 - probability) * factors.mean
    variance = (1 - probability) * (factors.variance + probability * (y - factors.mean) ** 2)
    return Conditional(mean, variance, jnp.where(is_kept, y, x))


def _gaussian_with_noise(factors, y, std):
    """Return log p(y|z) and p(x|y, z), both (D,)."""
    variance = factors.scale**2 + std**2
    share = factors.scale**2 / variance
    x = dist.Normal(factors.loc + share * (y - factors.loc), std * jnp.sqrt(share), validate_args=False)
    return dist.Normal(factors.loc, jnp.sqrt(variance), validate_args=False).log_prob(y), x


def _bernoulli_with_noise(factors, y, std):
    logits = factors.logits
    log_densities = [dist.Normal(x, std, validate_args=False).log_prob(y) for x in (0.0, 1.0)]
    log_zero, log_one = jax.nn.log_sigmoid(-logits) + log_densities[0], jax.nn.log_sigmoid(logits) + log_densities[1]
    return jnp.logaddexp(log_zero, log_one), dist.BernoulliLogits(log_one - log_zero, validate_args=False)


_WITH_GAUSSIAN_NOISE = {"gaussian": _gaussian_with_noise, "bernoulli": _bernoulli_with_noise}


def _kind(p, wanted):
    factors = independent(p)
    if isinstance(factors, dist.Normal):
        return "gaussian"
    if isinstance(factors, BERNOULLI):
        return "bernoulli"
    raise ValueError(
        f"{wanted} has closed forms for Gaussian and Bernoulli decoders, and the decoder returns a "
        f"{type(factors).__name__} for each value. Use noise='salt-and-pepper' or 'masking', or impute(X)."
    )
