"""The wake-sleep algorithm, the rival with the same encoder and decoder.

Paper: §4, §5.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from aevb.estimators import Terms, sgvb_b
from aevb.estimators.samples import average
from aevb.learners.ascent import LearnerState, ascend, map_optimizer, start
from aevb.learners.optimizers import OPTIMIZERS
from aevb.models import GenerativeModel, RecognitionModel, Skeleton, join, split


class WakeSleepNoise(NamedTuple):
    """The randomness of one datapoint's step, as keys: what is sampled here need not be reparameterizable."""

    wake: Array  # (L,)
    sleep: Array  # (L,)


@dataclass(frozen=True)
class WakeSleep:
    r"""Ascent on two objectives, one for the decoder and one for the encoder.

    .. math::
        \text{wake:}\quad \theta \leftarrow \theta + \mathrm{update}(\nabla_\theta \log p_\theta(x, z)),
        \quad z \sim q_\phi(z | x)

    .. math::
        \text{sleep:}\quad \phi \leftarrow \phi + \mathrm{update}(\nabla_\phi \log q_\phi(\tilde z | \tilde x)),
        \quad \tilde z, \tilde x \sim p_\theta(z)\, p_\theta(x | z)

    The sleep phase fits q to the posteriors of what the model dreams, in the other direction of the divergence, so the
    two together are the gradient of no single bound. The samples are not differentiated, so any model will do
    whose parts can be sampled, with discrete x or z too; only the bound of held-out rows needs more.

    Args:
        skeleton: Skeleton of the pair (generative, recognition), see :func:`aevb.models.split`.
        num_data: N.
        estimator: Bound by which held-out rows are judged; learning does not use it.
        num_samples: L, draws of z, and dreams, for each datapoint and step.
        optimizer: optax transformation that *minimizes*; its updates are multiplied by the state's learning rate.
        parameter_prior: Whether the prior N(0, I) on all parameters counts (MAP) or not (maximum likelihood).

    Paper: §4, §5.
    Deviates: the objectives are divided by N, as in :class:`AEVB`.
    """

    skeleton: Skeleton
    num_data: int
    estimator: Callable = sgvb_b
    num_samples: int = 1
    optimizer: optax.GradientTransformation = OPTIMIZERS["adam"]
    parameter_prior: bool = True

    def init(self, models: tuple[GenerativeModel, RecognitionModel], learning_rate: float, key: Array) -> LearnerState:
        """Return the state that starts from these models; nothing in it is random."""
        return start(split(models), self._optimizer(), learning_rate)

    def models(self, state: LearnerState) -> tuple[GenerativeModel, RecognitionModel]:
        """Return the models of a state."""
        return join(state.parameters, state.constants, self.skeleton)

    def draw_noise(self, state: LearnerState, key: Array, x: Array, shape: tuple[int, ...]) -> WakeSleepNoise:
        """Return random keys for both phases of steps of this shape."""
        return WakeSleepNoise(*jax.random.split(key, (2, *shape, self.num_samples)))

    def step(self, state: LearnerState, batch: Array, noise: WakeSleepNoise, places: Array):
        """Wake and sleep once: update all parameters with one minibatch (M, ...), and as many dreams."""
        before = self.models(state)  # samples come from these, and are not differentiated

        def objective(parameters):
            now = join(parameters, state.constants, self.skeleton)
            values, terms = jax.vmap(lambda x, noise: self._phases(now, before, x, noise))(batch, noise)
            return jnp.mean(values), jax.tree.map(jnp.mean, terms)

        return ascend(state, self._optimizer(), objective)

    def _phases(self, now, before, x, noise):
        """Return what one datapoint adds to both objectives, and estimator A of its bound, with its terms."""
        generative, recognition = now
        q = before[1](x)

        def one_sample(wake_key, sleep_key):
            z = jnp.asarray(q.sample(wake_key))
            dream, cause = before[0].sample_joint(sleep_key)
            reconstruction, log_prior = generative.log_likelihood(x, z), generative.latent_distribution().log_prob(z)
            sleep = jnp.asarray(recognition(dream).log_prob(cause))
            return reconstruction + log_prior + sleep, Terms.of(reconstruction, q.log_prob(z) - log_prior)

        return average(one_sample, noise.wake, noise.sleep)

    def _optimizer(self):
        return map_optimizer(self.optimizer, self.parameter_prior, self.num_data)
