"""Auto-Encoding Variational Bayes.

Paper: Algorithm 1, §2.3.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import jax
import jax.numpy as jnp
from jax import Array

from aevb.estimators import Terms, importance, importance_terms, minibatch, with_terms
from aevb.learners.ascent import Ascent
from aevb.learners.protocol import LearnerState
from aevb.models.dropout import draw_masks, thinned
from aevb.models.recognition import noise_of


class WithMasks(NamedTuple):
    """The noise of a step with dropout."""

    epsilon: Any  # (M, L, ...)
    masks: list[Array]  # of all datapoints of the step


@final
@dataclass(frozen=True)
class AEVB(Ascent):
    r"""Stochastic ascent on the lower bound, theta and phi together.

    .. math:: \theta, \phi \leftarrow \theta, \phi + \mathrm{update}\left(\nabla_{\theta, \phi}
        \frac{1}{N} \left[ \tilde L^M(X^M, \epsilon) + \log N(\theta, \phi; 0, I) \right]\right)

    The second term is the weight decay of the paper's MAP criterion. The arguments are those of
    :class:`~aevb.learners.ascent.Ascent`, and

    Args:
        annealing: During this many steps the weight of the KL term changes linearly to 1 (Bowman et al., "Generating
            sentences from a continuous space", 2016, section 3.1), and that of the importance-weighted bound likewise,
            the rest being the average of log p(x|z), or what the estimator maximizes `at_first`, see
            :class:`~aevb.estimators.Terms`; reports are always of the bound itself. 0 for none.
        initial_kl_weight: The weight of the KL term at first. Above 1, as in conditional models, the decoder first
            learns what it can tell from the label, before it learns to read z.
        free_bits: Nats of each level's KL term, averaged over the minibatch, that the objective does not count (Kingma
            et al., "Improving variational inference with inverse autoregressive flow", 2016, eq. 15). 0 for none.
        dropout: Probability with which a hidden unit is left out of a step, see :mod:`aevb.models.dropout`.

    Paper: Algorithm 1, §2.3, §5.
    Deviates: the objective is divided by N, so that a learning rate means the same for small and large data sets.
    """

    annealing: int = 0
    initial_kl_weight: float = 0.0
    free_bits: float = 0.0
    dropout: float = 0.0
    title: ClassVar[str] = "Auto-Encoding Variational Bayes"
    argument: ClassVar[str] = "learner='aevb'"
    follows_estimator: ClassVar[bool] = True
    can_anneal: ClassVar[bool] = True

    @classmethod
    def prepare(cls, generative, recognition, posterior, latent_dim):
        """Return the pair unchanged."""
        return generative, recognition

    def start_memory(self, models: tuple, key: Array) -> Any:
        """Return nothing, or the number of steps so far if the KL term is annealed."""
        return jnp.zeros((), jnp.int32) if self.annealing else ()

    def models(self, state: LearnerState) -> tuple[Any, Any]:
        """Return the generative and the recognition model of a state."""
        return self._pair(state, self._learned(state))

    def draw_noise(self, state: LearnerState, key: Array, x: Any, shape: tuple[int, ...]) -> Any:
        """Draw epsilon ~ p(epsilon) for datapoints like x: shape ``(*shape, L, ...)``; beside it masks of dropout."""
        models = self.models(state)
        if not self.dropout:
            return self._epsilon(models[1], key, x, shape)
        key, key_masks = jax.random.split(key)
        masks = draw_masks(models, self.dropout, key_masks, shape[:-1])
        return WithMasks(self._epsilon(models[1], key, x, shape), masks)

    def _epsilon(self, recognition, key, x, shape):
        return noise_of(self.estimator, recognition, x).sample(key, (*shape, self.num_samples))

    def step(self, state: LearnerState, batch: Any, noise: Any, places: Array):
        """Update all parameters with one minibatch (M, ...) and its noise (M, L, ...); `places` are not used."""
        epsilon, masks = noise if self.dropout else (noise, [])
        is_weighted = self.annealing and self.estimator is importance
        estimator = importance_terms if is_weighted else with_terms(self.estimator)
        terms_of_data = minibatch(estimator, self.num_data, self.share)

        def objective(parameters):
            models = self._pair(state, parameters)
            generative, recognition = thinned(models, masks) if self.dropout else models
            terms = terms_of_data(generative, recognition, batch, epsilon)
            terms = jax.tree.map(lambda term: term / self.num_data, terms)
            report = Terms(terms.lower_bound) if is_weighted else terms._replace(at_first=None)
            weight = jnp.minimum(state.memory / self.annealing, 1.0) if self.annealing else 1.0
            objective = terms.annealed(weight, self.initial_kl_weight) if self.annealing else terms.lower_bound
            return (objective - weight * self._unused(terms) if self.free_bits else objective), report

        after, report = self._ascend(state, objective)
        return (after._replace(memory=state.memory + 1) if self.annealing else after), report

    def _unused(self, terms: Terms) -> Any:
        """Return the free bits that the levels do not use: with them, a smaller KL term is no gain."""
        levels: Any = (terms.kl_divergence,) if terms.level_divergences is None else terms.level_divergences
        return sum(jnp.maximum(self.free_bits - level, 0.0) for level in self.share.agreed(levels))
