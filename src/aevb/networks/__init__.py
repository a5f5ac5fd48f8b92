"""Networks map arrays to arrays. How the outputs define a distribution is decided in `aevb.models`.

To add a network by name, add an entry to ``NETWORKS``.
"""

from collections.abc import Callable
from typing import Protocol

from jax import Array

from aevb.networks.gru import GRU
from aevb.networks.initialization import INITIALIZATIONS, initialize
from aevb.networks.mlp import ACTIVATIONS, MLP, Linear
from aevb.networks.tcn import TCN


class Network(Protocol):
    """What a conditional distribution requires of a network: an Equinox module that maps arrays to arrays."""

    @property
    def in_size(self) -> int:
        """Width of the input."""
        ...

    @property
    def out_size(self) -> int:
        """Width of the output."""
        ...

    def __call__(self, x: Array, /) -> Array:
        """Return the outputs, for x of shape (..., in_size)."""
        ...


# Name -> network(in_size, hidden, out_size, activation) with all parameters zero; `initialize` sets their values.
NETWORKS: dict[str, Callable[..., Network]] = {"mlp": MLP}

# Name -> network(in_size, out_size) over the steps of a sequence, all parameters zero: called with inputs (T, in_size),
# which steps exist (T,) and `reverse`, it returns (T, out_size).
SEQUENCE_NETWORKS: dict[str, Callable[[int, int], GRU | TCN]] = {"gru": GRU, "tcn": TCN}

__all__ = [
    "ACTIVATIONS",
    "GRU",
    "INITIALIZATIONS",
    "MLP",
    "NETWORKS",
    "SEQUENCE_NETWORKS",
    "TCN",
    "Linear",
    "Network",
    "initialize",
]
