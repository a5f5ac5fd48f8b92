"""All experiments by name, those of the paper and our own, and how long they take."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from aevb.experiments.anomalies import anomalies_core_seconds, reproduce_anomalies
from aevb.experiments.claims import claims_core_seconds, curves_for_claims, reproduce_claims
from aevb.experiments.conditional import conditional_core_seconds, reproduce_conditional
from aevb.experiments.convolutions import convolutions_core_seconds, reproduce_convolutions
from aevb.experiments.cost import core_seconds, format_duration, gigaflops
from aevb.experiments.curves import samples_done
from aevb.experiments.figures import FIGURES, reproduce_figure
from aevb.experiments.forecasts import forecasts_core_seconds, reproduce_forecasts
from aevb.experiments.imputation import imputation_core_seconds, reproduce_imputation
from aevb.experiments.ladder import ladder_core_seconds, reproduce_ladder
from aevb.experiments.likelihoods import likelihoods_core_seconds, reproduce_likelihoods
from aevb.experiments.miwae import miwae_core_seconds, reproduce_miwae
from aevb.experiments.music import music_core_seconds, reproduce_music
from aevb.experiments.posteriors import posteriors_core_seconds, reproduce_posteriors
from aevb.experiments.regression import regression_core_seconds, reproduce_regression
from aevb.experiments.semi_supervised import reproduce_semi_supervised, semi_supervised_core_seconds
from aevb.experiments.settings import Curve, curves_of, read
from aevb.experiments.small_tables import reproduce_small_tables, small_tables_core_seconds
from aevb.experiments.synthetic import reproduce_synthetic, synthetic_core_seconds
from aevb.experiments.topics import reproduce_topics, topics_core_seconds

MAKERS: dict[str, Callable[..., list[Path]]] = {
    "claims": reproduce_claims,
    "small-tables": reproduce_small_tables,
    "imputation": reproduce_imputation,
    "miwae": reproduce_miwae,
    "synthetic": reproduce_synthetic,
    "anomalies": reproduce_anomalies,
    "topics": reproduce_topics,
    "posteriors": reproduce_posteriors,
    "music": reproduce_music,
    "forecasts": reproduce_forecasts,
    "semi-supervised": reproduce_semi_supervised,
    "conditional": reproduce_conditional,
    "regression": reproduce_regression,
    "likelihoods": reproduce_likelihoods,
    "ladder": reproduce_ladder,
    "convolutions": reproduce_convolutions,
}
OTHER_WORK = {  # than curves
    "claims": claims_core_seconds,
    "small-tables": small_tables_core_seconds,
    "imputation": imputation_core_seconds,
    "miwae": miwae_core_seconds,
    "synthetic": synthetic_core_seconds,
    "anomalies": anomalies_core_seconds,
    "topics": topics_core_seconds,
    "posteriors": posteriors_core_seconds,
    "music": music_core_seconds,
    "forecasts": forecasts_core_seconds,
    "semi-supervised": semi_supervised_core_seconds,
    "conditional": conditional_core_seconds,
    "regression": regression_core_seconds,
    "likelihoods": likelihoods_core_seconds,
    "ladder": ladder_core_seconds,
    "convolutions": convolutions_core_seconds,
}
PARTS = (*FIGURES, *MAKERS)


class Plan(NamedTuple):
    """The work ahead."""

    core_seconds: dict[str, float]  # seconds on one core, by part
    summary: str


def estimate(parts: list[str], profile: str, folder: Path, seed: int = 0, processes: int | None = None) -> Plan:
    """Return the cost of these parts on this machine, without what the folder already contains."""
    known: set[str] = set()
    seconds, num_curves, samples = {}, 0, 0
    for part in parts:
        curves = [curve for curve in _curves(part, profile, seed) if curve.name not in known]
        known |= {curve.name for curve in curves}
        done = {curve.name: samples_done(curve, folder / "curves") for curve in curves}
        costs = [core_seconds(curve, done[curve.name]) for curve in curves]
        seconds[part] = sum(costs) + (OTHER_WORK[part](profile, folder) if part in OTHER_WORK else 0.0)
        num_curves += sum(cost > 0 for cost in costs)
        samples += sum(max(curve.samples[-1] - done[curve.name], 0) for curve in curves)
    at_once = processes or os.cpu_count() or 1
    words = (
        f"{', '.join(parts)}, profile {profile}: {num_curves} curves with {samples / 1e6:,.1f} million training "
        f"samples, about {format_duration(sum(seconds.values()) / at_once)} on this machine ({gigaflops():.0f} GFLOPS "
        f"per core, {at_once} at a time). Ctrl-C keeps the results so far; run the same command to resume."
    )
    return Plan(seconds, words if num_curves or sum(seconds.values()) else "All models are already trained; drawing.")


def reproduce_part(part: str, profile: str, folder: Path, **options) -> list[Path]:
    """Make a figure or a table; return the paths of the files."""
    if part in MAKERS:
        return MAKERS[part](profile, folder, **options)
    return reproduce_figure(part, profile, folder, **options)


def _curves(part: str, profile: str, seed: int) -> list[Curve]:
    if part in FIGURES:
        return curves_of(read(part), profile, seed)
    return curves_for_claims(profile, seed) if part == "claims" else []
