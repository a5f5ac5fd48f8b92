"""Classification of MNIST with few labels: M2 and M1+M2 of Kingma, Rezende, Mohamed and Welling (2014).

The training rows are the first 50,000 images of the training set. Some have labels, equally many of each digit; those
of the others are not used. The error is that of the 10,000 test images. M1 and M2 see pixels that are drawn anew each
epoch. M1 is learned once, without labels, and is the same for all draws of the rows with labels.

Published are softplus units, one layer in M2, and Adam with a constant rate of 3e-4, for thousands of epochs. The rates
here are larger at first and fall to 0 (a cosine), units are GELU or ReLU, and M2 of pixels has two layers: a hundredth
of the epochs. Rows without labels teach the classifier gradually, see `VAEClassifier`'s `label_annealing`.
"""

from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aevb.arguments import check_parameter
from aevb.data.binarization import binarize, level_scale
from aevb.data.datasets import Dataset, load_dataset
from aevb.experiments.result_file import ResultFile, markdown_table, stored_results
from aevb.experiments.schedules import adam_to_zero
from aevb.experiments.settings import PROFILES, Watch
from aevb.files import check_path
from aevb.vae import VAE, VAEClassifier
from aevb.vae.label_rows import LabeledRows
from aevb.vae.loading import load

NUM_LABELS: tuple[int, ...] = (100, 600, 1000, 3000)
MODELS: tuple[str, ...] = ("m2", "m1+m2")


def _for_each(value: Any) -> dict[int, Any]:
    """Return the same for each number of labels."""
    return dict.fromkeys(NUM_LABELS, value)


BATCH_SIZE = 200
# Test error in percent, mean and standard error, of table 1 of the paper, by the number of labels.
PUBLISHED = {
    "m2": {100: (11.97, 1.71), 600: (4.94, 0.13), 1000: (3.60, 0.56), 3000: (3.92, 0.63)},
    "m1+m2": {100: (3.33, 0.14), 600: (2.59, 0.05), 1000: (2.40, 0.02), 3000: (2.18, 0.04)},
}
FEATURES: dict[str, Any] = {
    "latent_dim": 50,
    "hidden": (500, 500),
    "activation": "gelu",
    "kl_annealing": 1500,  # without it, and with softplus as published, 38 of 50 codes are not used after 30 epochs
    "likelihood": "bernoulli",
    "batch_size": BATCH_SIZE,
    "validation_fraction": 0,
}
LABELS: dict[str, Any] = {"batch_size": BATCH_SIZE, "validation_fraction": 0}
ACTIVATION = {"m2": "gelu", "m1+m2": "relu"}
HIDDEN = {"m2": (500, 500), "m1+m2": (500,)}
LATENT_DIM = {"m2": 50, "m1+m2": 10}  # the second is 50 as published, which takes twice the steps
LEARNING_RATES = {"m1": 2e-3, "m2": 2e-3, "m1+m2": 3e-3}  # of the first step
# By model and number of labels. 100 labels would be learned by heart by more visits (0.1 is published); M2 learns more
# from the rows without labels if these teach it later. Chosen by the error of the 10,000 validation images.
CLASSIFIER_WEIGHTS = {"m2": _for_each(0.5) | {100: 0.3}, "m1+m2": _for_each(0.5) | {100: 0.1}}
LABEL_ANNEALING = {"m2": _for_each(2_000) | {100: 4_000, 1000: 4_000}, "m1+m2": _for_each(2_000)}


class Profile(NamedTuple):
    """How much work is done."""

    data: str
    num_labels: tuple[int, ...]
    num_draws: int
    features_epochs: int  # of M1
    epochs: dict[str, dict[int, int]]  # of M2, by model and number of labels
    num_train: int | None = None  # rows at most


PROFILE = {
    "tiny": Profile("digits", (100,), 1, 1, {model: _for_each(1) for model in MODELS}, 500),
    "quick": Profile("mnist", (100,), 1, 15, {"m2": _for_each(15), "m1+m2": _for_each(20)}),
    "standard": Profile(
        "mnist",
        NUM_LABELS,
        5,
        100,
        {"m2": _for_each(10) | {100: 15, 1000: 15}, "m1+m2": _for_each(120) | {100: 60, 600: 60}},
    ),
    "paper": Profile("mnist", NUM_LABELS, 10, 300, {model: _for_each(200) for model in MODELS}),
}
CORE_SECONDS = {"m1": 5.5, "m2": 15.0, "m1+m2": 1.5}  # per epoch of 50,000 rows


class Rows(NamedTuple):
    """The rows of an experiment."""

    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray

    @classmethod
    def of(cls, data: Dataset, num_train: int | None) -> "Rows":
        """Return the published split of a data set; without one, the last rows are for testing."""
        parts = data.parts or {"train": np.arange(len(data.rows) - 500), "test": np.arange(500) + len(data.rows) - 500}
        train, test, labels = parts["train"][:num_train], parts["test"], data.labels
        assert labels is not None
        rows = data.rows * np.float32(level_scale(data.rows))
        return cls(rows[train], labels[train], rows[test], labels[test])

    def some_labels(self, number: int, seed: int) -> np.ndarray:
        """Return the labels of so many training rows, equally many of each class, and -1 for the others."""
        generator = np.random.default_rng(seed)
        shuffled = generator.permutation(len(self.train_labels))
        classes = np.unique(self.train_labels)
        members = [shuffled[self.train_labels[shuffled] == label][: number // len(classes)] for label in classes]
        known = np.concatenate(members)
        found = np.full(len(self.train_labels), -1)
        found[known] = self.train_labels[known]
        return found


def reproduce_semi_supervised(
    profile: str,
    folder: Path,
    *,
    seed: int = 0,
    watch: Watch = lambda *_: None,
    processes: int | None = None,
    models: tuple[str, ...] = MODELS,
    num_labels: tuple[int, ...] | None = None,
) -> list[Path]:
    """Fit each model with each number of labels; write `semi-supervised.json` and `semi-supervised.md`.

    The file is written after each fit, and M1 is saved in the folder, so an interrupted call resumes at the fit it was
    in.

    Args:
        profile: One of ``PROFILES``.
        folder: Receives the files.
        seed: Of the first draw of the rows with labels, and of M1.
        watch: A function with a method `note`, which is called with the progress.
        processes: How many fits run at a time, see :meth:`ResultFile.add_all`.
        models: Some of ``MODELS``.
        num_labels: Some of ``NUM_LABELS``; None for those of the profile.

    Returns:
        The paths of the files written.
    """
    check_parameter("profile", profile, choices=PROFILES)
    check_parameter("seed", seed, kind=int, low=0)
    plan, note = PROFILE[profile], getattr(watch, "note", lambda text: None)
    found = ResultFile(folder / "semi-supervised.json", _about(profile, seed))
    if "m1+m2" in models:
        _features(plan, folder, seed)  # before several processes would learn it
    measures = {
        (model, str(number), str(draw)): partial(_measure, plan, model, number, draw, folder, seed)
        for number in num_labels or plan.num_labels
        for model in models
        for draw in range(seed, seed + plan.num_draws)
    }
    for (model, number, draw), result in found.add_all(measures, processes):
        note(f"{model}, {number} labels, draw {draw}: {result['error']:.2f}% error")
    return [found.write_summary(summary(found.results)), found.write()]


def semi_supervised_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for the results that are not in the folder yet."""
    plan, done = PROFILE[profile], stored_results(folder / "semi-supervised.json")
    per_epoch = (plan.num_train or 50_000) / 50_000
    seconds = 0.0 if _features_folder(folder).exists() else plan.features_epochs * CORE_SECONDS["m1"]
    for model in MODELS:
        for number in plan.num_labels:
            fits = len(done.get(model, {}).get(str(number), {}))
            seconds += max(plan.num_draws - fits, 0) * plan.epochs[model][number] * CORE_SECONDS[model]
    return seconds * per_epoch


@cache
def _rows(name, num_train):
    return Rows.of(load_dataset(name), num_train)


def _measure(plan, model, number, draw, folder, seed):
    rows, epochs = _rows(plan.data, plan.num_train), plan.epochs[model][number]
    labels = rows.some_labels(number, draw)
    weight = CLASSIFIER_WEIGHTS[model][number]
    optimizer = adam_to_zero(LEARNING_RATES[model], epochs * _num_visits(labels, weight) // BATCH_SIZE)
    setting = {
        **LABELS,
        "classifier_weight": weight,
        "label_annealing": LABEL_ANNEALING[model][number],
        "hidden": HIDDEN[model],
        "activation": ACTIVATION[model],
        "latent_dim": LATENT_DIM[model],
        "max_epochs": epochs,
        "optimizer": optimizer,
    }
    if model == "m1+m2":
        setting["features"] = _features(plan, folder, seed)
    classifier = VAEClassifier(model, **setting, random_state=draw, progress=False)
    classifier.fit(rows.train if model == "m1+m2" else binarize(rows.train, "dynamic"), labels)
    return {
        "error": 100 * (1 - classifier.score(rows.test, rows.test_labels)),
        "test_rows": len(rows.test),
        "lower_bound": classifier.history_[-1]["lower_bound"],
        "epochs": epochs,
    }


def _num_visits(labels, classifier_weight):
    """Return the number of rows that an epoch visits, those with labels more than once."""
    return int(LabeledRows.of(labels, len(labels), classifier_weight).row_weights.sum())


def _features_folder(folder):
    return check_path("folder", folder) / "m1"


def _features(plan, folder, seed) -> VAE:
    """Return M1, which is learned at the first call."""
    place = _features_folder(folder)
    if not place.exists():
        rows = _rows(plan.data, plan.num_train)
        optimizer = adam_to_zero(LEARNING_RATES["m1"], plan.features_epochs * len(rows.train) // BATCH_SIZE)
        setting: dict[str, Any] = FEATURES | {"max_epochs": plan.features_epochs, "optimizer": optimizer}
        vae = VAE(**setting, random_state=seed, progress=False)
        vae.fit(binarize(rows.train, "dynamic"), checkpoint=folder / "m1-checkpoint").save(place)
    return load(place)


def summary(results: dict[str, Any]) -> str:
    """Return the errors as a Markdown table."""
    table: list[list[Any]] = [["model", "labels", "draws", "error in %, mean", "standard deviation", "published"]]
    for model, by_number in results.items():
        for number, draws in by_number.items():
            errors = [draw["error"] for draw in draws.values()]
            mean, error = PUBLISHED[model].get(int(number), (np.nan, np.nan))
            spread = f"{np.std(errors, ddof=1):.2f}" if len(errors) > 1 else ""
            published = f"{mean:.2f} ± {error:.2f}"
            table.append([model.upper(), number, len(errors), f"{np.mean(errors):.2f}", spread, published])
    return markdown_table(table)


def _about(profile, seed):
    return {
        "title": "Classification of MNIST with few labels",
        "how": "error of the 10,000 test images; 50,000 training rows, of which some have labels, equally many of each "
        "digit; no rows held out; M1 is the same for all draws",
        "settings": {
            "features": FEATURES,
            "labels": LABELS | {"hidden": HIDDEN, "activation": ACTIVATION},
            "latent_dim": LATENT_DIM,
            "learning_rates": LEARNING_RATES,
            "classifier_weights": CLASSIFIER_WEIGHTS,
            "label_annealing": LABEL_ANNEALING,
        },
        "profile": profile,
        "seed": seed,
    }
