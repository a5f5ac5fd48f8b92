"""The measurements for each claim. Every result is saved to disk as soon as it is known."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aevb.data import load_dataset
from aevb.experiments.claims.gradients import encoder_gradient_variance, rows_of
from aevb.experiments.claims.linear import compare_with_pca
from aevb.experiments.cost import DATA_DIMS, gigaflops_of_machine
from aevb.experiments.curves import learned_models, read_data, run_curve, start
from aevb.experiments.parallel_curves import run_curves
from aevb.experiments.settings import Curve, Watch, curves_of, read
from aevb.files import written_whole
from aevb.inference.marginal_likelihood import log_likelihood
from aevb.training import Resident
from aevb.training.loop import safe_chunk


@dataclass(frozen=True)
class Laboratory:
    """Where the claims are measured, and how thoroughly."""

    profile: str
    folder: Path
    seed: int = 0
    watch: Watch = lambda *_: None
    processes: int | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings in `claims.toml`."""
        return read("claims")

    def of_profile(self, table: str, name: str) -> Any:
        """Return a setting for this profile."""
        return self.settings[table][name][self.profile]

    def cached(self, name: str, measure: Callable[[], Any]) -> Any:
        """Return the saved measurement of this name, or measure and save it."""
        path = self.folder / "claims" / f"{name}.json"
        if not path.exists():
            if hasattr(self.watch, "note"):
                self.watch.note(name)  # pyright: ignore[reportFunctionMemberAccess]
            value = measure()
            with written_whole(path) as scratch:
                scratch.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
        return json.loads(path.read_text(encoding="utf-8"))

    def run(self, curves: list[Curve]) -> list[dict]:
        """Run curves that are shared with the figures."""
        return run_curves(curves, self.folder / "curves", self.watch, self.processes)


def figure_curves(profile: str, seed: int, *names: str) -> list[Curve]:
    """Return the curves of these figures."""
    return list(dict.fromkeys(curve for name in names for curve in curves_of(read(name), profile, seed)))


# ---- claims 1 and 2 --------------------------------------------------------------------------------------------------


def gradient_variances(lab: Laboratory) -> list[dict]:
    """Measure the variance of the encoder's gradient by data set, stage of training, L and estimator.

    Paper: §2.2, §2.3.
    """
    rows = []
    for curve in _staged_curves(lab):
        for stage in lab.of_profile("gradients", "stages"):
            name = f"gradients-{curve.data}-{stage}"
            rows += lab.cached(name, lambda curve=curve, stage=stage: _variances_at(lab, curve, stage))
    return rows


def _staged_curves(lab):
    table = lab.settings["gradients"]
    base = {"learner": "aevb", "metric": "lower-bound", "num_evaluated": 1000, "samples": (0,), "seed": lab.seed}
    if lab.profile == "tiny":
        return [Curve("digits", latent_dim=2, hidden=8, likelihood="bernoulli", **base)]
    sizes = ("latent_dim", "latent_dims"), ("hidden", "hidden"), ("likelihood", "likelihood")
    return [Curve(data, **{one: table[many][data] for one, many in sizes}, **base) for data in table["hidden"]]


def _variances_at(lab, curve, stage):
    folder, data = lab.folder / "claims" / "curves", read_data(curve)
    if stage:
        curve = replace(curve, samples=(stage,))
        run_curve(curve, folder)
        models = learned_models(curve, folder)
    else:
        learner, state = start(curve, data)
        models = learner.models(state)
    x, key = rows_of(data.source, data.train_rows), jax.random.key(lab.seed)
    rows, repeats = [], lab.of_profile("gradients", "repeats")
    for num_samples in lab.of_profile("gradients", "num_samples"):
        row = {"data": curve.data, "stage": stage, "num_samples": num_samples, "repeats": repeats}
        for estimator in ("score-function", "sgvb-a", "sgvb-b"):
            row[estimator] = encoder_gradient_variance(models, x, estimator, num_samples, repeats, key)
        rows.append(row)
    return rows


# ---- claim 3 ---------------------------------------------------------------------------------------------------------


def effort_curves(profile: str, seed: int) -> list[Curve]:
    """Return a curve for each L and M, with an equal number of (datapoint, sample) pairs."""
    table = read("claims")["effort"]
    shared = {name: table[name] for name in ("data", "likelihood", "hidden", "latent_dim", "num_evaluated")}
    shared |= {"learner": "aevb", "metric": "lower-bound"}
    batch_sizes, samples = table["batch_sizes"], table["num_samples"]
    if profile == "tiny":
        shared |= {"data": "digits", "hidden": 8, "latent_dim": 2, "num_evaluated": 50}
        batch_sizes, samples = [10, 100], [1, 2]
    pairs = table["pairs"][profile]
    return [
        Curve(samples=(pairs // L,), num_samples=L, batch_size=M, seed=seed, **shared)
        for M in batch_sizes
        for L in samples
    ]


def bounds_by_effort(lab: Laboratory) -> list[dict]:
    """Measure the bound on test data after equal computation, by L and M.

    Paper: §2.3.
    """
    curves = effort_curves(lab.profile, lab.seed)
    results = run_curves(curves, lab.folder / "claims" / "curves", lab.watch, lab.processes)
    return [
        {"batch_size": curve.batch_size, "num_samples": curve.num_samples, "step_size": result["step_size"],
         "samples": result["points"][-1]["samples"], "bound": result["points"][-1]["test"]["mean"],
         "std_error": result["points"][-1]["test"]["std_error"], "core_seconds": result["core_seconds"]}
        for curve, result in zip(curves, results, strict=True)
    ]  # fmt: skip


# ---- claims 4, 5 and 6 -----------------------------------------------------------------------------------------------


def bound_curves(lab: Laboratory) -> list[dict]:
    """Return the curves of figure 2."""
    return lab.run(figure_curves(lab.profile, lab.seed, "figure-2"))


def mcem_curve(profile: str, seed: int) -> Curve:
    """Return the curve of Monte Carlo EM on the large training set."""
    (curve,) = (c for c in figure_curves(profile, seed, "figure-3") if c.learner == "mcem")
    table = read("claims")["mcem"]
    large = 800 if profile == "tiny" else table["num_train"]
    return replace(curve, num_train=large, samples=tuple(table["samples"][profile]))


def likelihoods_by_time(lab: Laboratory) -> list[dict]:
    """Compare Monte Carlo EM on the large training set with AEVB for no more computation.

    Paper: Figure 3, §5.
    """
    slow = mcem_curve(lab.profile, lab.seed)
    quick = next(
        curve
        for curve in figure_curves(lab.profile, lab.seed, "figure-3")
        if curve.learner == "aevb" and curve.num_train == (400 if lab.profile == "tiny" else slow.num_train)
    )
    mcem, aevb = lab.run([slow, quick])
    rows = []
    for point in mcem["points"]:
        affordable = [p for p in aevb["points"] if p["core_seconds"] <= point["core_seconds"]] or aevb["points"][:1]
        row = {
            "core_seconds": point["core_seconds"],
            "mcem": point["test"]["mean"],
            "aevb": affordable[-1]["test"]["mean"],
        }
        rows.append(row | {"mcem_samples": point["samples"], "aevb_samples": affordable[-1]["samples"]})
    return rows


# ---- claim 7 ---------------------------------------------------------------------------------------------------------


def speed(lab: Laboratory) -> dict[str, float]:
    """Measure the training speed on all cores, and the machine's speed in the same run.

    Paper: §5.
    """
    return lab.cached("speed", lambda: _measure_speed(lab))


def _measure_speed(lab):
    curve = next(c for c in figure_curves(lab.profile, lab.seed, "figure-2") if c.learner == "aevb")
    if lab.profile != "tiny":
        curve = replace(curve, latent_dim=20)
    data = read_data(curve)
    learner, state = start(curve, data)
    key = jax.random.key(lab.seed)
    chunks = iter(Resident(data.source, data.train_rows, curve.batch_size).chunks(key, 0))
    chunk = next(chunks)
    state, _ = safe_chunk(state, chunk, key, 0, learner=learner)  # compiles
    times, before = [], gigaflops_of_machine()
    for _ in range(lab.of_profile("speed", "chunks")):
        began = time.perf_counter()
        state, _ = safe_chunk(state, chunk, key, 0, learner=learner)
        times.append(time.perf_counter() - began)
    rate = chunk.plan.samples_per_chunk / float(np.median(times))
    found = {"gigaflops": max(before, gigaflops_of_machine()), "minutes_per_million": 1e6 / rate / 60}
    return found | {"samples_per_second": rate, "cores": os.cpu_count() or 1, "data_dim": DATA_DIMS[curve.data]}


# ---- claim 8 ---------------------------------------------------------------------------------------------------------


def estimator_errors(lab: Laboratory) -> list[dict]:
    """Compare appendix D's estimate with quadrature or annealed importance sampling, by number of latent variables.

    Paper: App. D.
    """
    curves = [c for c in figure_curves(lab.profile, lab.seed, "figure-2", "figure-5") if c.learner == "aevb"]
    selected = [c for c in curves if c.data in ("mnist", "digits") and c.latent_dim <= 20]
    selected.sort(key=lambda curve: curve.latent_dim)
    lab.run(selected)
    return [lab.cached(f"estimator-J{c.latent_dim}", lambda c=c: _estimator_error(lab, c)) for c in selected]


def _estimator_error(lab, curve):
    (generative, recognition), data = learned_models(curve, lab.folder / "curves"), read_data(curve)
    x = data.source.read(jnp.asarray(data.eval_rows["test"][: lab.of_profile("estimator", "images")]))
    question = generative, recognition, x, jax.random.key(lab.seed)
    ours = log_likelihood(*question, method="hmc", num_samples=lab.of_profile("estimator", "num_samples"))
    if curve.latent_dim <= 2:
        truth = log_likelihood(*question, method="quadrature")
    else:
        options = {"num_samples": lab.of_profile("estimator", "temperatures")}
        options |= {"num_chains": lab.settings["estimator"]["num_chains"]}
        truth = log_likelihood(*question, method="ais", **options)
    errors = ours.values - truth.values
    return {
        "latent_dim": curve.latent_dim,
        "truth": truth.method,
        "images": len(errors),
        "error": float(errors.mean()),
        "std_error": float(errors.std() / np.sqrt(len(errors))),
        "root_mean_square": float(np.sqrt(np.mean(errors**2))),
        "effort": ours.effort,
        "warnings": [*ours.warnings, *(f"{truth.method}: {text}" for text in truth.warnings)],
    }


# ---- claim 9 ---------------------------------------------------------------------------------------------------------


def pca(lab: Laboratory) -> dict[str, float]:
    """Compare a linear model of digits with PCA.

    Paper: §4.
    """
    table = lab.settings["linear"]
    epochs = table["epochs"][lab.profile]
    X = load_dataset("digits").rows
    return lab.cached("linear", lambda: compare_with_pca(X, table["latent_dim"], epochs, lab.seed))
