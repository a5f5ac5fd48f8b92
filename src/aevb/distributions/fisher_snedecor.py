"""Fisher and Snedecor's F: the ratio of two scaled chi-squared variables."""

from typing import Any

import jax.numpy as jnp
from jax import Array
from jax.scipy.special import betainc, betaln
from numpyro.distributions import constraints
from numpyro.distributions.util import validate_sample

from aevb.distributions._beta_quantile import beta_offset
from aevb.distributions._quantile_distribution import QuantileDistribution, promote_parameters


class FisherSnedecor(QuantileDistribution):
    r"""F distribution: :math:`(X_1 / d_1) / (X_2 / d_2)` with :math:`X_i \sim \chi^2_{d_i}`.

    .. math::
        q(z) = \frac{1}{z\, B(d_1/2, d_2/2)}
        \left(\frac{d_1 z}{d_1 z + d_2}\right)^{d_1/2} \left(\frac{d_2}{d_1 z + d_2}\right)^{d_2/2}, \qquad z > 0

    Args:
        df1: :math:`d_1 > 0`, degrees of freedom of the numerator.
        df2: :math:`d_2 > 0`, degrees of freedom of the denominator.

    Example:
        >>> from aevb.distributions import FisherSnedecor
        >>> print(f"{FisherSnedecor(5.0, 5.0).icdf(0.5):.1f}")
        1.0

    Paper: §2.4.
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    reparametrized_params = ["df1", "df2"]

    def __init__(self, df1: Any, df2: Any, *, validate_args: bool | None = None):
        (self.df1, self.df2), batch_shape = promote_parameters(df1, df2)
        super().__init__(batch_shape, validate_args=validate_args)

    @validate_sample
    def log_prob(self, value: Array) -> Array:
        a, b = self.df1 / 2, self.df2 / 2
        log_odds = jnp.log(a / b) + jnp.log(value)
        log_fractions = a * _log_sigmoid(log_odds) + b * _log_sigmoid(-log_odds)
        return log_fractions - jnp.log(value) - betaln(a, b)

    def cdf(self, value: Array) -> Array:
        odds = self.df1 * jnp.maximum(value, 0) / self.df2
        return betainc(self.df1 / 2, self.df2 / 2, odds / (1 + odds))

    def icdf(self, q: Array) -> Array:
        return jnp.exp(beta_offset(self.df1 / 2, self.df2 / 2, q))

    @property
    def mean(self) -> Array:
        return jnp.where(self.df2 > 2, self.df2 / (self.df2 - 2), jnp.inf)

    @property
    def variance(self) -> Array:
        d1, d2 = self.df1, self.df2
        finite = 2 * d2**2 * (d1 + d2 - 2) / (d1 * (d2 - 2) ** 2 * (d2 - 4))
        return jnp.where(d2 > 4, finite, jnp.where(d2 > 2, jnp.inf, jnp.nan))


def _log_sigmoid(t):
    return -jnp.logaddexp(0, -t)
