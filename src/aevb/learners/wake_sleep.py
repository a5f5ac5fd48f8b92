"""The wake-sleep algorithm, the paper's baseline with the same encoder and decoder.

Paper: §4, §5.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import jax
import jax.numpy as jnp
from jax import Array

from aevb.estimators import Terms
from aevb.estimators.samples import average
from aevb.learners.ascent import EncoderAscent
from aevb.learners.protocol import LearnerState
from aevb.models import Datapoint


class WakeSleepNoise(NamedTuple):
    """The noise of one datapoint's step, as keys: the distributions sampled here need not be reparameterizable."""

    wake: Array  # (L,)
    sleep: Array  # (L,)


@final
@dataclass(frozen=True)
class WakeSleep(EncoderAscent):
    r"""Ascent on two objectives, one for the decoder and one for the encoder.

    .. math::
        \text{wake:}\quad \theta \leftarrow \theta + \mathrm{update}(\nabla_\theta \log p_\theta(x, z)),
        \quad z \sim q_\phi(z | x)

    .. math::
        \text{sleep:}\quad \phi \leftarrow \phi + \mathrm{update}(\nabla_\phi \log q_\phi(\tilde z | \tilde x)),
        \quad \tilde z, \tilde x \sim p_\theta(z)\, p_\theta(x | z)

    The sleep phase fits q to the posteriors of the model's own samples ("dreams"), in the other direction of the
    divergence, so the two updates together are not the gradient of any single bound. The samples are not
    differentiated: any model works whose parts can be sampled, also with discrete x or z; only the bound of held-out
    rows needs more.

    The arguments are those of :class:`~aevb.learners.ascent.Ascent`; `num_samples` draws of z, and as many dreams, are
    made per datapoint and step. The estimator is only used to evaluate held-out rows, not for training.

    Paper: §4, §5.
    Deviates: the objectives are divided by N, as in :class:`AEVB`.
    """

    title: ClassVar[str] = "the wake-sleep algorithm"
    argument: ClassVar[str] = "learner='wake-sleep'"

    @classmethod
    def prepare(cls, generative, recognition, posterior, latent_dim):
        """Return the pair unchanged."""
        return generative, recognition

    def draw_noise(self, state: LearnerState, key: Array, x: Array, shape: tuple[int, ...]) -> WakeSleepNoise:
        """Return random keys for both phases of steps of this shape."""
        return WakeSleepNoise(*jax.random.split(key, (2, *shape, self.num_samples)))

    def step(self, state: LearnerState, batch: Array, noise: WakeSleepNoise, places: Array):
        """Wake and sleep once: update all parameters with one minibatch (M, ...) and as many dreams."""
        before = self._pair(state)  # samples come from these and are not differentiated

        def objective(parameters):
            now = self._pair(state, parameters)
            values, terms = jax.vmap(lambda x, noise: self._phases(now, before, x, noise))(batch, noise)
            return self.share.mean(values), jax.tree.map(self.share.mean, terms)

        return self._ascend(state, objective)

    def _phases(self, now, before, x, noise):
        """Return the contribution of one datapoint to both objectives, and the terms of estimator A of its bound."""
        generative, recognition = now
        q = before[1](x)

        def one_sample(wake_key, sleep_key):
            z: Any = q.sample(wake_key)
            dream, cause = before[0].sample_joint(sleep_key, given=Datapoint.of(x).given)
            dream = Datapoint.of(x).with_values(dream)  # with the same missing entries as x
            reconstruction, log_prior = generative.log_likelihood(x, z), generative.latent_distribution(x).log_prob(z)
            sleep = jnp.asarray(recognition(dream).log_prob(cause))
            return reconstruction + log_prior + sleep, Terms.of(reconstruction, {"z": q.log_prob(z) - log_prior})

        return average(one_sample, noise.wake, noise.sleep)
