"""The log density from a random minibatch in each call, with all data at one point as a control variate."""

import jax
import numpy as np
from jax import lax

from aevb.posterior.density import Density

START_ROWS = 20_000  # rows from which the start is found, if there are more


class Minibatches:
    r"""Unbiased estimates of a log density and its gradient, from M rows per call.

    .. math:: \log p(X, u) \approx \log p(X, u_0) + \ell_B(u) - \ell_B(u_0), \qquad
        \ell_B(u) = \log p(u) + \frac{N}{M} \sum_{i \in B} \log p(x^{(i)} | u)

    The noise of the two minibatch terms cancels near the reference (Johnson and Zhang, "Accelerating stochastic
    gradient descent using predictive variance reduction", 2013).

    Args:
        density: The log density of all data.
        batch_size: M.
        rng: Random generator for the rows.
        reference: The point u_0, (D,).
    """

    def __init__(self, density: Density, batch_size: int, rng: np.random.Generator, reference: np.ndarray):
        self.density, self.batch_size, self._rng = density, batch_size, rng
        self.size, self.block, self.is_cheap, self.precise = density.size, density.block, density.is_cheap, True
        self._arrays = jax.tree.map(np.asarray, density.data)
        self._num_rows = len(jax.tree.leaves(self._arrays)[0])
        self._reference = np.asarray(reference, np.float64)
        values, gradients = density(self._reference[None])
        self._value, self._gradient = values[0], gradients[0]

        def of_block(points, rows):
            def one(u):
                return jax.value_and_grad(density.of_point)(u, rows)

            return lax.map(one, points, batch_size=density.block + 1)

        self._of_block = jax.jit(of_block)

    def __call__(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return estimates of the log density (S,) and its gradient (S, D); each block of points has its own rows."""
        values, gradients = [], []
        for start in range(0, len(points), self.block):
            some = points[start : start + self.block]
            padded = np.concatenate([some, np.repeat(self._reference[None], self.block + 1 - len(some), axis=0)])
            rows = self._rng.choice(self._num_rows, self.batch_size, replace=False)
            with self.density.precision():
                found = self._of_block(padded, jax.tree.map(lambda array, rows=rows: array[rows], self._arrays))
            value, gradient = (np.asarray(part, np.float64) for part in found)
            values.append(self._value + value[: len(some)] - value[-1])
            gradients.append(self._gradient + gradient[: len(some)] - gradient[-1])
        value, gradient = np.concatenate(values), np.concatenate(gradients)
        good = np.isfinite(value) & np.isfinite(gradient).all(1)
        return np.where(good, value, -np.inf), np.where(good[:, None], gradient, 0.0)


def some_rows(density: Density, rng: np.random.Generator) -> Density:
    """Return the density from at most 20,000 random rows, which is enough to find the start."""
    num_rows = len(jax.tree.leaves(density.data)[0])
    if num_rows <= START_ROWS:
        return density
    rows = np.sort(rng.choice(num_rows, START_ROWS, replace=False))
    data = jax.tree.map(lambda array: np.asarray(array)[rows], density.data)
    return Density(density.model, density.variables, data, density.num_data, density.precise)
