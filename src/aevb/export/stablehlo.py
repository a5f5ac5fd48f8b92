"""StableHLO: the compiler's portable form, read back by `jax.export`, IREE and others."""

from pathlib import Path
from typing import Any

import jax
from jax import export

from aevb.export.facts import write_facts
from aevb.export.functions import exported_functions
from aevb.files import written_whole
from aevb.fitted import FittedModel

PLATFORMS = ("cpu", "cuda", "tpu")


def write_stablehlo(model: FittedModel, folder: Path) -> list[Path]:
    """Write encoder and decoder, each as `.stablehlo` (see :func:`read_stablehlo`) and as text, `.mlir`.

    Args:
        model: The model.
        folder: An existing folder.

    Returns:
        The files written.
    """
    found = []
    for each in exported_functions(model):
        exported = export.export(jax.jit(each.function), platforms=PLATFORMS)(*each.shapes())
        found.append(_write(folder / f"{each.name}.stablehlo", bytes(exported.serialize())))
        found.append(_write(folder / f"{each.name}.mlir", exported.mlir_module().encode()))
    return [*found, write_facts(model, folder)]


def read_stablehlo(path: Path) -> Any:
    """Return a function that was written to a `.stablehlo` file; it needs JAX, but not aevb's classes."""
    return export.deserialize(bytearray(Path(path).read_bytes())).call


def _write(path, content):
    with written_whole(path) as scratch:
        scratch.write_bytes(content)
    return path
