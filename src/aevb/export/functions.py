"""The functions that are exported: x to q(z|x), and z to p(x|z), each for a batch of any size."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, export

from aevb.data.frames import TableFormat
from aevb.fitted import FittedModel
from aevb.fitted.model import covariates_of
from aevb.models import Conversion, Datapoint, FeatureEncoder, MatrixFormat
from aevb.tasks import decoder_mean


class Exported(NamedTuple):
    """A function of matrices with rows along their first axis, and what these and its results are called."""

    name: str
    function: Callable[..., tuple[Array, ...]]
    inputs: dict[str, int]  # names, and the widths of their rows
    outputs: tuple[str, ...]

    def shapes(self) -> list[jax.ShapeDtypeStruct]:
        """Return the shapes of its arguments: (n, width), n being any number, the same for all."""
        (n,) = export.symbolic_shape("n")
        return [jax.ShapeDtypeStruct((n, width), jnp.float32) for width in self.inputs.values()]


def exported_functions(model: FittedModel) -> tuple[Exported, ...]:
    """Return the encoder and the decoder of a model, and of one that classifies the classifier.

    All read rows of numbers: of a table, the numbers that stand for its entries, see :func:`facts_of`. If the model is
    conditioned on something, such numbers of it are a second argument, `given`.

    Raises:
        ValueError: The model has no encoder, or is of sequences or word counts.
    """
    check_exportable(model)
    found = _coders(model.of_data)
    return (*found, _classifier(model)) if hasattr(model.recognition.encoder, "labels") else found


def _coders(model):
    recognition, generative = model.recognition, model.point_generative
    format = None if isinstance(recognition.encoder, FeatureEncoder) else model.given  # whose z does not read labels
    given = {} if format is None else {"given": format.matrix.num_columns}
    of_x = Conversion(_reader(model), given=covariates_of(format))
    of_z = Conversion(given=of_x.given)

    def encode(*row: Array) -> tuple[Array, ...]:
        q = recognition(of_x(_datapoint(*row)))
        return q.mean, jnp.sqrt(q.variance)

    def decode(*row: Array) -> tuple[Array, ...]:
        return (decoder_mean(generative, of_z(_datapoint(*row))).reshape(-1),)

    return (
        Exported("encoder", jax.vmap(encode), {"x": model.matrix.num_columns, **given}, ("mean", "std")),
        Exported("decoder", jax.vmap(decode), {"z": model.latent_dim, **given}, ("mean",)),
    )


def _classifier(model):
    """Return x to q(y|x); with a model of features, at the means of their posterior."""
    of_x, recognition, features = Conversion(_reader(model.of_data)), model.recognition, model.features
    places = slice(None) if model.codes is None else np.array(model.codes)

    def classify(x: Array) -> tuple[Array, ...]:
        x = of_x(x)
        read = x if features is None else features.recognition(x).mean[places]
        return (jax.nn.softmax(recognition.encoder.labels(read).logits),)

    return Exported("classifier", jax.vmap(classify), {"x": model.of_data.matrix.num_columns}, ("probabilities",))


def _reader(model):
    """Return how the rows of a model, as floating-point numbers, become datapoints."""
    return model.format.store(np.zeros((1, model.matrix.num_columns), np.float32))[1].values


def _datapoint(values, given=None):
    return Datapoint(values, given=given)


def check_exportable(model: FittedModel) -> None:
    """Refuse models whose encoder and decoder are not functions of one row of numbers."""
    reasons = {
        "it has no encoder": not model.learner.needs_encoder or model.recognition is None,
        "it is a model of sequences or trees": not isinstance(model.of_data.format, MatrixFormat | TableFormat),
        "it is a model of word counts": model.of_data.likelihood == "multinomial",
    }
    found = [reason for reason, holds in reasons.items() if holds]
    if found:
        raise ValueError(
            f"export: this model cannot be exported, because {found[0]}. Models of numbers, images and tables can, "
            "with labels and conditions too. aevb.load reads any model in Python."
        )
