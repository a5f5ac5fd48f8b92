"""Print tables of docs/comparison.md, docs/speed.md and docs/scale.md from the stored results of the experiments.

python tools/comparison.py

A test compares the pages with them.
"""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "reproduction"
PARTS = {  # of a step, in the order of benchmarks/parts.py
    "products": "the five large matrix products",
    "ascent": "transcendental functions, small products, sums",
    "step": "optimizer, prior, average of the parameters",
    "loop": "reading rows, drawing noise, reports, calls from Python",
}
STEP_SIZES = {
    "D": "columns",
    "J": "latent variables",
    "hidden": "hidden units",
    "M": "rows of a minibatch",
    "L": "draws of z",
}
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


def race() -> str:
    """Seconds from the call of `fit` to a test bound, and which share of a rival's time that is."""
    found = measured()["race"]
    lines = ["| library | seconds | range | aevb / this |", "|" + " --- |" * 4]
    for name, seconds in found["seconds"].items():
        spread = f"{seconds['lowest']:.1f} to {seconds['highest']:.1f}"
        lines.append(f"| {name} | {seconds['median']:.1f} | {spread} | {found['ours_over_this'][name]['median']:.2f} |")
    lines.append(f"| aevb, nothing compiled before | {found['cold_seconds']:.1f} | | |")
    return "\n".join(lines)


def parts() -> str:
    """Milliseconds of the parts of a step, and their shares."""
    settings = {name: found for name, found in measured()["parts"].items() if isinstance(found, dict)}
    lines = [f"| part | {' | '.join(f'{name}, ms | share' for name in settings)} |", "|" + " --- |" * 5]
    before = dict.fromkeys(settings, 0.0)
    for part, words in PARTS.items():
        cells = []
        for name, totals in settings.items():
            took, before[name] = totals[part] - before[name], totals[part]
            cells.append(f"{took:.2f} | {took / totals['loop']:.0%}")
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def costs() -> str:
    """How seconds grow with sizes."""
    found = measured()["costs"]
    lines = ["| what grows | from | to | milliseconds, from | to | slope at the end |", "|" + " --- |" * 6]
    rows = [(f"a step: {words}", found["steps"][name]) for name, words in STEP_SIZES.items()]
    rows += [(f"{name}: rows", row) for name, row in found["tasks"].items()]
    for words, row in rows:
        sizes = f"{row['sizes'][0]:,} | {row['sizes'][-1]:,}"
        times = f"{1000 * row['seconds'][0]:.3g} | {1000 * row['seconds'][-1]:,.3g}"
        lines.append(f"| {words} | {sizes} | {times} | {row['slope']:.2f} |")
    return "\n".join(lines)


def peaks() -> str:
    """Peaks of resident memory."""
    lines = ["| task | rows | MB |", "|" + " --- |" * 3]
    for name, row in measured()["costs"]["peaks"].items():
        lines.append(f"| {name} | {row['rows']:,} | {row['megabytes']:,} |")
    return "\n".join(lines)


def starts() -> str:
    """Seconds until something happens."""
    words = {
        "cold": "first epoch of 5,000 images, imports included, nothing compiled before",
        "warm": "the same, compiled before",
        "help, CPU": "`aevb --help`, CPU seconds",
    }
    lines = ["| from nothing to | seconds | range |", "|" + " --- |" * 3]
    for name, told in words.items():
        row = measured()["start"][name]
        lines.append(f"| {told} | {row['median']:.2f} | {row['lowest']:.2f} to {row['highest']:.2f} |")
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
TABLES |= dict.fromkeys((race, parts, costs, peaks, starts), "speed")

if __name__ == "__main__":
    print("\n\n".join(table() for table in TABLES))
