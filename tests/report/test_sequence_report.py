"""The report of a model of sequences: its numbers, its pictures, and what it says."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from aevb import SequenceVAE
from aevb.data.sequences import read_sequences
from aevb.data.series import SequenceData
from aevb.explorer.views import NUM_DRAWS, QUANTILES, _unit, padded_together, views_of
from aevb.fitted.sequences import lower_bound_terms, replicate
from aevb.report import write_report
from aevb.report.sequence_measures import (
    MEAN,
    NUM_SAMPLES,
    SUM,
    _judge,
    _ratio,
    bound_words,
    measure_sequences,
    ranking,
)
from aevb.report.sequence_pictures import _has_past, _past_views, _past_words
from aevb.report.series import plot_past_forecasts

pytestmark = pytest.mark.thorough
KINDS = {"level": "gaussian", "visits": "count", "open": "binary", "sky": "categorical"}


def frame_of(num, seed):
    rng = np.random.default_rng(seed)
    parts = []
    for name in range(num):
        length = int(rng.integers(5, 9))
        index = pd.MultiIndex.from_product([[f"shop <{name}>"], np.cumsum(rng.integers(1, 4, length))])
        level = rng.normal(10, 2, length)
        level[1] = np.nan
        sky = rng.choice(["sun", "rain", "snow"], length)
        values = {"level": level, "visits": rng.poisson(3, length), "open": rng.integers(0, 2, length), "sky": sky}
        parts.append(pd.DataFrame(values, index))
    return pd.concat(parts)


TRAIN, TEST = frame_of(12, 0), frame_of(3, 1)


@pytest.fixture(scope="module")
def model():
    settings = {"latent_dim": 2, "transition": "linear", "hidden": (), "recurrent_size": 4, "optimizer": "sgd"}
    settings |= {"learning_rate": 1e-4, "max_epochs": 2, "progress": False, "likelihood": KINDS}
    return SequenceVAE(**settings).fit(TRAIN)


@pytest.fixture(scope="module")
def data(model):
    encode, found = model.model_.format.encode, read_sequences(TEST)
    return SequenceData("Shops", "a split", encode(read_sequences(TRAIN)), encode(found), tuple(found.names))


def test_one_call_writes_the_report(model, tmp_path):
    path = write_report(model, TEST, tmp_path / "shops", X_train=TRAIN, title="Shops & more")

    page, names = path.read_text(encoding="utf-8"), {file.name for file in path.parent.iterdir()}
    assert {"reconstructions.png", "forecasts.png", "latent_paths.png", "learning_curve.svg", "history.csv"} <= names
    for said in ("Shops &amp; more", "nats per step", "sum of the bounds / sum of the lengths", "The states as paths"):
        assert said in page
    assert page.count("<img") == 4
    metrics = json.loads((path.parent / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["lower_bound"]["convention"] == SUM
    assert metrics["lower_bound_per_sequence"]["convention"] == MEAN
    with pytest.raises(ValueError, match="y: sequences have none"):
        write_report(model, TEST, tmp_path, y=[1, 2, 3])


def test_numbers_follow_their_conventions(model, data):
    metrics = measure_sequences(model.model_, data, 0)

    longest = max(data.test.lengths.max(), data.train.lengths[:3].max())
    bounds = lower_bound_terms(model.model_, padded_together(data.test, longest), NUM_SAMPLES).lower_bound
    assert metrics["lower_bound"]["value"] == pytest.approx(bounds.sum() / data.test.lengths.sum(), rel=1e-6)
    assert metrics["lower_bound_per_sequence"]["value"] == pytest.approx(np.mean(bounds / data.test.lengths), rel=1e-6)
    assert metrics["lower_bound"]["reconstruction"] - metrics["lower_bound"]["kl_divergence"] == pytest.approx(
        metrics["lower_bound"]["value"], rel=1e-4
    )
    assert metrics["log_likelihood"]["sequences"] == 3
    assert metrics["log_likelihood"]["independent_columns"] == metrics["independent_columns"]["value"]


def test_log_p_leads_and_the_bound_is_said_to_be_lower():
    """As of one series of which q(z|x) is poor: the bound is far below that of independent steps."""
    own = {"value": -0.8, "std_error": float("nan"), "sequences": 1, "method": "particle-filter"}
    own |= {"lower_bound": -8.4, "independent_columns": -4.3}
    title, entries = ranking({"held_out": False, "log_likelihood": own})
    assert title.startswith("log p(x) of 1 training sequence, nats per step")
    assert [entry["words"] for entry in entries] == [
        "independent columns and steps, no states", "this model, by particle filter"
    ]  # fmt: skip
    assert "here -8.400, lower by how far" in bound_words({"log_likelihood": own})
    assert "the estimate is too low" in bound_words({"log_likelihood": own | {"value": -9.0}})
    own |= {"value": -8.5, "std_error_of_sampling": 0.03, "lower_bound_std_error_of_sampling": 0.04}
    assert "equals this estimate within their sampling errors" in bound_words({"log_likelihood": own})
    assert "the estimate is too low" in bound_words({"log_likelihood": own | {"value": -8.6}})


def test_the_standard_error_is_that_of_a_ratio():
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 50, (4000, 30))
    values = -2.0 * lengths + np.sqrt(lengths) * rng.normal(size=lengths.shape)
    found = [_ratio(*pair) for pair in zip(values, lengths, strict=True)]

    assert _ratio(np.array([2.0, 4.0]), np.array([1, 3]))["value"] == 1.5
    # Of 4,000 repetitions: the standard error of a standard deviation is 1.1 %; the estimate is biased by about 2 %.
    spread = np.std([one["value"] for one in found])
    assert np.sqrt(np.mean([one["std_error"] ** 2 for one in found])) == pytest.approx(spread, rel=0.08)


def test_a_model_without_held_out_sequences_or_worse_than_none_is_warned_about():
    numbers = {
        "lower_bound": {"value": -3.0, "sequences": 2},
        "log_likelihood": {"value": -2.9, "lower_bound": -3.0, "independent_columns": -2.0},
        "independent_columns": {"value": -2.95},  # of more steps
    }

    better = numbers["log_likelihood"] | {"independent_columns": -2.95}
    assert not _judge(numbers | {"held_out": True, "log_likelihood": better, "independent_columns": {"value": -2.0}})
    found = _judge(numbers | {"held_out": False})
    assert "No sequence was held out" in found[0]
    assert "worse than independent columns and steps" in found[1]
    (only,) = _judge(numbers | {"held_out": False, "log_likelihood": better, "lower_bound": {"sequences": 1}})
    assert "There is one sequence" in only
    (only,) = _judge(numbers | {"held_out": True, "log_likelihood": better | {"lower_bound": -23.0}})
    assert only.startswith("q(z|x) is far from the posterior: the bound is 20.1 nats per step below log p(x)")


def test_views_show_the_data_in_their_units_and_bands_around_them(model, data):
    views = views_of(model.model_, data, most=2, steps=3)

    view, T = views.sequences[1], int(data.test.lengths[1])
    level, visits, is_open, sky = view.panels
    rows = TEST.loc[data.names[1]]
    np.testing.assert_allclose(level.observed[:, 0], rows["level"], rtol=1e-5)
    np.testing.assert_array_equal(visits.observed[:, 0], rows["visits"])
    np.testing.assert_array_equal(is_open.observed[:, 0], rows["open"])
    seen = np.array(sky.rows)[np.argmax(sky.observed, axis=1)]
    np.testing.assert_array_equal(seen, rows["sky"])
    for panel in (level, visits):
        assert panel.expected.shape == (T + 3, len(QUANTILES))
        assert (np.diff(panel.expected, axis=1) >= 0).all()
    np.testing.assert_allclose(sky.expected.sum(axis=1), 1, rtol=1e-6)
    gaps = np.diff(rows.index.to_numpy()) / model.model_.format.time_unit
    np.testing.assert_allclose(np.diff(view.positions), [*gaps, 1, 1, 1], rtol=1e-6)
    shown = padded_together(data.test.some(np.arange(2)))
    np.testing.assert_allclose(view.path, replicate(model.model_, shown, NUM_DRAWS)[2][1], rtol=1e-6)


def test_forecasts_of_the_last_steps_are_shown_beside_them(model, data, tmp_path):
    """Only the longest of the sequences are long enough; the model is not given the steps that it forecasts."""
    num, rng = 20, np.random.default_rng(2)
    index = pd.MultiIndex.from_product([["long"], np.arange(num)])
    values = {"level": rng.normal(10, 2, num), "visits": rng.poisson(3, num), "open": 1, "sky": "rain"}
    found = read_sequences(pd.concat([TEST, pd.DataFrame(values, index)]))
    encode = model.model_.format.encode
    long = replace(data, test=encode(found), names=tuple(found.names))
    views = _past_views(model.model_, long)
    (view,) = views.sequences
    assert (view.name, view.length, len(view.later)) == ("long", 18, 2)
    assert (view.positions[17], *view.later) == pytest.approx((0, *np.cumsum(long.test.elapsed[-1][18:])))
    np.testing.assert_allclose(view.panels[0].observed[:, 0], values["level"], rtol=1e-5)
    changed = long.test.values[-1].copy()
    changed[18:] = np.nan
    other = replace(long, test=long.test._replace(values=[*long.test.values[:-1], changed]))
    np.testing.assert_array_equal(
        _past_views(model.model_, other).sequences[0].panels[0].expected, view.panels[0].expected
    )
    plot_past_forecasts(views).savefig(tmp_path / "forecasts.png")
    views = views_of(model.model_, long, 4, 9, long.test.lengths - [1, 1, 1, 2])  # each to its own end
    for view in views.sequences:
        assert len(view.positions) == len(view.panels[0].expected) == view.length + np.ceil(view.later[-1])
        assert view.positions[-1] < view.later[-1] + 1
    assert _has_past(long)
    assert not _has_past(data)
    assert "did not see these sequences" in _past_words(model.model_, long)
    assert "trained on all of these steps" in _past_words(model.model_, replace(long, is_held_out=False))


def test_many_states_are_shown_by_their_principal_components():
    from aevb.explorer.views import _in_a_plane

    rng = np.random.default_rng(0)
    plane = rng.normal(size=(50, 2)) * [3, 1]
    directions = np.linalg.qr(rng.normal(size=(5, 5)))[0][:2]
    (path,), axes = _in_a_plane([plane @ directions + 7], None)

    distances = [np.linalg.norm(points[:, None] - points, axis=-1) for points in (path, plane)]
    np.testing.assert_allclose(*distances, atol=1e-8)
    assert axes[0].startswith("principal component 1 (8") or axes[0].startswith("principal component 1 (9")


def test_unused_notes_are_left_out_of_a_roll():
    from types import SimpleNamespace

    from aevb.explorer.views import _used_rows

    columns = [SimpleNamespace(column=SimpleNamespace(family="bernoulli"))] * 88
    roll = np.zeros((4, 88))
    roll[[0, 3], [20, 60]] = 1
    assert _used_rows(columns, SimpleNamespace(values=[roll])) == list(range(20, 61))


@pytest.mark.parametrize(
    ("dates", "unit"),
    [
        (np.arange("2020-01", "2021-01", dtype="M8[M]").astype("M8[s]"), "month"),
        (np.array(["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-05"], "M8[s]"), "day"),
        (np.array([0.0, 1.5, 3.0, 7.0]), "median gap"),
    ],
)
def test_units_of_irregular_times_have_names(dates, unit):
    times = [[str(value) for value in dates]]
    gap = float(np.median(np.diff(dates).astype(float)))
    assert _unit(gap, times) == unit
    assert _unit(None, times) == "step"
