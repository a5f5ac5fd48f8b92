"""Each verdict is correct on numbers constructed for it."""

import pytest

from aevb.experiments.claims import verdicts
from aevb.experiments.claims.verdicts import FAILS, HOLDS, IN_PART


def variances(score_function, a=4.0, b=2.0, stage=0, data="mnist"):
    """Rows for L = 1 and 100: the variance of an average of L samples is the variance of one divided by L."""
    values = {"score-function": score_function, "sgvb-a": a, "sgvb-b": b}
    place = {"data": data, "stage": stage}
    return [{**place, "num_samples": L, **{name: value / L for name, value in values.items()}} for L in (1, 100)]


@pytest.mark.parametrize(("score_function", "expected"), [(2e4, HOLDS), (100.0, IN_PART), (4.0, FAILS)])
def test_the_score_function_must_also_lose_with_a_hundred_samples(score_function, expected):
    assert verdicts.score_function_is_impractical(variances(score_function)).verdict == expected


def test_the_first_claim_reports_ratios():
    because = verdicts.score_function_is_impractical(variances(2e4)).because
    assert "10,000 to 10,000 at equal L" in because
    assert "L = 100 against L = 1 for SGVB, still 100.0 or more" in because


@pytest.mark.parametrize(("late_a", "expected"), [(3.0, HOLDS), (1.0, IN_PART)])
def test_b_must_vary_less_at_every_stage(late_a, expected):
    rows = variances(1e4) + variances(1e4, a=late_a, stage=1000)
    assert verdicts.b_varies_less_than_a(rows).verdict == expected
    assert verdicts.b_varies_less_than_a(variances(1e4, a=1.0)).verdict == FAILS


@pytest.mark.parametrize(("gain_at_100", "expected"), [(0.5, HOLDS), (3.0, FAILS)])
def test_only_minibatches_of_about_100_decide_on_one_sample(gain_at_100, expected):
    rows = [
        {"batch_size": M, "num_samples": L, "bound": -120.0 + gain * (L > 1)}
        for M, gain in ((10, 50.0), (100, gain_at_100))
        for L in (1, 10)
    ]
    found = verdicts.one_sample_is_enough(rows)
    assert found.verdict == expected
    assert f"50.0 nats (M = 10), {gain_at_100:.1f} nats (M = 100)" in found.because


def curve(learner, bounds, latent_dim=2, data="mnist"):
    points = [{"samples": 10**n, "test": {"mean": bound, "std_error": 0.1}} for n, bound in enumerate(bounds)]
    return {"settings": {"learner": learner, "latent_dim": latent_dim, "data": data}, "points": points}


@pytest.mark.parametrize(
    ("aevb", "expected", "ahead"),
    [([-150, -110], HOLDS, 2), ([-170, -110], IN_PART, 1), ([-170, -130], FAILS, 0)],
)
def test_aevb_must_lead_at_every_point_and_at_the_end(aevb, expected, ahead):
    found = verdicts.aevb_beats_wake_sleep([curve("aevb", aevb), curve("wake-sleep", [-160, -120])])
    assert found.verdict == expected
    assert f"ahead at {ahead} of 2 points" in found.because


def test_only_equal_experiments_are_compared():
    curves = [curve("aevb", [-110]), curve("wake-sleep", [-120]), curve("wake-sleep", [-90], latent_dim=3)]
    assert "in 1 of 1 experiments" in verdicts.aevb_beats_wake_sleep(curves).because


@pytest.mark.parametrize(
    ("many", "expected"),
    [([-120, -108], HOLDS), ([-120, -115], IN_PART), ([-112, -125], FAILS)],
    ids=["better", "worse", "worse and falling"],
)
def test_more_latent_variables_must_not_lower_the_bound(many, expected):
    curves = [curve("aevb", [-120, -110]), curve("aevb", many, latent_dim=200)]
    assert verdicts.superfluous_latents_do_not_overfit(curves).verdict == expected


def test_a_decrease_that_few_latent_variables_also_show_does_not_count():
    curves = [curve("aevb", [-110, -114]), curve("aevb", [-105, -109], latent_dim=20)]
    assert verdicts.superfluous_latents_do_not_overfit(curves).verdict == HOLDS


@pytest.mark.parametrize(("aevb", "expected"), [((-140, -130), HOLDS), ((-160, -130), IN_PART), ((-160, -150), FAILS)])
def test_monte_carlo_em_must_be_behind_after_equal_computation(aevb, expected):
    rows = [{"core_seconds": 10.0 * n, "mcem": -145.0, "aevb": value} for n, value in enumerate(aevb, start=1)]
    assert verdicts.mcem_is_for_small_data(rows).verdict == expected


@pytest.mark.parametrize(("minutes", "expected"), [(1.0, HOLDS), (30.0, FAILS)])
def test_speed_is_scaled_to_forty_gigaflops(minutes, expected):
    found = verdicts.speed_is_as_stated(minutes, 80.0)
    assert found.verdict == expected
    assert f"{2 * minutes:.1f} minutes at 40 GFLOPS" in found.because


@pytest.mark.parametrize(
    ("errors", "expected"),
    [({2: 0.0, 3: 0.1, 5: 2.0, 10: 7.0}, HOLDS), ({2: 0.0, 10: 0.1}, IN_PART), ({2: -1.0, 10: 7.0}, FAILS)],
)
def test_the_estimator_must_be_accurate_below_five_dimensions_and_inaccurate_beyond(errors, expected):
    rows = [{"latent_dim": J, "error": error, "truth": "ais"} for J, error in errors.items()]
    assert verdicts.estimator_is_for_few_dimensions(rows).verdict == expected


@pytest.mark.parametrize(("angle", "shortfall", "expected"), [(1, 0.01, HOLDS), (40, 0.01, IN_PART), (40, 3.0, FAILS)])
def test_a_linear_model_must_span_the_subspace_of_pca(angle, shortfall, expected):
    assert verdicts.linear_models_are_pca(angle, shortfall).verdict == expected
