"""Conditional MNIST: what the label is worth in nats, and whether generated digits are those that were asked for.

The training rows are the first 50,000 images of the training set, whose pixels are drawn from their grey levels anew in
each epoch; those of the test images are drawn once. Two equal networks learn them, one of which also reads the label.
The bound is that of the 10,000 test images, on log p(x|y) and on log p(x). Generated digits are read by classifiers
that have only seen real ones: the decoder's means by one of grey levels, and draws by one of binary images.
"""

import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.neural_network import MLPClassifier

from aevb.arguments import check_parameter
from aevb.data.binarization import binarize
from aevb.data.datasets import load_dataset
from aevb.experiments.result_file import ResultFile, markdown_table, stored_results
from aevb.experiments.schedules import adam_to_zero
from aevb.experiments.semi_supervised import Rows
from aevb.experiments.settings import PROFILES, Watch
from aevb.vae import VAE

NUM_GENERATED = 10_000
BOUND_SAMPLES = 10  # L of the bound
MODEL: dict[str, Any] = {
    "latent_dim": 20,
    "hidden": (500, 500),
    "likelihood": "bernoulli",
    "estimator": "sgvb-b",
    "batch_size": 200,
    "validation_fraction": 0,
}
LEARNING_RATE = 1e-3  # of the first step; it falls to 0, a cosine


class Profile(NamedTuple):
    """How much work is done."""

    data: str
    num_seeds: int
    epochs: int
    reader_epochs: int  # of the classifiers
    num_train: int | None = None  # rows at most


PROFILE = {
    "tiny": Profile("digits", 1, 2, 2, 500),
    "quick": Profile("mnist", 1, 10, 10),
    "standard": Profile("mnist", 2, 20, 15),
    "paper": Profile("mnist", 5, 100, 30),
}
CORE_SECONDS = {"model": 6.0, "reader": 4.0}  # per epoch of 50,000 rows


def reproduce_conditional(
    profile: str,
    folder: Path,
    *,
    seed: int = 0,
    watch: Watch = lambda *_: None,
    processes: int | None = None,
) -> list[Path]:
    """Fit the conditional and the other model with several seeds; write `conditional.json` and `conditional.md`.

    The file is written after each fit, so an interrupted call resumes at the fit it was in.

    Args:
        profile: One of ``PROFILES``.
        folder: Receives the files.
        seed: Of the first fit.
        watch: A function with a method `note`, which is called with the progress.
        processes: Ignored: fits run one after the other.

    Returns:
        The paths of the files written.
    """
    check_parameter("profile", profile, choices=PROFILES)
    check_parameter("seed", seed, kind=int, low=0)
    plan, note = PROFILE[profile], getattr(watch, "note", lambda text: None)
    grey = Rows.of(load_dataset(plan.data), plan.num_train)
    rows = grey._replace(**{part: binarize(getattr(grey, part), "static", seed=0) for part in ("train", "test")})
    found = ResultFile(folder / "conditional.json", _about(profile, seed))
    readers: dict[str, Any] = {}

    def reader(kind):
        """Return the classifier of real images of this kind, which is learned once, and its test accuracy."""
        if kind not in readers:
            readers[kind] = _learn_reader(grey if kind == "means" else rows, plan)
        return readers[kind]

    for number in range(seed, seed + plan.num_seeds):
        for name in ("given y", "without y"):
            result = found.add((name, str(number)), partial(_measure, plan, grey.train, rows, name, number, reader))
            note(f"{name}, seed {number}: {result['lower_bound']:.2f} nats")
    return [found.write_summary(summary(found.results)), found.write()]


def conditional_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for the results that are not in the folder yet."""
    plan, done = PROFILE[profile], stored_results(folder / "conditional.json")
    fits = max(2 * plan.num_seeds - sum(len(seeds) for seeds in done.values()), 0)
    seconds = fits * plan.epochs * CORE_SECONDS["model"]
    seconds += 2 * plan.reader_epochs * CORE_SECONDS["reader"] if fits else 0.0
    return seconds * (plan.num_train or 50_000) / 50_000


def _learn_reader(rows: Rows, plan):
    """Return a classifier of real images, and its accuracy on test images."""
    options: dict[str, Any] = {"hidden_layer_sizes": (300,), "batch_size": 200, "alpha": 1e-5, "random_state": 0}
    model = MLPClassifier(**options, max_iter=plan.reader_epochs, learning_rate_init=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it could be trained for longer
        model.fit(np.asarray(rows.train, np.float32), rows.train_labels)
    return model, float(model.score(np.asarray(rows.test, np.float32), rows.test_labels))


def _measure(plan, grey, rows: Rows, name, seed, reader):
    is_conditional = name == "given y"
    setting = {**MODEL, "conditional": is_conditional, "max_epochs": plan.epochs, "random_state": seed}
    setting["optimizer"] = adam_to_zero(LEARNING_RATE, plan.epochs * len(grey) // MODEL["batch_size"])
    model = VAE(**setting, progress=False).fit(binarize(grey, "dynamic"), rows.train_labels)
    bounds = model.score_samples(rows.test, rows.test_labels, num_samples=BOUND_SAMPLES)
    result: dict[str, Any] = {
        "lower_bound": float(np.mean(bounds)),
        "std_error": float(np.std(bounds) / np.sqrt(len(bounds))),
        "test_rows": len(bounds),
        "epochs": plan.epochs,
    }
    if is_conditional:
        classes = np.unique(rows.train_labels)
        asked = np.resize(classes, NUM_GENERATED if plan.data == "mnist" else 500)
        for kind in ("means", "draws"):
            classifier, accuracy = reader(kind)
            generated = np.asarray(model.sample(len(asked), y=asked, mean=kind == "means"), np.float32)
            result[f"read_{kind}"] = float(np.mean(classifier.predict(generated) == asked))
            result[f"reader_of_{kind}"] = accuracy
    return result


def summary(results: dict[str, Any]) -> str:
    """Return the bounds and what classifiers read as Markdown tables."""
    table: list[list[Any]] = [
        ["seed", "bound on log p(x\\|y)", "bound on log p(x)", "margin", "means read", "draws read"]
    ]
    margins = []
    for seed, given in results.get("given y", {}).items():
        without = results.get("without y", {}).get(seed)
        cells = [seed, f"{given['lower_bound']:.2f}", "", ""]
        if without is not None:
            margins.append(given["lower_bound"] - without["lower_bound"])
            cells[2:] = [f"{without['lower_bound']:.2f}", f"{margins[-1]:.2f}"]
        table.append([*cells, *(f"{given[f'read_{kind}']:.2%}" for kind in ("means", "draws"))])
    if len(margins) > 1:
        spread = np.std(margins, ddof=1)
        table.append(["all", "", "", f"{np.mean(margins):.2f} ± {spread:.2f}", "", ""])
    first = next(iter(results.get("given y", {}).values()), None)
    said = ""
    if first is not None:
        said = (
            f"\nRead: the share of {NUM_GENERATED:,} generated digits, equally many of each, that a classifier of real "
            f"digits reads as the one asked for. Of real test digits it reads {first['reader_of_means']:.2%} (grey "
            f"levels, for means of p(x|z, y)) and {first['reader_of_draws']:.2%} (binary, for draws) correctly.\n"
        )
    return markdown_table(table) + said


def _about(profile, seed):
    return {
        "title": "Conditional MNIST",
        "how": f"mean lower bound of the 10,000 test images in nats, estimator B with {BOUND_SAMPLES} samples; test "
        "images binarized once, the same for all; 50,000 training rows, none held out; margin: mean and standard "
        "deviation over seeds",
        "settings": {"model": MODEL, "learning_rate": LEARNING_RATE, "profile": PROFILE[profile]._asdict()},
        "profile": profile,
        "seed": seed,
    }
