"""Initial biases from the data: a model of pixels starts with their means, and reads deviations from these."""

from typing import Any

import equinox as eqx
import numpy as np
from scipy.special import logit

from aevb.arrays import on_device
from aevb.models.conditionals import Conditional
from aevb.models.generative import GenerativeModel
from aevb.models.recognition import RecognitionModel
from aevb.networks import MLP

NUM_ROWS = 1_000  # that are enough for means


def start_centred(
    models: tuple[GenerativeModel, RecognitionModel], rows: np.ndarray, weights: np.ndarray | None = None
) -> tuple[GenerativeModel, RecognitionModel]:
    r"""Return the models with biases that suit the means of the rows, where their networks are of a known form.

    The output of a Bernoulli decoder starts at :math:`\mathrm{logit}(\bar x)`, the best values without z, and the first
    layer of an encoder at :math:`W (x - \bar x)`: most pixels of an image are hardly ever different from their mean,
    and need not be learned. Other parts are returned unchanged.

    Args:
        models: The pair (generative, recognition), with initial values.
        rows: (n, D), numbers from 0 to 1.
        weights: (n,), of the rows; None if they are equal.
    """
    generative, recognition = models
    sums = np.average(rows, axis=0, weights=weights) * len(rows)
    means = (sums + 0.5) / (len(rows) + 1)  # as if there were one more row, of 1/2: no logit is infinite
    decoder: Any = generative.decoder
    if _is_perceptron(decoder) and decoder.family == "bernoulli":
        generative = eqx.tree_at(_output_bias, generative, _like(_output_bias(generative), logit(means)))
    encoder: Any = recognition.encoder
    if _is_perceptron(encoder) and encoder.network.in_size == len(means):
        first = encoder.network.layers[0]
        centre = np.asarray(first.bias) - np.asarray(first.weight) @ means
        recognition = eqx.tree_at(_input_bias, recognition, _like(first.bias, centre))
    return generative, recognition


def _is_perceptron(part):
    return isinstance(part, Conditional) and isinstance(part.network, MLP)


def _output_bias(generative):
    return generative.decoder.network.layers[-1].bias


def _input_bias(recognition):
    return recognition.encoder.network.layers[0].bias


def _like(bias, values):
    return on_device(np.asarray(values, bias.dtype))
