"""Compare fit_posterior with NumPyro's SVI, BlackJAX's Pathfinder and PyMC's ADVI on posteriors of posteriordb.

    AEVB_DATA=... python benchmarks/posteriors.py [--names NAME ...] [--methods METHOD ...] [--output FILE]

All methods get the same log joints and run one after the other, posterior by posterior; times are CPU seconds,
compilation included. PyMC has its own virtual environment and process; its column says so if it does not install. A row
that exists in the output is not computed again.
"""

import argparse
import json
import subprocess
import time
import warnings
from pathlib import Path

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from blackjax.vi import multipathfinder
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoMultivariateNormal
from run import python_for

from aevb.experiments.figures import write_numbers
from aevb.experiments.posteriors.reference import MAX_MEAN_ERROR, MAX_STD_ERROR, MODELS, compare, load_reference
from aevb.experiments.posteriors.structured import derived
from aevb.experiments.posteriors.table import fit_one
from aevb.experiments.result_file import markdown_table, stored_results
from aevb.models import LogJoint, describe
from aevb.posterior.density import Density

HERE = Path(__file__).resolve().parent
PYMC = ("pymc", ["pymc", "-e", str(HERE.parent)])  # virtual environment and requirements, see run.py
NUM_STEPS, NUM_DRAWS, NUM_PATHS = 10_000, 4000, 8
ABOUT = {
    "title": "fit_posterior and other methods on posteriors of posteriordb",
    "how": "largest error of a mean in reference standard deviations, largest relative error of one, and CPU seconds",
    "seed": 0,
}


def errors_of(draws, model, reference):
    with jax.enable_x64(True):
        draws = derived(model, {name: np.asarray(value, np.float64) for name, value in draws.items()}, reference.data)
    moments = {name: (np.mean(value, 0), np.std(value, 0)) for name, value in draws.items()}
    found = compare(moments, reference)
    return {"mean_error": found.mean, "std_error": found.std}


def ours(name, model, reference):
    row = fit_one(name)
    return {key: row[key] for key in ("mean_error", "std_error", "k_hat", "family")} | {"flagged": bool(row["flags"])}


def numpyro_svi(name, model, reference):
    data = jax.tree.map(
        lambda array: np.asarray(array, np.float32) if array.dtype.kind == "f" else array, reference.data
    )

    def as_numpyro():
        values = {}
        for variable, facts in describe(model["variables"]).variables.items():
            batch = facts.shape[: len(facts.shape) - facts.support.event_dim]
            event = facts.shape[len(batch) :]
            values[variable] = numpyro.sample(variable, dist.ImproperUniform(facts.support, batch, event))
        numpyro.factor("log_joint", model["log_joint"](values, data))

    guide = AutoMultivariateNormal(as_numpyro)
    svi = SVI(as_numpyro, guide, optax.adam(0.01), Trace_ELBO())
    result = svi.run(jax.random.key(0), NUM_STEPS, progress_bar=False)
    draws = guide.sample_posterior(jax.random.key(1), result.params, sample_shape=(NUM_DRAWS,))
    return errors_of(draws, model, reference)


def pathfinder(name, model, reference):
    density = Density(LogJoint(model["log_joint"]), describe(model["variables"]), reference.data, 1, precise=False)

    def log_density(u):
        return density.of_point(u, density.data)

    starts = jax.random.uniform(jax.random.key(0), (NUM_PATHS, density.size), minval=-2, maxval=2)
    run = jax.jit(lambda key, u: multipathfinder.multi_approximate(key, log_density, u, NUM_DRAWS // NUM_PATHS)[0])
    state = run(jax.random.key(1), starts)
    log_weights = np.asarray(multipathfinder.psis_weights(state)[0], np.float64)
    weights = np.exp(log_weights - log_weights.max())
    index = np.random.default_rng(0).choice(NUM_DRAWS, NUM_DRAWS, p=weights / weights.sum())
    points = np.asarray(state.samples, np.float64).reshape(NUM_DRAWS, -1)[index]
    return errors_of(density.constrain(points), model, reference)


def pymc_advi(name, model, reference):
    command = [python_for(PYMC), HERE / "workers" / "pymc_advi.py", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    row = json.loads(done.stdout.splitlines()[-1])
    return row


METHODS = {
    "fit_posterior": ours,
    "NumPyro SVI": numpyro_svi,
    "Pathfinder": pathfinder,
    "PyMC ADVI": pymc_advi,
}


def table(results):
    """Return errors and CPU seconds side by side, how many are right, and the medians of the times."""
    methods = [method for method in METHODS if all(method in found for found in results.values())]
    rows = [["posterior", *(f"{method}: mean, sd, CPU s" for method in methods)]]
    for name, found in results.items():
        rows.append([name, *(cell(found[method]) for method in methods)])
    right = {method: sum(is_right(found[method]) for found in results.values()) for method in methods}
    rows.append(["means within 0.1, sd within 10%", *(f"{right[method]} of {len(results)}" for method in methods)])
    times = {method: np.median([found[method]["cpu_seconds"] for found in results.values()]) for method in methods}
    rows.append(["median CPU s", *(f"{times[method]:.1f}" for method in methods)])
    return markdown_table(rows)


def check_times(results):
    """Refuse a median CPU time above that of NumPyro's SVI."""
    ours, other = (
        np.median([found[method]["cpu_seconds"] for found in results.values() if method in found])
        for method in ("fit_posterior", "NumPyro SVI")
    )
    if ours > other:
        raise SystemExit(f"fit_posterior: median CPU time {ours:.1f} s, above NumPyro's {other:.1f} s.")


def cell(row):
    if "failed" in row or not np.isfinite(row["mean_error"] + row["std_error"]):
        return f"failed, {row['cpu_seconds']:.1f}"
    return ", ".join(f"{row[key]:.2g}" for key in ("mean_error", "std_error")) + f", {row['cpu_seconds']:.1f}"


def is_right(row):
    return "failed" not in row and row["mean_error"] <= MAX_MEAN_ERROR and row["std_error"] <= MAX_STD_ERROR


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--names", nargs="*", default=list(MODELS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--output", type=Path, default=Path("runs/bench/posteriors.json"))
    arguments = parser.parse_args()
    results = stored_results(arguments.output)
    warnings.simplefilter("ignore")
    for name in arguments.names:
        reference = load_reference(name)
        for method in arguments.methods:
            if method in results.get(name, {}):
                continue
            start = time.process_time()
            try:
                row = METHODS[method](name, MODELS[name], reference)
            except (ValueError, RuntimeError, FloatingPointError, TypeError, AttributeError, OSError) as error:
                row = {"failed": f"{type(error).__name__}: {error}"[:200]}
            except subprocess.CalledProcessError:
                row = {"failed": "does not install"}
            results.setdefault(name, {})[method] = {"cpu_seconds": time.process_time() - start} | row
            arguments.output.parent.mkdir(parents=True, exist_ok=True)
            write_numbers(arguments.output, ABOUT | {"results": results})
            print(f"# {name}, {method}: {row}", flush=True)
    results = {name: results[name] for name in arguments.names}
    print(table(results))
    check_times(results)


if __name__ == "__main__":
    main()
