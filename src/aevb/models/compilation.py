"""Functions of a model, compiled once for all models of one structure."""

from collections.abc import Callable
from functools import partial, wraps

import jax

from aevb.models.parameters import join, split


def compiled(*static: str) -> Callable[[Callable], Callable]:
    """Compile a function whose first argument is a model, or any pytree with arrays and functions in it.

    The program is reused for another model of the same structure, and in later processes from JAX's cache.

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
