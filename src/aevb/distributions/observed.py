"""Distributions with some entries observed and the others missing."""

from typing import Any

import jax.numpy as jnp
from numpyro.distributions import Distribution, Independent

from aevb.distributions.columns import Columns
from aevb.distributions.product import Product
from aevb.errors import WrongTypeError


def observe(p: Distribution, observed: Any) -> Distribution:
    r"""Return the distribution of the observed entries of a draw.

    .. math:: \log p(x_{\mathrm{observed}}) = \sum_{i\ \mathrm{observed}} \log p_i(x_i)

    The value at a missing entry, even NaN or outside of the support, affects neither the log density nor its gradient.
    Entries must be independent under p; leaving some out then integrates over them.

    Args:
        p: Independent entries (``to_event``), :class:`~aevb.distributions.Columns`, a
            :class:`~aevb.distributions.Product` of such distributions, or any distribution that is observed as a whole
            or not at all.
        observed: Booleans with the shape of the entries, or a dictionary of them for a product; None for all.

    Raises:
        WrongTypeError: The entries are not independent, or `observed` has the wrong shape.

    Example:
        >>> from numpyro.distributions import Normal
        >>> p = observe(Normal(jnp.zeros(2), 1.0).to_event(1), jnp.array([True, False]))
        >>> print(f"{p.log_prob(jnp.array([0.0, jnp.nan])):.3f}")
        -0.919
    """
    if observed is None:
        return p
    if isinstance(p, Product):
        return Product({name: observe(factor, observed[name]) for name, factor in p.factors.items()})
    return Observed(p, observed)


class Observed(Distribution):
    """A distribution with some observed entries; see :func:`observe`. Draws contain all entries."""

    pytree_data_fields = ("base_dist", "observed")

    def __init__(self, base_dist: Distribution, observed: Any):
        entries, _ = _entries(base_dist)
        shape = entries.shape() if isinstance(entries, Columns) else entries.batch_shape
        if jnp.shape(observed) != shape:
            raise WrongTypeError(
                f"observed has shape {jnp.shape(observed)}, but the distribution has independent entries of shape "
                f"{shape}. Dependent entries can only be observed together."
            )
        self.base_dist, self.observed = base_dist, observed
        super().__init__(base_dist.batch_shape, base_dist.event_shape, validate_args=False)

    @property
    def support(self) -> Any:
        """That of all entries."""
        return self.base_dist.support

    def sample(self, key, sample_shape=()):
        """Draw all entries."""
        return self.base_dist.sample(key, sample_shape)

    def log_prob(self, value, intermediates=None):
        """Return the log density of the observed entries."""
        entries: Any
        entries, num_axes = _entries(self.base_dist)
        if isinstance(entries, Columns):
            log_probs = entries.observed_log_prob(value, self.observed)
            return jnp.sum(log_probs, axis=tuple(range(-num_axes, 0)))
        observed = jnp.asarray(self.observed)
        whole = observed.reshape(*observed.shape, *(1 for _ in entries.event_shape))
        # `where` twice: otherwise a NaN would reach the gradient through the branch that is not chosen.
        safe = jnp.where(whole, value, entries.support.feasible_like(value))
        log_probs = jnp.where(observed, entries.log_prob(safe), 0)
        return jnp.sum(log_probs, axis=tuple(range(-num_axes, 0)))

    @property
    def mean(self) -> Any:
        """That of all entries."""
        return self.base_dist.mean

    @property
    def variance(self) -> Any:
        """That of all entries."""
        return self.base_dist.variance


def _entries(p):
    """Return the distribution of the entries that `to_event` combined, or of rows, and their number of axes."""
    num_axes = 0
    while isinstance(p, Independent):
        num_axes += p.reinterpreted_batch_ndims
        p = p.base_dist
    return p, num_axes
