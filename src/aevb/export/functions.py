"""The functions that are exported: x to q(z|x), and z to p(x|z), each for a batch of any size."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, export

from aevb.fitted import FittedModel


class Exported(NamedTuple):
    """A function of one matrix with rows along its first axis, and what its results are called."""

    name: str
    function: Callable[[Array], tuple[Array, ...]]
    width: int  # of the rows that it takes
    input: str
    outputs: tuple[str, ...]

    def shape(self) -> jax.ShapeDtypeStruct:
        """Return the shape of its argument: (n, width), n being any number."""
        return jax.ShapeDtypeStruct((*export.symbolic_shape("n"), self.width), jnp.float32)


def exported_functions(model: FittedModel) -> tuple[Exported, Exported]:
    """Return the encoder and the decoder of a model of rows of numbers.

    Raises:
        ValueError: The model has no encoder, or is of tables, sequences, hierarchies or labels.
    """
    check_exportable(model)
    recognition, decoder = model.recognition, model.point_generative.decoder

    def encode(x: Any) -> tuple[Array, ...]:
        q = recognition(x)
        return q.mean, jnp.sqrt(q.variance)

    def decode(z: Any) -> tuple[Array, ...]:
        return (decoder(z).mean.reshape(-1),)

    width = model.matrix.num_columns
    return (
        Exported("encoder", jax.vmap(encode), width, "x", ("mean", "std")),
        Exported("decoder", jax.vmap(decode), model.latent_dim, "z", ("mean",)),
    )


def check_exportable(model: FittedModel) -> None:
    """Refuse models whose encoder and decoder are not functions of one row of numbers."""
    reasons = {
        "it has no encoder": not model.learner.needs_encoder or model.recognition is None,
        "it is a model of a table or of sequences, whose rows are not rows of numbers": model.is_table,
        "it is conditioned on labels": model.given is not None,
        "it has several levels of latent variables": bool(model.arguments.levels),
        "it is a model of word counts": model.likelihood == "multinomial",
    }
    found = [reason for reason, holds in reasons.items() if holds]
    if found:
        raise ValueError(
            f"export: this model cannot be exported, because {found[0]}. Models of numbers and images with one level "
            "of latent variables can. aevb.load reads any model in Python."
        )


def facts_of(model: FittedModel) -> dict[str, Any]:
    """Return what users of the files have to know, as JSON."""
    offset = model.matrix.offset
    return {
        "encoder": "x (n, columns) float32 -> mean, std of q(z|x), each (n, latent_dim)",
        "decoder": "z (n, latent_dim) float32 -> mean of p(x|z), (n, columns)",
        "columns": model.matrix.num_columns,
        "column_names": None if model.matrix.columns is None else list(model.matrix.columns),
        "latent_dim": model.latent_dim,
        "likelihood": model.likelihood,
        "posterior": model.arguments.posterior,
        "prior": model.prior,
        "multiply_bytes_by": model.matrix.scale,
        "subtract_from_x": None if offset is None else offset.tolist(),
        "image_shape": None if model.matrix.image_shape is None else list(model.matrix.image_shape),
    }
