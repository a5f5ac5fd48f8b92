"""Time aevb against named rivals, taking turns in one run; see README.md beside this file."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENVS = HERE.parent / ".venv-bench"
# What each worker needs in a virtual environment of its own; None: this one.
WORKERS = {
    "ours": None,
    "products": None,
    "numpyro_svi": ["numpyro"],
    "torch_eager": ["torch==2.13.0", "numpy"],
}
# What ours is held to: ours / other at least this.
TARGETS = {"products": 0.72, "numpyro_svi": 1.1, "torch_eager": 1.5}


def python_for(name, requirements):
    if requirements is None:
        return sys.executable
    python = VENVS / name / "bin" / "python"
    if not python.exists():
        print(f"Installing {', '.join(requirements)} into {VENVS.name}/{name} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", VENVS / name], check=True)
        # optax is numpyro's optional optimizer library
        extra = ["optax"] if "numpyro" in requirements else []
        constraints = ["--constraint", HERE.parent / "constraints.txt"] if "numpyro" in requirements else []
        subprocess.run([python, "-m", "pip", "install", "--quiet", *constraints, *requirements, *extra], check=True)
    return python


class Worker:
    def __init__(self, name, requirements):
        command = [python_for(name, requirements), HERE / "workers" / f"{name}.py"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.title = self._read()
        print(f"ready: {self.title}", flush=True)

    def turn(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self._read())

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args[1]} ended with code {self.process.wait()}")
        return line.strip()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="*", default=list(WORKERS), choices=list(WORKERS))
    parser.add_argument("--output", type=Path, default=Path("runs/bench.json"))
    arguments = parser.parse_args()
    names = ["ours", *(name for name in arguments.only if name != "ours")]
    workers = {name: Worker(name, WORKERS[name]) for name in names}
    rates = {name: [] for name in names}
    for number in range(arguments.rounds):
        for name, worker in workers.items():
            rates[name].append(worker.turn())
        print(f"round {number + 1}: " + "  ".join(f"{name} {rates[name][-1]:,.0f}/s" for name in names), flush=True)
    titles = {name: worker.title for name, worker in workers.items()}
    for worker in workers.values():
        worker.close()
    report(rates, titles, arguments.output)


def report(rates, titles, output):
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    print(f"\nPaper's MNIST network, M=100, L=1, Adagrad; medians of {len(rates['ours'])} rounds; {machine}")
    print(f"{'':44}{'samples/s':>10}{'ours / this':>13}{'range':>14}{'target':>8}")
    results = {}
    for name, values in rates.items():
        ratios = [ours / other for ours, other in zip(rates["ours"], values, strict=True)]
        results[name] = {"title": titles[name], "samples_per_second": values, "ours_over_this": ratios}
        target = f"{TARGETS[name]:.2f}" if name in TARGETS else ""
        print(
            f"{titles[name]:44}{statistics.median(values):>10,.0f}{statistics.median(ratios):>13.2f}"
            f"{f'{min(ratios):.2f}-{max(ratios):.2f}':>14}{target:>8}"
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({"machine": machine, "results": results}, indent=1))
    print(f"Wrote {output}")


if __name__ == "__main__":
    main()
