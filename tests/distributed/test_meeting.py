import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from aevb.distributed.meeting import PeersError, meet


@pytest.fixture
def coordinator():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    yield f"127.0.0.1:{port}"
    while MEETINGS:
        MEETINGS.pop().close()


MEETINGS = []


def met(coordinator, *processes, seconds=10.0):
    """Return what each of some processes gets, given as (number of processes, process): a meeting, or an error."""

    def one(process):
        try:
            MEETINGS.append(found := meet(coordinator, *process, seconds))
            return found
        except PeersError as error:
            return error

    with ThreadPoolExecutor(len(processes)) as pool:
        return list(pool.map(one, processes))


def test_all_processes_learn_of_each_other_in_any_order(coordinator):
    found = met(coordinator, (3, 2), (3, 0), (3, 1))
    assert [member.process_id for member in found[0].members] == [0, 1, 2]
    assert found[0].members == found[1].members == found[2].members
    assert len({one.service for one in found}) == 1
    assert sorted(found[1].lines) == [1, 2]
    assert list(found[0].lines) == [0]
    found[1].lines[2].send({"to": 2})  # the lines stay open, and lead to the right process
    assert found[0].lines[0].receive(5) == {"to": 2}


def test_a_missing_process_is_named_to_all_others(coordinator):
    first, second = met(coordinator, (3, 0), (3, 1), seconds=1.0)
    assert str(first).startswith("After 1 s, process 2 of 3 had not connected to 127.0.0.1:")
    assert str(second) == str(first)


def test_a_first_process_that_never_starts_is_named(coordinator):
    (error,) = met(coordinator, (2, 1), seconds=0.5)
    assert str(error).startswith(f"Process 0 did not answer at {coordinator} within 0.5 s")


def test_processes_with_equal_numbers_are_refused(coordinator):
    found = met(coordinator, (3, 0), (3, 1), (3, 1))
    assert all(str(error).startswith("Two processes have the number 1: process 1 (on ") for error in found)


def test_processes_that_disagree_about_their_number_are_refused(coordinator):
    first, second = met(coordinator, (2, 0), (4, 1))
    assert "was started with num_processes=4, process 0 with 2" in str(first)
    assert str(second) == str(first)


def test_strangers_are_ignored(coordinator):
    def stranger():
        while True:
            try:
                with socket.create_connection(("127.0.0.1", int(coordinator.rpartition(":")[2])), 0.2) as connection:
                    connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
                    return connection.recv(100)
            except OSError:
                pass

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(stranger)
        with ThreadPoolExecutor(2) as others:
            first = others.submit(met, coordinator, (2, 0))
            assert answer.result(10) == b""
            second = others.submit(met, coordinator, (2, 1))
            assert first.result(10)[0].members == second.result(10)[0].members


def test_a_port_in_use_is_reported(coordinator):
    with (
        socket.create_server(("127.0.0.1", int(coordinator.rpartition(":")[2]))),
        pytest.raises(PeersError, match="cannot listen there"),
    ):
        meet(coordinator, 2, 0, 1.0)
