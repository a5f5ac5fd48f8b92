"""Variables of a model: their shapes and supports, and bijections to them from a vector of real numbers."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.constraints import Constraint
from numpyro.distributions.transforms import biject_to

from aevb.errors import WrongTypeError


@dataclass(frozen=True, eq=False)
class Variable:
    """One variable: its support and its shape."""

    support: Any
    shape: tuple[int, ...]

    @property
    def unconstrained_shape(self) -> tuple[int, ...]:
        """Shape of the real array that is mapped to it: two numbers for a simplex of three."""
        return biject_to(self.support).inverse_shape(self.shape)


@dataclass(frozen=True, eq=False)
class Variables:
    r"""All variables of a model, as one vector u of real numbers.

    .. math:: \log p(u) = \log p(v) + \log \left| \frac{\partial v}{\partial u} \right|, \qquad v = b(u)

    with NumPyro's bijection b for the support: an exponential for positive numbers, stick breaking for a simplex, and
    so on.

    Args:
        variables: The variables by name, or a single one under the name None.

    Example:
        >>> variables = describe({"rate": constraints.positive, "weights": (constraints.simplex, (3,))})
        >>> variables.size
        3
        >>> values, log_det = variables.constrain(jnp.zeros(3))
        >>> print(values["rate"], values["weights"].shape)
        1.0 (3,)
    """

    variables: dict[str | None, Variable]

    @property
    def size(self) -> int:
        """Length of u."""
        return sum(math.prod(variable.unconstrained_shape) for variable in self.variables.values())

    def constrain(self, u: Array) -> tuple[Any, Array]:
        """Return the variables at u, and the log-determinant of the Jacobian there."""
        values, log_det, start = {}, jnp.zeros((), u.dtype), 0
        for name, variable in self.variables.items():
            shape = variable.unconstrained_shape
            part = u[start : start + math.prod(shape)].reshape(shape)
            bijection = biject_to(variable.support)
            values[name] = bijection(part)
            log_det = log_det + jnp.sum(bijection.log_abs_det_jacobian(part, values[name]))
            start += part.size
        return values[None] if list(values) == [None] else values, log_det

    def places(self) -> dict[str | None, tuple[int, int]]:
        """Return where each variable begins and ends in u."""
        found, start = {}, 0
        for name, variable in self.variables.items():
            found[name] = (start, start + math.prod(variable.unconstrained_shape))
            start = found[name][1]
        return found

    def unconstrain(self, values: Any) -> tuple[Array, Array]:
        """Return u for values of the variables, with any leading axes, and the log-determinant of the Jacobian there.

        Raises:
            ValueError: A variable is missing or has another shape.

        Example:
            >>> variables = describe({"rate": constraints.positive})
            >>> u, log_det = variables.unconstrain({"rate": jnp.array([1.0, 2.0])})
            >>> u.shape, log_det.shape
            ((2, 1), (2,))
        """
        parts, log_dets = [], []
        for name, variable in self.variables.items():
            try:
                value = jnp.asarray(values if name is None else values[name])
            except KeyError:
                raise ValueError(f"values: there is no variable {name!r}.") from None
            lead = value.shape[: value.ndim - len(variable.shape)]
            if value.shape[len(lead) :] != variable.shape:
                raise ValueError(f"values[{name!r}]: has shape {value.shape}, expected (..., {variable.shape}).")
            bijection = biject_to(variable.support)
            part = bijection.inv(value)
            log_det = jnp.asarray(bijection.log_abs_det_jacobian(part, value))
            log_dets.append(jnp.sum(log_det.reshape(*lead, -1), axis=-1))
            parts.append(jnp.reshape(part, (*lead, -1)))
        return jnp.concatenate(parts, axis=-1), jnp.sum(jnp.stack(log_dets), axis=0)


def describe(variables) -> Variables:
    """Return the variables that a user describes.

    Args:
        variables: A description, or a dictionary of descriptions by name. A description is a support
            (``constraints.positive``, for a single number), a shape (``(8,)``, for real numbers), both
            (``(constraints.simplex, (3,))``), or a distribution, of which only the support and the shape are used.

    Raises:
        TypeError: A description is none of these.
        ValueError: A support and a shape do not match.
    """
    if isinstance(variables, dict):
        if not variables:
            raise ValueError("variables={}: there is nothing to infer. Name at least one variable.")
        return Variables({name: _describe(f"variables[{name!r}]", given) for name, given in variables.items()})
    return Variables({None: _describe("variables", variables)})


def _describe(name, given) -> Variable:
    if isinstance(given, Distribution):
        variable = Variable(given.support, given.shape())
    elif isinstance(given, Constraint):
        variable = Variable(given, ())
    elif _is_shape(given):
        variable = Variable(constraints.real, _as_shape(given))
    elif isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Constraint) and _is_shape(given[1]):
        variable = Variable(given[0], _as_shape(given[1]))
    else:
        raise WrongTypeError(
            f"{name}: got {given!r}; expected a support such as constraints.positive, a shape such as (8,), both as "
            "(constraints.simplex, (3,)), or a distribution that has them."
        )
    if variable.support.is_discrete:
        raise ValueError(f"{name}: its support is {variable.support}, but only continuous variables can be inferred.")
    if variable.support.event_dim > len(variable.shape):
        raise ValueError(
            f"{name}: the support {variable.support} needs arrays with {variable.support.event_dim} dimension(s), "
            f"but the shape is {variable.shape}. Give both, as in (constraints.simplex, (3,))."
        )
    return variable


def _is_shape(given):
    sizes = given if isinstance(given, tuple) else (given,)
    return all(isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in sizes)


def _as_shape(given):
    return given if isinstance(given, tuple) else (given,)


def as_structure(values) -> str:
    """Return the shapes of a value's arrays, as messages show them."""
    if isinstance(values, dict):
        return "{" + ", ".join(f"{name!r}: {jnp.shape(value)}" for name, value in values.items()) + "}"
    return f"an array of shape {jax.tree.leaves(values)[0].shape}"
