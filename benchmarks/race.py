"""A race to a test bound: seconds from the call of `fit` to -105 nats on grey MNIST (needs AEVB_DATA).

    python benchmarks/race.py [--rounds 9] [--output docs/_static/race.json]

All learn 784-500-20-500-784 with one draw of z. aevb has its defaults; every other library the settings of its authors'
example, and each of a few learning rates, once; the fastest of all then takes turns with aevb. The time to the bound is
where the line between two evaluations crosses it. Programs are compiled once before (warm); three runs of aevb have an
empty cache (cold).
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from run import HERE, machine, python_for

NUMPYRO, TORCH = ("numpyro_svi", ["numpyro"]), ("torch_eager", ["torch==2.13.0", "numpy"])
KERAS = ("keras_jax", ["keras", "jax"])
RIVALS = {
    "NumPyro": (NUMPYRO, "race_numpyro", []),
    "PyTorch eager": (TORCH, "race_torch", []),
    "PyTorch compiled": (TORCH, "race_torch", ["compiled"]),
    "Keras": (KERAS, "race_keras", []),
}
RATES = 1e-3, 2e-3, 4e-3  # the first is that of the examples
TARGET = -105.0
MAX_EPOCHS = 25


def run(environment, worker, rate, cache, *further):
    """Return the title and the curve that a worker prints."""
    command = [python_for(environment), HERE / "workers" / f"{worker}.py", str(rate), str(MAX_EPOCHS), *further]
    found = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | {"JAX_COMPILATION_CACHE_DIR": cache}
    )
    result = json.loads(found.stdout.splitlines()[-1])
    result["seconds"] = crossing(result["curve"], TARGET)
    shown = "never" if result["seconds"] is None else f"{result['seconds']:.1f} s"
    print(f"{result['title']:44} {shown}", flush=True)
    return result


def crossing(curve, target):
    """Return the seconds at which a curve of (seconds, samples, bound) crosses the target, None if it does not.

    >>> crossing([[1.0, 10, -110.0], [2.0, 20, -104.0]], -105)
    1.8333333333333335
    """
    before = None
    for seconds, _, bound in curve:
        if bound >= target:
            if before is None:
                return seconds
            return before[0] + (seconds - before[0]) * (target - before[1]) / (bound - before[1])
        before = seconds, bound
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--output", type=Path, default=Path("runs/race.json"))
    chosen = parser.parse_args()
    cold = min((cold_run() for _ in range(3)), key=lambda result: result["seconds"])
    with tempfile.TemporaryDirectory() as cache:
        rivals = {
            name: {rate: run(*part[:2], rate, cache, *part[2]) for rate in RATES} for name, part in RIVALS.items()
        }
        best = {name: min(found, key=lambda rate: found[rate]["seconds"] or 1e9) for name, found in rivals.items()}
        first = min(best, key=lambda name: rivals[name][best[name]]["seconds"] or 1e9)
        ours = run(None, "race_ours", 0, cache)
        rounds = []
        for _ in range(chosen.rounds):
            turn = {"aevb": run(None, "race_ours", 0, cache)["seconds"]}
            environment, worker, further = RIVALS[first]
            rounds.append(turn | {first: run(environment, worker, best[first], cache, *further)["seconds"]})
    report(rounds, cold)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    stored = {"machine": machine(), "target": TARGET, "rounds": rounds, "best": best, "cold": cold, "aevb": ours}
    chosen.output.write_text(json.dumps(stored | {"rivals": rivals}, indent=1))
    print(f"Wrote {chosen.output}")


def cold_run():
    """Return a run of aevb with an empty compilation cache."""
    with tempfile.TemporaryDirectory() as cache:
        return run(None, "race_ours", 0, cache)


def report(rounds, cold):
    """Print seconds, and the share of each rival's time that aevb takes; the targets are a third, and a half cold."""
    print(f"\nSeconds from the call of fit to {TARGET:g} nats; medians of {len(rounds)} rounds; {machine()}")
    fastest = min(statistics.median(turn[name] for turn in rounds) for name in rounds[0] if name != "aevb")
    for name in rounds[0]:
        shares = [turn["aevb"] / turn[name] for turn in rounds]
        seconds = statistics.median(turn[name] for turn in rounds)
        print(f"{name:20}{seconds:>8.1f} s   aevb / this {statistics.median(shares):.2f}")
    print(f"{'aevb, cold cache':20}{cold['seconds']:>8.1f} s   / fastest rival {cold['seconds'] / fastest:.2f}")


if __name__ == "__main__":
    main()
