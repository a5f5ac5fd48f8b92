"""Topic models of 20 Newsgroups with 50 topics: held-out perplexity, and the topics by their words.

The perplexity of the test documents is exp of minus the sum of the lower bounds on log p(document), divided by the
number of words; the encoder and the bound see the whole document. It is an upper bound on the model's perplexity.
"""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from aevb import runs
from aevb.arguments import check_parameter
from aevb.data.newsgroups import Documents, load_newsgroups
from aevb.experiments.figures import write_numbers
from aevb.experiments.settings import PROFILES, Watch
from aevb.files import written_whole
from aevb.vae import VAE

NUM_TOPICS = 50
TARGET = 790.0  # the perplexity to reach
SETTINGS: dict[str, dict[str, Any]] = {  # by profile
    "tiny": {"hidden": (8,), "max_epochs": 1},
    "quick": {"max_epochs": 20},
    "standard": {},
    "paper": {},
}
NUM_SEEDS = {"tiny": 1, "quick": 1, "standard": 3, "paper": 3}
NUM_SAMPLES = 10  # draws of z per test document
CORE_SECONDS = {"tiny": 10.0, "quick": 100.0, "standard": 600.0, "paper": 600.0}  # for one fit, about
SMOOTHING = 0.1  # added to the count of each word, for the frequencies that a model is compared with


def reproduce_topics(
    profile: str, folder: Path, *, seed: int = 0, watch: Watch = lambda *_: None, processes: int | None = None
) -> list[Path]:
    """Fit topic models with several seeds; write `topics.json` and `topics.md`.

    The file is written after each fit, so an interrupted call resumes at the fit it was in.

    Args:
        profile: One of ``PROFILES``: one seed and 20 epochs for quick, three seeds and defaults for standard and paper.
        folder: Receives the files.
        seed: The first seed.
        watch: A function with a method `note`, which is called with the progress.
        processes: Ignored: fits run one after the other.

    Returns:
        The paths of the files written.
    """
    check_parameter("profile", profile, choices=PROFILES)
    check_parameter("seed", seed, kind=int, low=0)
    note = getattr(watch, "note", lambda text: None)
    path, documents = folder / "topics.json", load_newsgroups()
    fits = _read(path)
    for number in range(seed, seed + NUM_SEEDS[profile]):
        if all(fit["seed"] != number for fit in fits):
            fits.append(fit_once(documents, number, SETTINGS[profile]))
            _write(path, fits, documents)
            note(f"seed {number}: perplexity {fits[-1]['perplexity']:.1f}, {fits[-1]['cpu_seconds']:.0f} s")
    numbers = _write(path, fits, documents)
    with written_whole(folder / "topics.md") as scratch:
        scratch.write_text(summary(fits, frequencies_perplexity(documents)), encoding="utf-8")
    return [folder / "topics.md", numbers]


def topics_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for the fits that are not in the folder yet."""
    return CORE_SECONDS[profile] * max(NUM_SEEDS[profile] - len(_read(folder / "topics.json")), 0)


def fit_once(documents: Documents, seed: int, setting: dict[str, Any]) -> dict[str, Any]:
    """Return what one fit reached on the test documents, its topics, and its CPU seconds."""
    start = time.process_time()
    vae = VAE(NUM_TOPICS, likelihood="multinomial", random_state=seed, progress=False, **setting).fit(documents.train)
    return {
        "seed": seed,
        "perplexity": vae.perplexity(documents.test, num_samples=NUM_SAMPLES),
        "lower_bound": vae.score(documents.test, num_samples=NUM_SAMPLES),
        "cpu_seconds": time.process_time() - start,
        "epochs": vae.history_[-1]["epoch"],
        "stopped_because": vae.stopped_because_,
        "topics": vae.topics(documents.vocabulary),
        "commit": runs.commit(),
    }


def frequencies_perplexity(documents: Documents) -> float:
    """Return the perplexity of the test documents under the frequencies of the words in the training documents."""
    frequencies = np.asarray(documents.train.sum(axis=0), np.float64) + SMOOTHING
    counts = np.asarray(documents.test.sum(axis=0), np.float64)
    return float(np.exp(-np.sum(counts * np.log(frequencies / frequencies.sum())) / counts.sum()))


def summary(fits: list[dict[str, Any]], frequencies: float) -> str:
    """Return the results as Markdown: the perplexities, and the topics of the first fit."""
    lines = ["| model | seed | test perplexity, at most | epochs | CPU s |", "| --- " * 5 + "|"]
    lines.append(f"| frequencies of the words |  | {frequencies:.1f} |  |  |")
    for fit in fits:
        cells = [f"VAE, {NUM_TOPICS} topics", fit["seed"], f"{fit['perplexity']:.1f}", fit["epochs"]]
        lines.append(f"| {' | '.join(map(str, cells))} | {fit['cpu_seconds']:.0f} |")
    reached = sum(fit["perplexity"] <= TARGET for fit in fits)
    lines += ["", f"{reached} of {len(fits)} fits reach the target, {TARGET:.0f}.", ""]
    lines += [f"{number}. {' '.join(words)}" for number, words in enumerate(fits[0]["topics"], start=1)]
    return "\n".join(lines) + "\n"


def _read(path):
    return json.loads(path.read_text(encoding="utf-8"))["fits"] if path.exists() else []


def _write(path, fits, documents):
    how = (
        f"lower bound by {NUM_SAMPLES} draws of z per document, without the multinomial coefficient; "
        f"{documents.train.shape[0]} training and {documents.test.shape[0]} test documents"
    )
    about = {"title": "Topics of 20 Newsgroups", "how": how, "frequencies": frequencies_perplexity(documents)}
    return write_numbers(path, about | {"fits": fits})
