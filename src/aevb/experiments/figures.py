"""The figures by name: run their curves, draw them, and write all numbers with their provenance."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aevb import runs
from aevb.experiments.images import draw_manifolds, draw_samples
from aevb.experiments.learning_curves import draw_lower_bounds, draw_marginal_likelihoods
from aevb.experiments.parallel_curves import run_curves
from aevb.experiments.settings import Watch, curves_of, read
from aevb.files import written_whole

FIGURES: dict[str, Callable[..., list[Path]]] = {
    "figure-2": draw_lower_bounds,
    "figure-3": draw_marginal_likelihoods,
    "figure-4": draw_manifolds,
    "figure-5": draw_samples,
}


def reproduce_figure(
    name: str,
    profile: str,
    folder: Path,
    *,
    seed: int = 0,
    watch: Watch = lambda *_: None,
    processes: int | None = None,
) -> list[Path]:
    """Make one of the paper's figures, resuming an interrupted call if there was one.

    Args:
        name: A key of ``FIGURES``.
        profile: One of ``PROFILES``.
        folder: Receives the picture, the numbers, and a folder `curves` with the learned models.
        seed: Random seed.
        watch: Called with the progress.
        processes: Number of curves to run in parallel; None for one per core.

    Returns:
        The paths of the files written.
    """
    settings = read(name)
    curves = curves_of(settings, profile, seed)
    results = run_curves(curves, folder / "curves", watch, processes)
    pictures = FIGURES[name](curves, results, folder, settings)
    numbers = {"figure": name, "profile": profile, "seed": seed, "title": settings["title"]}
    numbers |= {"expects": " ".join(settings["expects"].split()), "curves": results}
    return [*pictures, write_numbers(folder / f"{name}.json", numbers)]


def write_numbers(path: Path, numbers: dict[str, Any]) -> Path:
    """Write numbers with the versions, machine and commit that produced them."""
    source = {"drawn": datetime.now(UTC).isoformat(timespec="seconds"), "versions": runs.versions()}
    source |= {"machine": runs.machine(), "commit": runs.commit()}
    with written_whole(path) as scratch:
        scratch.write_text(json.dumps(numbers | source, indent=1) + "\n", encoding="utf-8")
    return path
