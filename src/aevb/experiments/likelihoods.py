"""Log-likelihoods of dynamically binarized MNIST, beside those of the paper on importance-weighted auto-encoders.

Burda, Grosse and Salakhutdinov, "Importance weighted autoencoders" (2016), table 1: one and two stochastic layers, and
k = 1, 5 and 50 samples in training. Numbers are -log p(x) of the test images in nats, by importance sampling.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import optax

from aevb.arguments import check_parameter
from aevb.data import binarize, load_dataset
from aevb.experiments.result_file import ResultFile, markdown_table, stored_results
from aevb.experiments.settings import PROFILES, Watch
from aevb.vae import VAE, load

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
SAVE_SECONDS = 60.0
# CPU seconds of an epoch of 60,000 images on one core, by the number of layers and k.
SECONDS_PER_EPOCH = {(1, 1): 2.4, (1, 5): 6.5, (1, 50): 85.0, (2, 1): 3.2, (2, 5): 10.0, (2, 50): 140.0}
# With equal computing, large k pays in the last part only: shares of the computing time with each k, by the last one.
STAGES = {1: {1: 1.0}, 5: {1: 0.4, 5: 0.6}, 50: {1: 0.25, 5: 0.25, 50: 0.5}}
# Except with "paper", units are GELU, and the KL term of the bound grows to its full weight in this share of the epochs
# with k = 1: with tanh and without this, two layers learn far less than one, see decision 46.
WARM_UP = 0.3


class Profile(NamedTuple):
    """How long is learned, and how many images are measured."""

    ks: tuple[int, ...]
    minutes: float | None  # of computing on one core for each row; None for the published schedule, and tanh
    batch_size: int
    num_test: int
    num_samples: int  # of z per test image
    num_train: int | None = None  # None for all 60,000


SETTINGS = {
    "tiny": Profile((1, 5), 1e-4, 50, 20, 20, 200),
    "quick": Profile((1, 5), 1.0, 100, 500, 500, 20_000),
    "standard": Profile((1, 5, 50), 16.0, 100, 10_000, 5_000),
    "paper": Profile((1, 5, 50), None, 20, 10_000, 5_000),
}
PUBLISHED_EPOCHS = 3_280


def reproduce_likelihoods(
    profile: str, folder: Path, *, seed: int = 0, watch: Watch = lambda *_: None, processes: int | None = None
) -> list[Path]:
    """Learn the models of the table, one per core at a time; write `likelihoods.json` and `likelihoods.md`.

    Models are saved every minute, once the KL term has grown to its full weight, so an interrupted call resumes.

    Args:
        profile: One of ``PROFILES``: quick learns from 20,000 images, without k = 50; paper has the published schedule.
        folder: Receives the files.
        seed: Random seed.
        watch: A function with a method `note`, which is called with the progress.
        processes: How many fits run at a time, see :meth:`ResultFile.add_all`.

    Returns:
        The paths of the files written.
    """
    check_parameter("profile", profile, choices=PROFILES)
    check_parameter("seed", seed, kind=int, low=0)
    note, setting = getattr(watch, "note", lambda text: None), SETTINGS[profile]
    file = ResultFile(folder / "likelihoods.json", about(setting, seed))
    rows = [(layers, k) for k in setting.ks for layers in LAYERS]  # the cheapest first
    measures = {key_of(*row): partial(measured, *row, profile, folder, seed) for row in rows}
    for (name, k), found in file.add_all(measures, processes):
        note(f"{name}, {k}: {found['negative_log_likelihood']:.2f} ± {found['std_error']:.2f} nats")
    return [file.write_summary(summary(file.results)), file.write()]


def likelihoods_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for what is not in the folder yet."""
    setting, done = SETTINGS[profile], stored_results(folder / "likelihoods.json")
    left = [
        (layers, k) for k in setting.ks for layers in LAYERS if key_of(layers, k)[1] not in done.get(words(layers), {})
    ]
    share = (setting.num_train or 60_000) / 60_000
    learning = sum(
        share * epochs * SECONDS_PER_EPOCH[layers, k]
        for layers, last in left
        for k, epochs in stages_of(setting, layers, last)
    )
    return learning + len(left) * 1e-5 * setting.num_test * setting.num_samples


def stages_of(setting: Profile, layers: int, k: int) -> list[tuple[int, int]]:
    """Return k and the number of epochs of each stage of training; those of a profile take equal computing time."""
    if setting.minutes is None:
        return [(k, PUBLISHED_EPOCHS)]
    seconds = 60 * setting.minutes * 60_000 / (setting.num_train or 60_000)
    return [(now, max(round(share * seconds / SECONDS_PER_EPOCH[layers, now]), 1)) for now, share in STAGES[k].items()]


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
        if setting.minutes is None
        else f"GELU; Adam, a cosine from 1e-3 to 0; the KL term grows in the first {WARM_UP:.0%} of the epochs with "
        f"k = 1; {setting.minutes:g} minutes of computing on one core for each row, by the time that an epoch took "
        "before; k grows: " + "; ".join(f"{k}: {_in_words(stages)}" for k, stages in STAGES.items()),
        "batch_size": setting.batch_size,
        "seed": seed,
        "published": {f"{words(layers)}, k = {k}": value for (layers, k), value in PUBLISHED.items()},
    }


def _in_words(stages):
    return ", ".join(f"k = {k} for {share:.0%} of the time" for k, share in stages.items())


def _epochs(stages):
    return ", ".join(f"{number:,} with {k}" for k, number in stages.items())


def measured(layers: int, k: int, profile: str, folder: Path, seed: int) -> dict[str, Any]:
    """Learn a model, as far as it is not in the folder, and measure it."""
    setting, data = SETTINGS[profile], load_data(profile)
    model = learned(data[0], layers, k, profile, folder, seed)
    values = log_likelihoods(model, data[1], setting.num_samples)
    history = model.history_
    return {
        "negative_log_likelihood": float(-values.mean()),
        "std_error": float(values.std() / np.sqrt(len(values))),
        "epochs": {f"k = {now}": epochs for now, epochs in stages_of(setting, layers, k)},
        "training_seconds": sum(row["seconds"] for row in history),
        "training_bound": history[-1]["lower_bound"],
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


def learned(levels: np.ndarray, layers: int, k: int, profile: str, folder: Path, seed: int) -> VAE:
    """Return the model of a row of the table, learned in passes through images whose pixels are drawn anew."""
    setting = SETTINGS[profile]
    steps, stages = max(len(levels) // setting.batch_size, 1), stages_of(setting, layers, k)
    optimizer = optimizer_of(setting, stages, layers, steps)
    options: dict[str, Any] = {
        **(SMALL if profile == "tiny" else LAYERS)[layers],
        "likelihood": "bernoulli",
        "activation": "tanh" if setting.minutes is None else "gelu",
        "optimizer": optimizer,
        "learning_rate": 1.0,
        "batch_size": setting.batch_size,
        "parameter_prior": None,
        "random_state": seed,
        "progress": False,
    }
    place = folder / f"likelihoods-run-{layers}-{k}-{seed}"
    vae = load(place, optimizer=optimizer) if place.exists() else VAE(**options)
    ks = [now for now, epochs in stages for _ in range(epochs)]
    warm = 0 if setting.minutes is None else round(WARM_UP * stages[0][1])  # epochs
    saved, done = time.monotonic(), len(vae.history_) if place.exists() else 0
    for epoch, now in enumerate(ks[done:], done):
        vae.set_params(estimator="importance" if now > 1 else "sgvb-b", num_samples=now)
        vae.set_params(kl_annealing=warm * steps if epoch < warm else 0)
        vae.partial_fit(binarize(levels, "static", (seed, epoch)))
        # Not before, because a saved model does not say how far the KL term has grown.
        if epoch + 1 >= warm and (time.monotonic() > saved + SAVE_SECONDS or epoch + 1 == len(ks)):
            vae.save(place)
            saved = time.monotonic()
    return vae


def optimizer_of(setting: Profile, stages, layers: int, steps_per_epoch: int) -> optax.GradientTransformation:
    """Return Adam with a learning rate that falls: as published, or by a cosine of the computing time."""
    if setting.minutes is None:
        return optax.adam(published_rate(steps_per_epoch), b1=0.99, b2=0.999, eps=1e-4)
    ends = np.cumsum([0, *(epochs * steps_per_epoch for _, epochs in stages)])
    times = np.cumsum([0, *(epochs * SECONDS_PER_EPOCH[layers, k] for k, epochs in stages)])
    shares = times / times[-1]
    return optax.adam(lambda step: 1e-3 * (1 + jnp.cos(jnp.pi * jnp.interp(step, ends, shares))) / 2)


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
        rows.append([words(layers), k, value, f"{published:.2f}", "" if found is None else _epochs(found["epochs"])])
    return f"-log p(x) in nats of dynamically binarized MNIST.\n\n{markdown_table(rows)}"
