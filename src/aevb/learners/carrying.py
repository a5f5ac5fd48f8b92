"""Learning from windows of long sequences: each starts where the window before it ended.

Paper: §7.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, final

import jax
import jax.numpy as jnp
from jax import Array

from aevb.estimators.samples import posterior_samples
from aevb.learners.aevb import AEVB
from aevb.learners.protocol import LearnerState, RowBound
from aevb.parallel import Share


class Carried(NamedTuple):
    """What persists between steps."""

    memory: Any  # of the learner itself
    before: dict[str, Array]  # for each window, and one more: how the window before it ended when it was last visited


@final
@dataclass(frozen=True)
class Carrying:
    r"""AEVB on windows of sequences. A window's first state follows the last one of the window before it.

    .. math:: \sum_w E_q\big[\log p(x_w | z_w) + \log p(z_w | z_{w-1}) - \log q(z_w | z_{w-1}, x_w)\big]

    is a lower bound of log p(x) of the whole sequence, with the q that sees no later window. Steps visit windows in any
    order: :math:`z_{w-1}` is the draw of the last visit to that window, and gradients do not flow through it. Before
    the first visit a window starts as a sequence does.

    Args:
        learner: What learns a window.
        num_windows: N.
    """

    learner: AEVB
    num_windows: int
    needs_encoder: ClassVar[bool] = True
    can_share: ClassVar[bool] = True

    @property
    def estimator(self) -> Any:
        """The bound that is learned from."""
        return self.learner.estimator

    @property
    def row_bound(self) -> RowBound | None:
        """How the bound of whole sequences is estimated."""
        return self.learner.row_bound

    def sharing(self, share: Share) -> "Carrying":
        """Return the same learner for a device that computes a part of each minibatch."""
        return replace(self, learner=self.learner.sharing(share))

    def init(self, models: tuple, learning_rate: float, key: Array) -> LearnerState:
        """Return the initial state."""
        state = self.learner.init(models, learning_rate, key)
        encoder = models[1].encoder
        sizes = {"state": encoder.start.shape, "known": ()}
        if encoder.carries_network:
            sizes["forward"] = (encoder.networks["forward"].out_size,)
        before = {name: jnp.zeros((self.num_windows + 1, *size)) for name, size in sizes.items()}
        return state._replace(memory=Carried(state.memory, before))

    def models(self, state: LearnerState) -> tuple[Any, Any]:
        """Return the generative and the recognition model of a state."""
        return self.learner.models(state)

    def draw_noise(self, state: LearnerState, key: Array, x: Any, shape: tuple[int, ...]) -> Any:
        """Draw the noise of steps of this shape."""
        return self.learner.draw_noise(state, key, x, shape)

    def log_parameter_prior(self, state: LearnerState) -> Array | float:
        """Return that of the learner."""
        return self.learner.log_parameter_prior(state)

    def step(self, state: LearnerState, batch: Any, noise: Any, places: Array):
        """Learn from some windows; remember how they ended for the windows that follow them."""
        memory, before = state.memory
        given = batch.given | {"before": {name: values[places] for name, values in before.items()}}
        batch = batch._replace(given=given)
        _, recognition = self.models(state)

        def end(x, epsilon):
            one = jax.tree.map(lambda leaf: leaf[:1], epsilon)
            return recognition.encoder.carried(x, posterior_samples(recognition, x, one)[1][0])

        ends = jax.vmap(end)(batch, noise.epsilon if self.learner.dropout else noise)
        after, report = self.learner.step(state._replace(memory=memory), batch, noise, places)
        following, ends = self.learner.share.gather((given["following"].astype(jnp.int32), ends))
        # The last place, after all windows, is where windows write that no other one follows.
        before = {name: values.at[following].set(ends[name]) for name, values in before.items()}
        before["known"] = before["known"].at[-1].set(0)
        return after._replace(memory=Carried(after.memory, before)), report
