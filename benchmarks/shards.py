"""Send all of some large shards through several processes, once, and report the largest memory of each.

    python benchmarks/shards.py [--gigabytes 50] [--processes 2] [--hidden 16] [--batch-size 10000]

The shards are sparse .npy files of 784 bytes a row, so nothing is written and nothing waits for a disk; the network is
small, so that reading is most of the work. Each process has a core of its own, if there are enough. It fails if fewer
rows were seen than an epoch may leave out, or if a process had more than 1.5 GB resident.
"""

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NUM_COLUMNS, NUM_SHARDS = 784, 10
MAX_RESIDENT = 1.5e9
LEAST_SEEN = 0.95  # of the rows: an epoch ends when its first lane is used up, see docs/scale.md


def make_shards(folder, gigabytes):
    """Make sparse files; return the number of rows in all of them."""
    import numpy as np

    each = int(gigabytes * 1e9) // NUM_COLUMNS // NUM_SHARDS
    for number in range(NUM_SHARDS):
        with open(Path(folder) / f"{number}.npy", "wb") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": (each, NUM_COLUMNS)}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + each * NUM_COLUMNS)
    return each * NUM_SHARDS


def work(folder, hidden, batch_size, coordinator, number, process):
    """Train for one epoch; print what this process saw and used."""
    import aevb

    if int(number) > 1:
        aevb.distributed.start(coordinator, num_processes=int(number), process_id=int(process))
    settings = {"latent_dim": 2, "hidden": (int(hidden),), "batch_size": int(batch_size), "max_epochs": 1}
    settings |= {"likelihood": "bernoulli", "validation_fraction": 0, "patience": None, "progress": process == "0"}
    start = time.perf_counter()
    vae = aevb.VAE(**settings).fit(folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    found = {"rows": vae.history_[-1]["samples"], "seconds": time.perf_counter() - start, "peak": peak}
    print("FOUND", json.dumps(found), flush=True)


def run(folder, chosen):
    """Return what each process found."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{probe.getsockname()[1]}"
    cores = sorted(os.sched_getaffinity(0))
    started = []
    for process in range(chosen.processes):
        pin = ["taskset", "-c", str(cores[process])] if chosen.processes <= len(cores) else []
        options = [folder, chosen.hidden, chosen.batch_size, coordinator, chosen.processes, process]
        command = [*pin, sys.executable, __file__, "--work", *map(str, options)]
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment))
    said = [process.communicate()[0] for process in started]
    assert all(process.returncode == 0 for process in started), "\n".join(said)
    lines = [next(line for line in text.splitlines() if line.startswith("FOUND")) for text in said]
    return [json.loads(line[6:]) for line in lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=50)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=10_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        num_rows = make_shards(folder, chosen.gigabytes)
        found = run(folder, chosen)
    rows, seconds = found[0]["rows"], max(one["seconds"] for one in found)
    peaks = [one["peak"] for one in found]
    print(
        f"{rows:,} of {num_rows:,} rows ({chosen.gigabytes:g} GB) in {seconds:,.0f} s, with the pass before training "
        f"and the compilation; resident at most {', '.join(f'{peak / 1e9:.2f}' for peak in peaks)} GB in processes "
        f"0 to {chosen.processes - 1}"
    )
    sys.exit(rows < LEAST_SEEN * num_rows or max(peaks) > MAX_RESIDENT)


if __name__ == "__main__":
    if "--work" in sys.argv:
        work(*sys.argv[2:])
    else:
        main()
