"""`fit(checkpoint=...)`: a killed run resumes where it stopped."""

import multiprocessing
import signal
import time

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import optax
import pytest

from aevb import VAE
from aevb.training import feed
from aevb.training.checkpoint import read_about, samples_saved

X = (np.random.default_rng(0).random((400, 6)) < [0.1, 0.9, 0.5, 0.2, 0.7, 0.4]).astype(np.float32)
SMALL = {"latent_dim": 2, "hidden": (4,), "batch_size": 20, "max_epochs": 6, "progress": False}


def same(one, other):
    np.testing.assert_array_equal(one.transform(X), other.transform(X))
    np.testing.assert_array_equal(one.sample(5), other.sample(5))
    assert one.stopped_because_ == other.stopped_because_
    assert [{**row, "seconds": 0} for row in one.history_] == [{**row, "seconds": 0} for row in other.history_]


def test_a_run_resumed_with_more_epochs_gives_the_same_result(tmp_path):
    VAE(**SMALL).set_params(max_epochs=2).fit(X, checkpoint=tmp_path)
    again = VAE(**SMALL).fit(X, checkpoint=tmp_path)
    same(again, VAE(**SMALL).fit(X))


@pytest.mark.parametrize(
    ("arguments", "data", "words"),
    [
        ({"hidden": (5,)}, X, "arguments"),
        ({}, 1 - X, "data"),
        ({}, X[:-1], "data"),
        ({"random_state": 1}, X, "arguments"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, arguments, data, words):
    VAE(**SMALL).set_params(max_epochs=1).fit(X, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=f"belongs to another run: its {words}"):
        VAE(**{**SMALL, **arguments}).fit(data, checkpoint=tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "before", "now"),
    [
        ("prior", dist.Normal(jnp.zeros(2), 1.0).to_event(1), dist.Normal(jnp.full(2, 5.0), 1.0).to_event(1)),
        ("optimizer", optax.adam(1e-3), optax.adam(1e-1)),
    ],
)
def test_a_different_custom_part_is_another_run(name, before, now, tmp_path):
    short = {**SMALL, "max_epochs": 1, "latent_dim": 2}
    VAE(**short, **{name: before}).fit(X, checkpoint=tmp_path)
    VAE(**short, **{name: before}).fit(X, checkpoint=tmp_path)
    for other in ({name: now}, {}):
        words = rf"belongs to another run: its (own parts|arguments) differ: {name} was"
        with pytest.raises(ValueError, match=words):
            VAE(**short, **other).fit(X, checkpoint=tmp_path)


def test_a_different_chunk_length_is_another_run(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(feed, "MAX_CHUNK_STEPS", 3)
        VAE(**SMALL).set_params(max_epochs=1).fit(X, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="belongs to another run: its data was"):
        VAE(**SMALL).fit(X, checkpoint=tmp_path)


@pytest.mark.thorough
def test_an_infinite_held_out_bound_gives_a_warning_and_can_be_resumed(tmp_path):
    rows = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)
    held_out = rows[:20].copy()
    held_out[3, 2] = 1e25
    with pytest.warns(RuntimeWarning, match="held-out bound of epoch 1 is not finite"):
        VAE(**SMALL).set_params(max_epochs=1).fit(rows, validation_data=held_out, checkpoint=tmp_path)
    with pytest.warns(RuntimeWarning, match="held-out bound of epoch 2 is not finite"):
        vae = VAE(**SMALL).set_params(max_epochs=2).fit(rows, validation_data=held_out, checkpoint=tmp_path)
    assert [row["epoch"] for row in vae.history_] == [1, 2]
    assert np.isfinite(vae.transform(rows)).all()


def test_runs_that_could_not_be_resumed_are_refused(tmp_path):
    with pytest.raises(ValueError, match="integer random_state"):
        VAE(**SMALL, random_state=None).fit(X, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="data that can be read again"):
        VAE(**SMALL).fit(iter([X, X]), checkpoint=tmp_path)
    with pytest.raises(ValueError, match="checkpoint_seconds=-1"):
        VAE(**SMALL).fit(X, checkpoint=tmp_path, checkpoint_seconds=-1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_a_run_on_a_file_read_in_pieces_is_resumed_too(tmp_path, monkeypatch):
    monkeypatch.setattr("aevb.data.training_data.IN_MEMORY_BYTES", 1000)
    monkeypatch.setattr("aevb.data.chunks.CHUNK_BYTES", 2400)
    np.save(tmp_path / "X.npy", X)
    small, folder = {**SMALL, "max_epochs": 3}, tmp_path / "run"
    VAE(**small).set_params(max_epochs=1).fit(tmp_path / "X.npy", checkpoint=folder)
    same(VAE(**small).fit(tmp_path / "X.npy", checkpoint=folder), VAE(**small).fit(tmp_path / "X.npy"))
    np.save(tmp_path / "X.npy", np.concatenate([X[:7], 1 - X[7:8], X[8:]]))  # one changed row means different data
    with pytest.raises(ValueError, match="belongs to another run: its data"):
        VAE(**small).fit(tmp_path / "X.npy", checkpoint=folder)


def test_a_failed_save_ends_the_run_and_keeps_the_model_so_far(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("aevb.training.checkpoint.write_state", fail)
    vae = VAE(**SMALL)
    with pytest.raises(OSError, match="No space left") as error:
        vae.fit(X, checkpoint=tmp_path / "run", checkpoint_seconds=0)
    assert "could not be saved" in error.value.__notes__[0]
    assert "keeps what it learned" in error.value.__notes__[1]
    assert len(vae.history_) == 1
    assert np.isfinite(vae.transform(X)).all()


PROGRAM = f"""
from aevb import VAE
from aevb.training import feed
feed.MAX_CHUNK_STEPS = 3
VAE(**{ {**SMALL, "max_epochs": 10**6, "patience": None}!r}).fit(X, checkpoint=folder, checkpoint_seconds=0)
"""


@pytest.mark.slow
def test_a_run_killed_two_hundred_times_gives_the_same_result(tmp_path, monkeypatch):
    """At random moments, most of them during a save: every checkpoint is readable, and the result is the same."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "programs"))
    forks = multiprocessing.get_context(
        "forkserver"
    )  # it forks a process that has imported everything, and computed nothing
    forks.set_forkserver_preload(["aevb.vae", "aevb.training.loop", "numpyro", "optax", "sklearn.utils.validation"])
    folder, chance, saved, half_written = tmp_path / "run", np.random.default_rng(0), 0, 0
    for _ in range(200):
        process = forks.Process(target=exec, args=(PROGRAM, {"X": X, "folder": folder}))
        process.start()
        while process.is_alive() and samples_saved(folder) <= saved:
            time.sleep(0.001)
        time.sleep(chance.random() * 0.1)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        before, saved = saved, samples_saved(folder)
        assert saved > before
        half_written += any(folder.glob(".chunk-*"))
        for path in folder.glob("chunk-*"):
            read_about(path)
    assert half_written > 10
    monkeypatch.setattr(feed, "MAX_CHUNK_STEPS", 3)
    setting = {**SMALL, "max_epochs": saved // 360 + 2, "patience": None}
    same(VAE(**setting).fit(X, checkpoint=folder), VAE(**setting).fit(X))
