"""Time aevb and other libraries, taking turns in one run; see README.md in this folder."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENVS = HERE.parent / ".venv-bench"
# The virtual environment of each worker: its name and requirements; None for the current environment.
TORCH = ("torch_eager", ["torch==2.13.0", "numpy"])
WORKERS = {
    "ours": None,
    "products": None,
    "numpyro_svi": ("numpyro_svi", ["numpyro"]),
    "torch_eager": TORCH,
    "ours_likelihood": None,
    "blackjax_loop": None,
    "torch_likelihood": TORCH,
    "ours_stream": None,
    "ours_resident": None,
    "ours_sequences": None,
    "numpyro_dmm": None,
    "pyro_dmm": ("pyro_dmm", ["pyro-ppl==1.9.2", "torch==2.13.0", "numpy"]),
}
# Title, unit, and target ratio ours / other for each worker; the first worker is ours.
BENCHMARKS = {
    "learning": (
        "Paper's MNIST network, M=100, L=1, Adagrad",
        "samples/s",
        {"ours": None, "products": 0.8, "numpyro_svi": 1.5, "torch_eager": 1.8},
    ),
    "learning-1000": ("The same, M=1,000", "samples/s", {"ours": None, "products": 0.9}),
    "learning-digits": (
        "64 columns, 50 hidden units, J=10, M=100",
        "samples/s",
        {"ours": None, "numpyro_svi": 3.0, "torch_eager": 3.0},
    ),
    "learning-table": (
        "13 Gaussian columns, 50 hidden units, J=4, M=100",
        "samples/s",
        {"ours": None, "numpyro_svi": 3.0, "torch_eager": 3.0},
    ),
    "likelihood": (
        "log p(x) of 1,000 datapoints by appendix D's estimator, at equal error, J=3, 100 hidden units",
        "datapoints/s",
        {"ours_likelihood": None, "blackjax_loop": None, "torch_likelihood": 4.0},
    ),
    "streams": (
        "Paper's MNIST network on a file of AEVB_STREAM_GIGABYTES (10) against an array; at most 1.5 GB resident",
        "samples/s",
        {"ours_stream": None, "ours_resident": 0.9},
    ),
    "sequences": (
        "Deep Markov model of Bach's chorales (needs AEVB_DATA), J=100, emission 100, transition 200, GRU 400, M=20",
        "sequences/s",
        {"ours_sequences": None, "numpyro_dmm": None, "pyro_dmm": 3.0},
    ),
}


SIZES = {"learning-1000": "large-batch", "learning-digits": "digits", "learning-table": "table"}  # see common.py


def python_for(environment):
    if environment is None:
        return sys.executable
    name, requirements = environment
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
    def __init__(self, name, environment=None):
        command = [python_for(WORKERS[name]), HERE / "workers" / f"{name}.py"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=os.environ | (environment or {}), **pipes)
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
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--benchmarks", nargs="*", default=list(BENCHMARKS), choices=list(BENCHMARKS))
    parser.add_argument("--only", nargs="*", default=list(WORKERS), choices=list(WORKERS), help="libraries to time")
    parser.add_argument("--output", type=Path, default=Path("runs/bench.json"))
    arguments = parser.parse_args()
    results = {name: run(name, arguments.rounds, arguments.only) for name in arguments.benchmarks}
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps({"machine": machine(), "results": results}, indent=1))
    print(f"Wrote {arguments.output}")


def run(benchmark, num_rounds, only):
    title, unit, targets = BENCHMARKS[benchmark]
    ours, *others = targets
    names = [ours, *(name for name in others if name in only)]
    shared = tempfile.TemporaryDirectory()  # where the first worker leaves what the others need
    environment = {"AEVB_BENCH_SHARED": shared.name, "AEVB_BENCH_SIZE": SIZES.get(benchmark, "paper")}
    workers = {name: Worker(name, environment) for name in names}
    rates = {name: [] for name in names}
    for number in range(num_rounds):
        for name, worker in workers.items():
            rates[name].append(worker.turn())
        print(f"round {number + 1}: " + "  ".join(f"{name} {rates[name][-1]:,.0f}/s" for name in names), flush=True)
    titles = {name: worker.title for name, worker in workers.items()}
    for worker in workers.values():
        worker.close()
    shared.cleanup()
    print(f"\n{title}; medians of {num_rounds} rounds; {machine()}")
    return report(rates, titles, unit, targets)


def machine():
    return f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def report(rates, titles, unit, targets):
    print(f"{'':44}{unit:>13}{'ours / this':>13}{'range':>14}{'target':>8}")
    results = {}
    own_rates = next(iter(rates.values()))
    for name, values in rates.items():
        ratios = [ours / other for ours, other in zip(own_rates, values, strict=True)]
        results[name] = {"title": titles[name], "samples_per_second": values, "ours_over_this": ratios}
        target = f"{targets[name]:.2f}" if targets[name] else ""
        print(
            f"{titles[name]:44}{statistics.median(values):>13,.0f}{statistics.median(ratios):>13.2f}"
            f"{f'{min(ratios):.2f}-{max(ratios):.2f}':>14}{target:>8}"
        )
    print(flush=True)
    return results


if __name__ == "__main__":
    main()
