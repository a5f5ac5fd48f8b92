"""Variables in a sequence, each given the previous one.

Paper: §7.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, lax
from jax.tree_util import Partial
from numpyro.distributions import Distribution, constraints

from aevb.distributions.product import Product
from aevb.distributions.reparameterization import Reparameterization, reparameterize
from aevb.distributions.tree import TreeDistribution, over_samples, sampled


class MarkovChain(TreeDistribution):
    r"""A sequence of steps, each with a distribution given the previous step.

    .. math:: p(z) = p(z_1) \prod_{t=2}^{T} p(z_t | z_{t-1}, u_t)

    Draws have a leading axis of T steps. Sequences of different lengths share one program: steps beyond `length` do not
    exist, and are N(0, I) in every chain, so that their terms cancel when two chains are compared.

    Args:
        initial: :math:`p(z_1)`, for instance over vectors (J,).
        transition: Function of one :math:`z_{t-1}` and :math:`u_t` that returns a distribution like `initial`. If it
            contains arrays, it must be a pytree, such as an Equinox module.
        num_steps: T.
        inputs: u, a tree of arrays with a leading axis T; the first of them is not used. None: `transition` gets None.
        length: How many of the T steps exist, 1 or more; None for all.

    Example:
        >>> walk = MarkovChain(dist.Normal(0.0, 1.0), lambda z, u: dist.Normal(z, 1.0), 5)
        >>> walk.sample(jax.random.key(0)).shape
        (5,)
    """

    pytree_data_fields = ("initial", "transition", "inputs", "length")
    pytree_aux_fields = ("num_steps",)

    def __init__(
        self,
        initial: Distribution,
        transition: Callable[[Any, Any], Distribution],
        num_steps: int,
        inputs: Any = None,
        length: Array | int | None = None,
    ):
        self.initial, self.transition, self.num_steps = initial, transition, num_steps
        self.inputs, self.length = inputs, length
        super().__init__()

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        """Draw sequences, (..., T, J)."""

        def draw(key):
            keys = jax.random.split(key, self.num_steps)
            z = self.draw(lambda step, key: step.sample(key), keys)
            if self.length is None:
                return z
            return self._where_exists(z, jax.tree.map(lambda leaf: jax.random.normal(key, leaf.shape, leaf.dtype), z))

        return sampled(draw, key, sample_shape)

    def log_prob(self, value: Any, intermediates: Any = None) -> Any:
        """Return the sum of the steps' log densities."""

        def log_prob(z):
            log_probs = self.over_steps(lambda step, z: jnp.asarray(step.log_prob(z)), z)
            return jnp.sum(log_probs) + self._log_prob_beyond(z)

        return over_samples(log_prob, self, value)

    @property
    def support(self) -> Any:
        """That of the steps."""
        is_constraint = lambda node: isinstance(node, constraints.Constraint)  # noqa: E731
        return jax.tree.map(lambda c: constraints.independent(c, 1), self.initial.support, is_leaf=is_constraint)

    def draw(self, draw: Callable[[Distribution, Any], Any], noise: Any) -> Any:
        """Return a draw made by a function of a step's distribution and its noise, which has a leading axis T."""
        first = draw(self.initial, jax.tree.map(lambda leaf: leaf[0], noise))

        def step(z, inputs):
            noise, u = inputs
            z = draw(self.transition(z, u), noise)
            return z, z

        _, rest = lax.scan(step, first, jax.tree.map(lambda leaf: leaf[1:], (noise, self.inputs)))
        return jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), first, rest)

    def over_steps(self, function: Callable[..., Any], z: Any, *others: "MarkovChain") -> Array:
        """Return a function of each step's distribution in this and other chains, and of z_t; 0 beyond the end.

        Given the draw z (T, J), the steps are independent and computed in parallel.
        """
        chains = self, *others

        def at_first(z):
            return function(*(chain.initial for chain in chains), z)

        def at_step(before, inputs, z):
            return function(*(chain.transition(before, u) for chain, u in zip(chains, inputs, strict=True)), z)

        first = at_first(jax.tree.map(lambda leaf: leaf[0], z))
        before, after = jax.tree.map(lambda leaf: leaf[:-1], z), jax.tree.map(lambda leaf: leaf[1:], z)
        inputs = jax.tree.map(lambda leaf: leaf[1:], [chain.inputs for chain in chains])
        values = jnp.concatenate([first[None], jax.vmap(at_step)(before, inputs, after)])
        return values if self.length is None else jnp.where(self._exists(), values, 0)

    def _exists(self):
        return jnp.arange(self.num_steps) < jnp.asarray(self.length)

    def _where_exists(self, z, other):
        def choose(z, other):
            return jnp.where(self._exists().reshape(-1, *(1 for _ in z.shape[1:])), z, other)

        return jax.tree.map(choose, z, other)

    def _log_prob_beyond(self, z):
        if self.length is None:
            return 0.0
        beyond = self._where_exists(jax.tree.map(jnp.zeros_like, z), z)  # zeros where steps exist
        log_probs = jax.tree.map(lambda leaf: dist.Normal(0.0, 1.0).log_prob(leaf), beyond)
        log_probs = self._where_exists(jax.tree.map(jnp.zeros_like, z), log_probs)
        return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(log_probs))


@reparameterize.register
def markov_chain(q: MarkovChain) -> Reparameterization:
    step_noise, _ = reparameterize(q.initial)
    noise = repeated(step_noise, q.num_steps)
    return Reparameterization(noise, Partial(_push, q, noise))


def repeated(noise: Distribution, num: int) -> Distribution:
    """Return independent copies of a distribution along a new leading axis of an event."""
    if isinstance(noise, Product):
        return Product({name: repeated(factor, num) for name, factor in noise.factors.items()})
    return noise.expand((num, *noise.batch_shape)).to_event(1 + len(noise.batch_shape))


def _push(q, noise, epsilon):
    def push(epsilon):
        z = q.draw(lambda step, epsilon: reparameterize(step).transform(epsilon), epsilon)
        # Values beyond the end have no effect: their density is the same in every chain.
        return z if q.length is None else q._where_exists(z, jax.tree.map(jnp.zeros_like, z))

    return over_samples(push, noise, epsilon)
