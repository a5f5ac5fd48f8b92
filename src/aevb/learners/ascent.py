"""The base class of learners: stochastic ascent, and a single update."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import optax
from jax import Array

from aevb.estimators import ESTIMATORS, sgvb_b
from aevb.learners.averaging import averaged, start_average
from aevb.learners.optimizers import OPTIMIZERS, with_weight_decay
from aevb.learners.protocol import LearnerState, RowBound
from aevb.models import GenerativeModel, RecognitionModel, Skeleton, join, split, tied, untied
from aevb.parallel import WHOLE, Share, Whole


@dataclass(frozen=True)
class Ascent(ABC):
    """A learner of the pair (generative, recognition) by stochastic ascent; equal ones share their compiled programs.

    The objective is divided by N, so that a learning rate means the same for small and large data sets.

    Args:
        skeleton: Skeleton of the pair that :meth:`prepare` returns, see :func:`aevb.models.split`, without what its
            parts share, see :func:`aevb.models.untied`.
        num_data: N; the sum of the weights, if rows have weights.
        estimator: Bound of one datapoint, see :mod:`aevb.estimators`.
        num_samples: L.
        optimizer: optax transformation that *minimizes*; its updates are multiplied by the state's learning rate.
        parameter_prior: Precision of the prior on all parameters (MAP): 1, or True, for N(0, I), 0 for none (maximum
            likelihood). If the weights have a posterior, their prior is part of the bound, and this has no effect.
        averaging: Share of the steps so far whose parameters are averaged; the models of a state then are those of the
            average, see :mod:`aevb.learners.averaging`. 0 for the parameters of the last step.
        share: The rows of each minibatch that a device computes.
    """

    skeleton: Skeleton
    num_data: float
    estimator: Callable = sgvb_b
    num_samples: int = 1
    optimizer: optax.GradientTransformation = OPTIMIZERS["adam"]
    parameter_prior: float = 1.0
    averaging: float = field(default=0.0, kw_only=True)
    share: Whole | Share = field(default=WHOLE, kw_only=True)

    # See :class:`aevb.learners.protocol.Capabilities`; these are the defaults.
    title: ClassVar[str]
    argument: ClassVar[str]
    estimators: ClassVar[tuple[str, ...]] = tuple(ESTIMATORS)
    needs_encoder: ClassVar[bool] = True
    has_bound: ClassVar[bool] = True
    keeps_rows: ClassVar[bool] = False
    needs_num_data: ClassVar[bool] = False
    needs_real_latents: ClassVar[bool] = False
    has_weight_posterior: ClassVar[bool] = False
    follows_estimator: ClassVar[bool] = False
    can_anneal: ClassVar[bool] = False
    can_share: ClassVar[bool] = True

    @classmethod
    @abstractmethod
    def prepare(
        cls, generative: GenerativeModel, recognition: RecognitionModel, posterior: str, latent_dim: int
    ) -> tuple[Any, Any]:
        """Return the pair to be learned, made from the standard models with their initial values."""

    @abstractmethod
    def start_memory(self, models: tuple, key: Array) -> Any:
        """Return the initial value of everything but the parameters that persists between steps."""

    @abstractmethod
    def draw_noise(self, state: LearnerState, key: Array, x: Array, shape: tuple[int, ...]) -> Any:
        """Draw the noise of steps of this shape, (..., M), for datapoints like x."""

    @abstractmethod
    def step(self, state: LearnerState, batch: Array, noise: Any, places: Array) -> tuple[LearnerState, Any]:
        """Learn from one minibatch (M, ...); `places` are the indices of its training rows."""

    @abstractmethod
    def models(self, state: LearnerState) -> tuple:
        """Return the models of a state, ready to be applied."""

    def sharing(self, share: Share) -> Self:
        """Return the same learner for a device that computes a part of each minibatch."""
        return replace(self, share=share)

    @property
    def row_bound(self) -> RowBound | None:
        """How the bound of single rows is estimated."""
        return RowBound(self.estimator, self.num_samples) if self.has_bound else None

    def init(self, models: tuple, learning_rate: float, key: Array) -> LearnerState:
        """Return the initial state for a prepared pair; the key is for :meth:`start_memory`."""
        state = start(split(untied(models)), self._map_optimizer(), learning_rate, self.start_memory(models, key))
        return state._replace(average=start_average(state.parameters)) if self.averaging else state

    def log_parameter_prior(self, state: LearnerState) -> Array | float:
        """Return the prior's log density up to a constant, or minus the KL divergence of a posterior over weights.

        Paper: §5.
        """
        if self.has_weight_posterior:
            generative, _ = self.models(state)
            return -generative.kl()
        if not self.parameter_prior:
            return 0.0
        squares = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(self._learned(state)))
        return -self.parameter_prior * squares / 2

    def _learned(self, state: LearnerState) -> Any:
        """Return the parameters that a state has learned: their average, if there is one."""
        return state.average.parameters if self.averaging else state.parameters

    def _pair(self, state: LearnerState, parameters: Any = None) -> tuple:
        """Return the pair with the parameters of the state, or with those given."""
        return tied(join(state.parameters if parameters is None else parameters, state.constants, self.skeleton))

    def _ascend(self, state: LearnerState, objective: Callable):
        """Move along the gradient of an objective, and of the prior on the parameters; see :func:`ascend`."""
        after, report = ascend(state, self._map_optimizer(), objective, self.share)
        if self.averaging:
            after = after._replace(average=averaged(state.average, after.parameters, self.averaging))
        return after, report

    def _map_optimizer(self):
        """Return the optimizer with the gradient of log N(parameters; 0, I / precision) / N, a weight decay.

        Without the prior the decay is zero; the optimizer's state has the same structure in both cases.

        Paper: §5.
        """
        precision = 0.0 if self.has_weight_posterior else float(self.parameter_prior)
        return with_weight_decay(self.optimizer, precision / self.num_data)


@dataclass(frozen=True)
class EncoderAscent(Ascent):
    """A learner of decoder and encoder together, without other state that persists between steps."""

    def start_memory(self, models: tuple, key: Array) -> tuple:
        """Return nothing."""
        return ()

    def models(self, state: LearnerState) -> tuple[Any, RecognitionModel]:
        """Return the generative and the recognition model of a state."""
        return self._pair(state, self._learned(state))


def start(parts, optimizer: optax.GradientTransformation, learning_rate: float, memory: Any = ()) -> LearnerState:
    """Return the initial state for the parts of a model, see :func:`aevb.models.split`."""
    # Not a weakly typed array: the first step would make it strongly typed, and be compiled a second time.
    parameters = jax.tree.map(lambda p: jnp.asarray(p, p.dtype), parts.parameters)
    return LearnerState(
        parameters, parts.constants, _memory(optimizer.init, parameters), jnp.asarray(learning_rate), memory
    )


@partial(jax.jit, static_argnums=0)  # one program instead of one for each shape
def _memory(init, parameters):
    return init(parameters)


def ascend(
    state: LearnerState,
    optimizer: optax.GradientTransformation,
    objective: Callable,
    share: Whole | Share = WHOLE,
):
    """Move the parameters along the gradient of an objective.

    Args:
        state: The state to start from.
        optimizer: optax transformation that *minimizes*; its updates are multiplied by the state's learning rate.
        objective: Function of the parameters that returns the value to maximize, and something to report.
        share: The rows that it is a function of, if several devices share a minibatch.

    Returns:
        The new state, and the report.
    """

    def loss(parameters):
        value, report = objective(parameters)
        return -value, report

    gradient, report = share.average(jax.grad(loss, has_aux=True)(state.parameters))
    updates, optimizer_state = optimizer.update(gradient, state.optimizer_state, state.parameters)
    parameters = jax.tree.map(lambda p, u: p + state.learning_rate * u, state.parameters, updates)
    return state._replace(parameters=parameters, optimizer_state=optimizer_state), report
