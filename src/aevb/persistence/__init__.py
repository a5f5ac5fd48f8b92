"""Model files: a folder with `model.json` and a file of arrays that it names. They contain no executable code.

The JSON contains the arguments of the estimator; loading builds the model from them as `fit` does, and then fills in
the arrays by name. Of user-defined networks, only the arrays are saved; the user passes the networks again.

`model.json` contains its own SHA-256 and that of the arrays, because safetensors has no checksum: a flipped bit would
be a wrong weight. It also makes saving atomic: the file of arrays, named after its hash, is written first, then
`model.json` replaces the old one in a single step, and only then are the old arrays deleted.
"""

from aevb.persistence.description import FORMAT, ModelFileError, written_arguments
from aevb.persistence.models import Loaded, load_model, load_structured, save_model

__all__ = ["FORMAT", "Loaded", "ModelFileError", "load_model", "load_structured", "save_model", "written_arguments"]
