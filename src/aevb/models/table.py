"""Models of tables: columns of different families, and entries that may be missing."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array

from aevb.distributions import Columns
from aevb.models.column import Column
from aevb.models.column_families import blocks_of
from aevb.models.conditionals import Conditional, conditional, outputs_of
from aevb.models.datapoint import Datapoint
from aevb.models.families import POSTERIORS
from aevb.models.generative import GenerativeModel
from aevb.models.recognition import RecognitionModel
from aevb.networks import NETWORKS, Network

TAPER = 2.0  # standard deviations up to which the encoder sees numbers as they are


class TableDecoder(eqx.Module):
    r"""p(x|z) of the row of a table: independent columns, each with its own family.

    .. math:: p(x|z) = \prod_i p_i(x_i; b_i(\mathrm{network}(z) + c_i), \theta_i)

    The constants c are such that an output of zero gives each column's own distribution, that of ``Column.start``. Some
    parameters do not depend on z: degrees of freedom, concentrations and thresholds, for each column.

    Args:
        network: Maps z to the outputs for all blocks, ``TableDecoder.num_outputs(columns)`` numbers.
        columns: The columns, in the order of the entries of x.

    Example:
        >>> from aevb.networks import MLP
        >>> columns = (Column("age", "gaussian", 40.0, 10.0), Column("sex", "categorical", num_levels=3))
        >>> decoder = TableDecoder(MLP(2, (5,), TableDecoder.num_outputs(columns)), columns)
        >>> print(f"{decoder(jnp.zeros(2)).log_prob(jnp.array([0.0, 1.0])):.3f}")  # N(40, 10²) at 40, and 1/3
        -4.320
    """

    network: Network
    shared: dict[str, dict[str, Array]]
    columns: tuple[Column, ...] = eqx.field(static=True)

    def __init__(self, network: Network, columns: Sequence[Column]):
        self.network, self.columns = network, tuple(columns)
        if network.out_size != self.num_outputs(self.columns):
            raise ValueError(
                f"network: it has {network.out_size} outputs, but these columns need {self.num_outputs(self.columns)}."
            )
        shared = {block.name: block.shared() for block in blocks_of(self.columns)}
        self.shared = {name: arrays for name, arrays in shared.items() if arrays}

    @staticmethod
    def num_outputs(columns: Sequence[Column]) -> int:
        """Return the number of network outputs for these columns."""
        return sum(block.num_outputs for block in blocks_of(tuple(columns)))

    def __call__(self, *conditions: Any) -> Columns:
        """Return p(x|z), given z and what a datapoint is conditioned on, if anything."""
        blocks = blocks_of(self.columns)
        ends = tuple(accumulate(block.num_outputs for block in blocks))
        outputs = jnp.split(outputs_of(self.network, *conditions), ends[:-1], axis=-1)
        return Columns(
            [block.at(piece, self.shared.get(block.name, {})) for block, piece in zip(blocks, outputs, strict=True)],
            [block.places for block in blocks],
            [block.to_units for block in blocks],
        )


class TableEncoder(eqx.Module):
    """q(z|x) of the row of a table: features of its observed entries, a network, and a family.

    Args:
        conditional: From the features, :func:`num_features` of them, to q.
        columns: The columns, in the order of the entries of x.
        has_missing: Whether the network also sees which entries are observed.
    """

    conditional: Conditional
    columns: tuple[Column, ...] = eqx.field(static=True)
    has_missing: bool = eqx.field(static=True)

    def __call__(self, x: Any) -> dist.Distribution:
        """Return q(z|x)."""
        x = Datapoint.of(x)
        inputs = features(x, self.columns, self.has_missing)
        return self.conditional(inputs) if x.given is None else self.conditional(inputs, x.given)


def features(x: Any, columns: Sequence[Column], has_missing: bool, *, tapers: bool = True) -> Array:
    """Return the features of a row: what a network can read, zero where missing.

    These are the standardized numbers; the standardized log(1 + x) of counts; -1 or 1 for binary columns; an indicator
    of each category; for ordered levels, -1 or 1 for whether they are above each level but the last; and for columns
    with cells the rank among the training rows, standardized, and an indicator of each cell of a single value.

    Args:
        x: One datapoint, with values (D,).
        columns: The columns.
        has_missing: Whether to append 1 for each observed entry and 0 for each missing one.
        tapers: Whether numbers beyond two standard deviations grow with the logarithm only.

    Example:
        >>> columns = Column("age", "gaussian"), Column("grade", "ordinal", num_levels=3)
        >>> x = Datapoint(jnp.array([jnp.nan, 1.0]), jnp.array([False, True]))
        >>> features(x, columns, has_missing=True).tolist()
        [0.0, 1.0, -1.0, 0.0, 1.0]
    """
    x = Datapoint.of(x)
    values, observed = jnp.asarray(x.filled().values, jnp.result_type(float)), x.observed
    layout = {name: np.array(pairs, int).reshape(-1, 2).T for name, pairs in feature_layout(columns).items()}
    places = np.concatenate([place for place, _ in layout.values()])
    u = values[..., places]
    number, count, binary, category, order, rank, spike = jnp.split(
        u, np.cumsum([place.size for place, _ in layout.values()])[:-1], axis=-1
    )
    counted = [columns[place] for place in layout["counts"][0]]
    loc, scale = (jnp.asarray([getattr(column, name) for column in counted], u.dtype) for name in ("loc", "scale"))
    parts = [
        _tapered(number) if tapers else number,
        (jnp.log1p(count) - loc) / scale,
        2 * binary - 1,
        (category == layout["categories"][1]).astype(u.dtype),
        jnp.where(order > layout["orders"][1], 1, -1).astype(u.dtype),
        _ranks(rank, [columns[place] for place in layout["ranks"][0]]),
        (jnp.floor(spike) + 1 == layout["spikes"][1]).astype(u.dtype),
    ]
    found = jnp.concatenate(parts, axis=-1)
    if observed is not None:
        found = jnp.where(observed[..., places], found, 0)
    if not has_missing:
        return found
    seen = jnp.ones_like(values) if observed is None else observed.astype(u.dtype)
    return jnp.concatenate([found, seen], axis=-1)


def _tapered(u):
    """Return numbers unchanged up to two standard deviations, and growing with the logarithm beyond.

    Otherwise the code of an outlier, extrapolated from those of other rows, can lie so far out that a few rows
    determine the average bound.
    """
    beyond = jnp.maximum(jnp.abs(u) - TAPER, 0)
    return jnp.clip(u, -TAPER, TAPER) + jnp.sign(u) * jnp.log1p(beyond)


def num_features(columns: Sequence[Column], has_missing: bool) -> int:
    """Return the number of features of a row."""
    return sum(map(len, feature_layout(columns).values())) + has_missing * len(columns)


def feature_layout(columns: Sequence[Column]) -> dict[str, list[tuple[int, int]]]:
    """Return for each kind of feature, in their order, the places of its columns and the levels: a pair per feature."""
    layout: dict[str, list[tuple[int, int]]] = {
        "numbers": [],
        "counts": [],
        "binary": [],
        "categories": [],
        "orders": [],
        "ranks": [],
        "spikes": [],
    }
    for place, column in enumerate(columns):
        if column.kind.is_standardized:
            layout["numbers"].append((place, 0))
        elif column.kind.is_count:
            layout["counts"].append((place, 0))
        elif not column.kind.has_levels:
            layout["binary"].append((place, 0))
        elif column.family == "categorical":
            layout["categories"] += [(place, level) for level in range(column.num_levels)]
        elif column.family == "histogram":
            layout["ranks"].append((place, 0))
            layout["spikes"] += [(place, level) for level in column.single_values]
        else:
            layout["orders"] += [(place, level) for level in range(column.num_levels - 1)]
    return layout


def _ranks(position, columns):
    """Return the shares of training rows below positions (..., d) among cells, standardized as a uniform variable."""
    if not columns:
        return position
    K = max(column.num_levels for column in columns)
    shares = np.zeros((len(columns), K))
    for row, column in enumerate(columns):
        shares[row, : column.num_levels] = np.exp(column.start) if column.start else 1 / column.num_levels
    inside = jnp.clip(position[..., None] + 1 - np.arange(K), 0, 1)  # the share of each level that is below
    return jnp.sqrt(12.0) * (jnp.sum(inside * jnp.asarray(shares, position.dtype), axis=-1) - 0.5)


def table_models(
    columns: Sequence[Column],
    latent_dim: int,
    hidden: Sequence[int],
    activation: str = "tanh",
    posterior: str = "gaussian",
    has_missing: bool = True,
    network: str = "mlp",
) -> tuple[GenerativeModel, RecognitionModel]:
    """Return the variational auto-encoder of a table, its parameters zero.

    With all parameters zero, as with the zero outputs from which :func:`aevb.networks.initialize` departs a little, the
    columns are independent, and each has the distribution of ``Column.start``.

    Args:
        columns: The columns, in the order of the entries of x.
        latent_dim: J, the width of z.
        hidden: Widths of the decoder's hidden layers; the encoder has them in reverse order.
        activation: See :class:`aevb.networks.MLP`.
        posterior: A key of ``POSTERIORS``.
        has_missing: Whether entries may be missing.
        network: Of encoder and decoder, a key of :data:`aevb.networks.NETWORKS`.

    Returns:
        The generative model, with the prior that matches the posterior, and the recognition model.

    Example:
        >>> columns = Column("age", "gaussian"), Column("visits", "poisson")
        >>> generative, recognition = table_models(columns, 2, (5,))
        >>> recognition(Datapoint(jnp.array([0.5, jnp.nan]), jnp.array([True, False]))).event_shape
        (2,)
    """
    columns = tuple(columns)
    decoder = TableDecoder(
        NETWORKS[network](latent_dim, tuple(hidden), TableDecoder.num_outputs(columns), activation), columns
    )
    to_q = conditional(
        num_features(columns, has_missing),
        tuple(reversed(hidden)),
        latent_dim,
        activation,
        family=posterior,
        network=network,
    )
    prior = POSTERIORS[posterior].prior(latent_dim)
    return GenerativeModel(prior, decoder), RecognitionModel(TableEncoder(to_q, columns, has_missing))
