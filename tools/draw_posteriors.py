"""Run the examples of docs/posteriors.md and draw q beside the truth, into docs/images.

What the page says of the fits is written to docs/reproduction/posterior-examples.json.

python tools/draw_posteriors.py [funnel] [hierarchy] [process] [minibatches] [latents]
"""

import re
import sys
import warnings
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from aevb import fit_posterior
from aevb.experiments.result_file import ResultFile

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs/reproduction/posterior-examples.json"
ABOUT = {"title": "The examples of docs/posteriors.md", "how": "the code of the page, default settings", "seed": 0}


def main(chosen):
    warnings.simplefilter("ignore")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/posteriors.md").read_text(), flags=re.DOTALL)
    imports = blocks[0].partition("\n\n\n")[0]
    results = ResultFile(RESULTS, ABOUT)
    pictures = {funnel: "neck", hierarchy: "groups", process: "rates", minibatches: "buyers", latents: "latents"}
    for code, (draw, name) in zip(blocks, pictures.items(), strict=False):
        if chosen and draw.__name__ not in chosen:
            continue
        names = {}
        exec(imports, names)
        results.results.pop(draw.__name__, None)  # measure it again
        print(results.add((draw.__name__,), partial(said_of, code, name, names)), flush=True)
        figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
        draw(axes, names)
        figure.savefig(ROOT / f"docs/images/posterior-{draw.__name__}.png", dpi=100)
        print(f"posterior-{draw.__name__}.png", flush=True)


def said_of(code, name, names):
    """Run an example and return what the page says of its fit."""
    exec(code, names)
    fitted = names[name]
    return {
        "family": fitted.family,
        "k_hat": float(fitted.k_hat),
        "flags": list(fitted.warnings),
        "tried": [{"family": one["family"], "k_hat": float(one["k_hat"])} for one in fitted.tried],
    }


def funnel(axes, names):
    fitted = names["neck"]
    x, log_scale = np.meshgrid(np.linspace(-15, 15, 200), np.linspace(-5, 4, 200))
    density = np.exp(-(log_scale**2) / 2 / 1.5**2 - log_scale - (x * np.exp(-log_scale)) ** 2 / 2)
    axes.contour(x, log_scale, density / density.max(), levels=[0.003, 0.01, 0.03, 0.1], colors="tab:orange")
    draws = fitted.sample(2000)
    axes.plot(draws["x"][:, 0], draws["log_scale"], ".", ms=2, label=f"{fitted.family}, k-hat {fitted.k_hat:.2f}")
    axes.set(xlim=(-15, 15), ylim=(-5, 4), xlabel="x", ylabel="log scale", title="draws and exact density (orange)")
    axes.legend(loc="lower left")


def hierarchy(axes, names):
    fitted = names["groups"]
    data = {"group": names["group"], "x": names["x"], "y": names["y"]}
    chains = fit_posterior(names["regression"], data=data, refine="hmc", progress=False)
    for shift, one, label in ((-0.15, fitted, fitted.family), (0.15, chains, "chains")):
        low, middle, high = np.quantile(one.draws["intercept"], [0.05, 0.5, 0.95], axis=0)
        axes.errorbar(np.arange(12) + shift, middle, (middle - low, high - middle), fmt="o", ms=3, label=label)
    axes.set(xlabel="group", ylabel="intercept", title="medians and 90% intervals")
    axes.legend(loc="lower left")


def process(axes, names):
    chains = fit_posterior(
        (names["priors"], lambda v: names["dist"].Poisson(names["jnp"].exp(names["process"](v))).log_prob(
            names["counts"]).sum()), refine="hmc", progress=False)  # fmt: skip
    exact = chains.predictive(lambda v, key: names["jnp"].exp(names["process"](v)), num_samples=2000)
    found = names["rates"].predictive(lambda v, key: names["jnp"].exp(names["process"](v)), num_samples=2000)
    low, high = np.quantile(found, [0.05, 0.95], axis=0)
    axes.fill_between(names["t"], low, high, alpha=0.4, label=names["rates"].family)
    axes.plot(names["t"], np.quantile(exact, [0.05, 0.95], axis=0).T, color="tab:orange", label=["chains", None])
    axes.plot(names["t"], names["counts"], "k.", label="counts")
    axes.set(xlabel="t", title="90% band of the rate")
    axes.legend()


def minibatches(axes, names):
    data = names["income"], names["age"], names["bought"].astype(float)
    priors = {name: names["dist"].Normal(0, 10) for name in ("bias", "income", "age")}
    chains = fit_posterior((priors, names["log_likelihood"]), data=data, refine="hmc", progress=False)
    for one, label in ((names["buyers"], "minibatches"), (chains, "chains, all data")):
        draws = one.sample(1000)
        axes.plot(draws["income"], draws["age"], ".", ms=2, label=label)
    axes.set(xlabel="income", ylabel="age", title="draws of two weights")
    axes.legend()


def latents(axes, names):
    x, z = names["scores"], names["z"]
    mean = x.sum() / 2 / (len(x) / 2 + 0.01)  # of mu; its variance adds a quarter of itself to that of z
    std = np.sqrt(0.5 + 0.25 / (len(x) / 2 + 0.01))
    order = np.argsort(x)
    axes.fill_between(x[order], (x[order] + mean) / 2 - std, (x[order] + mean) / 2 + std, alpha=0.3, label="exact")
    axes.errorbar(x, z.mean(0), z.std(0), fmt=".", label="q")
    axes.set(xlabel="x", ylabel="z", title="mean and standard deviation")
    axes.legend()


if __name__ == "__main__":
    main(sys.argv[1:])
