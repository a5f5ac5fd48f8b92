"""What several processes cost: seconds per step with one process and with two, each on its own core.

    python benchmarks/hosts.py [--cores 0,1] [--rows 1000] [--steps 12] [--output runs/hosts.json]

The paper's network on 784 columns. Weak scaling: each process has `rows` rows of a minibatch. Strong scaling: the
minibatch has `rows` rows, however many processes there are. The parts: the step of one process with as many rows as
each of the two has, and the average of as many numbers as there are parameters, alone. The fastest epoch counts. On a
busy machine only the CPU time of the first process means something.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from run import machine

FLAGS = "--xla_cpu_multi_thread_eigen=false"
NUM_PARAMETERS = 784 * 500 + 500 + 500 * 20 + 20 + 10 * 500 + 500 + 500 * 784 + 784


def work(batch_size, steps, launch):
    """Print the seconds per step, and the seconds of an average of all parameters."""
    import numpy as np

    import aevb

    if launch:
        coordinator, number, process = launch
        aevb.distributed.start(coordinator, num_processes=int(number), process_id=int(process))
    X = np.random.default_rng(0).integers(0, 256, (batch_size * steps, 784), np.uint8)
    settings = {"latent_dim": 10, "hidden": (500,), "batch_size": batch_size, "validation_fraction": 0}
    settings |= {"max_epochs": 6, "patience": None, "progress": False, "likelihood": "bernoulli"}
    ends = []
    aevb.VAE(**settings).fit(X, callbacks=[lambda _: ends.append((time.perf_counter(), time.process_time()))])
    ends = ends or [(0.0, 0.0)] * 2  # only the first process calls back
    wall, cpu = (min(np.diff(times)) / steps for times in np.transpose(ends))
    found = {"step": wall, "cpu": cpu}
    if launch:
        from aevb.distributed.examination import average_seconds
        from aevb.parallel import group

        found["average"] = min(average_seconds(group().mesh, NUM_PARAMETERS)[0] for _ in range(3))
    print("FOUND", json.dumps(found), flush=True)


def run(cores, batch_size, steps):
    """Return what the first of some processes measures, one on each core."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = []
    for process, core in enumerate(cores):
        launch = [f"127.0.0.1:{port}", str(len(cores)), str(process)] if len(cores) > 1 else []
        command = ["taskset", "-c", core, sys.executable, __file__, "--work", str(batch_size), str(steps), *launch]
        started.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"XLA_FLAGS": FLAGS})
        )
    said = [process.communicate()[0] for process in started]
    found = json.loads(next(line for line in said[0].splitlines() if line.startswith("FOUND"))[6:])
    print(f"  {len(cores)} processes, minibatches of {batch_size}: {found}", file=sys.stderr, flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cores", default="0,1")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--output", type=Path, default=Path("runs/hosts.json"))
    chosen = parser.parse_args()
    cores, M, steps = chosen.cores.split(","), chosen.rows, chosen.steps
    half, one = run(cores[:1], M // 2, steps), run(cores[:1], M, steps)
    weak, strong = run(cores, 2 * M, steps), run(cores, M, steps)
    print(f"{Path(__file__).name}: milliseconds per step, cores {chosen.cores}")
    found = {"rows": M, "steps": steps}
    for name, two, part, ideal in (
        ("weak", weak, one, one["step"]),
        ("strong", strong, half, one["step"] / 2),
    ):
        rest = two["step"] - part["step"] - two["average"]
        milliseconds = {"one": part["step"], "two": two["step"], "average": two["average"], "ideal": ideal}
        found[name] = {key: round(1000 * value, 2) for key, value in milliseconds.items()}
        found[name]["efficiency"] = round(ideal / two["step"], 4)
        print(
            f"  {name}: two processes {1000 * two['step']:.1f} = rows {1000 * part['step']:.1f} + average "
            f"{1000 * two['average']:.1f} + rest {1000 * rest:.1f}; ideal {1000 * ideal:.1f}, "
            f"efficiency {ideal / two['step']:.2f}; CPU time {1000 * two['cpu']:.1f} of {1000 * part['cpu']:.1f}"
        )
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps({"machine": machine(), "hosts": found}, indent=1))
    print(f"Wrote {chosen.output}")


if __name__ == "__main__":
    if "--work" in sys.argv:
        work(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
    else:
        main()
