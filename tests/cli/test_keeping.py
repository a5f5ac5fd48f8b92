"""Interrupted `aevb fit`: what was learned is kept, a message says where, and `--resume` continues it."""

import ctypes
import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from aevb import load
from aevb.cli import run
from aevb.data import load_dataset
from aevb.report.report import write_results
from aevb.training.checkpoint import locked
from aevb.training.diagnosis import DivergedError
from aevb.training.progress import Progress

DIGITS = load_dataset("digits").rows
WRITE_RESULTS = write_results
TINY = ["digits", "--latent-dim", "2", "--hidden", "10", "--quiet"]


@pytest.fixture(autouse=True)
def _few_pictures(monkeypatch):
    monkeypatch.setattr("aevb.report.report.write_results", lambda *_, **__: {"epochs": 0, "training_seconds": 0})
    monkeypatch.setattr("aevb.cli.learn.say_numbers", lambda *_: None)


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard():
    """Also if the tests run in the background, where the shell makes them ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_after(calls, monkeypatch, number=signal.SIGINT, then=lambda: None):
    """Send Ctrl-C, or another signal, after this many chunks."""
    seen = iter(range(10**9))

    def advance(self, samples, name, value):
        if next(seen) == calls - 1:
            try:
                signal.raise_signal(number)
            finally:
                then()

    monkeypatch.setattr(Progress, "advance", advance)


def same(one, other):
    np.testing.assert_array_equal(load(one / "model").transform(DIGITS), load(other / "model").transform(DIGITS))


def test_an_interrupted_run_resumes_with_the_same_result(tmp_path, monkeypatch, capsys):
    epochs = [*TINY[:-1], "--max-epochs", "4", "--out", str(tmp_path)]
    assert run(["fit", *epochs, "--name", "whole"]) == 0
    assert len(list((tmp_path / "whole" / "checkpoints").glob("chunk-*"))) == 1
    with monkeypatch.context() as patch:
        interrupt_after(2, patch)
        assert run(["fit", *epochs, "--name", "cut"]) == 130
    assert f"Continue with: aevb fit --resume {tmp_path / 'cut'}" in capsys.readouterr().out
    assert run(["fit", "--resume", str(tmp_path / "cut")]) == 0
    assert f"Resuming {tmp_path / 'cut'} after 2,800 samples." in capsys.readouterr().out
    same(tmp_path / "cut", tmp_path / "whole")
    assert (tmp_path / "cut" / "config.toml").read_text() == (tmp_path / "whole" / "config.toml").read_text().replace(
        "whole", "cut"
    )
    # A finished run continues with more epochs.
    assert run(["fit", "--resume", str(tmp_path / "cut"), "--max-epochs", "5"]) == 0
    assert len(load(tmp_path / "cut" / "model").history_) == 5


def test_a_second_ctrl_c_waits_until_the_model_is_saved(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("aevb.cli.interruptions.PATIENCE", 1e9)
    interrupt_after(2, monkeypatch, then=lambda: signal.raise_signal(signal.SIGINT))
    assert run(["fit", *TINY, "--out", str(tmp_path)]) == 130
    assert "contains the model" in capsys.readouterr().err
    assert load(tmp_path / "digits" / "model").stopped_because_ == "interrupted"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["digits"], "remove the data"),
        (["--latent-dim", "3"], "remove --latent-dim"),
        (["--config", "x.toml", "--name", "x"], "remove --config, --name"),
    ],
)
def test_a_resumed_run_refuses_other_settings(more, words, tmp_path, capsys):
    assert run(["fit", "--resume", str(tmp_path), *more]) == 2
    assert words in capsys.readouterr().err


def test_a_signal_inside_a_jax_callback_is_raised_again():
    from aevb.cli.interruptions import one_interruption

    def _xla_gc_callback():
        signal.raise_signal(signal.SIGINT)  # an exception here would be ignored

    with pytest.raises(KeyboardInterrupt), one_interruption():  # noqa: PT012
        _xla_gc_callback()
        threading.Event().wait()  # until the signal arrives


def test_a_signal_that_was_lost_can_be_sent_again(monkeypatch):
    """Python ignores what is raised in a callback of its memory management; then nothing has been interrupted."""
    from aevb.cli import interruptions

    monkeypatch.setattr(interruptions, "PATIENCE", 0.0)
    with pytest.raises(KeyboardInterrupt), interruptions.one_interruption():  # noqa: PT012
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)


def test_a_folder_that_is_not_a_run_cannot_be_resumed(tmp_path, capsys):
    assert run(["fit", "--resume", str(tmp_path / "nothing")]) == 2
    assert "is not a run folder" in capsys.readouterr().err
    assert run(["fit", *TINY, "--checkpoint-every", "-1", "--out", str(tmp_path)]) == 2
    assert "checkpoint_every=-1" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_two_simultaneous_runs_get_separate_folders(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    from aevb.runs import new_run_folder

    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: new_run_folder(tmp_path / "run"), range(40)))
    assert len(set(folders)) == 40


def fill_the_disk(monkeypatch, full):
    """Make writing any file in these folders fail."""
    from aevb import files

    sync = files._sync

    def failing(path):
        if any(str(path).startswith(str(folder)) for folder in full):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        sync(path)

    monkeypatch.setattr(files, "_sync", failing)


def test_a_full_disk_is_detected_before_any_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("aevb.vae.VAE.fit", lambda *_, **__: pytest.fail("it learned"))
    fill_the_disk(monkeypatch, [tmp_path])
    assert run(["fit", *TINY, "--out", str(tmp_path)]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fails", ["checkpoints", "model", "both"])
def test_the_model_is_saved_elsewhere_if_the_disk_fills_up(fails, tmp_path, monkeypatch, capsys):
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "digits"
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    full = [folder / name for name in ("checkpoints", "model") if fails in (name, "both")]
    fill_the_disk(monkeypatch, full)
    assert run(["fit", *TINY, "--max-epochs", "2", "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert said.count("\n") == 1
    kept = re.search(r"The model so far was saved to (\S+);", said)
    assert kept is not None
    assert kept[1].startswith(str(folder if fails == "checkpoints" else elsewhere))
    assert len(load(kept[1]).history_) == 2


def test_a_disk_that_fills_up_after_the_model_was_saved(tmp_path, monkeypatch, capsys):
    fill_the_disk(monkeypatch, [tmp_path / "digits" / ".history.csv"])
    assert run(["fit", *TINY, "--max-epochs", "2", "--out", str(tmp_path)]) == 2
    folder = tmp_path / "digits"
    assert f"The model is in {folder / 'model'}; aevb report {folder} writes the rest." in capsys.readouterr().err
    assert len(load(folder / "model").history_) == 2


def test_a_failed_command_resumes_when_there_is_space_again(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        fill_the_disk(patch, [tmp_path / "digits" / "model"])
        patch.setattr("tempfile.tempdir", str(tmp_path))
        assert run(["fit", *TINY, "--max-epochs", "2", "--out", str(tmp_path)]) == 2
    assert run(["fit", "--resume", str(tmp_path / "digits"), "--quiet"]) == 0
    assert load(tmp_path / "digits" / "model").stopped_because_ == "max_epochs"


def test_a_run_in_progress_is_not_disturbed(tmp_path, capsys):
    assert run(["fit", *TINY, "--max-epochs", "1", "--out", str(tmp_path)]) == 0
    folder = tmp_path / "digits"
    shutil.rmtree(folder / "model")
    for path in (folder / "checkpoints").glob("chunk-*"):
        path.unlink()  # as in its first minute
    before = (folder / "config.toml").read_text()
    with locked(folder / "checkpoints"):
        assert run(["fit", "--resume", str(folder), "--max-epochs", "3"]) == 2
    assert "another run is using it right now" in capsys.readouterr().err
    assert (folder / "config.toml").read_text() == before
    assert (folder / "checkpoints" / ".lock").exists()


@pytest.mark.parametrize("more", [["--checkpoint-every", "never"], []])
def test_a_finished_model_is_not_replaced_by_a_new_run(more, tmp_path, capsys):
    assert run(["fit", *TINY, "--max-epochs", "2", "--out", str(tmp_path), "--checkpoint-every", "never"]) == 0
    assert run(["fit", "--resume", str(tmp_path / "digits"), *more]) == 2
    said = capsys.readouterr().err
    assert ("remove --checkpoint-every never" if more else "no checkpoints to continue from") in said
    assert len(load(tmp_path / "digits" / "model").history_) == 2


def test_a_damaged_model_is_written_again(tmp_path, capsys):
    folder = tmp_path / "digits"
    assert run(["fit", *TINY, "--max-epochs", "2", "--out", str(tmp_path)]) == 0
    codes = load(folder / "model").transform(DIGITS)
    (arrays,) = (folder / "model").glob("*.safetensors")
    arrays.write_bytes(arrays.read_bytes()[:-1])
    assert run(["sample", str(tmp_path)]) == 2
    assert f"it has no config.toml. Runs in {tmp_path}: digits." in capsys.readouterr().err
    assert run(["sample", str(folder)]) == 2
    assert (
        f"its checksum is not the one in model.json. To write it again: aevb fit --resume {folder}"
        in capsys.readouterr().err
    )
    assert run(["fit", "--resume", str(folder)]) == 0
    np.testing.assert_array_equal(load(folder / "model").transform(DIGITS), codes)
    shutil.rmtree(folder / "checkpoints")
    arrays.write_bytes(b"")
    assert run(["sample", str(folder)]) == 2
    assert "--resume" not in capsys.readouterr().err


def test_a_closed_output_does_not_stop_a_run(tmp_path, monkeypatch):
    """As in `aevb fit ... 2>&1 | head -1`, or with a closed terminal."""

    def say_line(*_):
        raise BrokenPipeError

    monkeypatch.setattr("aevb.training.progress.LINE_SECONDS", 0.0)
    monkeypatch.setattr(Progress, "_say_line", say_line)
    monkeypatch.setattr("rich.status.Status.stop", say_line)
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as nobody:
        monkeypatch.setattr(sys, "stdout", nobody)
        assert run(["fit", *TINY[:-1], "--max-epochs", "2", "--out", str(tmp_path)]) == 0
        monkeypatch.setattr(sys, "stderr", nobody)
        assert run(["fit", "nothing.npy"]) == 2
    assert len(load(tmp_path / "digits" / "model").history_) == 2


@pytest.mark.thorough
@pytest.mark.parametrize("first", [None, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_the_model_is_saved(first, second, tmp_path, monkeypatch, capsys):
    from aevb import files
    from aevb.cli.interruptions import end_as_by_ctrl_c

    monkeypatch.setattr("aevb.cli.interruptions.PATIENCE", 1e9)
    before = signal.getsignal(signal.SIGTERM)
    end_as_by_ctrl_c()
    sync, sent = files._sync, []

    def signalled(path):
        if "model" in str(path) and not sent:
            sent.append(second)
            signal.raise_signal(second)
        sync(path)

    monkeypatch.setattr(files, "_sync", signalled)
    if first is not None:
        interrupt_after(2, monkeypatch, first)
    try:
        options = ["--max-epochs", "3", "--out", str(tmp_path), "--checkpoint-every", "never"]
        assert run(["fit", *TINY, *options]) == 130
    finally:
        signal.signal(signal.SIGTERM, before)
    assert sent == [second]
    assert "contains the model" in capsys.readouterr().err
    assert len(load(tmp_path / "digits" / "model").history_) == (
        3 if first is None else 1
    )  # the second epoch was not recorded


@pytest.mark.parametrize("moment", ["aevb.training.loop.Progress.__exit__", "aevb.vae.VAE.fit"])
def test_a_first_ctrl_c_after_the_last_epoch_loses_nothing(moment, tmp_path, monkeypatch, capsys):
    """While the progress bar or the reading thread ends, or between training and saving."""
    owner, name = moment.rsplit(".", 1)
    module, kind = owner.rsplit(".", 1)
    place = getattr(sys.modules[module], kind)
    ends = getattr(place, name)

    def signalled(*arguments, **keywords):
        result = ends(*arguments, **keywords)
        signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr(place, name, signalled)
    options = ["--max-epochs", "2", "--out", str(tmp_path), "--checkpoint-every", "never"]
    assert run(["fit", *TINY, *options]) == 130
    assert len(load(tmp_path / "digits" / "model").history_) == 2
    captured = capsys.readouterr()
    assert str(tmp_path / "digits") in captured.out + captured.err


@pytest.mark.thorough
def test_a_run_that_diverges_at_once_warns_and_has_a_report(tmp_path, monkeypatch, capsys):
    def check(report, state, first_step):
        if first_step > 0:
            raise DivergedError(first_step, "The reconstruction became nan")

    monkeypatch.setattr("aevb.training.feed.MAX_CHUNK_STEPS", 4)
    monkeypatch.setattr("aevb.training.loop.check_finite", check)
    monkeypatch.setattr("aevb.training.loop.diagnose", lambda error, *_: error)
    monkeypatch.setattr("aevb.report.report.write_results", WRITE_RESULTS)
    assert run(["fit", *TINY, "--max-epochs", "2", "--out", str(tmp_path)]) == 0
    assert "Note: The reconstruction became nan at step" in capsys.readouterr().err
    assert load(tmp_path / "digits" / "model").stopped_because_ == "diverged"
    assert (tmp_path / "digits" / "report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_killed_run_resumes_with_the_same_result(number, tmp_path):
    """As users do it: a separate process, with pictures; the terminal is closed, or the process is killed."""
    command = [sys.executable, "-m", "aevb", "fit", *TINY[:-1], "--max-epochs", "300", "--patience", "none"]
    command += ["--out", str(tmp_path), "--checkpoint-every", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while len(list(tmp_path.glob("digits/checkpoints/chunk-*"))) < 3:
            time.sleep(0.01)
        process.send_signal(number)
        out, err = process.communicate()
    assert process.returncode == {signal.SIGKILL: -9}.get(number, 130)
    assert "Traceback" not in err
    if number in (signal.SIGINT, signal.SIGTERM):
        assert out.splitlines()[-1].startswith(f"Results are in {tmp_path / 'digits'}")
    if number != signal.SIGKILL:
        assert load(tmp_path / "digits" / "model").stopped_because_ == "interrupted"
    assert run(["fit", "--resume", str(tmp_path / "digits"), "--quiet"]) == 0
    options = ["--max-epochs", "300", "--patience", "none", "--checkpoint-every", "never"]
    assert run(["fit", *TINY, *options, "--name", "whole", "--out", str(tmp_path)]) == 0
    same(tmp_path / "digits", tmp_path / "whole")


@pytest.fixture
def forbidden_is_forbidden():
    """Make file permissions apply to root too: this thread drops only the capability to write anywhere."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("capabilities of root can be dropped only on Linux")
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this thread
    rights = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, of 32 capabilities and of 32 more
    assert libc.capget(header, rights) == 0
    before = rights[0]
    rights[0] &= ~(1 << 1)  # CAP_DAC_OVERRIDE
    assert libc.capset(header, rights) == 0
    yield
    rights[0] = before
    assert libc.capset(header, rights) == 0


@pytest.mark.usefixtures("forbidden_is_forbidden")
def test_a_folder_that_is_read_only_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("aevb.vae.VAE.fit", lambda *_, **__: pytest.fail("it learned"))
    folder = tmp_path / "mine"
    folder.mkdir()
    folder.chmod(0o500)
    assert run(["fit", *TINY, "--out", str(folder)]) == 2
    assert "cannot write there" in capsys.readouterr().err


@pytest.mark.usefixtures("forbidden_is_forbidden")
def test_the_model_is_saved_elsewhere_if_the_folder_becomes_read_only(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder, advance = tmp_path / "mine", Progress.advance

    def forbid(*arguments):
        (folder / "digits").chmod(0o500)
        (folder / "digits" / "checkpoints").chmod(0o500)
        advance(*arguments)

    monkeypatch.setattr(Progress, "advance", forbid)
    assert run(["fit", *TINY, "--max-epochs", "2", "--out", str(folder)]) == 2
    said = capsys.readouterr().err
    kept = re.search(r"The model so far was saved to (\S+);", said)
    assert kept is not None, said
    assert len(load(kept[1]).history_) == 2
