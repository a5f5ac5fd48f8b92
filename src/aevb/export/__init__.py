"""Export of the encoder and the decoder of a fitted model: StableHLO, ONNX, and the layout of the Hugging Face Hub.

What is exported is deterministic: the encoder maps x to mean and standard deviation of q(z|x), the decoder maps z to
the mean of p(x|z). Draws are then made outside, z = mean + std * noise for a Gaussian q: exporters and runtimes cannot
reproduce random keys.
"""

from aevb.export.functions import Exported, exported_functions
from aevb.export.hub import write_hub_folder
from aevb.export.onnx_graph import to_onnx, write_onnx
from aevb.export.stablehlo import read_stablehlo, write_stablehlo

__all__ = [
    "Exported",
    "exported_functions",
    "read_stablehlo",
    "to_onnx",
    "write_hub_folder",
    "write_onnx",
    "write_stablehlo",
]
