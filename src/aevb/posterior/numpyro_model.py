"""A NumPyro model function as a log joint: its latent sites are the variables, its subsampled plates minibatches."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.infer import Predictive
from numpyro.infer.util import log_density
from numpyro.primitives import Messenger

from aevb.models import LogJoint
from aevb.models.own_arrays import with_own_arrays


class ReadModel(NamedTuple):
    """A NumPyro model, read."""

    model: LogJoint
    variables: dict[str, Any]  # descriptions by name
    data: Any  # row numbers of the subsampled plate, or None
    batch_size: int | None
    predict: Callable  # function of a key and of draws that returns draws of the observed sites


class _Rows(Messenger):
    """Give plates of one size these rows, and all others all of theirs."""

    def __init__(self, fn=None, size: int | None = None, rows=None):
        self.size, self.rows = size, rows
        super().__init__(fn)

    def process_message(self, msg):
        if msg["type"] == "plate" and msg["args"][1] not in (None, msg["args"][0]):
            size = msg["args"][0]
            rows = self.rows if size == self.size and self.rows is not None else jnp.arange(size)
            msg["value"], msg["args"] = rows, (size, len(rows))


class _Unobserved(Messenger):
    """Draw observed sites instead of using their values."""

    def process_message(self, msg):
        if msg["type"] == "sample" and msg["is_observed"]:
            msg["value"], msg["is_observed"] = None, False


def read_numpyro(model: Callable, data: Any) -> ReadModel | None:
    """Return the variables and the log joint of a NumPyro model; None if the function has no sample statements.

    Args:
        model: The model function.
        data: Its arguments: a tuple, a dictionary by name, or a single one; None for none.

    Raises:
        ValueError: It has a discrete latent variable, or a support that depends on another variable.
    """
    model, data = with_own_arrays(model), _own(data)
    args = data if isinstance(data, tuple) else () if data is None or isinstance(data, dict) else (data,)
    kwargs = data if isinstance(data, dict) else {}
    try:
        sites = _sites(model, args, kwargs)
        whole = _sites(_Rows(model), args, kwargs)
    except (AssertionError, KeyError, IndexError, TypeError, ValueError, AttributeError):
        return None  # not a NumPyro model: the usual checks say what is wrong
    latent = {name: site for name, site in whole.items() if site["type"] == "sample" and not site["is_observed"]}
    if not latent:
        return None
    for name, site in latent.items():
        if site["fn"].support is None or site["fn"].support.is_discrete:
            raise ValueError(f"log_joint: the latent site {name!r} of the NumPyro model is discrete. Sum it out.")
    batch = _minibatch(sites, latent)
    size = None if batch is None else batch[0]

    def log_joint(variables, rows=None):
        given, named = jax.tree.map(_indexable, (args, kwargs))
        value, _ = log_density(_Rows(handlers.seed(model, 0), size, rows), given, named, variables)
        return jnp.asarray(value)

    def predict(key, draws):
        with jax.enable_x64(True):
            given, named = jax.tree.map(_indexable, (args, kwargs))
            found = Predictive(_Unobserved(_Rows(model)), draws)(key, *given, **named)
        return {name: value for name, value in found.items() if whole[name]["type"] == "sample"}

    variables = {name: (site["fn"].support, np.shape(site["value"])) for name, site in latent.items()}
    variables = {name: _described(*facts) for name, facts in variables.items()}
    return ReadModel(
        LogJoint(log_joint),
        variables,
        None if batch is None else np.arange(batch[0]),
        None if batch is None else batch[1],
        predict,
    )


def _own(data):
    """Return copies of arrays, see `aevb.models.own_arrays`."""
    return jax.tree.map(lambda value: value.copy() if isinstance(value, np.ndarray) else value, data)


def _indexable(value):
    """Return NumPy arrays as JAX arrays, which row numbers can index while a function is traced."""
    return jnp.asarray(value) if isinstance(value, np.ndarray) else value


def _sites(model, args, kwargs):
    return handlers.trace(handlers.seed(model, jax.random.key(0))).get_trace(*args, **kwargs)


def _described(support, shape):
    while hasattr(support, "base_constraint"):  # the event dimensions of `independent` are part of the shape
        support = support.base_constraint
    return (support, shape) if shape else support


def _minibatch(sites, latent):
    """Return the size and the subsample size of the subsampled plate; None if it holds latent variables, or several."""
    plates = {
        name: site["args"]
        for name, site in sites.items()
        if site["type"] == "plate" and site["args"][1] not in (None, site["args"][0])
    }
    inside = {frame.name for site in latent.values() for frame in site["cond_indep_stack"]}
    sizes = set(plates.values())
    return None if len(sizes) != 1 or inside & set(plates) else sizes.pop()
