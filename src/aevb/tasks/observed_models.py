"""p(z) p(y|z) and q(z|y) for an observation y of x: models like any other, for which all inference works."""

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import equinox as eqx
import jax
from jax import Array, lax
from numpyro.distributions import Distribution, Independent, MixtureSameFamily

from aevb.models import Datapoint, GenerativeModel, RecognitionModel
from aevb.models.generative import conditions
from aevb.tasks.observations import Conditional, Observation

NUM_GUESSES, NUM_PRIOR_DRAWS = 10, 32


class ObservedDecoder(eqx.Module):
    """p(y|z): the decoder seen through an observation. Inference that needs p(x|z) then works with p(y|z)."""

    decoder: Callable[..., Distribution]
    observation: Observation

    def __call__(self, z: Array, *given: Any) -> "Observed":
        """Return p(y|z), given what x is conditioned on, if anything."""
        return Observed(self.decoder(z, *given), self.observation)


class Observed(NamedTuple):
    """p(y|z), with only what inference needs."""

    p: Distribution
    observation: Observation

    def log_prob(self, y: Array) -> Array:
        """Return log p(y|z)."""
        return log_likelihood(self.observation, self.p, y)


class GuessingEncoder(eqx.Module):
    r"""An approximate q(z|y): the encoder at a guess of x.

    .. math:: \hat x \leftarrow E[x | y, z = E_{q(z|\hat x)}[z]]

    repeated ten times, from the average of E[x|y, z] over the prior. It only has to be a good starting point.
    """

    generative: GenerativeModel
    recognition: RecognitionModel
    observation: Observation

    def __call__(self, y: Any) -> Distribution:
        """Return q(z|x) at the guess."""
        key = jax.random.key(0)  # not used by the means
        x = first_guess(self.generative, self.observation, y, key)

        def encode(x):
            return self.recognition(Datapoint.of(y).with_values(x))

        def improve(_, x):
            return x_given(self.generative, self.observation, y, encode(x).mean, key).mean

        return encode(lax.fori_loop(0, NUM_GUESSES, improve, x))


def x_given(generative: GenerativeModel, observation: Observation, y: Any, z: Array, key: Array) -> Conditional:
    """Return p(x|y, z) for one y, an array or a datapoint that says what x is conditioned on."""
    return condition(observation, generative.decoder(z, *conditions(y)), Datapoint.of(y).values, key)


def first_guess(generative: GenerativeModel, observation: Observation, y: Any, key: Array) -> Array:
    """Return the average of E[x|y, z] over draws of z from the prior."""
    z = generative.latent_distribution(y).sample(key, (NUM_PRIOR_DRAWS,))
    return jax.vmap(lambda z: x_given(generative, observation, y, z, key).mean)(z).mean(0)


def observed_models(models, observation: Observation) -> tuple[GenerativeModel, Any]:
    """Return p(z) p(y|z) and, if there is an encoder, an approximate q(z|y).

    Args:
        models: p(z) p(x|z), and q(z|x) or None.
        observation: p(y|x).
    """
    generative, recognition = models
    encoder = None if recognition is None else RecognitionModel(GuessingEncoder(generative, recognition, observation))
    observed: Any = ObservedDecoder(generative.decoder, observation)
    return GenerativeModel(generative.prior, observed), encoder


def log_likelihood(observation: Observation, p: Distribution, y: Array) -> Array:
    """Return log p(y|z) for one y, where p is p(x|z) or a mixture, as in full variational Bayes."""
    if not isinstance(p, MixtureSameFamily):
        return observation.log_likelihood(p, y)
    return jax.nn.logsumexp(_log_joint(observation, p, y))


def condition(observation: Observation, p: Distribution, y: Array, key: Array) -> Conditional:
    r"""Return p(x|y, z) for one y, where p is p(x|z) or a mixture.

    .. math:: p(x | y, z) = \sum_s r_s\, p_s(x | y, z), \quad r_s \propto w_s\, p_s(y | z)
    """
    if not isinstance(p, MixtureSameFamily):
        return observation.condition(p, y, key)
    key_choice, key_x = jax.random.split(key)
    log_joint = _log_joint(observation, p, y)  # (S,)
    parts = _of_components(p, lambda p: observation.condition(p, y, key_x))  # (S, D)
    r = jax.nn.softmax(log_joint)
    mean = r @ parts.mean
    variance = r @ (parts.variance + (parts.mean - mean) ** 2)
    return Conditional(mean, variance, parts.draw[jax.random.categorical(key_choice, log_joint)])


def _log_joint(observation, p, y):
    """Return log w_s + log p_s(y|z), (S,)."""
    log_weights = jax.nn.log_softmax(p.mixing_distribution.logits)
    return log_weights + _of_components(p, lambda p: observation.log_likelihood(p, y))


def _of_components(p, function):
    return jax.vmap(lambda part: function(_without_batch(part)))(p.component_distribution)


def _without_batch(part):
    """Return a distribution inside vmap with its shapes there: NumPyro keeps the shapes from outside."""
    one = copy(part)
    one._batch_shape = part.batch_shape[1:]
    if isinstance(part, Independent):
        one.base_dist = _without_batch(part.base_dist)
    return one
