"""How cost grows with work: seconds per step and per task over two decades of each size, and memory peaks.

    python benchmarks/costs.py [--output runs/costs.json] [--picture runs/costs.png]

A step of learning, from the difference between two lengths of a fit, with the network 784-500-20-500-784 and
minibatches of 100, one size changed at a time; then the tasks against the number of rows. The slope of log(seconds)
over log(size), from the largest size and the one before, is 1 where time is proportional. Memory peaks are those of
processes of their own, on 60,000 x 784 bytes. Run it on an idle machine.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from run import machine

STEP = {"D": 784, "J": 20, "hidden": 500, "M": 100, "L": 1}
# Two decades around the usual size.
SIZES = {
    "D": (31, 98, 310, 980, 3100),
    "J": (2, 6, 20, 63, 200),
    "hidden": (20, 63, 200, 630, 2000),
    "M": (10, 32, 100, 320, 1000),
    "L": (1, 3, 10, 32, 100),
}
NUM_ROWS = {  # of each task
    "fit, an epoch": (500, 1600, 5000, 16_000, 50_000),
    "transform": (500, 1600, 5000, 16_000, 50_000),
    "score": (500, 1600, 5000, 16_000, 50_000),
    "log_likelihood": (10, 32, 100, 320, 1000),
    "impute": (10, 32, 100, 320, 1000),
}
PEAKS = ("fit", "transform", "score", "log_likelihood", "impute")
PEAK_ROWS = {"log_likelihood": 10_000, "impute": 10_000}  # of 60,000: the others would take hours


def images(num_rows, num_columns=784):
    """Return random bytes that resemble ink on paper."""
    rng = np.random.default_rng(0)
    return np.where(rng.random((num_rows, num_columns)) < 0.8, 0, 255).astype(np.uint8)


def fitted(X, max_epochs=1, **sizes):
    """Return a model after some epochs, and the seconds of the fit."""
    import aevb

    of = STEP | sizes
    setting = {"hidden": (of["hidden"],), "batch_size": of["M"], "num_samples": of["L"], "likelihood": "bernoulli"}
    vae = aevb.VAE(of["J"], max_epochs=max_epochs, validation_fraction=0, progress=False, **setting)
    start = time.perf_counter()
    return vae.fit(X), time.perf_counter() - start


def step_seconds(**sizes):
    """Return the seconds of a step, the least of three measurements, without compilation."""
    of = STEP | sizes
    work = of["M"] * of["L"] * of["hidden"] * (of["D"] + of["J"])
    num_steps = int(np.clip(4e9 / work, 10, 400))
    X = images(of["M"] * num_steps, of["D"])
    fitted(X, 1, **sizes)
    return min((fitted(X, 3, **sizes)[1] - fitted(X, 1, **sizes)[1]) / (2 * num_steps) for _ in range(3))


def with_holes(X):
    """Return rows in [0, 1], a tenth of whose entries are missing."""
    return np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X / np.float32(255))


def task_seconds(vae, name, num_rows):
    """Return the seconds of a task, the second time: without compilation."""
    X = images(num_rows)
    calls = {
        "transform": lambda: vae.transform(X),
        "score": lambda: vae.score(X),
        "log_likelihood": lambda: vae.log_likelihood(X, num_samples=1000),
        "impute": lambda: vae.impute(with_holes(X)),
    }
    if name == "fit, an epoch":
        fitted(X)
        return fitted(X, 2)[1] - fitted(X, 1)[1]
    calls[name]()
    start = time.perf_counter()
    calls[name]()
    return time.perf_counter() - start


def slope(sizes, seconds):
    """Return d log(seconds) / d log(size) at the upper end.

    >>> round(slope([1, 10, 100], [1.0, 2.0, 20.0]), 2)
    1.0
    """
    return math.log(seconds[-1] / seconds[-2]) / math.log(sizes[-1] / sizes[-2])


def peak(name):
    """Run a task on 60,000 images in this process and print its peak of resident memory in MB."""
    X = images(60_000)
    vae, _ = fitted(X)
    rows = X[: PEAK_ROWS.get(name, len(X))]
    if name == "log_likelihood":
        vae.log_likelihood(rows, num_samples=100)
    elif name == "impute":
        vae.impute(with_holes(rows))
    elif name != "fit":
        getattr(vae, name)(rows)
    print(json.dumps({"rows": len(rows), "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}))


def measured():
    """Return seconds by size for steps and tasks, with slopes, and memory peaks."""
    steps, tasks, peaks = {}, {}, {}
    for name, sizes in SIZES.items():
        steps[name] = _row(name, sizes, [step_seconds(**{name: size}) for size in sizes])
    vae, _ = fitted(images(5000))
    for name, sizes in NUM_ROWS.items():
        tasks[name] = _row(name, sizes, [task_seconds(vae, name, size) for size in sizes])
    for name in PEAKS:
        said = subprocess.run([sys.executable, __file__, "--peak", name], stdout=subprocess.PIPE, text=True, check=True)
        peaks[name] = json.loads(said.stdout.splitlines()[-1])
        print(f"{name:16}{peaks[name]['rows']:>8,} rows {peaks[name]['megabytes']:>7,} MB", flush=True)
    return {"steps": steps, "tasks": tasks, "peaks": peaks}


def _row(name, sizes, seconds):
    shown = "  ".join(f"{size:,}: {1000 * value:.3g}" for size, value in zip(sizes, seconds, strict=True))
    print(f"{name:16}ms  {shown}  slope {slope(sizes, seconds):.2f}", flush=True)
    return {"sizes": sizes, "seconds": seconds, "slope": slope(sizes, seconds)}


def draw(found, path):
    """Draw both groups of curves on logarithmic axes, with a line of slope 1."""
    from aevb.report.canvas import COLOURS, new_figure, plot_axes, save, write_title

    figure = new_figure(8, 3.6)
    write_title(figure, "Cost as work grows", "dotted: proportional to the size")
    groups = {"a step of learning": (0.6, "steps"), "a task, by its number of rows": (4.6, "tasks")}
    for title, (left, kind) in groups.items():
        axes = plot_axes(figure, (left, 0.55, 3.1, 2.2))
        for colour, (name, row) in zip(COLOURS, found[kind].items(), strict=False):
            middle = row["sizes"][2] if kind == "steps" else 1
            axes.loglog(np.divide(row["sizes"], middle), row["seconds"], "o-", color=colour, label=name, markersize=3)
        low, high = axes.get_xlim()
        start = min(row["seconds"][0] for row in found[kind].values())
        axes.loglog([low, high], [start, start * high / low], ":", color="grey", linewidth=1)
        axes.set_xlabel("size / the usual size" if kind == "steps" else "rows", fontsize=9)
        axes.set_ylabel("seconds", fontsize=9)
        axes.set_title(title, fontsize=9)
        axes.legend(frameon=False, fontsize=8)
    return save(figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("runs/costs.json"))
    parser.add_argument("--picture", type=Path, default=Path("runs/costs.png"))
    parser.add_argument("--peak", choices=PEAKS, help="measure the memory of one task in this process")
    chosen = parser.parse_args()
    if chosen.peak:
        peak(chosen.peak)
        return
    found = {"machine": machine(), "costs": measured()}
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps(found, indent=1))
    draw(found["costs"], chosen.picture)
    print(f"Wrote {chosen.output} and {chosen.picture}")


if __name__ == "__main__":
    main()
