"""A guard against lost speed: compare a few rounds of `run.py` with stored ratios; fails on a loss of more than 10%.

python benchmarks/quick.py [--rounds 5] [--store]    # --store replaces the ratios by those of this run
"""

import argparse
import json
import statistics
import sys

from run import HERE, run

STORED = HERE / "ratios.json"
LOSS = 0.1
# Benchmark -> libraries to compare with.
COMPARED = {"learning": ["numpyro_svi", "torch_eager"], "likelihood": ["torch_likelihood"]}


def losses(stored, found):
    """Return what was lost: the names of the ratios that fell by more than `LOSS`, with both values.

    >>> losses({"a": 2.0, "b": 1.0}, {"a": 1.7, "b": 0.95})
    {'a': (2.0, 1.7)}
    """
    return {name: (stored[name], found[name]) for name in stored if found[name] < (1 - LOSS) * stored[name]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", action="store_true")
    chosen = parser.parse_args()
    found = {}
    for benchmark, others in COMPARED.items():
        results = run(benchmark, chosen.rounds, others)
        found |= {name: round(statistics.median(results[name]["ours_over_this"]), 3) for name in others}
    if chosen.store:
        STORED.write_text(json.dumps(found, indent=1) + "\n")
        print(f"Wrote {STORED}: {found}")
        return
    lost = losses(json.loads(STORED.read_text()), found)
    for name, (before, now) in lost.items():
        print(f"{name}: the ratio was {before:.2f} and is {now:.2f}, a loss of more than {LOSS:.0%}.")
    print(f"Ratios now: {found}")
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()
