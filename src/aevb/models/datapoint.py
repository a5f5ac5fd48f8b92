"""A datapoint that is more than an array: with missing entries, or conditioned on something."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Datapoint(NamedTuple):
    """One x and its context. If all entries are observed and nothing is given, x may also be a plain array or tree.

    Args:
        values: An array, or a tree of named arrays of any shapes.
        observed: Which entries are observed, a tree of booleans like `values`; None for all. The values at missing
            entries are ignored.
        given: What x is conditioned on, which is not modelled itself: a label, covariates, the mask of a sequence's
            steps; a tree of arrays, or None.

    Example:
        >>> Datapoint(jnp.array([1.0, jnp.nan]), observed=jnp.array([True, False])).filled().values.tolist()
        [1.0, 0.0]
    """

    values: Any
    observed: Any = None
    given: Any = None

    @classmethod
    def of(cls, x: Any) -> "Datapoint":
        """Return x itself, or a datapoint with x as its values."""
        return x if isinstance(x, cls) else cls(x)

    def filled(self) -> "Datapoint":
        """Return the datapoint with zeros at the missing entries."""
        if self.observed is None:
            return self
        values = jax.tree.map(lambda x, seen: jnp.where(seen, x, jnp.zeros_like(x)), self.values, self.observed)
        return self._replace(values=values)

    def with_values(self, values: Any) -> Any:
        """Return the datapoint with other values; only the values if nothing is missing or given."""
        return values if self.observed is None and self.given is None else self._replace(values=values)
