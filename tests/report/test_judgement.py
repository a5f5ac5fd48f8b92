from types import SimpleNamespace

import pytest

from aevb.cli.wording import in_options
from aevb.report.judgement import hints, judge, written
from aevb.settings import Arguments

ACTIVE = {"value": 2, "of": 2}
LIKELIHOOD = {"value": -20.0, "median": -19.0, "std_error": 1.0, "std_error_of_sampling": 0.01}


def baseline(value, advantage, std_error=0.5):
    return {"value": value, "std_error": 1.0, "chosen": "", "advantage": advantage, "advantage_std_error": std_error}


def test_a_model_far_below_independent_columns_is_flagged_with_the_cause():
    bound = {"value": -1.7e10, "median": -12.0, "std_error": 1e9}
    comparison = {"independent_gaussians": -27.0}
    metrics = {"held_out_lower_bound": bound, "comparison": comparison, "active_units": ACTIVE}
    (said,) = judge(metrics)
    assert "worse than independent columns" in said
    assert "-1.7e+10 against -27.0 nats per row" in said
    assert "the median row has -12.0" in said
    metrics["held_out_lower_bound"] = bound | {"value": float("nan")}
    assert "worse than independent columns" in judge(metrics)[0]
    metrics["held_out_lower_bound"] = bound | {"value": -26.0}
    assert judge(metrics) == []


@pytest.mark.parametrize(("advantage", "is_said"), [(1.5, True), (0.9, False), (-1.0, False)])
def test_a_better_baseline_is_named_if_it_is_better_by_two_standard_errors(advantage, is_said):
    models = {
        "independent columns": baseline(-25.0, -5.0),
        "Gaussian mixture": baseline(-20.0 + advantage, advantage) | {"chosen": "2 components"},
    }
    metrics = {"held_out_log_likelihood": LIKELIHOOD, "baselines": {"models": models}, "active_units": ACTIVE}
    said = " ".join(judge(metrics))
    assert ("Gaussian mixture (2 components) with" in said) == is_said
    metrics["baselines"]["discrete_columns"] = 1  # whose densities are unbounded
    assert judge(metrics) == []


def test_log_p_is_compared_with_baselines_and_not_the_bound():
    """The bound alone is below independent columns; log p(x), which the baselines are compared with, is not."""
    bound = {"value": -30.0, "median": -30.0, "std_error": 1.0}
    models = {"independent columns": baseline(-25.0, -5.0)}
    metrics = {"held_out_lower_bound": bound, "held_out_log_likelihood": LIKELIHOOD, "active_units": ACTIVE}
    assert judge(metrics | {"baselines": {"models": models}}) == []


def test_a_collapsed_model_is_named():
    assert "No latent variable is active" in judge({"active_units": {"value": 0, "of": 3}})[0]


def test_readable_numbers():
    assert [written(value) for value in (-153.84, 1234567.0, -999999.0)] == ["-153.8", "1.2e+06", "-999,999.0"]
    assert written(float("nan")) == "nan"


@pytest.mark.parametrize(
    ("arguments", "latent_dim", "are_pictures", "is_said"),
    [({}, 2, True, True), ({"latent_dim": 2}, 2, True, False), ({}, 10, True, False), ({}, 2, False, False)],
)
def test_more_latent_variables_are_advised_for_pictures_if_their_number_was_not_chosen(
    arguments, latent_dim, are_pictures, is_said
):
    model = SimpleNamespace(arguments=Arguments(**arguments), latent_dim=latent_dim)
    said = hints(model, are_pictures=are_pictures)
    assert bool(said) == is_said
    assert all("--latent-dim 20" in in_options(hint) for hint in said)
