"""Auto-Encoding Variational Bayes.

Paper: Algorithm 1, §2.3.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from aevb.estimators import minibatch, sgvb_b
from aevb.learners.optimizers import OPTIMIZERS, with_weight_decay
from aevb.models import GenerativeModel, RecognitionModel, Skeleton, join, split


class AEVBState(NamedTuple):
    """Everything that a step changes, and the constants it reads."""

    parameters: Any  # theta and phi
    constants: Any
    optimizer_state: Any
    learning_rate: Array


class StepInfo(NamedTuple):
    """What a step reports."""

    lower_bound: Array  # average over the minibatch, nats a datapoint


@dataclass(frozen=True)
class AEVB:
    r"""Stochastic ascent on the lower bound, theta and phi together.

    .. math:: \theta, \phi \leftarrow \theta, \phi + \mathrm{update}\left(\nabla_{\theta, \phi}
        \frac{1}{N} \left[ \tilde L^M(X^M, \epsilon) + \log N(\theta, \phi; 0, I) \right]\right)

    The second term is the weight decay of the paper's MAP criterion. A learner is a value: equal ones share their
    compiled programs.

    Args:
        skeleton: Skeleton of the pair (generative, recognition), see :func:`aevb.models.split`.
        num_data: N.
        estimator: Bound of one datapoint, see :mod:`aevb.estimators`.
        num_samples: L.
        optimizer: optax transformation that *minimizes*; its updates are multiplied by the state's learning rate.
        parameter_prior: Whether the prior N(0, I) on all parameters counts (MAP) or not (maximum likelihood).

    Paper: Algorithm 1, §2.3, §5.
    Deviates: the objective is divided by N, so that a learning rate means the same for small and large data.
    """

    skeleton: Skeleton
    num_data: int
    estimator: Callable = sgvb_b
    num_samples: int = 1
    optimizer: optax.GradientTransformation = OPTIMIZERS["adam"]
    parameter_prior: bool = True

    def init(self, generative: GenerativeModel, recognition: RecognitionModel, learning_rate: float) -> AEVBState:
        """Return the state that starts from these models."""
        parameters, constants, _ = split((generative, recognition))
        return AEVBState(parameters, constants, self._ascent().init(parameters), jnp.asarray(learning_rate))

    def models(self, state: AEVBState) -> tuple[GenerativeModel, RecognitionModel]:
        """Return the models of a state."""
        return join(state.parameters, state.constants, self.skeleton)

    def draw_noise(self, state: AEVBState, key: Array, x: Array, shape: tuple[int, ...]) -> Array:
        """Draw epsilon ~ p(epsilon) for datapoints like x: shape ``(*shape, L, ...)``."""
        _, recognition = self.models(state)
        return jnp.asarray(recognition.noise(x).sample(key, (*shape, self.num_samples)))

    def step(self, state: AEVBState, batch: Array, noise: Array) -> tuple[AEVBState, StepInfo]:
        """Update all parameters with one minibatch (M, ...) and its noise (M, L, ...)."""
        bound_of_data = minibatch(self.estimator, self.num_data)

        def loss(parameters):
            generative, recognition = join(parameters, state.constants, self.skeleton)
            return -bound_of_data(generative, recognition, batch, noise) / self.num_data

        loss_value, gradient = jax.value_and_grad(loss)(state.parameters)
        updates, optimizer_state = self._ascent().update(gradient, state.optimizer_state, state.parameters)
        parameters = jax.tree.map(lambda p, u: p + state.learning_rate * u, state.parameters, updates)
        return state._replace(parameters=parameters, optimizer_state=optimizer_state), StepInfo(-loss_value)

    def _ascent(self) -> optax.GradientTransformation:
        """Return the optimizer with the gradient of log N(theta, phi; 0, I) / N, which is a weight decay of 1/N.

        Without the prior the decay is zero, and the optimizer's memory still has the same form.
        """
        return with_weight_decay(self.optimizer, 1 / self.num_data if self.parameter_prior else 0.0)
