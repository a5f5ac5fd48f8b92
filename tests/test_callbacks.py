import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from aevb import VAE, SequenceVAE, VAEClassifier, VAERegressor
from aevb.callbacks import Callbacks, MLflow, TensorBoard

X = np.random.default_rng(0).normal(size=(60, 3))
SMALL = {"latent_dim": 1, "hidden": (4,), "max_epochs": 3, "optimizer": "sgd", "progress": False}


class Recorder:
    def __init__(self):
        self.told = []

    def on_start(self, facts):
        self.told.append(("start", facts))

    def on_epoch(self, row):
        self.told.append(("epoch", row))

    def on_end(self, facts):
        self.told.append(("end", facts))

    def of(self, kind):
        return [facts for name, facts in self.told if name == kind]


def test_callbacks_see_the_history():
    """A function, and an object with all methods; changing a row does not change the history."""
    recorder, rows = Recorder(), []
    vae = VAE(**SMALL).fit(X, callbacks=[recorder, lambda row: rows.append(row.copy()) or row.clear()])
    assert [name for name, _ in recorder.told] == ["start", "epoch", "epoch", "epoch", "end"]
    assert recorder.of("epoch") == rows == vae.history_
    (start,), (end,) = recorder.of("start"), recorder.of("end")
    assert (start["model"], start["run"], start["max_epochs"], start["num_rows"]) == ("VAE", 1, 3, 48)
    assert start["parameters"]["hidden"] == (4,)
    assert (end["stopped_because"], end["history"]) == ("max_epochs", vae.history_)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("estimator", "data", "runs"),
    [
        (VAERegressor(**SMALL), (X, X[:, 0]), ["VAERegressor"]),
        (VAEClassifier(model="m1+m2", **SMALL), (X, np.arange(60) % 2), ["VAE", "VAEClassifier"]),
        (SequenceVAE(**SMALL), (X.reshape(10, 6, 3),), ["SequenceVAE"]),
    ],
    ids=["regressor", "classifier", "sequences"],
)
def test_every_estimator_calls_them_and_has_a_card(estimator, data, runs):
    recorder = Recorder()
    estimator.fit(*data, callbacks=recorder)
    assert [facts["model"] for facts in recorder.of("start")] == runs
    assert recorder.of("epoch")[-len(estimator.history_) :] == estimator.history_
    assert len(recorder.of("end")) == len(runs)
    assert f"{len(estimator.history_)} epochs" in estimator._repr_html_()


@pytest.mark.thorough
def test_a_second_start_is_told(monkeypatch):
    """Noise has no structure: no latent variable is active after the first run."""
    monkeypatch.setattr("aevb.vae.fitting.is_collapsed", lambda *_: True)
    recorder = Recorder()
    with pytest.warns(UserWarning, match="latent"):
        VAE(**SMALL | {"max_epochs": "auto"}).fit(X, callbacks=recorder)
    assert [facts["run"] for facts in recorder.of("start")] == [1, 2]
    assert len(recorder.of("end")) == 1


@pytest.mark.thorough
def test_an_error_ends_the_fit_and_an_interruption_keeps_the_model():
    recorder = Recorder()

    def fail(row):
        raise RuntimeError("mine")

    vae = VAE(**SMALL)
    with pytest.raises(RuntimeError, match="mine"):
        vae.fit(X, callbacks=[recorder, fail])
    assert not hasattr(vae, "model_")
    assert [facts["stopped_because"] for facts in recorder.of("end")] == ["failed"]

    def stop(row):
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    vae.fit(X, callbacks=stop)
    assert (vae.stopped_because_, len(vae.history_)) == ("interrupted", 2)


@pytest.mark.parametrize("given", [3, "tensorboard", TensorBoard, [print, None]])
def test_what_is_not_a_callback_is_refused(given):
    with pytest.raises(ValueError, match="is not a callback"):
        Callbacks(given)


@pytest.mark.thorough
def test_tensorboard_gets_numbers_by_group(monkeypatch, tmp_path):
    """With a writer like tensorboardX's, which is not among the packages of the tests."""
    calls = []

    class SummaryWriter:
        def __init__(self, folder):
            calls.append(("open", folder))

        def __getattr__(self, name):
            return lambda *arguments: calls.append((name, *arguments))

    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace(SummaryWriter=SummaryWriter))
    vae = VAE(**SMALL, validation_fraction=0.2).fit(X, callbacks=TensorBoard(tmp_path / "log"))
    assert (calls[0], calls[-1]) == (("open", str(tmp_path / "log")), ("close",))
    scalars = [call[1:] for call in calls if call[0] == "add_scalar"]
    for tag, name in (("training/lower_bound", "lower_bound"), ("validation/lower_bound", "validation_lower_bound")):
        assert [(value, step) for group, value, step in scalars if group == tag] == [
            (row[name], row["epoch"]) for row in vae.history_
        ]


@pytest.mark.thorough
def test_mlflow_gets_parameters_and_metrics(monkeypatch):
    calls = []

    class Module:
        def __getattr__(self, name):
            return lambda *arguments, **options: calls.append((name, arguments, options))

    monkeypatch.setitem(sys.modules, "mlflow", Module())  # whose active_run() is None
    vae = VAE(**SMALL).fit(X, callbacks=MLflow("mine"))
    names = [name for name, *_ in calls]
    assert names == ["active_run", "start_run", "log_params", *["log_metrics"] * 3, "set_tag", "end_run"]
    (parameters,) = calls[2][1]
    assert (parameters["model"], parameters["hidden"]) == ("'VAE'", "(4,)")
    assert all(len(value) <= 250 for value in parameters.values())
    (numbers,), options = calls[3][1:]
    assert numbers["lower_bound"] == vae.history_[0]["lower_bound"]
    assert options == {"step": 1}
    assert json.dumps(numbers)


@pytest.mark.thorough
def test_tensorboardx_writes_what_tensorboard_reads(tmp_path):
    """With the libraries themselves: the scalars of the log are the history."""
    pytest.importorskip("tensorboardX", reason="needs aevb[tensorboard], a part of aevb[dev]")
    vae = VAE(**SMALL, validation_fraction=0.2).fit(X, callbacks=TensorBoard(tmp_path))
    assert list(tmp_path.glob("events.out.tfevents.*"))
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="needs tensorboard")
    log = reader.EventAccumulator(str(tmp_path)).Reload()
    bounds = log.Scalars("validation/lower_bound")
    assert [event.step for event in bounds] == [1, 2, 3]
    expected = [row["validation_lower_bound"] for row in vae.history_]
    np.testing.assert_allclose([event.value for event in bounds], expected, rtol=1e-6)
    assert "training/lower_bound" in log.Tags()["scalars"]
    (text,) = log.Tensors("parameters/text_summary")
    assert b"| hidden | (4,) |" in text.tensor_proto.string_val[0]


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")  # of MLflow's own, about its stores
def test_mlflow_keeps_parameters_and_metrics(tmp_path, monkeypatch):
    """With the library itself, in a run of its own and inside of the user's."""
    mlflow = pytest.importorskip("mlflow", reason="needs aevb[mlflow]")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    vae = VAE(**SMALL).fit(X, callbacks=MLflow("mine"))
    assert mlflow.active_run() is None
    client = mlflow.MlflowClient()
    (run,) = client.search_runs(["0"])
    assert (run.info.run_name, run.info.status, run.data.tags["stopped_because"]) == ("mine", "FINISHED", "max_epochs")
    assert (run.data.params["hidden"], run.data.params["num_rows"]) == ("(4,)", "48")
    kept = client.get_metric_history(run.info.run_id, "lower_bound")
    assert [(each.step, each.value) for each in kept] == [(row["epoch"], row["lower_bound"]) for row in vae.history_]
    with mlflow.start_run(run_name="theirs") as theirs:
        VAE(**SMALL).fit(X, callbacks=MLflow())
        assert mlflow.active_run().info.run_id == theirs.info.run_id
    with pytest.raises(ZeroDivisionError):
        VAE(**SMALL).fit(X, callbacks=[MLflow("broken"), lambda row: 1 / 0])
    found = {each.info.run_name: each.info.status for each in client.search_runs(["0"])}
    assert found == {"mine": "FINISHED", "theirs": "FINISHED", "broken": "FAILED"}


@pytest.mark.parametrize(("adapter", "extra"), [(lambda: TensorBoard("log"), "tensorboard"), (MLflow, "mlflow")])
def test_what_an_adapter_needs_is_named(adapter, extra, monkeypatch):
    for name in ("tensorboardX", "torch", "torch.utils.tensorboard", "mlflow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match=rf"aevb\[{extra}\]"):
        adapter()
