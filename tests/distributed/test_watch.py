"""How a process leaves; the other one is played by the test."""

import socket
import threading

import pytest

from aevb.distributed import watch
from aevb.distributed.meeting import Line, Member, Met


@pytest.fixture
def pair(monkeypatch):
    """The watch of the first of two processes, and the other end of its line."""
    monkeypatch.setattr(watch, "BEAT", 0.05)
    monkeypatch.setattr(watch, "GRACE", 20.0)
    mine, other = socket.socketpair()
    met = Met([Member(0, "here", 1), Member(1, "there", 2)], {1: Line(mine)}, "")
    yield watch.Watch(met, 0, 60.0), (line := Line(other))
    line.close()


def told(line):
    """Return the first message that is no sign of life."""
    while "alive" in (said := line.receive(10)):
        pass
    return said


def test_after_an_error_the_first_process_waits_for_the_other_one(pair):
    """JAX aborts the other one as soon as the first is gone."""
    first, line = pair
    leaving = threading.Thread(target=first.leave, args=(True,))
    leaving.start()
    assert told(line) == {"left": 0, "has_failed": True}
    leaving.join(0.3)
    assert leaving.is_alive()
    line.send({"left": 1, "has_failed": True})
    leaving.join(10)
    assert not leaving.is_alive()


def test_without_an_error_it_does_not_wait(pair):
    first, line = pair
    first.leave()
    assert told(line) == {"left": 0, "has_failed": False}
    with pytest.raises(ConnectionError):
        line.receive(10)
