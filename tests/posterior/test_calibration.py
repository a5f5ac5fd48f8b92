"""Simulation-based calibration: ranks of true values among posterior draws are uniform if the posterior is right.

Talts, Betancourt, Simpson, Vehtari and Gelman, "Validating Bayesian inference algorithms with simulation-based
calibration" (2018). One density is compiled for all simulated data sets, whose shapes are equal. 1,000 simulations for
three models; a chi-squared test of 20 bins per variable, with a false-alarm rate of 1e-4 for each; seeds are fixed.
"""

from functools import partial
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.distributions import constraints
from scipy.stats import chi2

from aevb.models import LogJoint, describe
from aevb.posterior.chains import NUM_CHAINS, make_round, rounds_of
from aevb.posterior.curvature import polish
from aevb.posterior.density import Density
from aevb.posterior.gaussian import Gaussian
from aevb.posterior.selection import Search
from aevb.posterior.start import find_start
from aevb.posterior.weighing import resampled, weigh

pytestmark = pytest.mark.slow

NUM_SIMULATIONS, NUM_BINS, NUM_RANKED = 1000, 20, 99
AT_ONCE = 50  # simulations whose chains move in one program


def normal(v, x):
    prior = dist.Normal(0, 2).log_prob(v["mu"]) + dist.LogNormal(0, 0.5).log_prob(v["sigma"])
    return prior + dist.Normal(v["mu"], v["sigma"]).log_prob(x).sum()


def regression(v, y):
    prior = dist.Normal(0, 1).log_prob(v["beta"]).sum()
    return prior + dist.BernoulliLogits(PREDICTORS @ v["beta"]).log_prob(y).sum()


def hierarchy(v, y):
    prior = dist.Normal(0, 2).log_prob(v["mu"]) + dist.LogNormal(0, 0.5).log_prob(v["tau"])
    prior += dist.Normal(0, 1).log_prob(v["eta"]).sum()
    return prior + dist.Normal(v["mu"] + v["tau"] * v["eta"][:, None], 1).log_prob(y).sum()


PREDICTORS = np.column_stack([np.ones(20), np.linspace(0, 2, 20)])


def simulate_normal(rng):
    v = {"mu": rng.normal(0, 2), "sigma": rng.lognormal(0, 0.5)}
    return v, rng.normal(v["mu"], v["sigma"], size=10)


def simulate_regression(rng):
    beta = rng.normal(size=2)
    return {"beta": beta}, (rng.random(20) < 1 / (1 + np.exp(-PREDICTORS @ beta))).astype(float)


def simulate_hierarchy(rng):
    v = {"mu": rng.normal(0, 2), "tau": rng.lognormal(0, 0.5), "eta": rng.normal(size=4)}
    return v, rng.normal((v["mu"] + v["tau"] * v["eta"])[:, None], 1, size=(4, 3))


POSITIVE = constraints.positive
CASES = {
    "normal": (normal, simulate_normal, {"mu": (), "sigma": POSITIVE}),
    "regression": (regression, simulate_regression, {"beta": (2,)}),
    "hierarchy": (hierarchy, simulate_hierarchy, {"mu": (), "tau": POSITIVE, "eta": (4,)}),
}


def ranks(case, family, refine=False, num=NUM_SIMULATIONS):
    """Return the ranks of the true values among draws, (simulations, numbers), from 0 to 99."""
    log_joint, simulate, variables = CASES[case]
    rng = np.random.default_rng(0)
    density: Any = None

    def simulations():
        nonlocal density
        for number in range(num):
            truth, data = simulate(rng)
            if density is None:
                density = Density(LogJoint(log_joint), describe(variables), data, 1)
            density.data = data
            if family == "laplace":
                q = Gaussian(*polish(density, np.zeros(density.size))[:2])
                yield number, truth, data, weigh(density, q, rng, 64)
                continue
            search = Search(density, density, find_start(density, rng), rng, 2000, lambda *_: None)
            yield number, truth, data, (search.choose()[0] if family == "auto" else search.fit(family)).weighted

    def rank(truth, points):
        draws = density.constrain(points)
        return np.concatenate([np.ravel(np.sum(draws[name] < truth[name], axis=0)) for name in truth])

    if refine:
        return np.array([rank(truth, points) for truth, points in refined(simulations(), lambda: density, rng)])
    found = []
    for _, truth, _, weighted in simulations():
        if family == "auto":
            points = weighted.points[resampled(weighted.weights, NUM_RANKED, rng)]
        else:
            points = weighted.q.draw(rng, NUM_RANKED)[0]
        found.append(rank(truth, points))
    return np.array(found)


def refined(simulations, density, rng):
    """Yield true values and draws of chains: those of many simulations take turns, all of them in one program."""
    running, program = [], None
    while True:
        while len(running) < AT_ONCE and (new := next(simulations, None)) is not None:
            number, truth, data, weighted = new
            starts = weighted.points[resampled(weighted.weights, NUM_CHAINS, rng)]
            rounds = rounds_of(density(), weighted.q, starts, number, enough=600)
            running.append([rounds, next(rounds), truth, data])
        if not running:
            return
        if program is None:
            program = jax.jit(jax.vmap(partial(make_round, density())))
        asked = [(now.positions, data, now.coordinates, now.key, now.step_size) for _, now, _, data in running]
        asked += asked[:1] * (AT_ONCE - len(asked))  # one shape for all calls
        with density().precision():
            keys = jax.numpy.stack([one[3] for one in asked])
            rest = jax.tree.map(lambda *parts: np.stack(parts), *[(*one[:3], one[4]) for one in asked])
            results = jax.tree.map(np.asarray, program(*rest[:3], keys, rest[3]))
        still = []
        for place, (rounds, _, truth, data) in enumerate(running):
            try:
                still.append([rounds, rounds.send([part[place] for part in results]), truth, data])
            except StopIteration as end:
                points = end.value.points.reshape(-1, density().size)
                yield truth, points[rng.choice(len(points), NUM_RANKED, replace=False)]
        running = still


def p_values(found):
    """Return the p-value of uniform ranks for each number."""
    expected = len(found) / NUM_BINS
    counts = np.array([np.bincount(column * NUM_BINS // (NUM_RANKED + 1), minlength=NUM_BINS) for column in found.T])
    return chi2.sf(np.sum((counts - expected) ** 2, axis=1) / expected, NUM_BINS - 1)


@pytest.mark.parametrize("case", list(CASES))
def test_weighted_draws_are_calibrated(case):
    assert (p_values(ranks(case, "auto")) > 1e-4).all()


@pytest.mark.parametrize("case", list(CASES))
def test_chains_are_calibrated(case):
    """The chains start from the Gaussian at the mode: a better q would only make them start closer."""
    assert (p_values(ranks(case, "laplace", refine=True)) > 1e-4).all()


def test_the_narrowness_of_mean_field_is_seen():
    """The mean and the effects of the groups are correlated: true values are too often outside of q."""
    found = ranks("hierarchy", "gaussian")
    assert p_values(found).min() < 1e-10
    extreme = np.mean((found < 5) | (found >= 95), axis=0)
    assert extreme.max() > 0.15  # 10% if calibrated
