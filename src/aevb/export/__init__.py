"""Export of the encoder and the decoder of a fitted model: StableHLO, ONNX, and the layout of the Hugging Face Hub.

What is exported is deterministic: the encoder maps x to mean and standard deviation of q(z|x), the decoder maps z to
the mean of p(x|z), and the classifier of a model with labels maps x to q(y|x). Draws are then made outside,
z = mean + std * noise for a Gaussian q: exporters and runtimes cannot reproduce random keys. In a hierarchy, mean and
standard deviation of a level are those given the means of the levels that are drawn before it.

Functions read and return rows of float32 numbers. `export.json`, beside them, says what these numbers stand for: of a
table, for each column, how an entry becomes a number and which labels the codes mean. What a model is conditioned on is
a second argument, `given`.
"""

from aevb.export.facts import facts_of
from aevb.export.functions import Exported, exported_functions
from aevb.export.hub import write_hub_folder
from aevb.export.onnx_graph import to_onnx, write_onnx
from aevb.export.stablehlo import read_stablehlo, write_stablehlo

__all__ = [
    "Exported",
    "exported_functions",
    "facts_of",
    "read_stablehlo",
    "to_onnx",
    "write_hub_folder",
    "write_onnx",
    "write_stablehlo",
]
