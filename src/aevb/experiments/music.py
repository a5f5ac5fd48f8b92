"""Deep Markov models of Bach's chorales: log-likelihood of test chorales per quarter note, and generated music.

The numbers are in nats per step: the sum over test chorales divided by the sum of their lengths. "Bound" is the lower
bound with 10 draws of all states; "importance" the importance-sampled log-likelihood; "filtered" that of a particle
filter that draws from q, which is closer to the truth, and "filtered by more" that of one with ten times as many
particles: all estimates of p(x) are unbiased, so that those of log p(x) are too low on average.
"""

import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aevb.arguments import check_parameter
from aevb.data.chorales import LOWEST, Chorales, load_chorales
from aevb.experiments.result_file import ResultFile, completed, markdown_table, stored_results
from aevb.experiments.schedules import adam_to_zero
from aevb.experiments.settings import PROFILES, Watch
from aevb.report.canvas import COLOURS, new_figure, plot_axes, save, write_title
from aevb.report.music import plot_piano_rolls, write_midi
from aevb.vae import SequenceVAE, load

PUBLISHED = {"importance": 6.388, "bound": 6.926}  # Krishnan, Shalit and Sontag (2017), table 1, negated
TARGET = {"importance": 6.4, "bound": 6.95}
# As published: states of 100, emission 100, transition 200, Adam with 8e-4, batches of 20, annealing over 5,000 steps.
PUBLISHED_SETTING: dict[str, Any] = {
    "latent_dim": 100,
    "likelihood": "bernoulli",
    "hidden": (100,),
    "transition_hidden": (200,),
    "recurrent_size": 400,
    "batch_size": 20,
    "learning_rate": 8e-4,
    "kl_annealing": 5_000,
}
SETTINGS: dict[str, dict[str, Any]] = {  # by profile
    "tiny": {"latent_dim": 2, "recurrent_size": 4, "transition_hidden": (4,), "hidden": (4,), "max_epochs": 1},
    "quick": {"recurrent_size": 100, "kl_annealing": 1_000, "max_epochs": 7},
    # Half of the weight decay of Pyro's example in each step: with 24 copies of each chorale it is as strong as a prior
    # N(0, 1/10) for the 229 alone. The second part has no prior.
    "standard": {"max_epochs": 40, "kl_annealing": 2_000, "parameter_prior": 240.0},
    "paper": {"recurrent_size": 600, "max_epochs": 2_000},
}


class Model(NamedTuple):
    """One of the models that are compared."""

    file: str  # part of the names of its files
    formula: str
    setting: dict[str, Any]


# The published model, and its "augmented" form, in which notes and states also depend on the notes before.
MODELS = (
    Model("published", "p(x_t|z_t)", {}),
    Model("augmented", "p(x_t|z_t, x_{t-1}) p(z_t|z_{t-1}, x_{t-1})", {"autoregressive": "states"}),
)
# Except with "paper", models learn from transposed chorales as well, 24 times as many sequences, with a learning rate
# that falls to 0 by a cosine. A second part follows, with another rate: passes through ten copies of each in its key.
SEMITONES = 6  # up and down
RATES = (1.5e-3, 7e-4)
PASSES = {"tiny": 1, "quick": 5, "standard": 40}
COPIES = 10
NUM_DRAWS = {"tiny": 20, "quick": 200, "standard": 1_000, "paper": 1_000}
MORE = 10  # times as many particles, for a second estimate that is closer to the truth
CORE_SECONDS = {"tiny": 60.0, "quick": 600.0, "standard": 4_100.0, "paper": 36_000.0}
NUM_GENERATED, LENGTH = 4, 64


def reproduce_music(
    profile: str, folder: Path, *, seed: int = 0, watch: Watch = lambda *_: None, processes: int | None = None
) -> list[Path]:
    """Fit deep Markov models; write `music.json`, `music.md`, the curves, and generated chorales as PNG and MIDI.

    Runs are saved every minute, except the second part of training, so an interrupted call resumes.

    Args:
        profile: One of ``PROFILES``.
        folder: Receives the files.
        seed: Random seed.
        watch: A function with a method `note`, which is called with the progress.
        processes: How many fits run at a time, see :meth:`ResultFile.add_all`.

    Returns:
        The paths of the files written.
    """
    check_parameter("profile", profile, choices=PROFILES)
    check_parameter("seed", seed, kind=int, low=0)
    note = getattr(watch, "note", lambda text: None)
    chorales = load_chorales()
    about = {
        "title": "Bach's chorales by a deep Markov model",
        "how": "nats per quarter note: sums over the 77 test chorales divided by the sum of their lengths; bound with "
        f"10 draws, importance sampling and particle filters with {NUM_DRAWS[profile]} draws of all states, "
        f'"filtered_by_more" with {MORE} times as many; the 76 validation chorales choose the epoch, of the first part '
        "of training if there are two; epochs are passes through as many sequences as there are training chorales",
        "published": PUBLISHED,
    }
    file = ResultFile(folder / "music.json", about)
    measures = {(model.formula, f"seed {seed}"): partial(measured, model, profile, folder, seed) for model in MODELS}
    for (name, _), found in file.add_all(measures, processes):
        note(f"{name}: bound {found['bound']:.3f}, importance-sampled {found['importance']:.3f} nats per step")
    curves = [file.get(model.formula, f"seed {seed}")["curve"] for model in MODELS]
    last = fitted(chorales, MODELS[-1], profile, folder, seed)
    pictures = [save(plot_curves(curves), folder / "music-curve.png"), *generated(last, folder, seed, chorales)]
    return [file.write_summary(summary(file.results, chorales)), file.write(), *pictures]


def music_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for what is not in the folder yet."""
    done = stored_results(folder / "music.json")
    return sum(model.formula not in done for model in MODELS) * CORE_SECONDS[profile]


def fitted(chorales: Chorales, model: Model, profile: str, folder: Path, seed: int) -> SequenceVAE:
    """Return a model, trained as far as the files of the folder do not contain it."""
    tuned = folder / f"music-tuned-{model.file}-{seed}"
    if tuned.exists():
        return load(tuned)
    has_two_parts = profile in PASSES
    train = transposed(chorales.train) if has_two_parts else chorales.train
    setting: dict[str, Any] = PUBLISHED_SETTING | SETTINGS[profile] | model.setting | {"patience": None}
    if has_two_parts:
        num_steps = setting["max_epochs"] * (len(train) // setting["batch_size"])
        setting |= {"optimizer": adam_to_zero(RATES[0], num_steps), "learning_rate": None}
    vae = SequenceVAE(**setting, random_state=seed, progress=False)
    folder.mkdir(parents=True, exist_ok=True)
    run = folder / f"music-run-{model.file}-{seed}"
    completed(vae.fit(train, validation_data=chorales.valid, checkpoint=run))
    if has_two_parts:
        learn_own_keys(vae, chorales.train, PASSES[profile]).save(tuned)
    return vae


def learn_own_keys(vae: SequenceVAE, rolls: list[np.ndarray], passes: int) -> SequenceVAE:
    """Go on with chorales in their own keys: without a prior, and with a second learning rate that falls to 0."""
    num_steps = passes * (COPIES * len(rolls) // PUBLISHED_SETTING["batch_size"])
    vae.set_params(kl_annealing=0, optimizer=adam_to_zero(RATES[1], num_steps))
    for _ in range(passes):
        completed(vae.partial_fit(rolls * COPIES))
    return vae


def transposed(rolls: list[np.ndarray]) -> list[np.ndarray]:
    """Return each chorale as it is, and as often transposed, by 1 to 6 semitones up and down: 24 copies of each.

    Example:
        >>> len(transposed([np.eye(88)[[40]]]))
        24
    """
    shifts = [by for by in range(-SEMITONES, SEMITONES + 1) if by]
    return [np.roll(roll, by, axis=1) for by in [*shifts, *(0 for _ in shifts)] for roll in rolls]


def measured(model: Model, profile: str, folder: Path, seed: int) -> dict[str, Any]:
    """Return what a model reaches, negative log-likelihoods in nats per step, and its curve."""
    chorales, num_draws = load_chorales(), NUM_DRAWS[profile]
    vae = fitted(chorales, model, profile, folder, seed)
    steps, start = sum(map(len, chorales.test)), time.process_time()
    estimate = vae.log_likelihood(chorales.test, num_samples=num_draws)
    filtered, more = (
        vae.log_likelihood(chorales.test, method="particle-filter", num_samples=number)
        for number in (num_draws, MORE * num_draws)
    )
    lengths = [np.mean([len(roll) for roll in part]) for part in (chorales.train, chorales.valid)]
    first = [row for row in vae.history_ if "validation_lower_bound" in row]  # of training, without the second part
    epochs = [row["samples"] / len(chorales.train) for row in vae.history_]
    curve = {
        "epoch": epochs[: len(first)],
        "training": [-row["lower_bound"] / lengths[0] for row in first],
        "validation": [-row["validation_lower_bound"] / lengths[1] for row in first],
    }
    second = sum(row["seconds"] for row in vae.history_[len(first) :])
    return {
        "bound": -vae.score(chorales.test),
        "importance": float(-estimate.values.sum() / steps),
        "importance_std_error": float(np.sqrt(np.sum(estimate.std_errors**2)) / steps),
        "filtered": float(-filtered.values.sum() / steps),
        "filtered_std_error": float(np.sqrt(np.sum(filtered.std_errors**2)) / steps),
        "filtered_by_more": float(-more.values.sum() / steps),
        "filtered_by_more_std_error": float(np.sqrt(np.sum(more.std_errors**2)) / steps),
        "share_of_k_hat_above_0.7": float(np.mean(estimate.diagnostics["k_hat"] > 0.7)),
        "validation_bound": -vae.score(chorales.valid),
        "training_bound": -vae.score(chorales.train),
        "epochs": round(epochs[-1]),  # of so many sequences, transposed ones counted as well
        "training_seconds": first[-1]["seconds"] + second,
        "measuring_seconds": time.process_time() - start,
        "curve": curve,
    }


def independent_notes(chorales: Chorales) -> float:
    """Return the same number for notes that are independent of everything, with their training frequencies."""
    train, test = (np.concatenate(part) for part in (chorales.train, chorales.test))
    p = (train.sum(axis=0) + 0.5) / (len(train) + 1)
    return float(-np.sum(test * np.log(p) + (1 - test) * np.log1p(-p)) / len(test))


def summary(results: dict[str, Any], chorales: Chorales) -> str:
    """Return the results as Markdown."""
    kinds = ("importance", "filtered", "filtered_by_more")
    rows: list[list[Any]] = [["model", "importance-sampled", "particle filter", f"with {MORE} times as many particles"]]
    rows[0] += ["bound", "epochs"]
    rows.append(["independent notes", f"{independent_notes(chorales):.2f} (exact)", "", "", "", ""])
    rows.append(["deep Markov model, published", PUBLISHED["importance"], "", "", PUBLISHED["bound"], ""])
    for name, seeds in results.items():
        for seed, found in seeds.items():
            values = [f"{found[key]:.3f} ± {found[f'{key}_std_error']:.3f}" if key in found else "" for key in kinds]
            rows.append([f"{name}, {seed}".replace("|", "\\|"), *values, f"{found['bound']:.3f}", found["epochs"]])
    return (
        "Negative log-likelihood of the test chorales in nats per quarter note.\n\n"
        f"{markdown_table(rows)}\n"
        f"Targets: {TARGET['importance']} importance-sampled, {TARGET['bound']} for the bound.\n"
    )


def plot_curves(curves: list[dict[str, list[float]]]) -> Any:
    """Draw the bounds during training, of the first part if there are two."""
    figure = new_figure(6.5, 3.9)
    write_title(figure, "Chorales", "negative lower bound in nats per quarter note")
    axes = plot_axes(figure, (0.6, 0.55, 5.6, 2.5))
    for colour, model, curve in zip(COLOURS, MODELS, curves, strict=False):
        formula = model.formula.replace("|", " | ")
        for part, style in {"training": ":", "validation": "-"}.items():
            axes.plot(curve["epoch"], curve[part], style, color=colour, label=f"${formula}$, {part}", linewidth=1.2)
    axes.set_xlabel("epoch", fontsize=9)
    axes.set_ylim(5.5, 12)
    axes.legend(frameon=False, fontsize=8)
    return figure


def generated(model: SequenceVAE, folder: Path, seed: int, chorales: Chorales) -> list[Path]:
    """Write a few new chorales as pictures, with one of Bach's, and as MIDI files."""
    rolls = model.sample(NUM_GENERATED, length=LENGTH, random_state=seed)
    names = [f"generated {number}" for number in range(1, NUM_GENERATED + 1)]
    shown, called = [*rolls, chorales.test[0][:LENGTH]], [*names, "Bach, a test chorale"]
    picture = save(plot_piano_rolls(shown, called, "Generated chorales", LOWEST), folder / "music-generated.png")
    files = [write_midi(roll, folder / f"music-{number}.mid", LOWEST) for number, roll in enumerate(rolls, 1)]
    return [picture, *files]
