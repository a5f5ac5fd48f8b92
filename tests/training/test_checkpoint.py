"""A run interrupted anywhere resumes with the same result, whatever happened to its files."""

import errno
import itertools
import os
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest
from sklearn.datasets import load_digits

from aevb.learners import AEVB, MCEM, FullVB, WakeSleep
from aevb.models import BayesianGenerativeModel, split, standard_models
from aevb.networks import initialize
from aevb.training import Resident, Source, feed, loop, reports, train_on
from aevb.training.checkpoint import FORMAT, Checkpoints, locked, samples_saved
from aevb.training.reading_ahead import FeedError
from aevb.training.state_file import CheckpointError, read_about, read_state, write_state

X = (load_digits().data / 16).astype(np.float32)[:300, ::4]
ROWS, HELD_OUT = np.arange(240), np.arange(240, 300)
EPOCHS, STEPS = 3, 8  # eight steps per epoch, in two chunks
PURPOSE = {"settings": {"latent_dim": 2}, "data": "digits"}


@pytest.fixture(autouse=True)
def _short_chunks(monkeypatch):
    monkeypatch.setattr(feed, "MAX_CHUNK_STEPS", 4)


def start(kind):
    generative, recognition = initialize(standard_models(16, 2, (4,), "bernoulli"), jax.random.key(0))
    if kind is FullVB:
        generative = BayesianGenerativeModel(generative)
    models = generative, None if kind is MCEM else recognition
    learner = kind(split(models).skeleton, len(ROWS))
    return learner, learner.init(models, 1e-2, jax.random.key(0))


def run(kind, checkpoints=None, epochs=EPOCHS, **options):
    learner, state = start(kind)
    held_out = None if kind is MCEM else HELD_OUT
    data = Resident(Source(X), ROWS, 30, held_out)
    return train_on(learner, state, data, key=jax.random.key(1), max_epochs=epochs, checkpoints=checkpoints, **options)


def without_time(history):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in history]


class CutError(Exception):
    pass


class Cut(Checkpoints):
    """Saves after every chunk, and fails after the n-th one."""

    def __init__(self, folder, number):
        super().__init__(folder, PURPOSE, every=0.0)
        self.number = number

    def offer(self, position):
        super().offer(position)
        if position.next_chunk == self.number:
            raise CutError


@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        (AEVB, 4),
        *(pytest.param(kind, 1, marks=pytest.mark.slow) for kind in (AEVB, WakeSleep, MCEM, FullVB)),
    ],
)
def test_a_run_interrupted_after_any_chunk_resumes_with_the_same_result(kind, steps, tmp_path, monkeypatch):
    monkeypatch.setattr(feed, "MAX_CHUNK_STEPS", steps)
    whole = run(kind)
    for number in range(1, EPOCHS * STEPS // steps + 1):
        folder = tmp_path / str(number)
        with pytest.raises(CutError):
            run(kind, Cut(folder, number))
        found = run(kind, Checkpoints(folder, PURPOSE))
        assert eqx.tree_equal(found.state, whole.state), number
        assert without_time(found.history) == without_time(whole.history)
        assert found.stopped_because == whole.stopped_because


def test_a_finished_run_is_not_run_again(tmp_path):
    first = run(AEVB, Checkpoints(tmp_path, PURPOSE))
    again = run(AEVB, Checkpoints(tmp_path, PURPOSE), callback=lambda row: pytest.fail("an epoch was run"))
    assert eqx.tree_equal(again.state, first.state)
    assert len(run(AEVB, Checkpoints(tmp_path, PURPOSE), epochs=EPOCHS + 1).history) == EPOCHS + 1


class Interrupted(Checkpoints):
    """Is interrupted by Ctrl-C after the n-th chunk, long before it would save."""

    def __init__(self, folder, number):
        super().__init__(folder, PURPOSE, every=1e9)
        self.number = number

    def offer(self, position):
        if position.next_chunk == self.number:
            raise KeyboardInterrupt


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_interrupted_run_is_saved_at_once(number, tmp_path):
    cut, whole = run(AEVB, Interrupted(tmp_path, number)), run(AEVB)
    assert cut.stopped_because == "interrupted"
    assert len(cut.history) == 1  # for the first epoch, although it was not finished
    found = run(AEVB, Checkpoints(tmp_path, PURPOSE))
    assert eqx.tree_equal(found.state, whole.state)
    assert without_time(found.history) == without_time(whole.history)


def test_early_stopping_survives_a_checkpoint(tmp_path):
    whole = run(AEVB, epochs=40, patience=1)
    with pytest.raises(CutError):
        run(AEVB, Cut(tmp_path, 2 * len(whole.history) - 1), epochs=40, patience=1)
    found = run(AEVB, Checkpoints(tmp_path, PURPOSE), epochs=40, patience=1)
    assert without_time(found.history) == without_time(whole.history)
    assert eqx.tree_equal(found.state, whole.state)


def test_only_the_last_few_are_kept(tmp_path):
    run(AEVB, Checkpoints(tmp_path, PURPOSE, every=0.0, keep=2))
    assert len(list(tmp_path.glob("chunk-*"))) == 2


def test_two_runs_do_not_share_a_folder(tmp_path):
    checkpoints = Checkpoints(tmp_path, PURPOSE)
    with checkpoints.locked(), pytest.raises(CheckpointError, match="another run is using it right now"):
        run(AEVB, Checkpoints(tmp_path, PURPOSE), epochs=1)
    run(AEVB, checkpoints, epochs=1)


def test_a_damaged_file_is_skipped(tmp_path):
    run(AEVB, Checkpoints(tmp_path, PURPOSE, every=0.0))
    newest = max(tmp_path.glob("chunk-*"))
    data = bytearray(newest.read_bytes())
    data[-5] ^= 1
    newest.write_bytes(data)
    with pytest.warns(RuntimeWarning, match="damaged: its checksum is wrong. Resuming from the previous one"):
        found = run(AEVB, Checkpoints(tmp_path, PURPOSE))
    assert eqx.tree_equal(found.state, run(AEVB).state)


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES])
def test_a_temporarily_unreadable_file_is_not_treated_as_damaged(code, tmp_path, monkeypatch):
    run(AEVB, Checkpoints(tmp_path, PURPOSE), epochs=1)
    before = sorted(tmp_path.iterdir())

    def fail(path):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("pathlib.Path.read_bytes", fail)
    for read in (lambda: run(AEVB, Checkpoints(tmp_path, PURPOSE)), lambda: samples_saved(tmp_path)):
        with pytest.raises(OSError, match=os.strerror(code)) as error:
            read()
        assert "cannot be read at the moment; it was not changed" in error.value.__notes__[0]
    assert sorted(tmp_path.iterdir()) == before


def test_old_checkpoints_that_cannot_be_deleted_are_left(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("aevb.training.checkpoint.keep_last", refuse)
        found = run(AEVB, Checkpoints(tmp_path, PURPOSE, every=0.0))
    assert found.error is None
    assert len(list(tmp_path.glob("chunk-*"))) > 3


def test_a_missing_argument_counts_as_none():
    checkpoints = Checkpoints("run", {"arguments": {"a": 1, "new": None}})
    checkpoints._check_purpose({"format": FORMAT, "arguments": {"a": 1}}, "file")
    with pytest.raises(CheckpointError, match="its arguments differ: new was 2, but is now None"):
        checkpoints._check_purpose({"format": FORMAT, "arguments": {"a": 1, "new": 2}}, "file")


def test_if_all_are_damaged_they_are_renamed_and_new_ones_are_kept(tmp_path):
    run(AEVB, Cut(tmp_path, 10**9))
    damaged = sorted(tmp_path.glob("chunk-*"))
    for path in damaged:
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(RuntimeWarning) as warned:
        found = run(AEVB, Checkpoints(tmp_path, PURPOSE, every=0.0))
    assert "There is no other: starting again" in str(warned[-1].message)
    assert eqx.tree_equal(found.state, run(AEVB).state)
    assert {path.name for path in tmp_path.glob("damaged-*")} == {f"damaged-{path.name}" for path in damaged}
    assert samples_saved(tmp_path) == EPOCHS * len(ROWS)


def test_leftovers_of_a_killed_save_are_deleted(tmp_path):
    (tmp_path / ".chunk-000000001-000000.safetensors.99").write_bytes(b"half of it")
    run(AEVB, Checkpoints(tmp_path, PURPOSE), epochs=1)
    assert [path.name for path in tmp_path.glob(".chunk-*")] == []


def test_a_file_system_without_locks_gives_a_warning(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def flock(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.warns(RuntimeWarning, match="cannot be locked"), locked(tmp_path):
        pass


def test_ctrl_c_during_the_last_save_keeps_the_model(tmp_path):
    class Impatient(Checkpoints):
        def save(self, position):
            raise KeyboardInterrupt

    found = run(AEVB, Impatient(tmp_path, PURPOSE, every=1e9))
    assert found.stopped_because == "interrupted"
    assert eqx.tree_equal(found.state, run(AEVB).state)


def test_a_run_is_saved_when_its_data_fail(tmp_path):
    class Failing(Resident):
        def chunks(self, key, epoch, first=0):
            for chunk in super().chunks(key, epoch, first):
                if chunk.number == 3:
                    raise FeedError(OSError(5, "Input/output error"))
                yield chunk

    learner, state = start(AEVB)
    data = Failing(Source(X), ROWS, 30, HELD_OUT)
    options = {"key": jax.random.key(1), "max_epochs": EPOCHS, "checkpoints": Checkpoints(tmp_path, PURPOSE)}
    failed = train_on(learner, state, data, **options)
    assert isinstance(failed.error, OSError)
    assert samples_saved(tmp_path) == 3 * 4 * 30  # three chunks of four batches
    assert eqx.tree_equal(run(AEVB, Checkpoints(tmp_path, PURPOSE)).state, run(AEVB).state)


def test_fewer_epochs_than_already_done_give_a_warning(tmp_path):
    whole = run(AEVB, Checkpoints(tmp_path, PURPOSE))
    with pytest.warns(UserWarning, match=f"the saved run has {EPOCHS} epochs"):
        found = run(AEVB, Checkpoints(tmp_path, PURPOSE), epochs=1)
    assert eqx.tree_equal(found.state, whole.state)


def test_the_structure_of_a_report_is_computed_once(tmp_path, monkeypatch):
    monkeypatch.setattr(feed, "MAX_CHUNK_STEPS", 2)
    with pytest.raises(CutError):
        run(AEVB, Cut(tmp_path, 3))
    seen = []
    monkeypatch.setattr(loop, "report_of_a_step", lambda *a: seen.append(1) or reports.report_of_a_step(*a))
    run(AEVB, Checkpoints(tmp_path, PURPOSE))
    assert len(seen) == 1


def test_another_runs_folder_is_refused(tmp_path):
    run(AEVB, Checkpoints(tmp_path, PURPOSE), epochs=1)
    with pytest.raises(CheckpointError, match=r"its settings differ: latent_dim was 2, but is now 3\. Choose another"):
        run(AEVB, Checkpoints(tmp_path, {**PURPOSE, "settings": {"latent_dim": 3}}), epochs=1)


def test_every_flipped_byte_and_every_truncation_is_detected(tmp_path):
    state = {"weights": np.arange(3, dtype=np.float32), "count": np.int32(7)}
    path = tmp_path / "state"
    write_state(path, state, {"chunks": 1})
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place])
        with pytest.raises(CheckpointError):
            read_state(path, state)
        flipped = bytearray(whole)
        flipped[place] ^= 1 << (place % 8)
        path.write_bytes(flipped)
        try:
            found = read_state(path, state)
        except CheckpointError:
            continue
        assert chr(whole[place]).isspace()  # padding of the header
        np.testing.assert_array_equal(found["weights"], state["weights"])


def test_a_state_with_another_structure_is_refused(tmp_path):
    state = {"weights": np.ones((2, 3), np.float32)}
    write_state(tmp_path / "state", state, {"chunks": 1})
    assert read_about(tmp_path / "state") == {"chunks": 1}
    np.testing.assert_array_equal(read_state(tmp_path / "state", state)["weights"], state["weights"])
    with pytest.raises(CheckpointError, match="weights"):
        read_state(tmp_path / "state", {"weights": np.ones((3, 2), np.float32)})


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_the_previous_checkpoint_is_intact_whichever_operation_fails(code, tmp_path, monkeypatch):
    old, new = ({"weights": np.full(3, value, np.float32)} for value in (1, 2))
    write = Path.write_bytes
    for number in itertools.count():
        path = tmp_path / f"state-{number}"
        write_state(path, old, {})
        calls = itertools.count()

        def failing(function, calls=calls, number=number):
            def operate(*arguments, **keywords):
                if next(calls) == number:
                    if function is write:
                        write(arguments[0], arguments[1][:50])  # half of it
                    raise OSError(code, os.strerror(code))
                return function(*arguments, **keywords)

            return operate

        with monkeypatch.context() as patch:
            for name in ("open", "fsync", "replace"):
                patch.setattr(os, name, failing(getattr(os, name)))
            patch.setattr("pathlib.Path.write_bytes", failing(write))
            try:
                write_state(path, new, {})
                has_failed = False
            except OSError as error:
                has_failed = error.errno == code
        found = float(read_state(path, old)["weights"][0])
        if next(calls) <= number:
            break
        assert has_failed
        assert found in (1.0, 2.0)
    assert number >= 5
