"""Variational Bayes without an encoder: each datapoint has its own q(z).

Paper: §2.1, §2.2.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array, lax
from numpyro.distributions import Distribution

from aevb.arrays import fingerprint
from aevb.estimators import with_terms
from aevb.learners.ascent import Ascent
from aevb.learners.protocol import LearnerState
from aevb.models import AbstractGenerativeModel, RecognitionModel, conditional
from aevb.networks import initialize

# For a datapoint's q(z): it is visited only a few times per epoch, so its steps start long and shrink with time.
ROW_OPTIMIZER = optax.adam(lambda count: 0.1 / jnp.sqrt(1 + count / 100))
NUM_STEPS, NUM_DRAWS = 1000, 4  # for finding q(z) of a new datapoint


class WithoutCondition(eqx.Module):
    """An encoder that ignores x: q(z), from a network with an empty input."""

    conditional: Callable[[Array], Distribution]

    def __call__(self, x: Array) -> Distribution:
        """Return q(z)."""
        return self.conditional(jnp.zeros(0))


class Row(NamedTuple):
    """The state of one datapoint."""

    recognition: Any  # its q(z), a RecognitionModel that ignores x
    optimizer_state: Any


class StartingPosterior(eqx.Module):
    """The q(z) from which every datapoint starts; it has no parameters.

    Args:
        posterior: A key of :data:`aevb.models.POSTERIORS`.
        latent_dim: J.
    """

    posterior: str = eqx.field(static=True)
    latent_dim: int = eqx.field(static=True)

    def __call__(self, x: Array) -> Distribution:
        """Return q(z)."""
        return self.row().recognition(x)

    def row(self) -> Row:
        """Return q(z) with its own parameters, to be improved."""
        encoder = conditional(0, (), self.latent_dim, family=self.posterior)
        recognition = RecognitionModel(WithoutCondition(initialize(encoder, jax.random.key(0))))
        return Row(recognition, ROW_OPTIMIZER.init(eqx.filter(recognition, eqx.is_inexact_array)))


def improve(row: Row, estimator: Callable, generative: AbstractGenerativeModel, x: Array, epsilon: Array) -> Row:
    """Move one datapoint's q(z) along the gradient of its bound, with the model fixed."""
    gradient = jax.grad(lambda recognition: -estimator(generative, recognition, x, epsilon))(row.recognition)
    updates, optimizer_state = ROW_OPTIMIZER.update(gradient, row.optimizer_state)
    return Row(optax.apply_updates(row.recognition, updates), optimizer_state)


class OptimizedEncoder(eqx.Module):
    """q(z) of any datapoint, found by gradient ascent on its bound at each call.

    It takes thousands of gradients of the decoder where an encoder takes one pass. The parameters are averaged over the
    second half of the steps, and the noise is a function of x, so that the same x has the same q.

    Args:
        generative: p(z) p(x|z).
        start: The q(z) to start from.
        estimator: Estimator of the bound to maximize.
        num_steps: Number of gradient steps.

    Paper: §2.2.
    """

    generative: AbstractGenerativeModel
    start: StartingPosterior
    estimator: Callable = eqx.field(static=True)
    num_steps: int = eqx.field(static=True, default=NUM_STEPS)

    def __call__(self, x: Array) -> Distribution:
        """Return q(z) for one x."""
        row = self.start.row()
        key = jax.random.fold_in(jax.random.key(1), fingerprint(x))
        noise: Any = row.recognition.noise(x).sample(key, (self.num_steps, NUM_DRAWS))

        def step(row, epsilon):
            row = improve(row, self.estimator, self.generative, x, epsilon)
            return row, row.recognition

        row, _ = lax.scan(step, row, noise[: self.num_steps // 2])
        _, visited = lax.scan(step, row, noise[self.num_steps // 2 :])
        return jax.tree.map(lambda values: jnp.mean(values, axis=0), visited)(x)


@final
@dataclass(frozen=True)
class Unamortized(Ascent):
    r"""Stochastic ascent on the lower bound, with variational parameters for each datapoint instead of an encoder.

    .. math:: \lambda_i \leftarrow \lambda_i + \mathrm{update}(\nabla_{\lambda_i} \tilde L(\theta, \lambda_i; x^{(i)})),
        \quad i \in M; \qquad
        \theta \leftarrow \theta + \mathrm{update}\left(\nabla_\theta \frac{1}{M} \sum_i \tilde L\right)

    Each step improves the q's of its minibatch several times, and then the weights once. Every datapoint has its own
    optimizer, which pauses while others are visited: moments never move a q that is not in the minibatch.

    The arguments are those of :class:`~aevb.learners.ascent.Ascent`, where the optimizer is for the weights, and

    Args:
        num_updates: Updates of a datapoint's q per step.

    Paper: §2.1, §2.2.
    Deviates: the objective is divided by N, as in :class:`AEVB`.
    """

    num_updates: int = 10

    title: ClassVar[str] = "variational Bayes without an encoder"
    argument: ClassVar[str] = "amortized=False"
    needs_encoder: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = True
    can_share: ClassVar[bool] = False
    needs_num_data: ClassVar[bool] = True

    @classmethod
    def prepare(cls, generative, recognition, posterior, latent_dim):
        """Return the generative model, and the q(z) from which every datapoint starts."""
        return generative, RecognitionModel(StartingPosterior(posterior, latent_dim))

    def start_memory(self, models: tuple[AbstractGenerativeModel, RecognitionModel], key: Array) -> Row:
        """Return equal q's, (N, ...); they involve no randomness."""
        row = _starting_posterior(models).row()
        return jax.tree.map(lambda array: jnp.repeat(array[None], self.num_data, axis=0), row)

    def models(self, state: LearnerState) -> tuple[AbstractGenerativeModel, RecognitionModel]:
        """Return the generative model of a state, and an encoder that finds q(z) for any x under it."""
        pair = self._pair(state, self._learned(state))
        return pair[0], RecognitionModel(OptimizedEncoder(pair[0], _starting_posterior(pair), self.estimator))

    def draw_noise(self, state: LearnerState, key: Array, x: Array, shape: tuple[int, ...]) -> Array:
        """Draw epsilon for the updates of the q's and of the weights: ``(*shape, updates + 1, L, ...)``."""
        noise = self._pair(state)[1].noise(x)
        return jnp.asarray(noise.sample(key, (*shape, self.num_updates + 1, self.num_samples)))

    def step(self, state: LearnerState, batch: Array, noise: Array, places: Array):
        """Improve the q's of one minibatch (M, ...), stored at `places`, and then the weights."""
        generative, _ = self._pair(state)

        def improve_row(row, x, noise):
            return lax.scan(lambda row, e: (improve(row, self.estimator, generative, x, e), None), row, noise)[0]

        rows = jax.tree.map(lambda array: array[places], state.memory)
        rows = jax.vmap(improve_row)(rows, batch, noise[:, :-1])

        def objective(parameters):
            generative, _ = self._pair(state, parameters)
            terms_of_row = with_terms(self.estimator)
            terms = jax.vmap(lambda recognition, x, epsilon: terms_of_row(generative, recognition, x, epsilon))
            terms = jax.tree.map(jnp.mean, terms(rows.recognition, batch, noise[:, -1]))
            return terms.lower_bound, terms

        state, info = self._ascend(state, objective)
        memory = jax.tree.map(lambda array, new: array.at[places].set(new), state.memory, rows)
        return state._replace(memory=memory), info


def _starting_posterior(pair) -> StartingPosterior:
    return pair[1].encoder
