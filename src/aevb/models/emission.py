"""p(x|z) of a sequence, step by step.

Paper: §7.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from aevb.distributions import Columns
from aevb.models.column import Column
from aevb.models.datapoint import Datapoint
from aevb.models.table import TableDecoder, features


def previous_features(previous: Array, columns: Sequence[Column]) -> Array:
    """Return what networks read of x_{t-1}, (..., F): zeros for what is missing, and which entries are not."""
    return features(Datapoint(previous, ~jnp.isnan(previous)), columns, has_missing=True, tapers=False)


class Emission(eqx.Module):
    r"""p(x|z) of a sequence: one decoder of a row for all steps.

    .. math:: \prod_t p(x_t | z_t) \quad \text{or} \quad \prod_t p(x_t | z_t, x_{t-1})

    In the second case it reads those entries of x_{t-1} that are observed, and which these are: all densities are given
    the pattern of missing entries, and no missing value has to be integrated out.

    Args:
        step: p(x_t | z_t), or p(x_t | z_t, x_{t-1}) with :func:`previous_features`.
        autoregressive: Which of the two it is.
    """

    step: TableDecoder
    autoregressive: bool = eqx.field(static=True, default=False)

    def at(self, z: Array, given: Any = None) -> Columns:
        """Return p(x_t | z_t, ...) of each step, for states (..., T, J)."""
        return self.after(z, given["previous"] if self.autoregressive else None)

    def after(self, z: Array, previous: Array | None) -> Columns:
        """Return p(x_t | z_t, x_{t-1}), for states (..., J) and values (..., D), NaN where missing."""
        if not self.autoregressive:
            return self.step(z)
        assert previous is not None
        read = previous_features(previous, self.step.columns)
        return self.step(jnp.concatenate([z, jnp.broadcast_to(read, (*z.shape[:-1], read.shape[-1]))], axis=-1))

    def __call__(self, z: Array, given: Any = None) -> dist.Distribution:
        """Return p(x|z), over values (T, D), for states (T, J)."""
        return self.at(z, given).to_event(1)
