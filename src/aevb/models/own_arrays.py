"""A copy of a function that refers to copies of its NumPy arrays, so that tracing it leaves no trace elsewhere.

While a traced function is alive, JAX reuses its copies of the NumPy arrays that it refers to, even in another
precision, where they do not fit (JAX 0.10: "requires arguments to have the same dtypes", "Cannot lower jaxpr with
verifier errors"). A model that is traced in double precision would break the user's own use of the same arrays.
"""

import contextlib
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np


def with_own_arrays(function: Callable) -> Callable:
    """Return the function with copies of the floating-point NumPy arrays that it and the functions it calls refer to.

    Arrays in closures, in global variables and in defaults are found, also inside dictionaries, lists and tuples.
    Anything that is not a plain function is returned as it is.

    Example:
        >>> weights = np.ones(3)
        >>> def total(x):
        ...     return x * weights
        >>> with_own_arrays(total)(2.0)
        array([2., 2., 2.])
    """
    return _copied(function, {})


def _copied(value: Any, known: dict[int, Any]) -> Any:
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        known[id(value)] = value.copy()
    elif type(value) is list or type(value) is tuple:
        parts = [_copied(part, known) for part in value]
        known[id(value)] = parts if type(value) is list else tuple(parts)
    elif type(value) is dict:
        known[id(value)] = {name: _copied(part, known) for name, part in value.items()}
    elif isinstance(value, functools.partial):
        arguments = [_copied(part, known) for part in value.args]
        named = {name: _copied(part, known) for name, part in value.keywords.items()}
        known[id(value)] = functools.partial(_copied(value.func, known), *arguments, **named)
    elif isinstance(value, types.FunctionType) and not _is_of_a_library(value):
        known[id(value)] = _copied_function(value, known)
    elif hasattr(value, "lower") and isinstance(getattr(value, "__wrapped__", None), types.FunctionType):
        known[id(value)] = _copied(value.__wrapped__, known)  # pyright: ignore  # compiled by jax.jit
    else:
        return value
    return known[id(value)]


def _copied_function(function, known):
    space, cells = dict(function.__globals__), tuple(types.CellType() for _ in function.__closure__ or ())
    copy = types.FunctionType(function.__code__, space, function.__name__, None, cells)
    copy.__dict__.update(function.__dict__)
    known[id(function)] = copy  # before its parts, which may refer to it
    for name in _names(function.__code__) & set(space):
        space[name] = _copied(space[name], known)
    for cell, original in zip(cells, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # an empty cell
            cell.cell_contents = _copied(original.cell_contents, known)
    copy.__defaults__ = _copied(function.__defaults__, known)
    copy.__kwdefaults__ = _copied(function.__kwdefaults__, known)
    return copy


def _names(code):
    """Return the global names that a function and those defined inside it refer to."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def _is_of_a_library(function):
    """Return whether a function comes from a package whose arrays nobody replaces."""
    return (function.__module__ or "").partition(".")[0] in ("jax", "numpy", "numpyro", "equinox", "scipy")
