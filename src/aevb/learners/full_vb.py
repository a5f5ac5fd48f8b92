"""Full variational Bayes: a posterior over the decoder's weights as well as over the latent variables.

Paper: App. F.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import jax
import jax.numpy as jnp
from jax import Array

from aevb.estimators import full_vb_a, full_vb_b, minibatch, sgvb_a, sgvb_b
from aevb.learners.ascent import EncoderAscent
from aevb.learners.protocol import LearnerState, StepInfo
from aevb.models import BayesianGenerativeModel


class FullVBNoise(NamedTuple):
    """The noise of steps."""

    epsilon: Any  # (..., M, L, J)
    zeta_keys: Array  # (..., L): noise for all weights and a whole chunk of steps would not fit into memory


@final
@dataclass(frozen=True)
class FullVB(EncoderAscent):
    r"""Stochastic ascent on the bound on log p(X), over the posterior of the weights and the encoder together.

    .. math:: \phi \leftarrow \phi + \mathrm{update}\left(\nabla_\phi \frac{1}{N} \tilde L(\phi; X)\right)

    :math:`\phi` contains the means and log variances of the weights of decoder and prior, and the encoder's weights.
    A step draws L sets of weights, each for the whole minibatch. The arguments are those of
    :class:`~aevb.learners.ascent.Ascent`; the estimator is ``sgvb_b`` for eq. (24) or ``sgvb_a`` for eq. (22), and
    `parameter_prior` has no effect: the hyperprior N(0, I) is part of the bound, and the encoder's weights have no
    prior.

    Paper: Algorithm 2, App. F, App. F.1.
    Deviates: the objective is divided by N, as in :class:`AEVB`.
    """

    title: ClassVar[str] = "full variational Bayes"
    argument: ClassVar[str] = "learner='full-vb'"
    estimators: ClassVar[tuple[str, ...]] = ("sgvb-b", "sgvb-a")
    needs_num_data: ClassVar[bool] = True
    has_weight_posterior: ClassVar[bool] = True

    @classmethod
    def prepare(cls, generative, recognition, posterior, latent_dim):
        """Return the pair with a posterior over the generative model's weights."""
        return BayesianGenerativeModel(generative), recognition

    def draw_noise(self, state: LearnerState, key: Array, x: Array, shape: tuple[int, ...]) -> FullVBNoise:
        """Draw epsilon for datapoints like x, and keys for zeta."""
        _, recognition = self.models(state)
        epsilon_key, zeta_key = jax.random.split(key)
        epsilon = recognition.noise(x).sample(epsilon_key, (*shape, self.num_samples))
        return FullVBNoise(epsilon, jax.random.split(zeta_key, (*shape[:-1], self.num_samples)))

    def step(self, state: LearnerState, batch: Array, noise: FullVBNoise, places: Array):
        """Update all parameters with one minibatch (M, ...) and its noise; `places` are not used."""
        bound_at = minibatch(self.estimator, self.num_data, self.share)
        # (L, M, 1, J): one draw of z for each draw of the weights
        epsilon = jax.tree.map(lambda array: jnp.moveaxis(array, 1, 0)[:, :, None], noise.epsilon)

        def objective(parameters):
            weights, recognition = self._pair(state, parameters)
            zeta = jax.vmap(weights.noise)(noise.zeta_keys)

            def bound_of_data(theta, epsilon):
                return bound_at(theta, recognition, batch, epsilon)

            bound = FULL_BOUNDS[self.estimator](weights, bound_of_data, zeta, epsilon) / self.num_data
            return bound, StepInfo(bound)

        return self._ascend(state, objective)


# Estimator for one datapoint -> estimator for all data, of the same kind: all terms sampled, or the KLs in closed form.
FULL_BOUNDS: dict[Callable, Callable] = {
    sgvb_a: lambda weights, *rest: full_vb_a(weights.transform, weights.log_ratio, *rest),
    sgvb_b: lambda weights, *rest: full_vb_b(weights.transform, weights.kl(), *rest),
}
