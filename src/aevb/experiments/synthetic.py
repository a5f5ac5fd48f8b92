"""Synthetic rows of tables with mixed columns: how much of the real ones do they keep?

A model learns from two thirds of the rows and makes as many. They are judged by the other third: gradient-boosted trees
that learn from synthetic rows predict a column of the real ones, distances between the columns' distributions, and
differences between the associations of pairs of columns.
"""

import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aevb.arguments import check_parameter
from aevb.experiments.fidelity import associations, classifier_auc, column_distances
from aevb.experiments.mixed_tables import NUMBER, read_income, read_table
from aevb.experiments.result_file import ResultFile, markdown_table, stored_results
from aevb.experiments.settings import PROFILES, Watch
from aevb.experiments.synthesizers import SYNTHESIZERS, package_versions

NUM_TRAIN = {"tiny": 300, "quick": 3000, "standard": 20_000, "paper": None}  # rows at most
CORE_SECONDS = 0.05  # per training row, for all methods on one table


class Case(NamedTuple):
    """A table, and the column that classifiers predict."""

    title: str
    read: Callable[[], Any]  # returns a frame without missing entries
    target: str
    positive: str


def _adult():
    return read_income().dropna()


def _credit():
    table = read_table("defaultCredit")
    whole = {name: np.int64 for name, kind in table.kinds.items() if kind == NUMBER}
    return table.frame.astype(whole)


CASES = {
    "Adult": Case("Adult, complete rows", _adult, "income", ">50K"),
    "defaultCredit": Case("Default Credit", _credit, "default", "1"),
}


def reproduce_synthetic(
    profile: str,
    folder: Path,
    *,
    seed: int = 0,
    watch: Watch = lambda *_: None,
    processes: int | None = None,
    tables: tuple[str, ...] = tuple(CASES),
    methods: tuple[str, ...] = tuple(SYNTHESIZERS),
) -> list[Path]:
    """Make synthetic rows by each method and judge them; write `synthetic.json` and `synthetic.md`.

    The file is written after each method, so an interrupted call resumes at the one it was in.

    Args:
        profile: One of ``PROFILES``: at most 3,000 training rows for quick, 20,000 for standard, all for paper.
        folder: Receives the files.
        seed: Chooses the rows, and is the seed of the methods.
        watch: A function with a method `note`, which is called with the progress.
        processes: Ignored: methods run one after the other, so that CPU time is that of one method.
        tables: Keys of ``CASES``.
        methods: Keys of ``SYNTHESIZERS``; those whose package is not installed are left out.

    Returns:
        The paths of the files written.
    """
    check_parameter("profile", profile, choices=PROFILES)
    check_parameter("seed", seed, kind=int, low=0)
    note = getattr(watch, "note", lambda text: None)
    found = ResultFile(folder / "synthetic.json", _about(profile, seed))
    for name in tables:
        train, test = split(CASES[name].read(), NUM_TRAIN[profile], seed)
        for method in methods:
            package = SYNTHESIZERS[method].package
            if not found.get(name, method) and package and importlib.util.find_spec(package) is None:
                note(f"{method}: left out, needs the package {package}: pip install {package}")
                continue
            result = found.add((name, method), partial(_measure, CASES[name], train, test, method, seed))
            note(f"{name}, {method}: AUC {result['auc']:.3f}, columns {result['distance']:.3f}")
    return [found.write_summary(summary(found.results)), found.write()]


def synthetic_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for the results that are not in the folder yet."""
    done = sum(len(methods) for methods in stored_results(folder / "synthetic.json").values())
    share = max(1 - done / (len(CASES) * len(SYNTHESIZERS)), 0)
    return share * CORE_SECONDS * len(CASES) * (NUM_TRAIN[profile] or 20_000)


def split(frame: Any, at_most: int | None, seed: int) -> tuple[Any, Any]:
    """Return two thirds of the rows of a frame for training, at most so many, and the others for testing."""
    order = np.random.default_rng(seed).permutation(len(frame))
    num_train = 2 * len(frame) // 3
    train, test = order[:num_train][:at_most], order[num_train:]
    return frame.iloc[train].reset_index(drop=True), frame.iloc[test].reset_index(drop=True)


def _measure(case, train, test, method, seed):
    synthesizer = SYNTHESIZERS[method]
    rows = synthesizer.make(train, len(train), seed)
    distances = column_distances(test, rows)
    real, synthetic = associations(test), associations(rows)
    return {
        "auc": classifier_auc(rows, test, case.target, case.positive),
        "distance": float(np.mean(list(distances.values()))),
        "largest_distance": float(max(distances.values())),
        "association_difference": float(np.mean([abs(real[pair] - synthetic[pair]) for pair in real])),
        "columns": distances,
        "pairs": {" / ".join(pair): [round(found[pair], 4) for found in (real, synthetic)] for pair in real},
        "num_train": len(train),
        "num_test": len(test),
        "packages": package_versions(synthesizer.package),
    }


def summary(results: dict[str, Any]) -> str:
    """Return the measures as a Markdown table."""
    rows: list[list[Any]] = [
        ["table", "rows", "method", "AUC", "distance of columns, average", "largest", "difference of associations"]
    ]
    for name, methods in results.items():
        for method in SYNTHESIZERS:
            if found := methods.get(method):
                size = f"{found['num_train']:,} + {found['num_test']:,}"
                measures = [found[key] for key in ("auc", "distance", "largest_distance", "association_difference")]
                rows.append([CASES[name].title, size, method, *(f"{value:.3f}" for value in measures)])
    return markdown_table(rows)


def _about(profile, seed):
    return {
        "title": "Synthetic rows of tables with mixed columns, judged by real test rows",
        "how": "AUC of HistGradientBoostingClassifier trained on the synthetic rows; Kolmogorov-Smirnov distance of "
        "numbers and total variation of categories; mean absolute difference of Pearson's correlation, Cramér's V or "
        "the correlation ratio over all pairs of columns",
        "methods": {name: synthesizer.detail for name, synthesizer in SYNTHESIZERS.items()},
        "profile": profile,
        "seed": seed,
    }
