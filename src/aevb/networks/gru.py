"""A gated recurrent network over the steps of a sequence."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax


class GRU(eqx.Module):
    r"""Equinox's gated recurrent unit, scanned over the steps of a sequence; missing steps leave it unchanged.

    .. math:: h_t = \mathrm{cell}(x_t, h_{t-1}) \text{ if step } t \text{ exists, else } h_{t-1}, \qquad h_0 = 0

    The product with the inputs does not depend on the state, and is computed for all steps at once.

    Args:
        in_size: Width of the input of a step.
        out_size: Width of the state, which is the output.

    Example:
        >>> GRU(3, 5)(jnp.zeros((7, 3)), jnp.arange(7) < 4).shape
        (7, 5)
    """

    cell: eqx.nn.GRUCell

    def __init__(self, in_size: int, out_size: int):
        # Zeros, as all networks: `initialize` draws the values.
        cell = eqx.filter_eval_shape(eqx.nn.GRUCell, in_size, out_size, key=jax.random.key(0))
        self.cell = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype) if hasattr(leaf, "shape") else leaf, cell
        )

    @property
    def in_size(self) -> int:
        """Width of the input of a step."""
        return self.cell.input_size

    @property
    def out_size(self) -> int:
        """Width of the output of a step."""
        return self.cell.hidden_size

    def __call__(self, x: Array, exists: Array, *, reverse: bool = False) -> Array:
        """Return the state after each step, (T, out_size).

        Args:
            x: Inputs, (T, in_size).
            exists: Which steps exist, (T,).
            reverse: Whether to run from the last step to the first.
        """
        cell: Any = self.cell
        inputs = x @ cell.weight_ih.T + cell.bias  # (T, 3 H)

        def step(h, of_step):
            u, here = of_step
            u_r, u_z, u_n = jnp.split(u, 3)
            v_r, v_z, v_n = jnp.split(cell.weight_hh @ h, 3)
            z = jax.nn.sigmoid(u_z + v_z)
            new = jnp.tanh(u_n + jax.nn.sigmoid(u_r + v_r) * (v_n + cell.bias_n))
            h = jnp.where(here, new + z * (h - new), h)
            return h, h

        return lax.scan(step, jnp.zeros(self.out_size, inputs.dtype), (inputs, exists), reverse=reverse)[1]
