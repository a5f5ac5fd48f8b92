"""Monte Carlo EM, the rival without an encoder.

Paper: §5, App. E.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from aevb.estimators import sgvb_b
from aevb.learners.ascent import LearnerState, ascend, map_optimizer, start
from aevb.learners.optimizers import OPTIMIZERS
from aevb.models import GenerativeModel, Skeleton, join, split


class Chains(NamedTuple):
    """Posterior samples that persist from step to step."""

    positions: Array  # (N, L, J): L chains for each training row
    log_step_size: Array


class MCEMInfo(NamedTuple):
    """What a step reports; there is no bound without an encoder."""

    log_joint: Array  # log p(x, z) at the samples, average over the minibatch, nats a datapoint
    acceptance: Array


@dataclass(frozen=True)
class MCEM:
    r"""Ascent on the log joint at samples of the posterior.

    .. math:: z \sim p_\theta(z | x) \text{ by Hybrid Monte Carlo}, \qquad
        \theta \leftarrow \theta + \mathrm{update}(\nabla_\theta \log p_\theta(x, z))

    Each step moves the chains of its minibatch by one trajectory of leapfrog steps, with a step size that follows the
    target acceptance, and then updates the weights some times with the sample acquired. Each datapoint's chain goes on
    where it was left at its last visit; without that, ten leapfrog steps from the prior would not reach the posterior.

    Args:
        skeleton: Skeleton of the pair (generative, None), see :func:`aevb.models.split`.
        num_data: N.
        estimator: Plays no part.
        num_samples: L, chains for each datapoint.
        optimizer: optax transformation that *minimizes*; its updates are multiplied by the state's learning rate.
        parameter_prior: Whether the prior N(0, I) on all parameters counts (MAP) or not (maximum likelihood).
        num_leapfrog: Leapfrog steps of a trajectory.
        target_acceptance: What the step size is tuned to.
        num_updates: Weight updates with one sample.

    Paper: §5, App. E.
    Deviates: the objective is divided by N, as in :class:`AEVB`; a step size is jittered by a fifth, so that no
    trajectory comes back to where it began, and follows the acceptance with a constant gain.
    """

    skeleton: Skeleton
    num_data: int
    estimator: Callable = sgvb_b
    num_samples: int = 1
    optimizer: optax.GradientTransformation = OPTIMIZERS["adagrad"]
    parameter_prior: bool = True
    num_leapfrog: int = 10
    target_acceptance: float = 0.9
    num_updates: int = 5

    def init(self, models: tuple[GenerativeModel, None], learning_rate: float, key: Array) -> LearnerState:
        """Return the state that starts from these models, with chains that start from the prior."""
        prior = models[0].latent_distribution()
        positions = jnp.asarray(prior.sample(key, (self.num_data, self.num_samples)))
        memory = Chains(positions, jnp.log(jnp.asarray(0.1, positions.dtype)))
        return start(split(models), self._optimizer(), learning_rate, memory)

    def models(self, state: LearnerState) -> tuple[GenerativeModel, None]:
        """Return the models of a state."""
        return join(state.parameters, state.constants, self.skeleton)

    def draw_noise(self, state: LearnerState, key: Array, x: Array, shape: tuple[int, ...]) -> Array:
        """Return random keys for the chains of steps of this shape."""
        return jax.random.split(key, (*shape, self.num_samples))

    def step(self, state: LearnerState, batch: Array, noise: Array, places: Array):
        """Move the chains of one minibatch (M, ...), at these places, and update the weights with where they are."""
        from aevb.inference import hmc  # BlackJAX takes a while to load, and only this learner needs it

        z, acceptance = self._move_chains(hmc.transition, state, batch, noise, places)
        positions = state.memory.positions.at[places].set(z)
        log_step_size = hmc.adapt(state.memory.log_step_size, jnp.mean(acceptance), self.target_acceptance)

        def objective(parameters):
            generative, _ = join(parameters, state.constants, self.skeleton)
            log_joint = jnp.mean(jax.vmap(lambda x, z: jax.vmap(lambda z: generative.log_joint(x, z))(z))(batch, z))
            return log_joint, log_joint

        def update(state, _):
            return ascend(state, self._optimizer(), objective)

        state, log_joints = lax.scan(update, state, length=self.num_updates)
        info = MCEMInfo(log_joints[0], jnp.mean(acceptance))
        return state._replace(memory=Chains(positions, log_step_size)), info

    def _move_chains(self, transition, state, batch, keys, places):
        generative, _ = self.models(state)
        step_size = jnp.exp(state.memory.log_step_size)

        def move(x, key, z):
            return transition(lambda z: generative.log_joint(x, z), key, z, step_size, self.num_leapfrog)

        return jax.vmap(jax.vmap(move, in_axes=(None, 0, 0)))(batch, keys, state.memory.positions[places])

    def _optimizer(self):
        return map_optimizer(self.optimizer, self.parameter_prior, self.num_data)
