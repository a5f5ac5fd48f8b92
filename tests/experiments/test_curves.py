"""A curve can be interrupted anywhere without changing its result."""

import json

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

from aevb.experiments import curves
from aevb.experiments.curves import learned_models, run_curve, samples_done
from aevb.experiments.settings import Curve

pytestmark = pytest.mark.thorough

SMALL = {
    "data": "digits",
    "latent_dim": 2,
    "hidden": 8,
    "likelihood": "bernoulli",
    "metric": "lower-bound",
    "num_evaluated": 20,
}


def curve(learner="aevb", **changes):
    return Curve(**{**SMALL, "learner": learner, "samples": (1600, 4800), "step_sizes": (0.1,), **changes})


def arrays(folder, which):
    return load_file(folder / f"{which.name}.safetensors")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return folder, run_curve(curve(), folder)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_a_resumed_curve_equals_an_uninterrupted_one(whole, tmp_path, chunk):
    def interrupt(_, about):
        if about["chunks"] == chunk:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_curve(curve(), tmp_path, interrupt)
    assert samples_done(curve(), tmp_path) == chunk * 1600
    found = run_curve(curve(), tmp_path)

    folder, expected = whole
    assert [point["test"] for point in found["points"]] == [point["test"] for point in expected["points"]]
    for name, array in arrays(folder, curve()).items():
        np.testing.assert_array_equal(arrays(tmp_path, curve())[name], array, err_msg=name)


def test_a_curve_interrupted_during_evaluation_is_evaluated_again(whole, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setitem(curves.METRICS, "lower-bound", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run_curve(curve(), tmp_path)
    found = run_curve(curve(), tmp_path)
    assert [point["samples"] for point in found["points"]] == [point["samples"] for point in whole[1]["points"]]


def test_a_finished_curve_is_not_run_again(whole, monkeypatch):
    folder, expected = whole
    monkeypatch.setattr(curves, "start", None)
    assert run_curve(curve(), folder) == expected


def test_points_are_evaluated_at_the_first_chunk_that_reaches_them(whole):
    folder, found = whole
    assert [point["samples"] for point in found["points"]] == [1600, 4800]  # chunks of 16 steps of 100
    assert found["step_size"] == 0.1
    assert json.loads(json.dumps(found)) == found
    generative, _ = learned_models(curve(), folder)
    assert generative.decoder(jax.numpy.zeros(2)).mean.shape == (64,)


def test_learning_improves_the_metric(whole):
    first, last = whole[1]["points"]
    for part in ("train", "test"):
        assert last[part]["mean"] > first[part]["mean"]
        assert 0 < last[part]["std_error"] < 2
