"""Functions of a model, compiled once for all models of the same structure."""

from collections.abc import Callable
from functools import partial, wraps

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
