import subprocess
import sys

import pytest

from aevb.distributed import Launch, launch_from, start

SLURM = {"SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "node[3,5-6]", "SLURM_NTASKS": "3", "SLURM_PROCID": "2"}
SLURM |= {"SLURM_LOCALID": "0", "SLURM_STEP_NUM_NODES": "3", "SLURM_STEP_NUM_TASKS": "3"}
OPEN_MPI = {"OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.1.2.3,10.2.2.3:34911", "OMPI_COMM_WORLD_SIZE": "2"}
OPEN_MPI |= {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}


@pytest.fixture
def environment(monkeypatch):
    for name in ("SLURM_NTASKS", "SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
        monkeypatch.delenv(name, raising=False)
    return lambda variables: [monkeypatch.setenv(name, value) for name, value in variables.items()]


def test_without_anything_there_is_one_process(environment):
    assert launch_from() is None


def test_slurm_is_detected(environment):
    environment(SLURM)
    assert launch_from() == Launch("node3:61447", 3, 2)


def test_a_batch_script_of_slurm_is_one_process(environment):
    environment({name: SLURM[name] for name in ("SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_PROCID")})
    assert launch_from() is None


def test_a_shell_on_a_node_of_slurm_is_one_process(environment):
    environment(SLURM | {"SLURM_STEP_NUM_TASKS": "1"})
    assert launch_from() is None


def test_open_mpi_is_detected(environment):
    environment(OPEN_MPI)
    coordinator, *rest = launch_from()
    assert coordinator.startswith("10.1.2.3:")
    assert rest == [2, 1]


def test_a_newer_open_mpi_needs_a_coordinator(environment):
    environment({name: value for name, value in OPEN_MPI.items() if name != "OMPI_MCA_orte_hnp_uri"})
    with pytest.raises(ValueError, match="Give --coordinator HOST:PORT"):
        launch_from()
    assert launch_from("node-1:1234") == Launch("node-1:1234", 2, 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"coordinator": "a:1"}, "num_processes, process_id: missing"),
        ({"num_processes": 2}, "coordinator, process_id: missing"),
        ({"coordinator": "a", "num_processes": 2, "process_id": 0}, "coordinator='a': expected host:port"),
        ({"coordinator": "a:1", "num_processes": 2, "process_id": 2}, "process_id=2: expected a number from 0"),
        ({"coordinator": "a:1", "num_processes": 0, "process_id": 0}, "num_processes=0: expected at least 1"),
    ],
)
def test_what_is_missing_is_named(environment, given, message):
    with pytest.raises(ValueError, match=message):
        launch_from(**given)


def test_a_timeout_is_positive(environment):
    with pytest.raises(ValueError, match="arrival_timeout=0: expected a positive number of seconds"):
        start(arrival_timeout=0)


@pytest.mark.thorough
def test_without_it_nothing_is_imported():
    code = "import sys, aevb; aevb.VAE; print([name for name in sys.modules if name.startswith('aevb.distributed')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
