"""Held-out log p(x) of images: convolutions beside an MLP that learns for the same computing time.

Both networks have 50 latent variables and default settings otherwise. A short fit measures how long an epoch of each
takes; both then learn for as many epochs as fit into the same CPU time, or until held-out rows stop improving.
"""

import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from aevb.arguments import check_parameter
from aevb.data import load_dataset
from aevb.experiments.likelihoods import log_likelihoods
from aevb.experiments.result_file import ResultFile, completed, markdown_table, stored_results
from aevb.experiments.settings import PROFILES, Watch
from aevb.models import split
from aevb.vae import VAE

NETWORKS: dict[str, dict[str, Any]] = {
    "mlp": {"network": "mlp", "hidden": (500, 500)},
    "conv": {"network": "conv"},
}
LATENT_DIM = 50
MAX_CALIBRATION = 2_000  # rows whose epochs are timed


SETS = {"binarized-mnist": "bernoulli", "frey-faces": "discretized-logistic"}  # and their likelihoods
TINY = {"digits": "bernoulli"}


class Profile(NamedTuple):
    """How long is learned, and how many images are measured."""

    cpu_seconds: float  # of each fit
    num_train: int | None
    num_test: int
    num_samples: int  # of z per test image


SETTINGS = {
    "tiny": Profile(0.5, 200, 20, 20),
    "quick": Profile(180.0, 10_000, 500, 200),
    "standard": Profile(3_000.0, None, 2_000, 500),
    "paper": Profile(30_000.0, None, 10_000, 5_000),
}


def reproduce_convolutions(
    profile: str, folder: Path, *, seed: int = 0, watch: Watch = lambda *_: None, processes: int | None = None
) -> list[Path]:
    """Learn both networks on each set of images; write `convolutions.json` and `convolutions.md`.

    Runs are saved every minute, so an interrupted call resumes.

    Args:
        profile: One of ``PROFILES``: quick learns from 10,000 images for three minutes.
        folder: Receives the files.
        seed: Random seed.
        watch: A function with a method `note`, which is called with the progress.
        processes: Ignored: times are those of one fit after the other.

    Returns:
        The paths of the files written.
    """
    check_parameter("profile", profile, choices=PROFILES)
    check_parameter("seed", seed, kind=int, low=0)
    note, setting = getattr(watch, "note", lambda text: None), SETTINGS[profile]
    file = ResultFile(folder / "convolutions.json", about(setting, seed))
    for name in sets_of(profile):
        for network in NETWORKS:
            speed = file.add((name, f"{network}, speed"), lambda n=name, w=network: timed(n, w, profile, seed))
            epochs = max(int(setting.cpu_seconds / speed["seconds_per_epoch"]), 1)
            keys = name, network
            found = file.add(keys, lambda k=keys, e=epochs: measured(*k, e, profile, folder, seed))
            note(f"{name}, {network}: log p(x) = {found['log_likelihood']:.2f} ± {found['std_error']:.2f} nats")
    return [file.write_summary(summary(file.results)), file.write()]


def convolutions_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for what is not in the folder yet."""
    setting, done = SETTINGS[profile], stored_results(folder / "convolutions.json")
    left = [(name, network) for name in sets_of(profile) for network in NETWORKS if network not in done.get(name, {})]
    return len(left) * (setting.cpu_seconds + 2e-4 * setting.num_test * setting.num_samples)


def sets_of(profile: str) -> dict[str, str]:
    """Return the sets of images of a profile, and their likelihoods."""
    return TINY if profile == "tiny" else SETS


def about(setting: Profile, seed: int) -> dict[str, Any]:
    """Return what is written next to the results."""
    return {
        "title": "Convolutions beside an MLP of the same computing time",
        "how": f"log p(x) in nats of at most {setting.num_test:,} test images, by importance sampling with "
        f"{setting.num_samples:,} samples of z from q(z|x), with the standard error over images. Both networks "
        f"learn for at most {setting.cpu_seconds:g} CPU seconds, by the measured time of an epoch; frey-faces: 8-bit "
        "grey levels",
        "latent_dim": LATENT_DIM,
        "num_train": setting.num_train or "all",
        "networks": NETWORKS,
        "seed": seed,
    }


def load_images(name: str, profile: str) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Return training images, test images and their shape."""
    setting, data = SETTINGS[profile], load_dataset(name)
    train, test = data.split(len(data.rows) // 10) if data.parts is None else _published(data)
    assert data.image_shape is not None
    return data.rows[train][: setting.num_train], data.rows[test][: setting.num_test], data.image_shape


def _published(data):
    return np.sort(np.concatenate([data.parts["train"], data.parts["valid"]])), data.parts["test"]


def model_of(name: str, network: str, profile: str, epochs: int, seed: int) -> VAE:
    """Return a model that is not fitted yet."""
    shape, likelihood = load_images(name, profile)[2], sets_of(profile)[name]
    options: dict[str, Any] = {"likelihood": likelihood, "image_shape": shape, "random_state": seed}
    options["max_epochs"] = epochs
    return VAE(LATENT_DIM, progress=False, **options, **NETWORKS[network])


def timed(name: str, network: str, profile: str, seed: int) -> dict[str, Any]:
    """Return the CPU time of an epoch: the median of those after the first, which compiles."""
    rows = load_images(name, profile)[0]
    part, ends = rows[:MAX_CALIBRATION], []
    model = model_of(name, network, profile, 5, seed)
    model.fit(part, callbacks=lambda row: ends.append(time.process_time()))
    return {"seconds_per_epoch": float(np.median(np.diff(ends))) * len(rows) / len(part)}


def measured(name: str, network: str, epochs: int, profile: str, folder: Path, seed: int) -> dict[str, Any]:
    """Learn a model, as far as its checkpoint does not contain it, and measure it."""
    rows, test, _ = load_images(name, profile)
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"convolutions-run-{name}-{network}-{seed}"
    start = time.process_time()
    model = model_of(name, network, profile, epochs, seed)
    model = completed(model.fit(rows, checkpoint=place, checkpoint_seconds=60.0))
    seconds = time.process_time() - start
    values = log_likelihoods(model, test, SETTINGS[profile].num_samples)
    models = model.generative_, model.recognition_
    return {
        "log_likelihood": float(values.mean()),
        "std_error": float(values.std() / np.sqrt(len(values))),
        "lower_bound": model.score(test),
        "num_parameters": sum(leaf.size for leaf in jax.tree.leaves(split(models).parameters)),
        "max_epochs": epochs,
        "epochs": model.history_[-1]["epoch"],
        "fit_cpu_seconds": seconds,
        "num_test": len(values),
    }


def summary(results: dict[str, Any]) -> str:
    """Return the results as Markdown, with the difference and its standard error."""
    rows: list[list[Any]] = [["images", *NETWORKS, "difference", "parameters"]]
    for name, found in results.items():
        if not set(NETWORKS) <= set(found):
            continue
        mlp, conv = found["mlp"], found["conv"]
        values = [f"{part['log_likelihood']:.2f} ± {part['std_error']:.2f}" for part in (mlp, conv)]
        difference = conv["log_likelihood"] - mlp["log_likelihood"]
        error = np.hypot(mlp["std_error"], conv["std_error"])  # too large: both have the same images
        sizes = f"{mlp['num_parameters']:,} and {conv['num_parameters']:,}"
        rows.append([name, *values, f"{difference:+.2f} ± {error:.2f}", sizes])
    return f"log p(x) in nats of held-out images, same computing time.\n\n{markdown_table(rows)}"
