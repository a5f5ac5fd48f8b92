"""Log-likelihoods of dynamically binarized MNIST, beside those of the paper on importance-weighted auto-encoders.

Burda, Grosse and Salakhutdinov, "Importance weighted autoencoders" (2016), table 1: one and two stochastic layers, and
k = 1, 5 and 50 samples in training. Numbers are -log p(x) of the test images in nats, by importance sampling.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optax

from aevb.arguments import check_parameter
from aevb.data import binarize, load_dataset
from aevb.experiments.result_file import ResultFile, completed, markdown_table, stored_results
from aevb.experiments.settings import PROFILES, Watch
from aevb.vae import VAE

PUBLISHED = {(1, 1): 86.76, (1, 5): 85.54, (1, 50): 84.78, (2, 1): 85.33, (2, 5): 83.89, (2, 50): 82.90}
LAYERS: dict[int, dict[str, Any]] = {  # by their number, as published
    1: {"latent_dim": 50, "hidden": (200, 200)},
    2: {"latent_dim": (100, 50), "hidden": ((200, 200), (100, 100)), "hierarchy": "bottom-up"},
}
SMALL: dict[int, dict[str, Any]] = {
    1: {"latent_dim": 3, "hidden": (8,)},
    2: {"latent_dim": (3, 2), "hidden": ((8,), (4,)), "hierarchy": "bottom-up"},
}
TEST_SEED = 0  # of the one draw of the test images' pixels
BLOCK = 500  # images measured together
# Except with "paper", units are GELU, and the KL term of the bound grows to its full weight in this share of the steps:
# with tanh and without this, two layers learn far less than one, see decision 46.
WARM_UP = 0.3
SECONDS_PER_EPOCH = {1: 3.0, 5: 10.0, 50: 90.0}  # of 60,000 images, on one core, by k


class Profile(NamedTuple):
    """How long is learned, and how many images are measured."""

    epochs: dict[int, int]  # by k
    batch_size: int
    num_test: int
    num_samples: int  # of z per test image
    num_train: int | None = None  # None for all 60,000
    is_published: bool = False  # as published: tanh, and the schedule


SETTINGS = {
    "tiny": Profile({1: 1, 5: 1}, 50, 20, 20, 200),
    "quick": Profile({1: 15, 5: 8}, 100, 500, 500, 20_000),
    "standard": Profile({1: 250, 5: 150, 50: 25}, 100, 10_000, 5_000),
    "paper": Profile(dict.fromkeys((1, 5, 50), 3_280), 20, 10_000, 5_000, is_published=True),
}


def reproduce_likelihoods(
    profile: str, folder: Path, *, seed: int = 0, watch: Watch = lambda *_: None, processes: int | None = None
) -> list[Path]:
    """Learn the models of the table, one after the other; write `likelihoods.json` and `likelihoods.md`.

    Runs are saved every minute, so an interrupted call resumes.

    Args:
        profile: One of ``PROFILES``: quick learns from 20,000 images, without k = 50; paper has the published schedule.
        folder: Receives the files.
        seed: Random seed.
        watch: A function with a method `note`, which is called with the progress.
        processes: Ignored.

    Returns:
        The paths of the files written.
    """
    check_parameter("profile", profile, choices=PROFILES)
    check_parameter("seed", seed, kind=int, low=0)
    note, setting = getattr(watch, "note", lambda text: None), SETTINGS[profile]
    file = ResultFile(folder / "likelihoods.json", about(setting, seed))
    for layers, k in rows_of(setting):
        found = file.add(key_of(layers, k), lambda layers=layers, k=k: measured(layers, k, profile, folder, seed))
        note(f"{words(layers)}, k = {k}: {found['negative_log_likelihood']:.2f} ± {found['std_error']:.2f} nats")
    return [file.write_summary(summary(file.results)), file.write()]


def likelihoods_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for what is not in the folder yet."""
    setting, done = SETTINGS[profile], stored_results(folder / "likelihoods.json")
    share = (setting.num_train or 60_000) / 60_000
    measuring = 3e-5 * setting.num_test * setting.num_samples
    left = [(layers, k) for layers, k in rows_of(setting) if key_of(layers, k)[1] not in done.get(words(layers), {})]
    return sum(layers * (share * setting.epochs[k] * SECONDS_PER_EPOCH[k] + measuring) for layers, k in left)


def rows_of(setting: Profile) -> list[tuple[int, int]]:
    """Return the rows of the table, as pairs of the number of layers and k, the cheapest first."""
    return [(layers, k) for k in setting.epochs for layers in LAYERS]


def key_of(layers: int, k: int) -> tuple[str, str]:
    """Return the key of a result."""
    return words(layers), f"k = {k}"


def words(layers: int) -> str:
    """Return the number of stochastic layers in words."""
    return {1: "one layer", 2: "two layers"}[layers]


def about(setting: Profile, seed: int) -> dict[str, Any]:
    """Return what is written next to the results."""
    return {
        "title": "Log-likelihoods of dynamically binarized MNIST",
        "how": f"-log p(x) in nats of {setting.num_test:,} test images, whose pixels were drawn once (seed "
        f"{TEST_SEED}), by importance sampling with {setting.num_samples:,} samples of z from q(z|x); training images "
        "are drawn again in each epoch; nothing is held out",
        "schedule": "tanh, and the schedule, as published"
        if setting.is_published
        else f"GELU; Adam, a cosine from 1e-3 to 0; the KL term grows in the first {WARM_UP:.0%} of the steps",
        "batch_size": setting.batch_size,
        "seed": seed,
        "published": {f"{words(layers)}, k = {k}": value for (layers, k), value in PUBLISHED.items()},
    }


def measured(layers: int, k: int, profile: str, folder: Path, seed: int) -> dict[str, Any]:
    """Learn a model, as far as its checkpoint does not contain it, and measure it."""
    setting, data = SETTINGS[profile], load_data(profile)
    model = fitted(data[0], layers, k, profile, folder, seed)
    values = log_likelihoods(model, data[1], setting.num_samples)
    return {
        "negative_log_likelihood": float(-values.mean()),
        "std_error": float(values.std() / np.sqrt(len(values))),
        "epochs": model.history_[-1]["epoch"],
        "training_seconds": model.history_[-1]["seconds"],
        "training_bound": model.history_[-1]["lower_bound"],
    }


def load_data(profile: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the grey levels of the training images, and the test images, binary."""
    setting = SETTINGS[profile]
    return mnist_parts(setting.num_train, setting.num_test, is_tiny=profile == "tiny")


def mnist_parts(num_train: int | None, num_test: int, *, is_tiny: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the grey levels of the first training images, and the first test images, binary; if tiny, of digits."""
    mnist = load_dataset("digits" if is_tiny else "mnist")
    if mnist.parts is None:
        train, test = mnist.split(num_test)
    else:
        train, test = np.sort(np.concatenate([mnist.parts["train"], mnist.parts["valid"]])), mnist.parts["test"]
    test = binarize(mnist.rows[test], "static", TEST_SEED)[:num_test]
    return mnist.rows[train][:num_train], test


def fitted(levels: np.ndarray, layers: int, k: int, profile: str, folder: Path, seed: int) -> VAE:
    """Return the model of a row of the table."""
    setting = SETTINGS[profile]
    steps = max(len(levels) // setting.batch_size, 1)
    options: dict[str, Any] = {
        **(SMALL if profile == "tiny" else LAYERS)[layers],
        "likelihood": "bernoulli",
        "activation": "tanh" if setting.is_published else "gelu",
        "estimator": "importance" if k > 1 else "sgvb-b",
        "kl_annealing": 0 if setting.is_published else round(WARM_UP * setting.epochs[k] * steps),
        "num_samples": k,
        "optimizer": optimizer_of(setting, setting.epochs[k], steps),
        "learning_rate": 1.0,
        "batch_size": setting.batch_size,
        "max_epochs": setting.epochs[k],
        "validation_fraction": 0,
        "parameter_prior": None,
        "random_state": seed,
        "progress": False,
    }
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"likelihoods-run-{layers}-{k}-{seed}"
    return completed(VAE(**options).fit(binarize(levels, "dynamic"), checkpoint=place, checkpoint_seconds=60.0))


def optimizer_of(setting: Profile, epochs: int, steps_per_epoch: int) -> optax.GradientTransformation:
    """Return Adam with a learning rate that falls: as published, or by a cosine."""
    if not setting.is_published:
        return optax.adam(optax.cosine_decay_schedule(1e-3, epochs * steps_per_epoch))
    return optax.adam(published_rate(steps_per_epoch), b1=0.99, b2=0.999, eps=1e-4)


def published_rate(steps_per_epoch: int) -> Callable:
    """Return the published learning rate: 0.0001 * round(10^(1 - i/7), 1) for 3^i epochs, i = 0 to 7."""
    rates = [1e-4 * round(10 ** (1 - i / 7), 1) for i in range(8)]
    ends = np.cumsum([3**i for i in range(8)]) * steps_per_epoch
    return optax.join_schedules([optax.constant_schedule(rate) for rate in rates], [int(end) for end in ends[:-1]])


def log_likelihoods(model: VAE, X: np.ndarray, num_samples: int) -> np.ndarray:
    """Return the importance-sampled log p(x) of each row; all samples are from q(z|x), as published."""
    blocks = [X[start : start + BLOCK] for start in range(0, len(X), BLOCK)]
    return np.concatenate(
        [model.log_likelihood(block, num_samples=num_samples, defensive=0.0).values for block in blocks]
    )


def summary(results: dict[str, Any]) -> str:
    """Return the results as Markdown, beside those published."""
    rows: list[list[Any]] = [["layers", "k", "here", "published", "epochs"]]
    for (layers, k), published in PUBLISHED.items():
        found = results.get(words(layers), {}).get(f"k = {k}")
        value = "" if found is None else f"{found['negative_log_likelihood']:.2f} ± {found['std_error']:.2f}"
        rows.append([words(layers), k, value, f"{published:.2f}", "" if found is None else found["epochs"]])
    return f"-log p(x) in nats of dynamically binarized MNIST.\n\n{markdown_table(rows)}"
