"""Networks map arrays to arrays. How the outputs define a distribution is decided in `aevb.models`.

To add a network by name, add an entry to ``NETWORKS``.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from jax import Array

from aevb.networks.conv import NUM_BLOCKS, ConvNet, default_widths
from aevb.networks.convolution import Convolution
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

    def resized(self, in_size: int, out_size: int) -> "Network":
        """Return a network of the same form with other sizes, all parameters zero."""
        ...


# Name -> network(in_size, hidden, out_size, activation) with all parameters zero; `initialize` sets their values.
# Those of images also get `image_shape`, and `side`: "input" or "output", where the image is.
IMAGE_NETWORKS: dict[str, Callable[..., Network]] = {
    "conv": ConvNet,
    "resnet": partial(ConvNet, num_blocks=NUM_BLOCKS),
}
NETWORKS: dict[str, Callable[..., Network]] = {"mlp": MLP, **IMAGE_NETWORKS}


class NetworkKind(NamedTuple):
    """A network by name, and what else it needs to know.

    Args:
        name: A key of ``NETWORKS``.
        image_shape: (height, width) or (height, width, channels), for those of images.

    Example:
        >>> NetworkKind("conv", (28, 28)).build(784, (32, 64), 10, side="input").out_size
        10
    """

    name: str = "mlp"
    image_shape: tuple[int, ...] | None = None

    def build(
        self, in_size: int, hidden: Sequence[int], out_size: int, activation: str = "tanh", *, side: str = "input"
    ) -> Network:
        """Return the network, with all parameters zero; `side` says where the image is, if there is one."""
        options = {"image_shape": self.image_shape, "side": side} if self.name in IMAGE_NETWORKS else {}
        return NETWORKS[self.name](in_size, tuple(hidden), out_size, activation, **options)


# Name -> network(in_size, out_size) over the steps of a sequence, all parameters zero: called with inputs (T, in_size),
# which steps exist (T,) and `reverse`, it returns (T, out_size).
SEQUENCE_NETWORKS: dict[str, Callable[[int, int], GRU | TCN]] = {"gru": GRU, "tcn": TCN}

__all__ = [
    "ACTIVATIONS",
    "GRU",
    "IMAGE_NETWORKS",
    "INITIALIZATIONS",
    "MLP",
    "NETWORKS",
    "SEQUENCE_NETWORKS",
    "TCN",
    "ConvNet",
    "Convolution",
    "Linear",
    "Network",
    "NetworkKind",
    "default_widths",
    "initialize",
]
