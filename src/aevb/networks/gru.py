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

    @property
    def read_hidden(self) -> list[Array]:
        """The matrices that read inputs and hidden units, see :mod:`aevb.models.dropout`."""
        return [self.cell.weight_ih, self.cell.weight_hh]

    def __call__(self, x: Array, exists: Array, *, reverse: bool = False, start: Array | None = None) -> Array:
        """Return the state after each step, (T, out_size).

        Args:
            x: Inputs, (T, in_size).
            exists: Which steps exist, (T,).
            reverse: Whether to run from the last step to the first.
            start: h_0, (out_size,); None for zeros.
        """
        cell: Any = self.cell
        inputs = x @ cell.weight_ih.T + cell.bias  # (T, 3 H)
        start = jnp.zeros(self.out_size, inputs.dtype) if start is None else start
        if reverse:
            inputs, exists = inputs[::-1], exists[::-1]
        states = _states(inputs, exists.astype(inputs.dtype), cell.weight_hh, cell.bias_n, start)
        return states[::-1] if reverse else states


def _states(inputs, exists, weight, bias, start):
    """Return the states after each step, (T, H).

    Differentiating the scan would add to the gradient of the weights at every step. Here it is one product over all
    steps, and all sequences of a batch: the scan is not differentiated, `_products` has the derivative of its products,
    and `_attach` that of the rest.

    Args:
        inputs: The products with the inputs, (T, 3 H).
        exists: 1 for steps that exist, else 0, (T,).
        weight: Of the state, (3 H, H).
        bias: Of the new state, (H,).
        start: (H,).
    """
    constants = lax.stop_gradient((inputs, exists, weight, bias, start))
    states, gates = _forward(*constants)
    return _attach((states, gates, exists, constants[2]), inputs, _products(weight, bias, gates[0]), start)


def _forward(inputs, exists, weight, bias, start):
    def step(h, of_step):
        u, here = of_step
        u_r, u_z, u_n = jnp.split(u, 3)
        v_r, v_z, v_n = jnp.split(weight @ h, 3)
        r, z, v_n = jax.nn.sigmoid(u_r + v_r), jax.nn.sigmoid(u_z + v_z), v_n + bias
        n = jnp.tanh(u_n + r * v_n)
        new = jnp.where(here > 0, n + z * (h - n), h)
        return new, (new, (h, r, z, n, v_n))

    return lax.scan(step, start, (inputs, exists))[1]


@jax.custom_jvp
def _products(weight, bias, before):
    """Return zeros, (T, 3 H), with the derivative of the products of the weights and the states before each step."""
    return jnp.zeros((len(before), len(weight)), before.dtype)


@_products.defjvp
def _(primals, tangents):
    d_weight, d_bias, _ = tangents
    d_products = primals[2] @ d_weight.T
    return _products(*primals), d_products + jnp.pad(d_bias, (len(d_products[0]) - len(d_bias), 0))


@jax.custom_vjp
def _attach(known, inputs, products, start):
    """Return the states of `known`, as a function of what they were computed from."""
    return known[0]


def _attach_forward(known, inputs, products, start):
    return known[0], known[1:]


def _attach_backward(known, gradient):
    (before, r, z, n, v_n), exists, weight = known

    def step(later, of_step):
        here, own, h, r, z, n, v_n = of_step
        g = own + later
        a_n = g * (1 - z) * (1 - n**2)
        a_r, a_z = a_n * v_n * r * (1 - r), g * (h - n) * z * (1 - z)
        of_products = jnp.where(here > 0, jnp.concatenate([a_r, a_z, a_n * r]), 0)
        back = jnp.where(here > 0, g * z, g) + weight.T @ of_products
        return back, (of_products, jnp.where(here > 0, a_n, 0))

    steps = exists, gradient, before, r, z, n, v_n
    of_start, (of_products, a_n) = lax.scan(step, jnp.zeros_like(gradient[0]), steps, reverse=True)
    of_inputs = of_products.at[:, 2 * len(of_start) :].set(a_n)
    return None, of_inputs, of_products, of_start


_attach.defvjp(_attach_forward, _attach_backward)
