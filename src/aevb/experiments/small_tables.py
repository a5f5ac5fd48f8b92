"""`VAE` with default settings on ten small tables, compared with the simple models that one would try first.

All settings but `random_state` are left at their defaults; each table is also fitted with fewer latent variables. The
result is log p(x) of held-out rows, next to that of factor analysis with as many factors, independent columns,
probabilistic PCA and Gaussian mixtures.
"""

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from aevb import runs
from aevb.arguments import check_parameter
from aevb.experiments.figures import write_numbers
from aevb.experiments.settings import PROFILES, Watch
from aevb.experiments.tables import TABLES, split
from aevb.files import written_whole
from aevb.inference.baselines import fit_baselines
from aevb.models.cross_validation import fitting_small_models
from aevb.settings import Arguments
from aevb.training.budget import AUTO, num_held_out
from aevb.vae import VAE

NUM_SEEDS = {"tiny": 1, "quick": 2, "standard": 10, "paper": 10}
NUM_SAMPLES = 1000  # of z per row, in the estimate of log p(x)
BEST_MIXTURE = "best mixture of 1-5"
CORE_SECONDS = 15.0  # for one fit and its evaluation, about


def reproduce_small_tables(
    profile: str,
    folder: Path,
    *,
    seed: int = 0,
    watch: Watch = lambda *_: None,
    processes: int | None = None,
    tables: tuple[str, ...] = tuple(TABLES),
) -> list[Path]:
    """Fit `VAE` to each table with several seeds; write `small-tables.json` and `small-tables.md`.

    The file is written after each fit, so an interrupted call resumes at the fit it was in.

    Args:
        profile: One of ``PROFILES``: two seeds for quick, ten for standard and paper.
        folder: Receives the files.
        seed: The first seed.
        watch: A function with a method `note`, which is called with the progress.
        processes: Ignored: fits run one after the other, so that CPU time is that of one fit.
        tables: Keys of ``TABLES``.

    Returns:
        The paths of the files written.
    """
    check_parameter("profile", profile, choices=PROFILES)
    check_parameter("seed", seed, kind=int, low=0)
    note = getattr(watch, "note", lambda text: None)
    path = folder / "small-tables.json"
    found = _read(path)
    for name in tables:
        try:
            train, test = split(TABLES[name].read())
        except ImportError as error:
            note(f"{name}: left out, needs the package {error.name}: pip install {error.name}")
            continue
        num_rows = len(train) - num_held_out(len(train), AUTO)
        default = Arguments().latent_dim_for("gaussian", train.shape[1], num_rows)
        for key, latent_dim in {name: TABLES[name].latent_dim, f"{name}, default J": default}.items():
            entry = found.setdefault(key, {**_about(name, train, test, latent_dim), "fits": []})
            for number in range(seed, seed + NUM_SEEDS[profile]):
                if all(fit["seed"] != number for fit in entry["fits"]):
                    entry["fits"].append(fit_once(train, test, latent_dim, number))
                    _write(path, found)
                    note(f"{key}: {_outcome(entry, entry['fits'][-1])}")
    with written_whole(folder / "small-tables.md") as scratch:
        scratch.write_text(summary(found), encoding="utf-8")
    return [folder / "small-tables.md", _write(path, found)]


def small_tables_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for the fits that are not in the folder yet."""
    done = sum(len(entry["fits"]) for entry in _read(folder / "small-tables.json").values())
    return CORE_SECONDS * max(2 * len(TABLES) * NUM_SEEDS[profile] - done, 0)


def fit_once(train: np.ndarray, test: np.ndarray, latent_dim: int, seed: int) -> dict[str, Any]:
    """Return what one fit with default settings reached on the test rows, in nats per row, and its CPU seconds."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        vae = VAE(latent_dim, random_state=seed, progress=False).fit(train)
        seconds = time.process_time() - start
        estimate = vae.log_likelihood(test, num_samples=NUM_SAMPLES)
    return {
        "seed": seed,
        "log_likelihood": estimate.mean,
        "std_error": estimate.std_error,
        "cpu_seconds": seconds,
        "epochs": vae.history_[-1]["epoch"],
        "stopped_because": vae.stopped_because_,
        "refit_epochs": vae.refit_epochs_,
        "prior": vae.prior_,
        "warnings": sorted({str(warning.message) for warning in caught}),
        "commit": runs.commit(),
    }


def _about(name, train, test, latent_dim):
    table = TABLES[name]
    others = fit_baselines(train, test, num_factors=latent_dim)
    simple = {kind: {"log_likelihood": value, "detail": others.details[kind]} for kind, value in others.means.items()}
    same = next(kind for kind in simple if kind.startswith("factor analysis, "))
    simple["factor analysis, J factors"] = simple.pop(same)
    simple[BEST_MIXTURE] = {"log_likelihood": _best_mixture(train, test), "detail": "selected by the test rows"}
    shape = {"num_train": len(train), "num_test": len(test), "num_columns": train.shape[1]}
    return {"title": table.title, "columns": table.columns, **shape, "latent_dim": latent_dim, "simple": simple}


def _best_mixture(train, test):
    """Return the highest log p(x) of the test rows of Gaussian mixtures with 1 to 5 components: what none can exceed.

    The covariances are full, with scikit-learn's default of what is added to them, or as in the other baselines.
    """
    from sklearn.mixture import GaussianMixture

    with fitting_small_models():
        mixtures = [
            GaussianMixture(size, reg_covar=least, random_state=0) for size in range(1, 6) for least in (1e-6, 1e-4)
        ]
        return float(max(mixture.fit(train).score(test) for mixture in mixtures))


def margin(entry: dict[str, Any], fit: dict[str, Any], kind: str = "factor analysis, J factors") -> float:
    """Return by how many nats per row a fit is above a simple model."""
    return fit["log_likelihood"] - entry["simple"][kind]["log_likelihood"]


def _outcome(entry, fit):
    return (
        f"seed {fit['seed']}, log p(x) {fit['log_likelihood']:.2f} nats, factor analysis {margin(entry, fit):+.2f}, "
        f"best mixture {margin(entry, fit, BEST_MIXTURE):+.2f}, "
        f"{fit['cpu_seconds']:.0f} s"
    )


def summary(found: dict[str, Any]) -> str:
    """Return the results as a Markdown table."""
    kinds = ["independent columns", "PCA", "factor analysis, J factors", "Gaussian mixture", BEST_MIXTURE]
    titles = ["VAE", "VAE - FA, least and most", "fits ≥ FA", "fits ≥ best mixture", "CPU s"]
    lines = [f"| table | rows | D | J | {' | '.join([*kinds, *titles])} |"]
    lines.append("| --- " * (len(kinds) + len(titles) + 4) + "|")
    for entry in found.values():
        margins = [margin(entry, fit) for fit in entry["fits"]]
        mean = np.mean([fit["log_likelihood"] for fit in entry["fits"]])
        cells = [entry["title"], f"{entry['num_train']} + {entry['num_test']}", entry["num_columns"]]
        cells += [entry["latent_dim"], *(f"{entry['simple'][kind]['log_likelihood']:.2f}" for kind in kinds)]
        cells += [f"**{mean:.2f}**", f"{min(margins):+.2f} to {max(margins):+.2f}"]
        for above in (margins, [margin(entry, fit, BEST_MIXTURE) for fit in entry["fits"]]):
            cells += [f"{sum(value >= 0 for value in above)} of {len(above)}"]
        cells += [f"{max(fit['cpu_seconds'] for fit in entry['fits']):.0f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def _read(path):
    return json.loads(path.read_text(encoding="utf-8"))["tables"] if path.exists() else {}


def _write(path, found):
    title = "VAE with default settings on small tables"
    how = f"log p(x) of test rows in nats per row, standardized columns, by importance sampling, {NUM_SAMPLES} samples"
    return write_numbers(path, {"title": title, "how": how, "tables": found})
