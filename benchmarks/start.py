"""What a user waits for at the start: the first epoch of 5,000 images, imports included, and `aevb --help`.

    python benchmarks/start.py [--rounds 5]

Each is a process of its own. Cold: with an empty folder of compiled programs; warm: with that of the first run. The
medians are printed beside their targets: 3.5 s cold, 1.5 s warm, and 0.25 s of CPU time for the help.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import machine

EPOCH = """
from aevb.data import load_dataset
from aevb import VAE
VAE(latent_dim=2, max_epochs=1, progress=False).fit(load_dataset("mnist-5k").rows)
"""
TARGETS = {"cold": 3.5, "warm": 1.5, "help, CPU": 0.25}


def seconds(command, cache):
    """Return the seconds and the CPU seconds of a process."""
    before, start = os.times(), time.perf_counter()
    # As for a user who has set nothing: with a folder named by the user, JAX would keep only slow programs.
    settings = {
        name: value for name, value in os.environ.items() if not name.startswith("JAX_") and name != "AEVB_CACHE"
    }
    environment = settings | {"XDG_CACHE_HOME": cache}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    wall, after = time.perf_counter() - start, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("runs/start.json"))
    chosen = parser.parse_args()
    found = {name: [] for name in TARGETS}
    epoch, help = [sys.executable, "-c", EPOCH], [sys.executable, "-m", "aevb", "--help"]
    for _ in range(chosen.rounds):
        with tempfile.TemporaryDirectory() as cache:
            found["cold"].append(seconds(epoch, cache)[0])
            found["warm"].append(seconds(epoch, cache)[0])
            found["help, CPU"].append(seconds(help, cache)[1])
    print(f"Seconds, medians of {chosen.rounds} rounds; {machine()}")
    for name, values in found.items():
        print(f"{name:12}{statistics.median(values):8.2f}   target {TARGETS[name]:.2f}")
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps({"machine": machine(), "start": found}, indent=1))
    print(f"Wrote {chosen.output}")


if __name__ == "__main__":
    main()
