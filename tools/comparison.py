"""Print the tables of docs/comparison.md from the stored results of the experiments.

python tools/comparison.py

A test compares the page with them.
"""

import json
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "reproduction"


def stored(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["results"]


def synthetic() -> str:
    """Synthetic tables: how useful and how faithful they are, and what they cost."""
    lines = [
        "| table | method | AUC | distance of columns | difference of associations | CPU seconds |",
        "|" + " --- |" * 6,
    ]
    for table, methods in stored("synthetic").items():
        for method, found in methods.items():
            packages = ", ".join(f"{name} {version}" for name, version in found["packages"].items() if name != "torch")
            words = f"{method} ({packages})" if packages else method
            numbers = [f"{found[key]:.3f}" for key in ("auc", "distance", "association_difference")]
            lines.append(f"| {table} | {words} | {' | '.join(numbers)} | {found['cpu_seconds']:.0f} |")
    return "\n".join(lines)


def anomalies() -> str:
    """Anomalies in small tables: the average AUC over splits, trained on normal rows."""
    results = stored("anomalies")
    methods = list(next(iter(results.values()))["normal"])
    lines = [f"| table | {' | '.join(methods)} |", "|" + " --- |" * (len(methods) + 1)]
    for table, cases in results.items():
        means = [
            sum(run["auc"] for run in cases["normal"][name].values()) / len(cases["normal"][name]) for name in methods
        ]
        lines.append(f"| {table} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    return "\n".join(lines)


TABLES = (synthetic, anomalies)

if __name__ == "__main__":
    print("\n\n".join(table() for table in TABLES))
