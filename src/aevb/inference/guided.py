r"""A proposal for particle filters that has seen the observation of its step.

.. math:: r(z_t | z_{t-1}) \propto p(z_t | z_{t-1}) \, N(x_t;\, f(m) + C (z_t - m),\, R), \qquad
    m = E[z_t | z_{t-1}], \quad C = f'(m)

with f and R mean and variances of p(x_t|z_t), R at m. For a linear emission it is :math:`p(z_t | z_{t-1}, x_t)`, the
best proposal that sees no later step (Doucet, Godsill and Andrieu, "On sequential Monte Carlo sampling methods for
Bayesian filtering", 2000, section II.D); otherwise weights correct for the difference.

Paper: §7.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array
from numpyro.distributions import constraints

from aevb.distributions import MarkovChain
from aevb.distributions.tree import sampled


class GivenLinear(dist.Distribution):
    r"""A Gaussian variable given an observation that is linear in it, with independent noise.

    .. math:: p(z | x) = p(z) N(x; f + C (z - m), R) / N(x; f, S), \qquad S = C V C^T + R

    It is drawn as a draw of (z, x) that is moved by the residual, :math:`z + V C^T S^{-1} (x - x')`: only a matrix of
    the size of x is factored, not one of the size of z.

    Args:
        prior: p(z), with independent variables, mean m and variances V, (J,).
        slope: C, (D, J); zero for what is not observed.
        residual: x - f, (D,); zero there.
        variances: R, (D,); 1 there.

    Example:
        >>> prior = dist.Normal(jnp.zeros(1), 1.0).to_event(1)
        >>> p = GivenLinear(prior, jnp.ones((1, 1)), jnp.ones(1), jnp.ones(1))  # N(1/2, 1/2)
        >>> round(float(p.log_prob(jnp.full(1, 0.5))), 4)
        -0.5724
    """

    pytree_data_fields = ("prior", "slope", "residual", "variances")

    def __init__(self, prior: dist.Distribution, slope: Array, residual: Array, variances: Array):
        self.prior, self.slope, self.residual, self.variances = prior, slope, residual, variances
        super().__init__((), prior.event_shape, validate_args=False)

    @property
    def support(self) -> Any:
        """All vectors."""
        return constraints.real_vector

    def _root(self):
        """Return the Cholesky factor of S, (D, D)."""
        return _cholesky((self.slope * self.prior.variance) @ self.slope.T + jnp.diag(self.variances))

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw states."""
        root = self._root()

        def draw(key):
            key_z, key_x = jax.random.split(key)
            z: Any = self.prior.sample(key_z)
            noise = jnp.sqrt(self.variances) * jax.random.normal(key_x, self.variances.shape, self.variances.dtype)
            residual = self.residual - self.slope @ (z - self.prior.mean) - noise
            solved = _solved_transposed(root, _solved(root, residual))
            return z + self.prior.variance * (self.slope.T @ solved)

        return sampled(draw, key, sample_shape)

    def log_prob(self, value: Any, intermediates=None) -> Array:
        """Return the log density of one state."""
        root = self._root()
        far = _solved(root, self.residual)
        near = (self.residual - self.slope @ (value - self.prior.mean)) / jnp.sqrt(self.variances)
        log_ratio = (far @ far - near @ near) / 2 + jnp.sum(jnp.log(jnp.diag(root)) - jnp.log(self.variances) / 2)
        return jnp.asarray(self.prior.log_prob(value)) + log_ratio


# Written out, for a few columns: on CPU, calls of LAPACK for thousands of particles inside of a scan may wait for each
# other forever in XLA.
def _cholesky(S):
    """Return L with S = L L^T, (D, D)."""
    L, places = jnp.zeros_like(S), jnp.arange(len(S))
    for k in range(len(S)):
        column = S[:, k] - L @ L[k]
        L = L.at[:, k].set(jnp.where(places >= k, column, 0) / jnp.sqrt(column[k]))
    return L


def _solved(L, b):
    """Return y with L y = b, (D,)."""
    y = jnp.zeros_like(b)
    for k in range(len(b)):
        y = y.at[k].set((b[k] - L[k] @ y) / L[k, k])
    return y


def _solved_transposed(L, b):
    """Return y with L^T y = b, (D,)."""
    y = jnp.zeros_like(b)
    for k in reversed(range(len(b))):
        y = y.at[k].set((b[k] - L[:, k] @ y) / L[k, k])
    return y


class GuidedTransition(eqx.Module):
    """r(z_t | z_{t-1}): the prior's step, corrected by what is observed at it.

    Args:
        transition: p(z_t | z_{t-1}, u_t), Gaussian with independent variables.
        moments: Function of a state and of one step of what is observed, which returns mean and variances of x_t, (D,).
    """

    transition: Callable[[Array, Any], dist.Distribution]
    moments: Callable[[Array, Any], tuple[Array, Array]]

    def __call__(self, z: Array, inputs: tuple) -> GivenLinear:
        """Return r(z_t | z_{t-1}), where the inputs are u_t and what is observed at the step."""
        u, of_step = inputs
        return self.corrected(self.transition(z, u), of_step)

    def corrected(self, p: dist.Distribution, of_step: Any) -> GivenLinear:
        """Return p(z_t | ...) given x_t, for an emission that is linear around the mean of p."""
        values, observed, *_ = of_step
        m: Any = p.mean
        x, R = self.moments(m, of_step)
        C = jax.jacrev(lambda z: self.moments(z, of_step)[0])(m)  # (D, J)
        residual = jnp.where(observed, values - x, 0)
        return GivenLinear(p, jnp.where(observed[:, None], C, 0), residual, jnp.where(observed, R, 1))


def guided(prior: MarkovChain, moments: Callable[[Array, Any], tuple[Array, Array]], x: tuple) -> MarkovChain:
    """Return the chain that proposes states for a particle filter.

    Args:
        prior: p(z), whose steps are Gaussian with independent variables.
        moments: See :class:`GuidedTransition`.
        x: Values (T, D), which of them are observed, and anything else that `moments` reads, leading axis T.
    """
    step = GuidedTransition(prior.transition, moments)
    initial = step.corrected(prior.initial, jax.tree.map(lambda leaf: leaf[0], x))
    return MarkovChain(initial, step, prior.num_steps, (prior.inputs, x), prior.length)
