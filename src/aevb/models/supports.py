"""Supports of variables as JSON: names of NumPyro's constraints from a fixed list, with their bounds."""

from typing import Any

import numpy as np
from numpyro.distributions import constraints

from aevb.models.variables import Variable, Variables

PLAIN = (
    *("real", "real_vector", "real_matrix", "positive", "nonnegative", "unit_interval", "simplex", "circular"),
    *("ordered_vector", "positive_ordered_vector", "softplus_positive", "lower_cholesky", "softplus_lower_cholesky"),
    *("scaled_unit_lower_cholesky", "corr_cholesky", "corr_matrix", "positive_definite", "positive_semidefinite"),
    *("l1_ball", "sphere"),
)
BOUNDED = ("interval", "open_interval", "greater_than", "greater_than_eq", "less_than", "less_than_eq")
BOUNDS = ("lower_bound", "upper_bound")


def written(variables: Variables) -> list[dict[str, Any]] | None:
    """Return the variables as JSON, in their order; None if a support is not in the list.

    Example:
        >>> from aevb.models import describe
        >>> written(describe({"rate": constraints.positive}))
        [{'name': 'rate', 'support': {'name': 'positive'}, 'shape': []}]
    """
    found = []
    for name, variable in variables.variables.items():
        support = _written(variable.support)
        if support is None:
            return None
        found.append({"name": name, "support": support, "shape": list(variable.shape)})
    return found


def read(document: list[dict[str, Any]]) -> Variables:
    """Return the variables that `written` has written.

    Raises:
        ValueError: A support is not in the list.
    """
    return Variables({row["name"]: Variable(_read(row["support"]), tuple(row["shape"])) for row in document})


def _written(support):
    if hasattr(support, "base_constraint"):
        base = _written(support.base_constraint)
        return base and {"name": "independent", "base": base, "dimensions": support.reinterpreted_batch_ndims}
    for name in PLAIN:
        if type(support) is type(getattr(constraints, name)):
            return {"name": name}
    for name in BOUNDED:
        if type(support) is getattr(constraints, name):
            return {"name": name, **{key: np.asarray(getattr(support, key)).tolist() for key in _bounds(support)}}
    return None


def _bounds(support):
    return [key for key in BOUNDS if hasattr(support, key)]


def _read(document):
    name = document["name"]
    if name == "independent":
        return constraints.independent(_read(document["base"]), document["dimensions"])
    if name in PLAIN:
        return getattr(constraints, name)
    if name in BOUNDED:
        return getattr(constraints, name)(*(np.asarray(document[key], float) for key in BOUNDS if key in document))
    raise ValueError(f"support {name!r}: unknown. Update aevb.")
