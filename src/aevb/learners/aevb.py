"""Auto-Encoding Variational Bayes.

Paper: Algorithm 1, §2.3.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import optax
from jax import Array

from aevb.estimators import minibatch, sgvb_b, with_terms
from aevb.learners.ascent import LearnerState, ascend, map_optimizer, start
from aevb.learners.optimizers import OPTIMIZERS
from aevb.models import GenerativeModel, RecognitionModel, Skeleton, join, split


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

    def init(self, models: tuple[GenerativeModel, RecognitionModel], learning_rate: float, key: Array) -> LearnerState:
        """Return the state that starts from these models; nothing in it is random."""
        return start(split(models), self._optimizer(), learning_rate)

    def models(self, state: LearnerState) -> tuple[GenerativeModel, RecognitionModel]:
        """Return the models of a state."""
        return join(state.parameters, state.constants, self.skeleton)

    def draw_noise(self, state: LearnerState, key: Array, x: Array, shape: tuple[int, ...]) -> Array:
        """Draw epsilon ~ p(epsilon) for datapoints like x: shape ``(*shape, L, ...)``."""
        _, recognition = self.models(state)
        return jnp.asarray(recognition.noise(x).sample(key, (*shape, self.num_samples)))

    def step(self, state: LearnerState, batch: Array, noise: Array, places: Array):
        """Update all parameters with one minibatch (M, ...) and its noise (M, L, ...); `places` play no part."""
        terms_of_data = minibatch(with_terms(self.estimator), self.num_data)

        def objective(parameters):
            generative, recognition = join(parameters, state.constants, self.skeleton)
            terms = terms_of_data(generative, recognition, batch, noise)
            terms = jax.tree.map(lambda term: term / self.num_data, terms)
            return terms.lower_bound, terms

        return ascend(state, self._optimizer(), objective)

    def _optimizer(self):
        return map_optimizer(self.optimizer, self.parameter_prior, self.num_data)
