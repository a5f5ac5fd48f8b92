"""Advice that leads somewhere: each rung is a better one, and the ladder ends."""

import re

import numpy as np
import pytest

from aevb.inference.advice import LAST_WORD, Rung, advice, next_rung, reasons_for_doubt

STARTS = [Rung(method, effort) for method in ("importance", "laplace", "hmc", "ais") for effort in (2, 1000, 10**6)]
RANKS = {"importance": 0, "laplace": 1, "hmc": 1, "ais": 2, "quadrature": 3}


@pytest.mark.parametrize("latent_dim", [1, 2, 3, 5, 50])
@pytest.mark.parametrize("start", STARTS)
def test_the_ladder_of_methods_is_finite(start, latent_dim):
    rung, steps = start, 0
    while (following := next_rung(rung, latent_dim)) is not None:
        assert (RANKS[following.method], following.effort) > (RANKS[rung.method], rung.effort) or (
            following.method != rung.method and RANKS[following.method] > RANKS[rung.method]
        )
        # The defaults of a grid, which it reports.
        rung = Rung("quadrature", 257) if following == Rung("quadrature", 0) else following
        steps += 1
        assert steps < 12
    assert rung.method == ("quadrature" if latent_dim < 3 else "ais")
    assert advice(rung, latent_dim) == LAST_WORD


def test_the_ladder_in_words():
    rung, said = Rung("importance", 1000), []
    while rung is not None:
        said.append(advice(rung, 10))
        rung = next_rung(rung, 10)
    assert said == ["try method='laplace'", "try method='ais'", "try num_samples=10000", LAST_WORD]


@pytest.mark.parametrize("method", ["importance"])
def test_a_prior_with_limited_support_allows_only_importance_sampling(method):
    rung, seen = Rung(method, 1000), []
    while rung is not None:
        seen.append(rung)
        rung = next_rung(rung, 2, is_real=False)
    assert [(rung.method, rung.effort) for rung in seen] == [(method, 1000), (method, 10_000), (method, 100_000)]


@pytest.mark.parametrize(
    ("rung", "diagnostics", "words"),
    [
        (
            Rung("importance", 1000),
            {"k_hat": np.array([0.2, 0.9])},
            "at 1 of 2 datapoints k-hat is above 0.67: .*; try method='laplace'$",
        ),
        (Rung("hmc", 1000), {"r_hat": np.array([1.0, 1.2])}, "at 1 of 2 .*r-hat above 1.05.*; try method='ais'$"),
        (Rung("ais", 10_000), {}, "at 2 of 2 datapoints .*half a nat; no other method here does better"),
    ],
)
def test_doubts_name_the_next_rung(rung, diagnostics, words):
    (found,) = reasons_for_doubt(rung, 4, np.zeros(2), np.ones(2), diagnostics)
    assert re.search(words, found)


def test_a_coarse_grid_gets_more_points():
    (found,) = reasons_for_doubt(Rung("quadrature", 1000), 2, np.zeros(1), np.ones(1), {"num_points": np.array([65])})
    assert "try num_points=260" in found
