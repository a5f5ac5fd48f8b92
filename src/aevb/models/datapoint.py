"""A datapoint that is more than an array: some of it missing, or conditioned on something."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Datapoint(NamedTuple):
    """One x with what is known about it. Where all entries are observed and nothing is given, x is simply its values.

    Args:
        values: An array, or a tree of named arrays of any shapes.
        observed: Which entries are, a tree of booleans like `values`; None for all. What stands at the other entries
            of `values` plays no part.
        given: What x is conditioned on, and is not modelled itself: a label, covariates, which steps of a sequence
            exist; a tree of arrays, or None.

    Example:
        >>> Datapoint(jnp.array([1.0, jnp.nan]), observed=jnp.array([True, False])).filled().values.tolist()
        [1.0, 0.0]
    """

    values: Any
    observed: Any = None
    given: Any = None

    @classmethod
    def of(cls, x: Any) -> "Datapoint":
        """Return x itself, or the datapoint of plain values."""
        return x if isinstance(x, cls) else cls(x)

    def filled(self) -> "Datapoint":
        """Return the datapoint with zeros at the missing entries."""
        if self.observed is None:
            return self
        values = jax.tree.map(lambda x, seen: jnp.where(seen, x, jnp.zeros_like(x)), self.values, self.observed)
        return self._replace(values=values)

    def with_values(self, values: Any) -> Any:
        """Return other values in the place of these: plain ones if these were."""
        return values if self.observed is None and self.given is None else self._replace(values=values)
