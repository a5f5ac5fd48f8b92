"""The user's model, given as a log joint density, and checks that it matches its variables."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aevb.models.variable_posterior import Posterior
from aevb.models.variables import Variables, as_structure


class LogJoint(NamedTuple):
    """A log joint in two terms; only the second depends on single datapoints."""

    log_prior: Callable[..., Array]  # of the variables; without a second term, also of all data, if there are any
    log_likelihood: Callable[..., Array] | None = None  # of the variables, (local variables,) and one datapoint

    def of_variables(self, variables: Any, data: Any) -> Array:
        """Return the first term, which is the whole log joint if there is no second."""
        one_piece_with_data = self.log_likelihood is None and data is not None
        return self.log_prior(variables, data) if one_piece_with_data else self.log_prior(variables)

    @property
    def name_of_first(self) -> str:
        """The user's name for the first term."""
        return "log_joint" if self.log_likelihood is None else "log_prior"


def check_log_joint(model: LogJoint, posterior: Posterior, local: Any, data: Any) -> None:
    """Refuse a log joint that does not return a number for these variables; it is only traced."""
    variables = jax.eval_shape(lambda: _variables_of(posterior))
    _check_number(model.name_of_first, lambda v: model.of_variables(v, data), variables, variables)
    if model.log_likelihood is None:
        return
    log_likelihood: Any = model.log_likelihood
    x = jax.tree.map(lambda array: np.asarray(array)[0], data)
    if local is None:
        _check_number("log_likelihood", lambda v: log_likelihood(v, x), variables, variables)
    else:
        z = jax.eval_shape(lambda: _variables_of(local.at(x, jnp.zeros((), int))))
        names = {**_as_dict(variables), **_as_dict(z)}
        _check_number("log_likelihood", lambda both: log_likelihood(*both, x), (variables, z), names)


def unused_variables(model: LogJoint, posterior: Posterior, local: Any, data: Any) -> list[str]:
    """Return the names of the variables that the log joint never reads; it is only traced."""
    variables = jax.eval_shape(lambda: _variables_of(posterior))
    if not isinstance(variables, dict):
        return []
    terms = [lambda v: model.of_variables(v, data)]
    if model.log_likelihood is not None:
        log_likelihood: Any = model.log_likelihood
        x = jax.tree.map(lambda array: np.asarray(array)[0], data)

        def of_row(v):
            z = [] if local is None else [_variables_of(local.at(x, jnp.zeros((), int)))]
            return log_likelihood(v, *z, x)

        terms.append(of_row)
    used = set().union(*(_names_read(term, variables) for term in terms))
    return [name for name in variables if name not in used]


def check_supports(posterior: Posterior, variables: Variables) -> None:
    """Refuse a user-defined posterior whose draws do not match the variables described."""
    given: dict[Any, Any] = _as_dict(posterior.distributions())
    expected = variables.variables
    if set(given) != set(expected):
        raise ValueError(
            f"posterior: it draws {_names(given)}, but the variables are {_names(expected)}. Use the same names in "
            "both."
        )
    for name, variable in expected.items():
        q, label = given[name], "posterior" if name is None else f"posterior[{name!r}]"
        if q.shape() != variable.shape:
            raise ValueError(f"{label}: its draws have shape {q.shape()}, but the variable has shape {variable.shape}.")
        if _bare(q.support) != _bare(variable.support):
            raise ValueError(
                f"{label}: its support is {q.support}, but the variable's is {variable.support}. Give a distribution "
                'on that support (LogNormal for positive numbers), or a named family such as "full-gaussian", which '
                "a bijection maps to it."
            )


def _variables_of(q):
    return q.read(q.transform(q.draw_noise(jax.random.key(0))))[0]


def _names_read(function, variables):
    """Return the names whose arrays are inputs of any operation of the function."""
    jaxpr = jax.make_jaxpr(function)(variables).jaxpr
    read = {id(variable) for equation in jaxpr.eqns for variable in equation.invars} | set(map(id, jaxpr.outvars))
    inputs = jax.tree.unflatten(jax.tree.structure(variables), [id(variable) in read for variable in jaxpr.invars])
    return {name for name, is_read in inputs.items() if any(jax.tree.leaves(is_read))}


def _check_number(name, function, arguments, variables):
    try:
        value = jax.eval_shape(function, arguments)
    except KeyError as error:
        raise ValueError(f"{name}: reads the variable {error}, but there are only {_names(variables)}.") from error
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: cannot be computed for variables {as_structure(variables)}: {error}") from error
    leaves = jax.tree.leaves(value)
    if len(leaves) != 1 or not hasattr(leaves[0], "shape") or leaves[0].shape != ():
        shapes = [getattr(leaf, "shape", type(leaf).__name__) for leaf in leaves]
        raise ValueError(
            f"{name}: returned {f'shape {shapes[0]}' if len(shapes) == 1 else shapes}, expected one number, in nats, "
            f"for variables {as_structure(variables)}. Sum it: jnp.sum(...)."
        )


def _names(variables):
    return ", ".join(map(repr, variables)) if isinstance(variables, dict) and None not in variables else "no names"


def _as_dict(values):
    return values if isinstance(values, dict) else {None: values}


def _bare(support):
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    return support
