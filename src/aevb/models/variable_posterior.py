"""The approximate posterior of a model's variables: global ones, and local ones for each datapoint."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from numpyro.distributions import Distribution

from aevb.distributions import reparameterize
from aevb.models.variables import Variables
from aevb.models.variational import POSTERIOR_FAMILIES


class Posterior(eqx.Module):
    """q of a model's variables: one distribution, or independent ones by name.

    Its points are draws from the distributions. If the variables have been described, a point is a vector of real
    numbers that is mapped to them, otherwise it is the variables themselves.

    Args:
        parts: A module that returns a distribution when called without arguments, or a dictionary of them by name.
        variables: The variables that a point is mapped to; None for the point itself.

    Example:
        >>> from aevb.models import describe
        >>> q = Posterior.of_family("gaussian", describe({"mu": (), "theta": (8,)}))
        >>> values, log_det = q.read(q.transform(q.draw_noise(jax.random.key(0))))
        >>> values["theta"].shape
        (8,)
    """

    parts: Any
    variables: Variables | None = eqx.field(static=True, default=None)

    @classmethod
    def of_family(cls, name: str, variables: Variables) -> "Posterior":
        """Return the initial member of a named family."""
        return cls(POSTERIOR_FAMILIES[name](variables.size), variables)

    def distributions(self) -> Any:
        """Return q: a distribution, or a dictionary of them."""
        return {name: part() for name, part in self.parts.items()} if isinstance(self.parts, dict) else self.parts()

    def draw_noise(self, key: Array, shape: tuple[int, ...] = ()) -> Any:
        """Draw zeta ~ p(zeta), which has no parameters."""
        return self._each(lambda q, key: jnp.asarray(reparameterize(q).noise.sample(key, shape)), self._keys(key))

    def transform(self, zeta: Any) -> Any:
        """Return the point for this noise."""
        return self._each(lambda q, zeta: reparameterize(q).transform(zeta), zeta)

    def log_prob(self, point: Any) -> Array:
        """Return log q at one point, in the coordinates of the point."""
        terms = self._each(lambda q, value: jnp.sum(jnp.asarray(q.log_prob(value))), point)
        return sum(jax.tree.leaves(terms), start=jnp.zeros(()))

    def read(self, point: Any) -> tuple[Any, Array]:
        """Return the variables at a point, and the log-determinant of the Jacobian there."""
        return (point, jnp.zeros(())) if self.variables is None else self.variables.constrain(point)

    def _keys(self, key):
        if isinstance(self.parts, dict):
            return dict(zip(self.parts, jax.random.split(key, len(self.parts)), strict=True))
        return key

    def _each(self, function, values):
        qs = self.distributions()
        if isinstance(qs, dict):
            return {name: function(q, values[name]) for name, q in qs.items()}
        return function(qs, values)


class Amortized(eqx.Module):
    """q(z|x) of local variables, computed by an encoder for any x."""

    encoder: Callable[[Array], Distribution]

    def at(self, x: Any, place: Array) -> Posterior:
        """Return the posterior of the datapoint x."""
        return Posterior(lambda: self.encoder(x))


class RowByRow(eqx.Module):
    """q(z) of local variables, with separate parameters for each datapoint: it does not generalize to new ones.

    Args:
        family: A key of ``POSTERIOR_FAMILIES``.
        variables: The local variables of a datapoint.
        num_data: N.
    """

    rows: Any  # arrays of the family with a leading axis N
    variables: Variables = eqx.field(static=True)

    def __init__(self, family: str, variables: Variables, num_data: int):
        one = POSTERIOR_FAMILIES[family](variables.size)
        self.rows = jax.tree.map(lambda array: jnp.repeat(array[None], num_data, axis=0), one)
        self.variables = variables

    def at(self, x: Any, place: Array) -> Posterior:
        """Return the posterior of the datapoint with this index."""
        return Posterior(jax.tree.map(lambda array: array[place], self.rows), self.variables)
