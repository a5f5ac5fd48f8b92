"""`aevb reproduce posteriors`: a table of errors, k-hat, family, flags and CPU time for each reference posterior."""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from aevb.arguments import check_parameter
from aevb.experiments.posteriors.reference import MODELS, Reference, compare, load_reference
from aevb.experiments.posteriors.structured import derived
from aevb.experiments.result_file import ResultFile, markdown_table, stored_results
from aevb.experiments.settings import PROFILES, Watch
from aevb.posterior import fit_posterior

WAYS = {"tiny": (None,), "quick": (None,), "standard": (None, "hmc"), "paper": (None, "hmc")}  # values of `refine`
CORE_SECONDS = {None: 4.0, "hmc": 12.0}  # for one fit, about


def reproduce_posteriors(
    profile: str, folder: Path, *, seed: int = 0, watch: Watch = lambda *_: None, processes: int | None = None
) -> list[Path]:
    """Fit each reference posterior with default settings; write `posteriors.json` and `posteriors.md`.

    Args:
        profile: One of ``PROFILES``: default settings for quick; also with ``refine="hmc"`` for standard and paper.
        folder: Receives the files.
        seed: Random seed of the fits.
        watch: A function with a method `note`, which is called with the progress.
        processes: Ignored: fits run one after the other.

    Returns:
        The paths of the files written.
    """
    check_parameter("profile", profile, choices=PROFILES)
    note = getattr(watch, "note", lambda text: None)
    title = "fit_posterior with default settings on posteriors of posteriordb"
    how = f"largest error of a mean in reference standard deviations, largest relative error of one; seed {seed}"
    results = ResultFile(folder / "posteriors.json", {"title": title, "how": how})
    for name in _names(profile):
        for refine in WAYS[profile]:
            row = results.add((name, refine or "default"), lambda name=name, refine=refine: fit_one(name, refine, seed))
            note(f"{name}, {refine or 'default'}: mean {row['mean_error']:.3f}, sd {row['std_error']:.3f}")
    return [results.write_summary(summary(results.results)), results.write()]


def posteriors_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for the fits that are not in the folder yet."""
    done = stored_results(folder / "posteriors.json")
    left = [way for name in _names(profile) for way in WAYS[profile] if (way or "default") not in done.get(name, {})]
    return sum(CORE_SECONDS[way] for way in left)


def fit_one(name: str, refine: str | None = None, seed: int = 0, **settings) -> dict[str, Any]:
    """Fit one posterior, and return its errors and what the fit says about itself."""
    model, reference = MODELS[name], load_reference(name)
    fitted = fit_posterior(
        model["log_joint"],
        variables=model["variables"],
        data=reference.data,
        refine=refine,
        random_state=seed,
        progress=False,
        **settings,
    )
    errors = compare(moments_of(fitted, model, reference), reference)
    return {
        "mean_error": errors.mean,
        "std_error": errors.std,
        "worst": errors.worst,
        "is_right": errors.is_right,
        "k_hat": fitted.k_hat,
        "family": fitted.family,
        "converged": fitted.converged_,
        "effective_draws": float(min(np.min(part) for part in jax.tree.leaves(fitted.effective_sample_size))),
        "flags": list(fitted.warnings),
    }


def moments_of(fitted, model: dict[str, Any], reference: Reference) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return means and standard deviations of the variables and of the derived quantities."""
    draws = fitted.draws
    if "derived" in model:
        with jax.enable_x64(True):
            draws = derived(model, draws, reference.data)
    of_draws = {name: (np.mean(values, axis=0), np.std(values, axis=0)) for name, values in draws.items()}
    return of_draws | {name: (fitted.mean[name], fitted.std[name]) for name in fitted.mean}


def summary(results: dict[str, Any]) -> str:
    """Return the results as a Markdown table, with the number of posteriors that are right, and those not flagged."""
    rows: list[list[Any]] = [["posterior", "refine", "mean", "sd", "k-hat", "family", "flagged", "CPU s"]]
    for name, ways in results.items():
        for way, row in ways.items():
            cells = [name, way, f"{row['mean_error']:.3f}", f"{row['std_error']:.3f}", f"{row['k_hat']:.2f}"]
            cells += [row["family"], "yes" if row["flags"] else "", f"{row['cpu_seconds']:.1f}"]
            rows.append(cells)
    lines = [markdown_table(rows)]
    for way in dict.fromkeys(way for ways in results.values() for way in ways):
        of_way = [ways[way] for ways in results.values() if way in ways]
        right = sum(row["is_right"] for row in of_way)
        silent = sum(not row["is_right"] and not row["flags"] for row in of_way)
        seconds = np.median([row["cpu_seconds"] for row in of_way])
        lines.append(
            f"{way}: {right} of {len(of_way)} have all means within 0.1 and all standard deviations within 10% of the "
            f"reference; {silent} miss that without a flag; median CPU time {seconds:.1f} s.\n"
        )
    return "\n".join(lines)


def _names(profile):
    return list(MODELS)[:2] if profile == "tiny" else list(MODELS)
