"""Compare the speed with that of an earlier commit: both in one run, taking turns; only ratios within a round count.

    python benchmarks/before.py COMMIT [--worker ours] [--rounds 9] [--least 0.98]

The earlier commit's `src` is taken from git into a temporary folder; both sides run the same worker of today in the
same virtual environment. Who begins alternates. It fails if the median ratio, now / before, is below `--least`.
"""

import argparse
import io
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from run import HERE, Worker, machine

ROOT = HERE.parent
WORKERS = ("ours", "ours_likelihood", "ours_sequences", "ours_resident")


def unpack(commit, folder):
    """Write the source of a commit to a folder; return its path."""
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return Path(folder) / "src"


def check(source):
    """Make sure that a worker imports aevb from there, whatever is installed."""
    program = "import aevb; print(aevb.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", program], env=_environment(source), check=True, capture_output=True, text=True
    )
    place = Path(found.stdout.strip()).resolve()
    assert place.is_relative_to(source.resolve()), f"{place} is imported instead of {source}"


def _environment(source):
    return os.environ | {"PYTHONPATH": str(source)}


def compare(workers, rounds):
    """Return the rates of each side, one for each round."""
    rates = {name: [] for name in workers}
    for number in range(rounds):
        for name in list(workers)[:: 1 if number % 2 == 0 else -1]:
            rates[name].append(workers[name].turn())
        print(f"round {number + 1}: " + "  ".join(f"{name} {rates[name][-1]:,.0f}/s" for name in rates), flush=True)
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit")
    parser.add_argument("--worker", default=WORKERS[0], choices=WORKERS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--least", type=float, default=0.98)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sources = {"now": ROOT / "src", "before": unpack(chosen.commit, folder)}
        workers = {}
        for name, source in sources.items():
            check(source)
            shared = Path(folder) / name
            shared.mkdir()
            workers[name] = Worker(chosen.worker, _environment(source) | {"AEVB_BENCH_SHARED": str(shared)})
        rates = compare(workers, chosen.rounds)
        for worker in workers.values():
            worker.close()
    ratios = [now / before for now, before in zip(rates["now"], rates["before"], strict=True)]
    found = statistics.median(ratios)
    print(
        f"{chosen.worker}: now / {chosen.commit} = {found:.3f} ({min(ratios):.3f} to {max(ratios):.3f}), median of "
        f"{chosen.rounds} rounds; {machine()}"
    )
    sys.exit(found < chosen.least)


if __name__ == "__main__":
    main()
