"""Conversion of stored data to datapoints; it is part of the model, and nothing else converts.

Data are stored as they are given, as bytes or category codes, and converted inside the compiled step.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aevb.models.covariates import Covariates
from aevb.models.datapoint import Datapoint


class Numbers(eqx.Module):
    """Stored numbers of any type, in any shape.

    Args:
        scale: Factor for the stored numbers: 1/255 for grey levels stored as bytes.
        is_dynamic: Whether training sees binary draws, with the numbers as their probabilities of 1.
        has_missing: Whether NaN marks missing entries.
    """

    scale: Array
    is_dynamic: bool = eqx.field(static=True)
    has_missing: bool = eqx.field(static=True)

    def __init__(self, scale: Any = 1.0, is_dynamic: bool = False, has_missing: bool = False):
        self.scale = jnp.asarray(scale, jnp.result_type(float))
        self.is_dynamic, self.has_missing = is_dynamic, has_missing

    def __call__(self, stored: Any, xp: Any = jnp) -> tuple[Any, Any]:
        """Return floating-point values, zero where missing, and a mask of the observed ones, None for all."""
        scale = xp.asarray(self.scale)
        values = stored.astype(scale.dtype) * scale
        if not self.has_missing:
            return values, None
        observed = ~xp.isnan(values)
        return xp.where(observed, values, 0), observed

    def draw(self, values: Array, key: Array, stored: Array) -> Array:
        """Return what a training step sees: binary draws, or the values themselves."""
        if not self.is_dynamic:
            return values
        return (jax.random.uniform(key, values.shape, values.dtype) < values).astype(values.dtype)

    def describe(self) -> dict[str, Any]:
        """Return a description that can be written as JSON."""
        scale = np.asarray(self.scale).tolist()
        return {"kind": "numbers", "scale": scale, "is_dynamic": self.is_dynamic, "has_missing": self.has_missing}


class Codes(eqx.Module):
    """Categories, stored as indices into a list.

    Args:
        categories: The list, of names or numbers.
        has_missing: Whether codes below zero mark missing entries.
    """

    categories: tuple[Any, ...] = eqx.field(static=True)
    has_missing: bool = eqx.field(static=True)

    def __init__(self, categories: Iterable, has_missing: bool = False):
        self.categories, self.has_missing = tuple(categories), has_missing

    @property
    def is_dynamic(self) -> bool:
        """Whether a training step sees binary draws: never."""
        return False

    def __call__(self, stored: Any, xp: Any = jnp) -> tuple[Any, Any]:
        """Return integers, zero where missing, and a mask of the observed ones, None for all."""
        codes = stored.astype(xp.int32)
        if not self.has_missing:
            return codes, None
        observed = codes >= 0
        return xp.where(observed, codes, 0), observed

    def draw(self, values: Array, key: Array, stored: Array) -> Array:
        """Return the values."""
        return values

    def describe(self) -> dict[str, Any]:
        """Return a description that can be written as JSON."""
        return {"kind": "codes", "categories": list(self.categories), "has_missing": self.has_missing}


class Gaussians(eqx.Module):
    """Means and standard deviations of numbers that are not known exactly, stored side by side, (..., 2 D).

    Training sees a draw, a new one at each visit; all else sees the means.

    Example:
        >>> Gaussians()(np.array([[3.0, 0.1]]), np)[0].tolist()
        [[3.0]]
    """

    @property
    def is_dynamic(self) -> bool:
        """Whether a training step sees draws: always."""
        return True

    def __call__(self, stored: Any, xp: Any = jnp) -> tuple[Any, Any]:
        """Return the means, (..., D); none is missing."""
        return xp.split(stored, 2, axis=-1)[0], None

    def draw(self, values: Array, key: Array, stored: Array) -> Array:
        """Return what a training step sees."""
        return values + jnp.split(stored, 2, axis=-1)[1] * jax.random.normal(key, values.shape, values.dtype)

    def describe(self) -> dict[str, Any]:
        """Return a description that can be written as JSON."""
        return {"kind": "gaussians"}


Reader = Numbers | Codes | Covariates | Gaussians
Readers = Reader | dict[str, Reader]
KINDS: dict[str, Any] = {"numbers": Numbers, "codes": Codes, "covariates": Covariates, "gaussians": Gaussians}


class Conversion(eqx.Module):
    """Conversion of stored rows to datapoints; it can be described as JSON and created from the description.

    Stored rows are an array or a dictionary of arrays, or a :class:`~aevb.models.Datapoint` of these.

    Args:
        values: How each stored array is read: one reader for a plain array, or one for each name. None for unscaled
            numbers.
        given: Likewise for what the rows are conditioned on; None for nothing.

    Example:
        >>> people = Conversion({"age": Numbers(has_missing=True)}, given=Codes(["a", "b"]))
        >>> x = people(Datapoint({"age": np.array([40.0, np.nan])}, given=np.array([1, 0])))
        >>> x.values["age"].tolist(), x.observed["age"].tolist(), x.given.tolist()
        ([40.0, 0.0], [True, False], [1, 0])
        >>> Conversion()(np.ones((2, 3))).shape
        (2, 3)
        >>> bool(eqx.tree_equal(Conversion.from_description(people.describe()), people))
        True
    """

    values: Any
    given: Any

    def __init__(self, values: Readers | None = None, given: Readers | None = None):
        self.values = Numbers() if values is None else values
        self.given = given

    def __call__(self, stored: Any, xp: Any = jnp) -> Any:
        """Return the datapoints of stored rows: plain values if nothing is missing or given.

        Args:
            stored: Rows with any leading axes.
            xp: `jax.numpy`, or `numpy` to stay on the host.
        """
        stored = Datapoint.of(stored)
        values, observed = _read(self.values, stored.values, xp)
        given = None if self.given is None else _read(self.given, stored.given, xp)[0]
        observed = stored.observed if observed is None else observed
        return values if observed is None and given is None else Datapoint(values, observed, given)

    def draw(self, stored: Any, key: Array) -> Any:
        """Return what a training step sees of stored rows, with draws where readers are dynamic."""
        x, rows = Datapoint.of(self(stored)), Datapoint.of(stored).values
        if not isinstance(self.values, dict):
            return x.with_values(self.values.draw(x.values, key, rows))
        keys = dict(zip(sorted(self.values), jax.random.split(key, len(self.values)), strict=True))
        return x.with_values({name: self.values[name].draw(x.values[name], keys[name], rows[name]) for name in keys})

    @property
    def is_dynamic(self) -> bool:
        """Whether any reader is dynamic."""
        readers = self.values.values() if isinstance(self.values, dict) else [self.values]
        return any(reader.is_dynamic for reader in readers)

    @property
    def is_plain(self) -> bool:
        """Whether rows are a single array of numbers without missing entries."""
        return isinstance(self.values, Numbers) and not self.values.has_missing and self.given is None

    def describe(self) -> dict[str, Any]:
        """Return a description that can be written as JSON; see :meth:`from_description`."""
        return {"values": _describe(self.values), "given": None if self.given is None else _describe(self.given)}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> "Conversion":
        """Return the conversion with this description."""

        def reader(facts: Any) -> Any:
            if facts is None:
                return None
            if "named" in facts:
                return {name: reader(one) for name, one in facts["named"].items()}
            return KINDS[facts["kind"]](**{name: value for name, value in facts.items() if name != "kind"})

        return cls(reader(description["values"]), reader(description["given"]))


def _read(readers, stored, xp):
    """Return values, and a mask of the observed ones, None if all are."""
    if not isinstance(readers, dict):
        return readers(stored, xp)
    read = {name: reader(stored[name], xp) for name, reader in readers.items()}
    values = {name: values for name, (values, _) in read.items()}
    if all(observed is None for _, observed in read.values()):
        return values, None
    everywhere = {name: xp.ones(values.shape, bool) for name, (values, observed) in read.items() if observed is None}
    return values, everywhere | {name: observed for name, (_, observed) in read.items() if observed is not None}


def _describe(readers):
    if not isinstance(readers, dict):
        return readers.describe()
    return {"named": {name: reader.describe() for name, reader in readers.items()}}
