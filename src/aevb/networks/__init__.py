"""Networks: arrays in, arrays out. What the arrays mean as a distribution is said in `aevb.models`."""

from aevb.networks.initialization import INITIALIZATIONS, initialize
from aevb.networks.mlp import ACTIVATIONS, MLP, Linear

__all__ = ["ACTIVATIONS", "INITIALIZATIONS", "MLP", "Linear", "initialize"]
