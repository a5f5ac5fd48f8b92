"""Store what benchmarks measured in results.json, which the documentation is compared with.

    python benchmarks/store.py runs/bench.json [runs/race.json] [runs/hosts.json ...]

These are the files that run.py, race.py, hosts.py, parts.py, costs.py and start.py write; measure on an idle machine.
They replace the entries of their benchmarks; of hosts.py several runs may be given. Then `python tools/comparison.py`
prints the tables of the documentation, and `pytest tests/project/test_prose.py` names sentences that became wrong.
"""

import json
import statistics
import sys
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results.json"


def spread(values):
    """Return the median and the range of some rounds.

    >>> spread([2.0, 1.0, 4.0])
    {'median': 2.0, 'lowest': 1.0, 'highest': 4.0, 'rounds': 3}
    """
    found = {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}
    return {name: round(value, 4) for name, value in found.items()} | {"rounds": len(values)}


def of_run(stored):
    """Return the rates and ratios of `run.py`, by benchmark and worker."""
    return {
        benchmark: {
            "workers": {
                name: {
                    "title": worker["title"],
                    "rate": spread(worker["samples_per_second"]),
                    "ours_over_this": spread(worker["ours_over_this"]),
                }
                for name, worker in workers.items()
            }
        }
        for benchmark, workers in stored["results"].items()
    }


def of_race(stored):
    """Return the seconds of `race.py` to its target, by library."""
    names = list(stored["rounds"][0])
    seconds = {name: spread([turn[name] for turn in stored["rounds"]]) for name in names}
    shares = {name: spread([turn["aevb"] / turn[name] for turn in stored["rounds"]]) for name in names}
    found = {"target": stored["target"], "seconds": seconds, "ours_over_this": shares, "rates": stored["best"]}
    return {"race": found | {"cold_seconds": stored["cold"]["seconds"]}}


def of_hosts(stored):
    """Return the milliseconds and efficiencies of `hosts.py`."""
    return {"hosts": {"runs": [stored["hosts"]]}}


def of_start(stored):
    """Return the seconds of `start.py`."""
    return {"start": {name: spread(values) for name, values in stored["start"].items()}}


def summary(stored):
    """Return the entries of one file of results."""
    kinds = {"results": of_run, "rounds": of_race, "hosts": of_hosts, "start": of_start}
    kinds |= {name: lambda stored, name=name: {name: stored[name]} for name in ("parts", "costs")}
    (entries,) = (kinds[kind](stored) for kind in kinds if kind in stored)
    facts = {"machine": stored["machine"], "stored": f"{datetime.now(UTC):%Y-%m-%d}"}
    return {name: facts | entry for name, entry in entries.items()}


def main(paths):
    found = {}
    for path in paths:
        for name, entry in summary(json.loads(Path(path).read_text(encoding="utf-8"))).items():
            runs = found.get(name, {}).get("runs", []) + entry.get("runs", [])
            found[name] = entry | ({"runs": runs} if runs else {})
    known = json.loads(RESULTS.read_text(encoding="utf-8")) | found
    RESULTS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    print(f"{RESULTS}: stored {', '.join(found)}")


if __name__ == "__main__":
    main(sys.argv[1:])
