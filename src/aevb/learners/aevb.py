"""Auto-Encoding Variational Bayes.

Paper: Algorithm 1, §2.3.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax
from jax import Array

from aevb.estimators import minibatch, with_terms
from aevb.learners.ascent import EncoderAscent
from aevb.learners.protocol import LearnerState


@final
@dataclass(frozen=True)
class AEVB(EncoderAscent):
    r"""Stochastic ascent on the lower bound, theta and phi together.

    .. math:: \theta, \phi \leftarrow \theta, \phi + \mathrm{update}\left(\nabla_{\theta, \phi}
        \frac{1}{N} \left[ \tilde L^M(X^M, \epsilon) + \log N(\theta, \phi; 0, I) \right]\right)

    The second term is the weight decay of the paper's MAP criterion. The arguments are those of
    :class:`~aevb.learners.ascent.Ascent`.

    Paper: Algorithm 1, §2.3, §5.
    Deviates: the objective is divided by N, so that a learning rate means the same for small and large data sets.
    """

    title: ClassVar[str] = "Auto-Encoding Variational Bayes"
    argument: ClassVar[str] = "learner='aevb'"
    follows_estimator: ClassVar[bool] = True

    @classmethod
    def prepare(cls, generative, recognition, posterior, latent_dim):
        """Return the pair unchanged."""
        return generative, recognition

    def draw_noise(self, state: LearnerState, key: Array, x: Any, shape: tuple[int, ...]) -> Any:
        """Draw epsilon ~ p(epsilon) for datapoints like x: shape ``(*shape, L, ...)``."""
        _, recognition = self.models(state)
        return recognition.noise(x).sample(key, (*shape, self.num_samples))

    def step(self, state: LearnerState, batch: Any, noise: Any, places: Array):
        """Update all parameters with one minibatch (M, ...) and its noise (M, L, ...); `places` are not used."""
        terms_of_data = minibatch(with_terms(self.estimator), self.num_data)

        def objective(parameters):
            generative, recognition = self._pair(state, parameters)
            terms = terms_of_data(generative, recognition, batch, noise)
            terms = jax.tree.map(lambda term: term / self.num_data, terms)
            return terms.lower_bound, terms

        return self._ascend(state, objective)
