"""Ways to make rows that resemble those of a table with mixed columns: ours, and those to compare it with."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from aevb.experiments.fidelity import is_number
from aevb.vae import VAE


class Synthesizer(NamedTuple):
    """A way to make rows."""

    detail: str
    make: Callable[[Any, int, int], Any]  # of a frame, a number of rows and a seed; returns a frame
    package: str | None = None  # that it needs, besides those of aevb


def _real(frame, num_rows, seed):
    return frame


def _independent(frame, num_rows, seed):
    """Draw each column from its own values, whatever the others are."""
    rng = np.random.default_rng(seed)
    drawn = {name: frame[name].iloc[rng.integers(len(frame), size=num_rows)].array for name in frame}
    return type(frame)(drawn)


def _tvae(frame, num_rows, seed):
    import ctgan  # pyright: ignore[reportMissingImports]
    import torch  # pyright: ignore[reportMissingImports]

    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002, which the package uses
    labels = [name for name in frame if not is_number(frame[name])]
    model = ctgan.TVAE(enable_gpu=False)
    model.fit(frame.astype(dict.fromkeys(labels, str)), labels)
    return model.sample(num_rows)


def _vae(frame, num_rows, seed):
    return VAE(random_state=seed, progress=False).fit(frame).sample(num_rows)


OURS, REAL, TVAE = "VAE", "real rows", "TVAE"
SYNTHESIZERS = {
    REAL: Synthesizer("the training rows themselves", _real),
    "independent columns": Synthesizer("each column drawn from its own values", _independent),
    TVAE: Synthesizer("TVAE of the package ctgan with its default settings, 300 epochs", _tvae, "ctgan"),
    OURS: Synthesizer("default settings", _vae),
}


def package_versions(package: str | None) -> dict[str, str]:
    """Return the version of a package, and of torch, which those that need a package use."""
    return {name: version(name) for name in (package, "torch")} if package else {}
