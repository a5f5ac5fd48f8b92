"""The families of q from cheap to expensive, and the cheapest that is good enough."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aevb.posterior.density import Density
from aevb.posterior.families import maximize_family
from aevb.posterior.gaussian import Gaussian, maximize
from aevb.posterior.start import Start
from aevb.posterior.student import Student
from aevb.posterior.weighing import Weighted, most_draws, weigh

FAMILIES = ("gaussian", "full-gaussian", "student-t", "low-rank", "flow")  # in the order in which they are tried
MATCHING_ROUNDS = 4  # of a Student t's moments
HOPELESS_GAP = 0.1  # nats that independence would cost a Gaussian with the curvature at the start
MAX_FLOW = 2000  # variables


@dataclass
class Trial:
    """One family that was tried, and how it came out."""

    family: str
    weighted: Weighted
    converged: bool
    stopped_because: str
    history: list[dict] = field(default_factory=list)
    num_recovered: int = 0
    gaussian: Gaussian | None = None  # what a next family starts from


@dataclass
class Search:
    """What the trials share.

    Args:
        density: The log density, of all data.
        steps_on: The density that steps are taken on: of all data, or of minibatches.
        start: Where to start.
        rng: Random generator.
        max_steps: Steps per family.
        watch: Called with a family and a row of its history.
    """

    density: Density
    steps_on: Any
    start: Start
    rng: np.random.Generator
    max_steps: int
    watch: Any

    def fit(self, family: str, before: Trial | None = None) -> Trial:
        """Fit one family, from the Gaussian of an earlier trial if there is one."""
        q = self.start.q if before is None or before.gaussian is None else before.gaussian
        if family in ("gaussian", "full-gaussian"):
            return self._gaussian(_as_diagonal(self.start.q) if family == "gaussian" else _as_full(q), family)
        if family == "student-t":
            before = before if before is not None and before.family == "full-gaussian" else self.fit("full-gaussian")
            return self._student(before)
        q = q if family == "flow" and not q.is_diagonal else _as_diagonal(q)
        q = q if q.is_diagonal else Gaussian.of_moments(q.mean, q.covariance())  # triangular: it keeps the order
        fit = maximize_family(
            self.density, family, q, int(self.rng.integers(2**31)), self.max_steps, lambda row: self.watch(family, row)
        )
        weighted = weigh(self.density, fit.q, self.rng)
        return Trial(family, weighted, fit.converged, fit.stopped_because, fit.history, 0, q)

    def _gaussian(self, q, family):
        fit = maximize(self.steps_on, q, self.rng, self.max_steps, lambda row: self.watch(family, row))
        weighted = weigh(self.density, fit.q, self.rng)
        found = Trial(family, weighted, fit.converged, fit.stopped_because, fit.history, fit.num_recovered)
        found.gaussian = fit.q
        return found

    def _student(self, before):
        rounds, now = [], Student.around(before.gaussian)
        for _ in range(MATCHING_ROUNDS):
            rounds.append(weigh(self.density, now, self.rng))
            if rounds[-1].would_be_enough(0):
                break
            now = Student.matched(rounds[-1].points, rounds[-1].weights, now)
        best = min(rounds, key=lambda weighted: weighted.score)
        found = Trial("student-t", best, before.converged, before.stopped_because, before.history, before.num_recovered)
        found.gaussian = best.q.gaussian()
        return found

    def order(self) -> list[str]:
        """Return the families worth trying for this model, from cheap to expensive."""
        D, q = self.density.size, self.start.q
        if (
            self.steps_on is not self.density
        ):  # minibatches: flows and low-rank Gaussians would read all data in each step
            return ["gaussian"] if q.is_diagonal or D == 1 else ["full-gaussian", "student-t"]
        if q.is_diagonal:
            return ["gaussian", "low-rank", *(["flow"] if D <= MAX_FLOW else [])]
        families = ["full-gaussian", "student-t", "flow"] if D > 1 else ["gaussian", "student-t"]
        return (["gaussian"] if D > 1 and _independence_gap(q) < HOPELESS_GAP else []) + families

    def choose(self) -> tuple[Trial, list[Trial]]:
        """Try families in order until one is good enough; return it, or the best one, and all that were tried."""
        tried: list[Trial] = []
        for family in self.order():
            before = tried[-1] if tried and tried[-1].family != "gaussian" else None
            tried.append(self.fit(family, before))
            most = most_draws(self.density) if family != "gaussian" else 0  # a full one is hardly more expensive
            if tried[-1].stopped_because == "interrupted" or tried[-1].weighted.would_be_enough(most):
                return tried[-1], tried
        return min(tried, key=lambda trial: trial.weighted.score), tried


def _independence_gap(q):
    """Return KL in nats from the best independent Gaussian to q: (sum of log precisions - log |precision|) / 2."""
    inverse = np.linalg.inv(q.factor)
    return float(np.log(np.sum(inverse**2, axis=0)).sum() / 2 + q.log_det())


def _as_diagonal(q):
    if q.is_diagonal:
        return q
    return Gaussian(q.mean, np.sum(np.linalg.inv(q.factor) ** 2, axis=0) ** -0.5)


def _as_full(q):
    return Gaussian(q.mean, np.diag(q.factor)) if q.is_diagonal else q
