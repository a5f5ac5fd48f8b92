"""Transitions of a state-space model: p(z_t | z_{t-1}, u_t), aware of the time that passed.

To add one by name, add an entry to ``TRANSITIONS``.

Paper: §7.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from aevb.arrays import filled
from aevb.models.families import FAMILIES
from aevb.networks import MLP, Linear

START = 0.9  # of the matrix of a linear transition: with the start of its variance, the states start as N(0, I)


class Step(NamedTuple):
    """What a transition reads beside the previous state."""

    inputs: Array  # u_t, (U,): controls of the step and covariates of the sequence, as features; U may be 0
    elapsed: Array  # the time since the previous step, (); 1 for regular sequences


class LinearTransition(eqx.Module):
    r"""A linear transition with constant noise.

    .. math:: z_t \sim N(A z_{t-1} + B u_t + b, \sigma^2 I)

    Steps of another duration than 1 are as in :func:`after`.

    Args:
        latent_dim: J.
        num_inputs: U.

    Example:
        >>> LinearTransition(2, 1)(jnp.zeros(2), Step(jnp.zeros(1), jnp.ones(()))).event_shape
        (2,)
    """

    linear: Linear
    log_variance: Array  # (J,)
    rate: Array  # (J,)

    def __init__(self, latent_dim: int, num_inputs: int = 0, hidden: tuple[int, ...] = (), activation: str = "relu"):
        self.linear = Linear(latent_dim + num_inputs, latent_dim)
        self.log_variance, self.rate = filled(latent_dim, 0), filled(latent_dim, 0)

    def __call__(self, z: Array, u: Step) -> dist.Distribution:
        """Return p(z_t | z_{t-1}, u_t)."""
        mean = self.linear(jnp.concatenate([z, u.inputs]))
        return after(u.elapsed, self.rate, z, mean, self.log_variance)

    def started(self) -> "LinearTransition":
        """Return it with the values with which learning starts: slow changes, and states like N(0, I)."""
        J = len(self.rate)
        weight = self.linear.weight.at[:, :J].set(START * jnp.eye(J))
        log_variance = jnp.full(J, jnp.log1p(-(START**2)))
        return eqx.tree_at(lambda t: (t.linear.weight, t.log_variance), self, (weight, log_variance))


class GatedTransition(eqx.Module):
    r"""The gated transition of deep Markov models (Krishnan, Shalit and Sontag, 2017, section 3).

    .. math:: z_t \sim N\big((1 - g) (A z_{t-1} + a) + g h,\, e^{v}\big), \quad
        g = \sigma(\mathrm{MLP}(z_{t-1}, u_t)), \quad h = \mathrm{MLP}(z_{t-1}, u_t), \quad v = V f(h) + c

    with f the activation. It chooses for each variable between linear and nonlinear dynamics. Steps of another duration
    than 1 are as in :func:`after`.

    Args:
        latent_dim: J.
        num_inputs: U.
        hidden: Widths of the hidden layers of both networks.
        activation: A key of :data:`aevb.networks.ACTIVATIONS`.
    """

    gate: MLP
    proposal: MLP
    linear: Linear
    log_variance: Linear
    rate: Array  # (J,)

    def __init__(
        self, latent_dim: int, num_inputs: int = 0, hidden: tuple[int, ...] = (200,), activation: str = "relu"
    ):
        self.gate, self.proposal = (MLP(latent_dim + num_inputs, hidden, latent_dim, activation) for _ in range(2))
        self.linear, self.log_variance = Linear(latent_dim, latent_dim), Linear(latent_dim, latent_dim)
        self.rate = filled(latent_dim, 0)

    def __call__(self, z: Array, u: Step) -> dist.Distribution:
        """Return p(z_t | z_{t-1}, u_t)."""
        condition = jnp.concatenate([z, u.inputs])
        g, h = jax.nn.sigmoid(self.gate(condition)), self.proposal(condition)
        mean = (1 - g) * self.linear(z) + g * h
        return after(u.elapsed, self.rate, z, mean, self.log_variance(jax.nn.relu(h)))

    def started(self) -> "GatedTransition":
        """Return it with the values with which learning starts: the linear part keeps the state."""
        return eqx.tree_at(lambda t: t.linear.weight, self, jnp.eye(len(self.rate)))


def after(elapsed: Array, rate: Array, z: Array, mean: Array, log_variance: Array) -> dist.Distribution:
    r"""Return the distribution of the state after some time, given mean and variance after one unit of time.

    .. math:: N\big(z + f(\Delta) (\mu - z),\, f_2(\Delta) \sigma^2\big), \qquad
        f_c(\Delta) = \frac{1 - e^{-c k \Delta}}{1 - e^{-c k}}, \quad k = \log(1 + e^{r})

    It is the Ornstein-Uhlenbeck process if :math:`\mu = e^{-k} z`. The state is unchanged after no time at all.

    Args:
        elapsed: :math:`\Delta`, ().
        rate: r, (J,).
        z: The state before, (J,).
        mean: :math:`\mu`, (J,).
        log_variance: :math:`\log \sigma^2`, (J,).

    Example:
        >>> p = after(jnp.ones(()), jnp.zeros(1), jnp.zeros(1), jnp.ones(1), jnp.zeros(1))
        >>> p.mean.tolist(), p.variance.tolist()
        ([1.0], [1.0])
    """
    k = jax.nn.softplus(rate)
    share = jnp.expm1(-k * elapsed) / jnp.expm1(-k)
    log_share = jnp.log(jnp.expm1(-2 * k * elapsed) / jnp.expm1(-2 * k))
    outputs = jnp.concatenate([z + share * (mean - z), log_variance + log_share])
    return FAMILIES["gaussian"].at(outputs, len(rate))


# Name -> transition(latent_dim, num_inputs, hidden, activation), with all parameters zero but those of `started`.
TRANSITIONS: dict[str, Callable[..., Any]] = {"gated": GatedTransition, "linear": LinearTransition}
