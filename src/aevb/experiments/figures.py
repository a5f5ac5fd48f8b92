"""The figures by name: run what they need, draw them, and write down all numbers with where they come from."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aevb import runs
from aevb.experiments.images import draw_manifolds, draw_samples
from aevb.experiments.learning_curves import draw_lower_bounds, draw_marginal_likelihoods
from aevb.experiments.settings import Watch, curves_of, read
from aevb.experiments.side_by_side import run_curves
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
    """Make one of the paper's figures, from where an earlier call may have left off.

    Args:
        name: A key of ``FIGURES``.
        profile: One of ``PROFILES``.
        folder: Gets the picture, the numbers, and a folder `curves` with what was learned.
        seed: Of everything that is random.
        watch: Told of progress.
        processes: Curves at once; None for one a core.

    Returns:
        The files.
    """
    settings = read(name)
    curves = curves_of(settings, profile, seed)
    results = run_curves(curves, folder / "curves", watch, processes)
    pictures = FIGURES[name](curves, results, folder, settings)
    numbers = {"figure": name, "profile": profile, "seed": seed, "title": settings["title"]}
    numbers |= {"expects": " ".join(settings["expects"].split()), "curves": results}
    return [*pictures, write_numbers(folder / f"{name}.json", numbers)]


def write_numbers(path: Path, numbers: dict[str, Any]) -> Path:
    """Write numbers with the versions, machine and commit that they come from."""
    source = {"drawn": datetime.now(UTC).isoformat(timespec="seconds"), "versions": runs.versions()}
    source |= {"machine": runs.machine(), "commit": runs.commit()}
    with written_whole(path) as scratch:
        scratch.write_text(json.dumps(numbers | source, indent=1) + "\n", encoding="utf-8")
    return path
