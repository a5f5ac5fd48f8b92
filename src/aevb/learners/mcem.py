"""Monte Carlo EM, the paper's baseline without an encoder.

Paper: §5, App. E.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import jax
import jax.numpy as jnp
from jax import Array, lax

from aevb.learners.ascent import Ascent
from aevb.learners.protocol import LearnerState
from aevb.models import AbstractGenerativeModel, flattened


class Chains(NamedTuple):
    """Posterior samples that persist from step to step."""

    positions: Array  # (N, L, J): L chains for each training row
    log_step_size: Array


class MCEMInfo(NamedTuple):
    """Metrics of a step; without an encoder there is no bound."""

    log_joint: Array  # log p(x, z) at the samples, averaged over the minibatch, in nats per datapoint
    acceptance: Array


@final
@dataclass(frozen=True)
class MCEM(Ascent):
    r"""Ascent on the log joint at samples from the posterior.

    .. math:: z \sim p_\theta(z | x) \text{ by Hybrid Monte Carlo}, \qquad
        \theta \leftarrow \theta + \mathrm{update}(\nabla_\theta \log p_\theta(x, z))

    Each step moves the chains of its minibatch by one trajectory of leapfrog steps, with a step size tuned to the
    target acceptance, and then updates the weights several times with the new sample. Each datapoint's chain continues
    where its last visit left it; without that, ten leapfrog steps from the prior would not reach the posterior.

    The arguments are those of :class:`~aevb.learners.ascent.Ascent`, with L chains for each datapoint, and

    Args:
        num_leapfrog: Leapfrog steps per trajectory.
        target_acceptance: Acceptance rate to which the step size is tuned.
        num_updates: Weight updates per sample.

    Paper: §5, App. E.
    Deviates: the objective is divided by N, as in :class:`AEVB`; the step size is jittered by a fifth, so that no
    trajectory returns to its start, and is adapted with a constant gain.
    """

    num_leapfrog: int = 10
    target_acceptance: float = 0.9
    num_updates: int = 5

    title: ClassVar[str] = "Monte Carlo EM"
    argument: ClassVar[str] = "learner='mcem'"
    needs_encoder: ClassVar[bool] = False
    has_bound: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = True
    can_share: ClassVar[bool] = False
    needs_num_data: ClassVar[bool] = True
    needs_real_latents: ClassVar[bool] = True

    @classmethod
    def prepare(cls, generative, recognition, posterior, latent_dim):
        """Return only the generative model."""
        return generative, None

    def start_memory(self, models: tuple[AbstractGenerativeModel, None], key: Array) -> Chains:
        """Return chains that start from the prior."""
        prior = flattened(*models)[0].latent_distribution()
        positions = jnp.asarray(prior.sample(key, (self.num_data, self.num_samples)))
        return Chains(positions, jnp.log(jnp.asarray(0.1, positions.dtype)))

    def models(self, state: LearnerState) -> tuple[AbstractGenerativeModel, None]:
        """Return the generative model of a state, and None for the recognition model."""
        return self._pair(state, self._learned(state))

    def draw_noise(self, state: LearnerState, key: Array, x: Array, shape: tuple[int, ...]) -> Array:
        """Return random keys for the chains of steps of this shape."""
        return jax.random.split(key, (*shape, self.num_samples))

    def step(self, state: LearnerState, batch: Array, noise: Array, places: Array):
        """Move the chains of one minibatch (M, ...), stored at `places`, and update the weights at their positions."""
        from aevb.inference import hmc  # BlackJAX is slow to import, and only this learner needs it

        z, acceptance = self._move_chains(hmc.transition, state, batch, noise, places)
        positions = state.memory.positions.at[places].set(z)
        log_step_size = hmc.adapt(state.memory.log_step_size, jnp.mean(acceptance), self.target_acceptance)

        def objective(parameters):
            generative, _ = self._pair(state, parameters)
            generative, _ = flattened(generative, None)
            log_joint = jnp.mean(jax.vmap(lambda x, z: jax.vmap(lambda z: generative.log_joint(x, z))(z))(batch, z))
            return log_joint, log_joint

        def update(state, _):
            return self._ascend(state, objective)

        state, log_joints = lax.scan(update, state, length=self.num_updates)
        info = MCEMInfo(log_joints[0], jnp.mean(acceptance))
        return state._replace(memory=Chains(positions, log_step_size)), info

    def _move_chains(self, transition, state, batch, keys, places):
        generative, _ = flattened(*self._pair(state))  # Hybrid Monte Carlo moves vectors
        step_size = jnp.exp(state.memory.log_step_size)

        def move(x, key, z):
            return transition(lambda z: generative.log_joint(x, z), key, z, step_size, self.num_leapfrog)

        return jax.vmap(jax.vmap(move, in_axes=(None, 0, 0)))(batch, keys, state.memory.positions[places])
