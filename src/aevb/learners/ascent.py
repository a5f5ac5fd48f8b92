"""What all learners share: the state of a stochastic ascent, and one update of it."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import optax
from jax import Array

from aevb.estimators import Terms
from aevb.learners.optimizers import with_weight_decay


class LearnerState(NamedTuple):
    """Everything that a step changes, and the constants it reads."""

    parameters: Any
    constants: Any
    optimizer_state: Any
    learning_rate: Array
    memory: Any = ()  # what a learner keeps from step to step besides


StepInfo = Terms  # what a step reports: averages over the minibatch, nats a datapoint


class Learner(Protocol):
    """What the training loop asks of a learner: a value, whose methods are pure."""

    def init(self, models, learning_rate: float, key: Array) -> LearnerState:
        """Return the state that starts from the pair (generative, recognition)."""
        ...

    def models(self, state: LearnerState) -> tuple:
        """Return the models of a state."""
        ...

    def draw_noise(self, state: LearnerState, key: Array, x: Array, shape: tuple[int, ...]) -> Any:
        """Draw the randomness of steps of this shape, (..., M), for datapoints like x."""
        ...

    def step(self, state: LearnerState, batch: Array, noise: Any, places: Array) -> tuple[LearnerState, NamedTuple]:
        """Learn from one minibatch (M, ...), which stands at these places of the training rows.

        The report's first field is what is maximized, in nats a datapoint.
        """
        ...


def start(parts, optimizer: optax.GradientTransformation, learning_rate: float, memory: Any = ()) -> LearnerState:
    """Return the state that starts from a model in parts, see :func:`aevb.models.split`."""
    # Not of a "weak" type, which gives way to others: the step would change it, and be compiled again.
    parameters = jax.tree.map(lambda p: jnp.asarray(p, p.dtype), parts.parameters)
    return LearnerState(
        parameters, parts.constants, _memory(optimizer.init, parameters), jnp.asarray(learning_rate), memory
    )


@partial(jax.jit, static_argnums=0)  # one program, and not one for each shape
def _memory(init, parameters):
    return init(parameters)


def ascend(state: LearnerState, optimizer: optax.GradientTransformation, objective: Callable):
    """Move the parameters along the gradient of an objective.

    Args:
        state: Where from.
        optimizer: Minimizes, as optax's do; its updates are multiplied by the state's learning rate.
        objective: Function of the parameters that returns what is maximized, and something to report.

    Returns:
        The new state, and the report.
    """

    def loss(parameters):
        value, report = objective(parameters)
        return -value, report

    gradient, report = jax.grad(loss, has_aux=True)(state.parameters)
    updates, optimizer_state = optimizer.update(gradient, state.optimizer_state, state.parameters)
    parameters = jax.tree.map(lambda p, u: p + state.learning_rate * u, state.parameters, updates)
    return state._replace(parameters=parameters, optimizer_state=optimizer_state), report


def map_optimizer(
    optimizer: optax.GradientTransformation, parameter_prior: bool, num_data: int
) -> optax.GradientTransformation:
    """Return the optimizer with the gradient of log N(parameters; 0, I) / N, which is a weight decay of 1/N.

    Without the prior the decay is zero, and the optimizer's memory still has the same form.

    Paper: §5.
    """
    return with_weight_decay(optimizer, 1 / num_data if parameter_prior else 0.0)
