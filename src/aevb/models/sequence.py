r"""State-space models of sequences: deep Markov models.

.. math:: p(x, z) = p(z_1) \prod_{t=2}^T p(z_t | z_{t-1}, u_t) \prod_{t=1}^T p(x_t | z_t)

or :math:`p(x_t | z_t, x_{t-1})` in the last product, and possibly :math:`p(z_t | z_{t-1}, u_t, x_{t-1})` in the first.

A sequence is a :class:`~aevb.models.Datapoint`: values (T, D), which of them are observed, and in `given` a dictionary
with its ``length``, (), the time ``elapsed`` before each step, (T,), and possibly the features of ``controls``, (T, U),
and ``covariates``, (C,); also, if x_t depends on them, the ``previous`` values x_{t-1}, (T, D), NaN where missing.
Steps from `length` on are padding: nothing is observed there, and they have no effect. Of a window of a long sequence,
``before`` says how the window before it ended, see :meth:`StateEncoder.carried`; it is not there for whole sequences.

Paper: §7.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from aevb.arrays import filled
from aevb.distributions import MarkovChain
from aevb.models.column import Column
from aevb.models.conditionals import Conditional, conditional
from aevb.models.emission import Emission, previous_features
from aevb.models.families import FAMILIES
from aevb.models.generative import GenerativeModel
from aevb.models.parameters import join, split
from aevb.models.recognition import RecognitionModel
from aevb.models.table import TableDecoder, features, num_features
from aevb.models.transitions import TRANSITIONS, Step
from aevb.networks import GRU, MLP, SEQUENCE_NETWORKS, TCN, Linear, initialize

# Which steps q(z_t | ...) sees: the names of `recognition`, and in which directions networks run.
RECOGNITIONS = {"smoother": ("backward",), "forward": ("forward",), "mean-field": ("forward", "backward")}


class SequenceShape(NamedTuple):
    """The sizes and parts of a model of sequences.

    Args:
        latent_dim: J.
        num_inputs: Features of controls and covariates; 0 for none.
        hidden: Widths of the hidden layers of the emission p(x_t|z_t).
        transition: A key of ``TRANSITIONS``, or your own transition.
        transition_hidden: Widths of the hidden layers of a gated transition.
        recognition: A key of ``RECOGNITIONS``.
        network: A key of :data:`aevb.networks.SEQUENCE_NETWORKS`.
        recurrent_size: Width of that network.
        activation: A key of :data:`aevb.networks.ACTIVATIONS`.
        autoregressive: Whether x_t depends on x_{t-1} too; ``"states"``: z_t as well.
    """

    latent_dim: int
    num_inputs: int = 0
    hidden: tuple[int, ...] = (100,)
    transition: Any = "gated"
    transition_hidden: tuple[int, ...] = (100,)
    recognition: str = "smoother"
    network: str = "gru"
    recurrent_size: int = 100
    activation: str = "relu"
    autoregressive: bool | str = False

    @property
    def states_read_values(self) -> bool:
        """Whether z_t depends on x_{t-1}."""
        return self.autoregressive == "states"


def inputs_of(given: Mapping[str, Array]) -> Array:
    """Return u, (T, U): the controls of each step and the covariates of the sequence, as features."""
    T = len(given["elapsed"])
    parts = [given["controls"]] if "controls" in given else []
    if "covariates" in given:
        parts.append(jnp.broadcast_to(given["covariates"], (T, *given["covariates"].shape)))
    return jnp.concatenate(parts, axis=-1) if parts else jnp.zeros((T, 0), given["elapsed"].dtype)


def steps_of(given: Mapping[str, Array]) -> Step:
    """Return what transitions read at each step, without x_{t-1}."""
    return Step(inputs_of(given), given["elapsed"])


class StatePrior(eqx.Module):
    """p(z) of a sequence: a learned Gaussian for the first state, then a transition.

    Args:
        initial: p(z_1 | u_1).
        transition: p(z_t | z_{t-1}, u_t): a function of the state before and a :class:`~aevb.models.transitions.Step`.
        columns: Those of x_{t-1}, if z_t depends on it: then u_t contains it. None if not.
    """

    initial: Conditional
    transition: Any
    columns: tuple[Column, ...] | None = eqx.field(static=True, default=None)

    def reading(self, u: Step, previous: Array | None) -> Step:
        """Return u_t with what is read of x_{t-1}, of one step or of all."""
        if self.columns is None:
            return u
        assert previous is not None
        return u._replace(inputs=jnp.concatenate([u.inputs, previous_features(previous, self.columns)], axis=-1))

    def __call__(self, given: Mapping[str, Array]) -> MarkovChain:
        """Return p(z | u) of one sequence; if it reads x_{t-1}, the product of its factors at the observed values."""
        u = self.reading(steps_of(given), given.get("previous"))
        initial = self.initial(u.inputs[0])
        if "before" in given:
            continued = self.transition(given["before"]["state"], jax.tree.map(lambda leaf: leaf[0], u))
            known = given["before"]["known"] > 0
            initial = jax.tree.map(lambda new, first: jnp.where(known, new, first), continued, initial)
        return MarkovChain(initial, self.transition, len(u.elapsed), u, given["length"])


class Combiner(eqx.Module):
    r"""q(z_t | z_{t-1}, h_t), with h_t what a network says about the observations.

    .. math:: N\big(A z_{t-1} + W c + b,\, e^{V c + d}\big), \qquad c = (\tanh(U z_{t-1} + a) + h_t) / 2

    The combiner of deep Markov models, and a linear part: it contains the exact posterior of a linear model.

    Args:
        latent_dim: J.
        size: Width of h.
    """

    state: Linear
    linear: Array  # (J, J)
    outputs: Linear

    def __init__(self, latent_dim: int, size: int):
        self.state, self.linear = Linear(latent_dim, size), filled((latent_dim, latent_dim), 0)
        self.outputs = Linear(size, 2 * latent_dim)

    def __call__(self, z: Array, h: Array) -> dist.Distribution:
        """Return q(z_t | z_{t-1}, h_t)."""
        loc, log_variance = jnp.split(self.outputs((jnp.tanh(self.state(z)) + h) / 2), 2)
        return FAMILIES["gaussian"].at(jnp.concatenate([loc + self.linear @ z, log_variance]), len(z))

    @property
    def read_hidden(self) -> list[Array]:
        """The matrix that reads hidden units, see :mod:`aevb.models.dropout`."""
        return [self.outputs.weight]

    def started(self) -> "Combiner":
        """Return it with the values with which learning starts: without the linear part."""
        return eqx.tree_at(lambda t: t.linear, self, jnp.zeros_like(self.linear))


class Independent(eqx.Module):
    """q(z_t | h_t), which does not depend on the other states.

    Args:
        latent_dim: J.
        size: Width of h.
    """

    conditional: Conditional

    def __init__(self, latent_dim: int, size: int):
        self.conditional = conditional(size, (), latent_dim, family="gaussian")

    def __call__(self, z: Array, h: Array) -> dist.Distribution:
        """Return q(z_t | h_t)."""
        return self.conditional(h)

    @property
    def read_hidden(self) -> list[Array]:
        """The matrix that reads hidden units, see :mod:`aevb.models.dropout`."""
        network: Any = self.conditional.network
        return [network.layers[0].weight]

    def started(self) -> "Independent":
        """Return it unchanged."""
        return self


class StateEncoder(eqx.Module):
    r"""q(z|x) of a sequence: a chain, whose steps read networks over the observations.

    .. math:: q(z_t | z_{t-1}, x_{t:T}), \qquad q(z_t | z_{t-1}, x_{1:t}), \qquad q(z_t | x_{1:T})

    for `recognition` "smoother", "forward" and "mean-field". The first has the factors of the exact posterior.

    Args:
        networks: By direction, "forward" and "backward".
        step: q of one step, given the state before and the networks' outputs.
        start: The state before the first one, (J,).
        columns: The columns of x_t.
    """

    networks: dict[str, GRU | TCN]
    step: Combiner | Independent
    start: Array
    columns: tuple[Column, ...] = eqx.field(static=True)

    def __call__(self, x: Any) -> MarkovChain:
        """Return q(z|x) of one sequence."""
        h, start = jnp.concatenate(list(self._read(x).values()), axis=-1), self.start
        if "before" in x.given:
            start = jnp.where(x.given["before"]["known"] > 0, x.given["before"]["state"], start)
        return MarkovChain(self.step(start, h[0]), self.step, len(h), h, x.given["length"])

    def carried(self, x: Any, z: Array) -> dict[str, Array]:
        """Return what the window after x needs to know, given the states z (T, J): how this one ended.

        It is the last state, and that of a recurrent network that runs forwards.
        """
        found = {"state": z[x.given["length"].astype(int) - 1], "known": jnp.ones((), z.dtype)}
        return found | ({"forward": self._read(x)["forward"][-1]} if self.carries_network else {})

    @property
    def carries_network(self) -> bool:
        """Whether a network has a state that goes on in the next window."""
        return isinstance(self.networks.get("forward"), GRU)

    def _read(self, x):
        """Return what the networks say at each step, by direction."""
        T, length = len(x.given["elapsed"]), x.given["length"]
        read = [features(x, self.columns, has_missing=True), inputs_of(x.given), jnp.log(x.given["elapsed"])[:, None]]
        if "previous" in x.given:  # given z_{t-1} and x_{t-1}, the state depends on nothing else before it
            read.append(previous_features(x.given["previous"], self.columns))
        e, exists = jnp.concatenate(read, axis=-1), jnp.arange(T) < length
        starts = {}
        if "before" in x.given and self.carries_network:
            starts = {"forward": {"start": x.given["before"]["forward"]}}
        return {
            name: network(e, exists, reverse=name == "backward", **starts.get(name, {}))
            for name, network in self.networks.items()
        }


def sequence_models(columns: Sequence[Column], shape: SequenceShape) -> tuple[GenerativeModel, RecognitionModel]:
    """Return the models of sequences with these columns, with all parameters zero.

    Example:
        >>> import jax
        >>> from aevb.models import Datapoint
        >>> models = sequence_models([Column("x", "gaussian")], SequenceShape(2, recurrent_size=5))
        >>> generative, recognition = start_sequence_models(models, jax.random.key(0))
        >>> given = {"length": jnp.asarray(3.0), "elapsed": jnp.ones(4)}
        >>> x = Datapoint(jnp.zeros((4, 1)), jnp.arange(4)[:, None] < 3, given)
        >>> recognition(x).event_shape, generative.log_likelihood(x, jnp.zeros((4, 2))).shape
        ((4, 2), ())
    """
    columns, J, U = tuple(columns), shape.latent_dim, shape.num_inputs
    num_previous = bool(shape.autoregressive) * num_features(columns, has_missing=True)
    num_inputs = U + shape.states_read_values * num_previous
    transition = shape.transition
    if isinstance(transition, str):
        transition = TRANSITIONS[transition](J, num_inputs, shape.transition_hidden, shape.activation)
    initial = conditional(num_inputs, (), J, family="gaussian")
    prior = StatePrior(initial, transition, columns if shape.states_read_values else None)
    network = MLP(J + num_previous, shape.hidden, TableDecoder.num_outputs(columns), shape.activation)
    emission = Emission(TableDecoder(network, columns), bool(shape.autoregressive))
    size, directions = shape.recurrent_size, RECOGNITIONS[shape.recognition]
    num_read = num_features(columns, has_missing=True) + U + 1 + num_previous
    networks = {name: SEQUENCE_NETWORKS[shape.network](num_read, size) for name in directions}
    step = (Independent if shape.recognition == "mean-field" else Combiner)(J, size * len(directions))
    encoder = StateEncoder(networks, step, filled(J, 0), columns)
    return GenerativeModel(prior, emission), RecognitionModel(encoder)


def start_sequence_models(models: tuple, key: Array, own: Any = None, init: str = "glorot") -> tuple:
    """Return the models with the values with which learning starts; the user's own transition keeps its values.

    Args:
        models: See :func:`sequence_models`.
        key: Random key.
        own: The user's own transition; None if it is one by name.
        init: See :func:`aevb.networks.initialize`.
    """
    generative, recognition = models
    models = _started((generative, recognition), key, init)
    return models if own is None else eqx.tree_at(lambda pair: pair[0].prior.transition, models, own)


@eqx.filter_jit
def _started(models, key, init):
    parameters, constants, skeleton = split(models)
    generative, recognition = join(initialize(parameters, key, init), constants, skeleton)
    places = [lambda pair: pair[1].encoder.step]
    if hasattr(generative.prior.transition, "started"):
        places.append(lambda pair: pair[0].prior.transition)
    models = generative, recognition
    for place in places:
        models = eqx.tree_at(place, models, place(models).started())
    return models
