"""Print tables of docs/comparison.md and docs/scale.md from the stored results of the experiments and benchmarks.

python tools/comparison.py

A test compares the pages with them.
"""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "reproduction"
BENCHMARKS = {  # of benchmarks/results.json: what is timed, and the workers to compare with
    "learning": (
        "an epoch of the paper's MNIST network, minibatches of 100, Adagrad",
        ("numpyro_svi", "torch_eager", "products"),
    ),
    "learning-1000": ("the same with minibatches of 1,000", ("products",)),
    "learning-digits": ("64 columns, 50 hidden units", ("numpyro_svi", "torch_eager")),
    "learning-table": ("13 Gaussian columns, 50 hidden units", ("numpyro_svi", "torch_eager")),
    "likelihood": ("log p(x) of 1,000 datapoints by Hamiltonian Monte Carlo, at equal error", ("torch_likelihood",)),
    "sequences": ("an epoch of a deep Markov model of Bach's chorales", ("pyro_dmm", "numpyro_dmm")),
}


def stored(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["results"]


def measured() -> dict:
    return json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))


def speed() -> str:
    """Ratios of our speed to that of others."""
    results = measured()
    lines = ["| task | rival | ratio | range |", "|" + " --- |" * 4]
    for benchmark, (task, workers) in BENCHMARKS.items():
        for name in workers:
            worker = results[benchmark]["workers"][name]
            title, ratio = worker["title"].replace("|", "\\|"), worker["ours_over_this"]
            numbers = f"{ratio['median']:.2f} | {ratio['lowest']:.2f} to {ratio['highest']:.2f}"
            lines.append(f"| {task if name == workers[0] else 'the same'} | {title} | {numbers} |")
    return "\n".join(lines)


def hosts() -> str:
    """Milliseconds per step of one process and of two, of several runs."""
    runs = measured()["hosts"]["runs"]
    rows = runs[0]["rows"]
    lines = [
        "| rows | one process with them | each of two processes with them | of which the average | efficiency |",
        "|" + " --- |" * 5,
    ]
    for kind, words in {
        "weak": f"{rows:,} each (weak scaling)",
        "strong": f"{rows // 2:,} each, {rows:,} together (strong scaling)",
    }.items():
        cells = [", ".join(f"{run[kind][part]:.1f}" for run in runs) for part in ("one", "two", "average")]
        cells.append(", ".join(f"{run[kind]['efficiency']:.2f}" for run in runs))
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


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


TABLES = {speed: "comparison", synthetic: "comparison", anomalies: "comparison", hosts: "scale"}  # and their pages

if __name__ == "__main__":
    print("\n\n".join(table() for table in TABLES))
