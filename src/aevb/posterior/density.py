"""The unconstrained log joint of a user's model and its gradient, for blocks of points, in double precision.

Everything that finds and judges a Gaussian posterior uses this one compiled program, because compiling takes longer
than the rest: paths, curvature, steps on the bound and importance weights are computed from its results by NumPy.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from aevb.estimators.minibatch import scaled_sum
from aevb.models import LogJoint, Variables
from aevb.models.own_arrays import with_own_arrays

BLOCK = 32  # points per call
LARGE = 4_000_000  # numbers in the data times points that are computed at once
SMALL_BLOCK = 8  # points per call if one of them takes long
MOST_TEMPORARY = 400_000_000  # bytes that a call may use, if the data are large


class Density:
    """The function log p(X, v(u)) + log |dv/du| as a function of points u, (S, D).

    Args:
        model: The log joint.
        variables: Its variables.
        data: All the data, or None.
        num_data: N, which the likelihood of the rows is scaled to.
        precise: Whether to compute in double precision.
    """

    def __init__(self, model: LogJoint, variables: Variables, data, num_data: int, precise: bool = True):
        own: Any = [None if part is None else with_own_arrays(part) for part in model]
        self.model = LogJoint(*own)
        self.variables, self.precise = variables, precise
        self.size, self.num_points = variables.size, 0
        with self.precision():
            self.data = jax.tree.map(_floats, data)
        self.num_data = num_data
        total = sum(np.size(leaf) for leaf in jax.tree.leaves(self.data)) + self.size
        self.at_once = int(np.clip(LARGE // total, 1, BLOCK))
        self.block = BLOCK if self.at_once >= SMALL_BLOCK else SMALL_BLOCK
        self.is_cheap = self.at_once == BLOCK
        self.chain_program: Any = None  # see `aevb.posterior.chains`
        self._values_and_gradients: Any = jax.jit(self._of_block) if self.at_once >= self.block else None
        self._constrain = jax.jit(jax.vmap(lambda u: variables.constrain(u)[0]))

    def precision(self):
        """Return the context in which the model is computed."""
        return jax.enable_x64(self.precise)

    def of_point(self, u, data):
        """Return the log density at one point; the likelihood of the rows, of all or of a minibatch, is scaled to N."""
        variables, log_det = self.variables.constrain(u)
        value = self.model.of_variables(variables, data) + log_det
        if (log_likelihood := self.model.log_likelihood) is not None:
            rows = jax.vmap(lambda x: log_likelihood(variables, x))(data)
            value = value + scaled_sum(rows, self.num_data)
        return value

    def _of_block(self, points, data):
        def one(u):
            return jax.value_and_grad(self.of_point)(u, data)

        if self.at_once >= len(points):
            return jax.vmap(one)(points)
        return lax.map(one, points, batch_size=self.at_once)

    def _of_large_data(self, points):
        """Return the program for a whole block at once if memory allows, which is faster, or for a few of its points.

        A matrix product of the data with a block of points needs little memory; their elementwise product does not.
        """
        fewest, self.at_once = self.at_once, self.block
        program = self._compiled(points)
        if program.memory_analysis().temp_size_in_bytes > MOST_TEMPORARY:
            self.at_once = fewest
            program = self._compiled(points)
        return program

    def _compiled(self, points) -> Any:
        return jax.jit(lambda points, data: self._of_block(points, data)).lower(points, self.data).compile()

    def __call__(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log density (S,) and its gradient (S, D); minus infinity and 0 where either is not finite."""
        points = np.asarray(points, np.float64)
        S = len(points)
        num_blocks = -(-S // self.block)
        padded = np.concatenate([points, np.repeat(points[-1:], num_blocks * self.block - S, axis=0)])
        found = []
        with self.precision():
            if self._values_and_gradients is None:
                self._values_and_gradients = self._of_large_data(padded[: self.block])
            for start in range(0, len(padded), self.block):
                found.append(self._values_and_gradients(padded[start : start + self.block], self.data))
        self.num_points += S
        values = np.concatenate([np.asarray(value, np.float64) for value, _ in found])[:S]
        gradients = np.concatenate([np.asarray(gradient, np.float64) for _, gradient in found])[:S]
        good = np.isfinite(values) & np.isfinite(gradients).all(1)
        return np.where(good, values, -np.inf), np.where(good[:, None], gradients, 0.0)

    def constrain(self, points: np.ndarray):
        """Return the variables at points, with leading axis S."""
        with self.precision():
            found = jax.tree.map(np.asarray, self._constrain(np.asarray(points, np.float64)))
        return {name: found[name] for name in self.variables.variables} if isinstance(found, dict) else found


def _floats(array):
    """Return an array on the device; numbers that are not whole or not integers become double precision."""
    array = np.asarray(array)
    return jnp.asarray(array, jnp.result_type(float)) if array.dtype.kind == "f" else jnp.asarray(array)
