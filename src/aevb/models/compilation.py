"""Functions of a model, compiled once for all models of the same structure; and what a program contains."""

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any

import jax

from aevb.models.parameters import join, split


def compiled(*static: str) -> Callable[[Callable], Callable]:
    """Compile a function whose first argument is a model, or any pytree that contains arrays and functions.

    The program is reused for other models of the same structure and, through JAX's cache, in later processes.

    Args:
        static: Names of its keyword arguments that are not arrays.
    """

    def decorate(function):
        @partial(jax.jit, static_argnames=("skeleton", *static))
        def run(parameters, constants, arguments, *, skeleton, **options):
            return function(join(parameters, constants, skeleton), *arguments, **options)

        @wraps(function)
        def call(model, *arguments, **options):
            parameters, constants, skeleton = split(model)
            return run(parameters, constants, arguments, skeleton=skeleton, **options)

        return call

    return decorate


def make_room() -> None:
    """Forget all compiled programs if they occupy half of the memory mappings that Linux allows a process.

    A fit of a table compiles for some 900 of 65,530 mappings. JAX keeps the programs, and after 70 fits, as in a search
    over parameters, LLVM has no memory for the next one and the process crashes.
    """
    with suppress(OSError):
        limit = int(Path("/proc/sys/vm/max_map_count").read_text())
        with open("/proc/self/maps", "rb") as mappings:
            if sum(1 for _ in mappings) > limit // 2:
                jax.clear_caches()


def contains(program: Any, operations: Collection[str]) -> bool:
    """Whether a traced program contains one of some operations, at any depth.

    Args:
        program: A jaxpr.
        operations: Names of operations.

    Example:
        >>> contains(jax.make_jaxpr(jax.jit(lambda x: 2 * x))(1.0).jaxpr, {"mul"})
        True
    """
    return any(
        equation.primitive.name in operations
        or any(contains(inner, operations) for inner in _programs(list(equation.params.values())))
        for equation in program.eqns
    )


def _programs(values):
    """Yield the programs among the parameters of an operation: bodies of loops, branches, and so on."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from _programs(value)
        elif hasattr(value, "eqns"):
            yield getattr(value, "jaxpr", value)
