"""The published experiment of MIWAE: half of the entries of a table missing, filled in by a deep latent-variable model.

Mattei and Frellsen (2019), https://arxiv.org/abs/1812.02633. The table is scikit-learn's breast cancer, standardized;
half of its entries are removed at random with ``numpy.random.seed(1234)``. The error is the mean square of the removed
entries.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aevb.arguments import check_parameter
from aevb.experiments.result_file import ResultFile, markdown_table, stored_results
from aevb.experiments.settings import PROFILES, Watch
from aevb.vae import VAE

MASK_SEED, MISSING_SHARE = 1234, 0.5
SETTING: dict[str, Any] = {  # the published one
    "latent_dim": 10,
    "hidden": (128, 128),
    "activation": "relu",
    "likelihood": "student-t",
    "estimator": "importance",
    "num_samples": 20,
    "batch_size": 64,
    "learning_rate": 2e-4,
    "parameter_prior": None,
    "validation_fraction": 0,
}
NUM_EPOCHS = {"tiny": 2, "quick": 500, "standard": 2000, "paper": 2000}
CORE_SECONDS = 0.2  # per epoch


class Method(NamedTuple):
    """A way to fill in a matrix."""

    detail: str
    fill: Callable[[np.ndarray, int, int], np.ndarray]  # of a matrix with NaN, the number of epochs and a seed
    published: float | None


def table_with_holes() -> tuple[np.ndarray, np.ndarray]:
    """Return the standardized table (569, 30), and the same with half of its entries NaN, as published."""
    from sklearn.datasets import load_breast_cancer

    rows = np.asarray(load_breast_cancer(return_X_y=True)[0])
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    removed = np.random.RandomState(MASK_SEED).choice(rows.size, int(rows.size * MISSING_SHARE), replace=False)
    holes = rows.copy()
    holes.flat[removed] = np.nan
    return rows, holes


def reproduce_miwae(
    profile: str, folder: Path, *, seed: int = 0, watch: Watch = lambda *_: None, processes: int | None = None
) -> list[Path]:
    """Fill in the table by each method; write `miwae.json` and `miwae.md`.

    Args:
        profile: One of ``PROFILES``: 500 epochs for quick, 2,000 for standard and paper.
        folder: Receives the files.
        seed: Of our models.
        watch: A function with a method `note`, which is called with the progress.
        processes: Ignored: methods run one after the other.

    Returns:
        The paths of the files written.
    """
    check_parameter("profile", profile, choices=PROFILES)
    check_parameter("seed", seed, kind=int, low=0)
    note = getattr(watch, "note", lambda text: None)
    found = ResultFile(folder / "miwae.json", _about(profile, seed))
    for name in METHODS:
        result = found.add((name,), partial(_measure, name, NUM_EPOCHS[profile], seed))
        note(f"{name}: mean square error {result['error']:.3f}, {result['cpu_seconds']:.0f} s")
    return [found.write_summary(summary(found.results)), found.write()]


def miwae_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for the results that are not in the folder yet."""
    return CORE_SECONDS * NUM_EPOCHS[profile] * (SAME_SETTING not in stored_results(folder / "miwae.json"))


def summary(results: dict[str, Any]) -> str:
    """Return the errors beside the published ones as a Markdown table."""
    rows: list[list[Any]] = [["method", "mean square error", "published", "CPU seconds"]]
    for name, result in results.items():
        published = METHODS[name].published
        shown = "" if published is None else f"{published:.3f}"
        rows.append([name, f"{result['error']:.3f}", shown, f"{result['cpu_seconds']:.0f}"])
    return markdown_table(rows)


def _measure(name, num_epochs, seed):
    rows, holes = table_with_holes()
    filled = METHODS[name].fill(holes, num_epochs, seed)
    return {"error": float(np.mean((filled - rows)[np.isnan(holes)] ** 2)), "seed": seed}


def _mean(holes, num_epochs, seed):
    return np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)


def _nearest(holes, num_epochs, seed):
    from sklearn.impute import KNNImputer

    return np.asarray(KNNImputer(n_neighbors=5).fit_transform(holes))


def _ridge(holes, num_epochs, seed):
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    return np.asarray(IterativeImputer(random_state=0).fit_transform(holes))


def _published_setting(holes, num_epochs, seed):
    vae = VAE(**SETTING, max_epochs=num_epochs, random_state=seed, progress=False)
    return np.asarray(vae.fit(holes).impute(holes))


def _defaults(holes, num_epochs, seed):
    return np.asarray(VAE(random_state=seed, progress=False).fit(holes).impute(holes))


SAME_SETTING = "VAE, published setting"
METHODS = {
    "mean": Method("the mean of each column", _mean, 1.03),
    "nearest neighbours": Method("KNNImputer, 5 neighbours", _nearest, 0.57),
    "iterated ridge": Method("IterativeImputer with its default settings", _ridge, 0.33),
    SAME_SETTING: Method(f"{SETTING}", _published_setting, 0.287),
    "VAE, default settings": Method("VAE()", _defaults, None),
}


def _about(profile, seed):
    return {
        "title": "Half of the entries of breast cancer, filled in",
        "how": "mean square error of the removed entries, in standard deviations of the columns",
        "methods": {name: method.detail for name, method in METHODS.items()},
        "profile": profile,
        "seed": seed,
    }
