"""Missing entries of tables with mixed columns: how well `VAE` fills them in, compared with what one would try first.

Tables, removed entries and errors are those of HI-VAE (Nazábal et al., 2020, https://arxiv.org/abs/1807.03653): the
error of a column is that of its removed entries,

- of numbers, the root mean square error divided by the largest minus the smallest number,
- of categories, the share of wrong ones,
- of ordered categories, the average distance between ranks, divided by the number of categories,

and the error of a table is the average over its columns.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from aevb.arguments import check_parameter
from aevb.experiments.imputers import IMPUTERS, numbers_of
from aevb.experiments.mixed_tables import CATEGORY, NUMBER, PUBLISHED, SHARES, MixedTable, read_table, removed_entries
from aevb.experiments.result_file import ResultFile, markdown_table, stored_results
from aevb.experiments.settings import PROFILES, Watch

NUM_ROWS = {"tiny": 200, "quick": 1000, "standard": 5000, "paper": None}  # at most, of each table
CORE_SECONDS = 0.02  # per row, for all methods on one table with one share of removed entries


def reproduce_imputation(
    profile: str,
    folder: Path,
    *,
    seed: int = 0,
    watch: Watch = lambda *_: None,
    processes: int | None = None,
    tables: tuple[str, ...] = tuple(PUBLISHED),
    methods: tuple[str, ...] = tuple(IMPUTERS),
) -> list[Path]:
    """Fill in the published missing entries by each method; write `imputation.json` and `imputation.md`.

    The file is written after each method, so an interrupted call resumes at the one it was in.

    Args:
        profile: One of ``PROFILES``: 1,000 rows of each table for quick, 5,000 for standard, all for paper.
        folder: Receives the files.
        seed: Chooses the rows, and is the seed of the methods.
        watch: A function with a method `note`, which is called with the progress.
        processes: Ignored: methods run one after the other, so that CPU time is that of one method.
        tables: Keys of ``PUBLISHED``.
        methods: Keys of ``IMPUTERS``.

    Returns:
        The paths of the files written.
    """
    check_parameter("profile", profile, choices=PROFILES)
    check_parameter("seed", seed, kind=int, low=0)
    note = getattr(watch, "note", lambda text: None)
    found = ResultFile(folder / "imputation.json", _about(profile, seed))
    for name in tables:
        whole = read_table(name)
        rows = chosen_rows(len(whole.frame), NUM_ROWS[profile], seed)
        truth = whole.take(rows)
        for percent in SHARES:
            removed = removed_entries(name, percent, whole.frame.shape)[rows]
            for method in methods:
                result = found.add((name, str(percent), method), partial(_measure, truth, removed, method, seed))
                note(f"{name}, {percent}% missing, {method}: {result['error']:.4f}, {result['cpu_seconds']:.0f} s")
    return [found.write_summary(summary(found.results)), found.write()]


def imputation_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for the results that are not in the folder yet."""
    results = stored_results(folder / "imputation.json")
    done = sum(len(methods) for shares in results.values() for methods in shares.values())
    share = max(1 - done / (len(PUBLISHED) * len(SHARES) * len(IMPUTERS)), 0)
    return share * CORE_SECONDS * len(PUBLISHED) * len(SHARES) * (NUM_ROWS[profile] or 23_000)


def chosen_rows(num_rows: int, at_most: int | None, seed: int) -> np.ndarray:
    """Return the numbers of the rows that are used: a random subset, in order, or all.

    Example:
        >>> chosen_rows(4, None, 0).tolist(), len(chosen_rows(1000, 10, 0))
        ([0, 1, 2, 3], 10)
    """
    if at_most is None or num_rows <= at_most:
        return np.arange(num_rows)
    return np.sort(np.random.default_rng(seed).choice(num_rows, at_most, replace=False))


def without(table: MixedTable, removed: np.ndarray) -> MixedTable:
    """Return the table without the entries (n, D) that are to be removed."""
    frame = table.frame.copy()
    for name, gone in zip(frame, removed.T, strict=True):
        frame[name] = frame[name].mask(gone)
    return table._replace(frame=frame)


def column_errors(truth: MixedTable, filled: Any, removed: np.ndarray) -> dict[str, float]:
    """Return the error of each column that lost entries whose value is known.

    Args:
        truth: The table.
        filled: The frame with filled-in entries.
        removed: (n, D), which entries were removed.
    """
    answer = truth._replace(frame=filled)
    errors = {}
    for (name, kind), gone in zip(truth.kinds.items(), removed.T, strict=True):
        true, guess = numbers_of(truth, name), numbers_of(answer, name)
        judged = gone & ~np.isnan(true)
        if not judged.any():
            continue
        difference = guess[judged] - true[judged]
        if kind == NUMBER:
            errors[name] = float(np.sqrt(np.mean(difference**2)) / truth.ranges[name])
        elif kind == CATEGORY:
            errors[name] = float(np.mean(difference != 0))
        else:
            errors[name] = float(np.mean(np.abs(difference)) / truth.num_classes[name])
    return errors


def _measure(truth, removed, method, seed):
    filled = IMPUTERS[method].fill(without(truth, removed), seed)
    errors = column_errors(truth, filled, removed)
    by_kind = {}
    for name, error in errors.items():
        by_kind.setdefault(truth.kinds[name], []).append(error)
    return {
        "error": float(np.mean(list(errors.values()))),
        "by_kind": {kind: float(np.mean(values)) for kind, values in by_kind.items()},
        "columns": errors,
        "rows": len(truth.frame),
        "removed": int(removed.sum()),
    }


def summary(results: dict[str, Any]) -> str:
    """Return the errors as a Markdown table: a row for each table and share, then averages and average ranks."""
    cases = [(name, percent) for name, shares in results.items() for percent in shares]
    methods = [name for name in IMPUTERS if any(name in results[table][share] for table, share in cases)]
    rows: list[list[Any]] = [["table", "missing", *methods]]
    for name, percent in cases:
        cell = results[name][percent]
        best = min(found["error"] for found in cell.values())
        shown = {method: f"{found['error']:.4f}" for method, found in cell.items()}
        shown |= {method: f"**{text}**" for method, text in shown.items() if cell[method]["error"] == best}
        rows.append([PUBLISHED[name].title, f"{percent}%", *(shown.get(method, "") for method in methods)])
    complete = [case for case in cases if all(method in results[case[0]][case[1]] for method in methods)]
    if complete:
        errors = np.array([[results[name][share][method]["error"] for method in methods] for name, share in complete])
        ranks = (errors[:, :, None] > errors[:, None, :]).sum(axis=2) + 1
        rows.append([f"average of {len(complete)}", "", *(f"{error:.4f}" for error in errors.mean(axis=0))])
        rows.append(["average rank", "", *(f"{rank:.1f}" for rank in ranks.mean(axis=0))])
    return markdown_table(rows)


def _about(profile, seed):
    return {
        "title": "Missing entries of tables with mixed columns, filled in",
        "how": "average over columns of the error of removed entries: root mean square error / range (numbers), share "
        "of wrong categories, distance of ranks / number of categories (ordered); first published masks",
        "methods": {name: imputer.detail for name, imputer in IMPUTERS.items()},
        "profile": profile,
        "seed": seed,
        "num_rows": NUM_ROWS[profile],
    }
