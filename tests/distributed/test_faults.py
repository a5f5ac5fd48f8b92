"""Whatever happens to one of several processes, all of them end by themselves, and say why."""

import signal
import time

import numpy as np
import pytest

from aevb.training.checkpoint import newest_about

A_MINUTE = 60


def wait_until(condition, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.fixture
def long_run(processes, tmp_path):
    """Two processes of a run that would take hours, after it has been saved twice; and its checkpoints."""
    folder = tmp_path / "checkpoints"
    variables = {"EPOCHS": 1_000_000, "CHECKPOINT": folder, "SILENCE": 5}
    group = processes(2, "dense", tmp_path / "{process}.npz", **variables)

    def is_saved():
        assert all(process.poll() is None for process in group.running), "\n".join(group.said)
        return len(list(folder.glob("chunk-*"))) >= 2

    wait_until(is_saved)
    return group, folder


@pytest.mark.slow
@pytest.mark.parametrize("dead", [0, 1])
def test_a_killed_process_ends_the_other_one(long_run, dead):
    group, folder = long_run
    group.running[dead].kill()
    assert group.running[1 - dead].wait(A_MINUTE) == 75
    assert f"aevb: process {dead} (on " in group.said[1 - dead]
    assert f"pid {group.running[dead].pid}) has died" in group.said[1 - dead]
    assert newest_about(folder)["numbers"]["samples"] > 0


@pytest.mark.slow
def test_a_process_killed_while_it_saves_loses_nothing(processes, learned, tmp_path, check_equal):
    folder = tmp_path / "checkpoints"
    saved = {"CHECKPOINT": folder, "EPOCHS": 4, "JAX_ENABLE_X64": 1}
    group = processes(2, "dense", tmp_path / "{process}.npz", **saved, DIES_IN_SAVE=1)
    assert group.codes(A_MINUTE * 3) == [-signal.SIGKILL, 75], "\n".join(group.said)
    assert "aevb: process 0 (on " in group.said[1]
    assert len(list(folder.glob("chunk-*"))) == 2
    (half,) = folder.glob(".chunk-*.safetensors.*")
    assert half.stat().st_size > 0
    check_equal(learned("dense", **saved), learned("dense", EPOCHS=4, JAX_ENABLE_X64=1), 1e-12)


@pytest.mark.slow
def test_a_process_that_hangs_ends_the_other_one_and_then_itself(long_run):
    group, _ = long_run
    group.running[1].send_signal(signal.SIGSTOP)
    assert group.running[0].wait(A_MINUTE) == 75
    assert "aevb: process 1 (on " in group.said[0]
    assert "has not answered for 5 s" in group.said[0]
    group.running[1].send_signal(signal.SIGCONT)
    assert group.running[1].wait(A_MINUTE) != 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_one_process_stops_all_after_a_common_save(long_run, number, tmp_path):
    group, folder = long_run
    group.running[1].send_signal(number)
    assert group.codes(A_MINUTE) == [0, 0], "\n".join(group.said)
    first, second = (dict(np.load(tmp_path / f"{process}.npz")) for process in range(2))
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])
    assert str(first["ended"]) == "interrupted"
    assert newest_about(folder)["numbers"]["samples"] >= first["samples"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"EPOCHS": 2, "ONE_EPOCHS": 3}, "limits (max_epochs, patience): not the same in process 1 (on "),
        ({"ONE_ROWS": 299}, "data: not the same in process 1 (on "),
        ({"ONE_VERSION": "0.0.1"}, "version of aevb: not the same in process 1 (on "),
    ],
)
def test_different_data_settings_or_versions_are_refused_in_all_processes(processes, tmp_path, variables, message):
    group = processes(2, "dense", tmp_path / "{process}.npz", **variables)
    assert group.codes() == [1, 1]
    assert all(message in said for said in group.said), "\n".join(group.said)


@pytest.mark.slow
def test_a_full_disk_ends_all_processes(processes, tmp_path):
    variables = {"EPOCHS": 1_000_000, "CHECKPOINT": tmp_path / "checkpoints", "FULL_DISK": 1}
    group = processes(2, "dense", tmp_path / "{process}.npz", **variables)
    assert group.codes() == [1, 1]
    assert "No space left on device" in group.said[0]
    assert "process 0 (on " in group.said[1]
    assert "failed; see its own messages" in group.said[1]
    assert newest_about(tmp_path / "checkpoints")["numbers"]["samples"] > 0
