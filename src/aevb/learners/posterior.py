"""SGVB for any log joint: ascent on the bound over an approximate posterior of its variables.

Paper: §2.3, App. F.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax

from aevb.estimators import full_vb_a, minibatch
from aevb.learners.ascent import ascend, start
from aevb.learners.protocol import LearnerState, StepInfo
from aevb.models import LogJoint, Skeleton, join, split


class PosteriorNoise(NamedTuple):
    """The noise of steps."""

    zeta: Any  # (..., L, ...)
    epsilon: Any  # (..., M, L, ...), or None without local variables


@final
@dataclass(frozen=True, eq=False)
class PosteriorLearner:
    r"""Stochastic ascent on the bound on the log evidence.

    .. math:: \log p(X) \ge E_q[\log p(X, v) - \log q(v)]

    Args:
        skeleton: Skeleton of the pair (posterior, local posterior or None), see :func:`aevb.models.split`.
        log_joint: The model.
        num_data: N.
        num_rows: Number of datapoints in the data; less than N if they represent more.
        whole: Whether a step uses all rows instead of a minibatch.
        num_samples: L.
        optimizer: optax transformation that *minimizes*; its updates are multiplied by the state's learning rate.

    Paper: §2.3, App. F.
    Deviates: only the part of the gradient of log q that goes through the sample is used; the expectation of the rest
    is zero. If q is exact, the gradient then has no noise (Roeder, Wu and Duvenaud, "Sticking the landing", 2017).
    """

    skeleton: Skeleton
    log_joint: LogJoint
    num_data: int
    num_rows: int
    whole: bool
    num_samples: int
    optimizer: optax.GradientTransformation

    needs_encoder: ClassVar[bool] = False
    row_bound: ClassVar[None] = None  # datapoints share the variables: there is only a bound for all data

    def init(self, models: tuple, learning_rate: float, key: Array) -> LearnerState:
        """Return the initial state for these posteriors; it involves no randomness."""
        return start(split(models), self.optimizer, learning_rate)

    def models(self, state: LearnerState) -> tuple:
        """Return the posteriors of a state."""
        return join(state.parameters, state.constants, self.skeleton)

    def draw_noise(self, state: LearnerState, key: Array, x: Any, shape: tuple[int, ...]) -> PosteriorNoise:
        """Draw zeta for the steps, and epsilon for their datapoints."""
        posterior, local = self.models(state)
        zeta_key, epsilon_key = jax.random.split(key)
        zeta = posterior.draw_noise(zeta_key, (*shape[:-1], self.num_samples))
        if local is None:
            return PosteriorNoise(zeta, None)
        M = shape[-1]
        if self.whole:  # then x is all data
            M, x = self.num_rows, jax.tree.map(lambda array: array[0], x)
        q = local.at(x, jnp.zeros((), int))
        return PosteriorNoise(zeta, q.draw_noise(epsilon_key, (*shape[:-1], M, self.num_samples)))

    def step(self, state: LearnerState, batch: Any, noise: PosteriorNoise, places: Array):
        """Update all parameters with one minibatch, or all data, and its noise."""
        rows = jnp.arange(self.num_rows) if self.whole else places % self.num_rows  # indices wrap around
        epsilon = jax.tree.map(lambda array: jnp.moveaxis(array, 1, 0), noise.epsilon)  # (L, M, ...)

        def objective(parameters):
            models = join(parameters, state.constants, self.skeleton)
            bound = self._bound(models, batch, rows, noise.zeta, epsilon)
            return bound, StepInfo(bound)

        return ascend(state, self.optimizer, objective)

    def log_parameter_prior(self, state: LearnerState) -> float:
        """Return 0: the parameters of a posterior have no prior; that of the variables is part of the log joint."""
        return 0.0

    def bad_variables(self, state: LearnerState) -> list[str]:
        """Return the names of the variables whose parameters are not finite, because their gradient was not."""
        posterior, _ = self.models(state)
        if isinstance(posterior.parts, dict):
            return [name for name, part in posterior.parts.items() if not _is_finite(part)]
        if posterior.variables is None or not hasattr(posterior.parts, "loc"):
            return []
        places = posterior.variables.places().items()
        loc = np.asarray(posterior.parts.loc)
        return [str(name) for name, (start, stop) in places if name and not np.isfinite(loc[start:stop]).all()]

    def log_ratio(self, models: tuple, point: Any, data: Any) -> Array:
        """Return log p(v) - log q(v) at one point; log p(X, v) - log q(v) if the log joint is a single function."""
        posterior, _ = models
        variables, log_det = posterior.read(point)
        return self.log_joint.of_variables(variables, data) + log_det - _held_fixed(posterior).log_prob(point)

    def bound_of_data(self, models: tuple, point: Any, batch: Any, rows: Array, epsilon: Any) -> Array:
        """Estimate the bound on log p(X|v) at one point, from a minibatch."""
        if self.log_joint.log_likelihood is None:
            return jnp.zeros(())
        posterior, local = models
        variables, _ = posterior.read(point)
        return minibatch(self._bound_of_datapoint, self.num_data)(variables, local, (batch, rows), epsilon)

    def _bound(self, models, batch, rows, zeta, epsilon):
        return full_vb_a(
            models[0].transform,
            lambda point: self.log_ratio(models, point, batch),
            lambda point, epsilon: self.bound_of_data(models, point, batch, rows, epsilon),
            zeta,
            epsilon,
        )

    def _bound_of_datapoint(self, variables, local, x_and_row, epsilon):
        x, row = x_and_row
        log_likelihood: Any = self.log_joint.log_likelihood
        if local is None:
            return log_likelihood(variables, x)
        q = local.at(x, row)
        point = q.transform(epsilon)
        z, log_det = q.read(point)
        return log_likelihood(variables, z, x) + log_det - _held_fixed(local).at(x, row).log_prob(point)


def _is_finite(module):
    return all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(module) if eqx.is_inexact_array(leaf))


def _held_fixed(model):
    parameters, constants, skeleton = split(model)
    return join(lax.stop_gradient(parameters), constants, skeleton)
