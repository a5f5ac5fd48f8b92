"""Anomalies in small tables: how well `rank_anomalies` finds them, compared with usual detectors.

The measure is the area under the ROC curve: the probability that an anomaly has a higher score than a normal row.
"""

import importlib.util
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from aevb.arguments import check_parameter
from aevb.experiments.anomaly_sets import ANOMALY_SETS, split
from aevb.experiments.detectors import DETECTORS
from aevb.experiments.result_file import ResultFile, markdown_table, stored_results
from aevb.experiments.settings import PROFILES, Watch
from aevb.experiments.synthesizers import package_versions

NUM_SEEDS = {"tiny": 1, "quick": 2, "standard": 5, "paper": 10}
TRAININGS = {"normal": False, "contaminated": True}
CORE_SECONDS = 15.0  # for all detectors on one split, about


def reproduce_anomalies(
    profile: str,
    folder: Path,
    *,
    seed: int = 0,
    watch: Watch = lambda *_: None,
    processes: int | None = None,
    tables: tuple[str, ...] = tuple(ANOMALY_SETS),
    methods: tuple[str, ...] = tuple(DETECTORS),
) -> list[Path]:
    """Rank the test rows of each table by each detector; write `anomalies.json` and `anomalies.md`.

    The file is written after each detector, so an interrupted call resumes at the one it was in.

    Args:
        profile: One of ``PROFILES``: two random splits for quick, five for standard, ten for paper.
        folder: Receives the files.
        seed: The first seed, of a split and of the detectors.
        watch: A function with a method `note`, which is called with the progress.
        processes: Ignored: detectors run one after the other, so that CPU time is that of one detector.
        tables: Keys of ``ANOMALY_SETS``.
        methods: Keys of ``DETECTORS``; those whose package is not installed are left out.

    Returns:
        The paths of the files written.
    """
    check_parameter("profile", profile, choices=PROFILES)
    check_parameter("seed", seed, kind=int, low=0)
    note = getattr(watch, "note", lambda text: None)
    found = ResultFile(folder / "anomalies.json", _about(profile))
    for name in tables:
        try:
            ANOMALY_SETS[name].read()
        except ImportError as error:
            note(f"{name}: left out, needs the package {error.name}: pip install {error.name}")
            continue
        for training in TRAININGS:
            for method in methods:
                for number in range(seed, seed + NUM_SEEDS[profile]):
                    keys = name, training, method, str(number)
                    package = DETECTORS[method].package
                    if not found.get(*keys) and package and importlib.util.find_spec(package) is None:
                        note(f"{method}: left out, needs the package {package}: pip install {package}")
                        continue
                    result = found.add(keys, partial(_measure, name, training, method, number))
                    note(f"{name}, {training} training, {method}, seed {number}: AUC {result['auc']:.3f}")
    return [found.write_summary(summary(found.results)), found.write()]


def anomalies_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for the results that are not in the folder yet."""
    results = stored_results(folder / "anomalies.json")
    done = sum(len(seeds) for trainings in results.values() for m in trainings.values() for seeds in m.values())
    splits = len(ANOMALY_SETS) * len(TRAININGS) * NUM_SEEDS[profile]
    return CORE_SECONDS * max(splits - done / len(DETECTORS), 0)


def _measure(name, training, method, seed):
    from sklearn.metrics import roc_auc_score

    rows = split(*ANOMALY_SETS[name].read(), TRAININGS[training], seed)
    scores = DETECTORS[method].score(rows.train, rows.test, seed)
    return {
        "auc": float(roc_auc_score(rows.is_anomaly, scores)),
        "num_train": len(rows.train),
        "num_test": len(rows.test),
        "num_anomalies": int(rows.is_anomaly.sum()),
        "packages": package_versions(DETECTORS[method].package),
    }


def summary(results: dict[str, Any]) -> str:
    """Return the average AUC over seeds as a Markdown table, with averages over tables and average ranks."""
    cases = [(name, training) for training in TRAININGS for name in results if training in results[name]]
    methods = [method for method in DETECTORS if all(method in results[name][training] for name, training in cases)]
    areas = np.array(
        [[np.mean([r["auc"] for r in results[n][t][method].values()]) for method in methods] for n, t in cases]
    )
    ranks = (areas[:, :, None] < areas[:, None, :]).sum(axis=2) + 1
    rows: list[list[Any]] = [["table", "training", *methods]]
    for (name, training), values in zip(cases, areas, strict=True):
        marked = [f"**{value:.3f}**" if value == values.max() else f"{value:.3f}" for value in values]
        rows.append([ANOMALY_SETS[name].title, training, *marked])
    for training in TRAININGS:
        which = [case[1] == training for case in cases]
        if any(which):
            rows.append(["average", training, *(f"{value:.3f}" for value in areas[which].mean(axis=0))])
    rows.append(["average rank", "", *(f"{value:.1f}" for value in ranks.mean(axis=0))])
    return markdown_table(rows)


def _about(profile):
    return {
        "title": "Anomalies in small tables",
        "how": "area under the ROC curve on test rows; training on 60% of the normal rows, without or with 5% "
        "anomalies; columns standardized by the training rows",
        "methods": {name: detector.detail for name, detector in DETECTORS.items()},
        "profile": profile,
    }
