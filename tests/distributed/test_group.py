"""What processes tell each other between chunks; the other process is played by the test."""

import signal

import numpy as np
import pytest

from aevb.distributed.group import GOES_ON, HAS_FAILED, HAS_NO_MORE, IS_INTERRUPTED, Group
from aevb.distributed.meeting import Member, PeersError
from aevb.parallel import PeerFailedError


@pytest.fixture
def group(monkeypatch):
    """The first of two processes; `group.others` are the answers of the second one, in turn."""
    found = Group(None, [Member(0, "here", 1), Member(1, "there", 2)], 0, None)
    found.others = []
    monkeypatch.setattr(found, "_gathered", lambda mine: np.stack([mine, found.others.pop(0)]))
    return found


def test_both_go_on_until_both_have_no_more(group):
    group.others = [GOES_ON, GOES_ON, HAS_NO_MORE]
    assert list(group.in_step("ab")) == ["a", "b"]


def test_a_failure_of_the_other_process_is_told(group):
    group.others = [GOES_ON, HAS_FAILED]
    with pytest.raises(PeerFailedError, match=r"process 1 \(on there, pid 2\) failed"):
        list(group.in_step("abc"))


def test_an_error_waits_until_the_other_process_can_learn_of_it(group):
    group.others = [GOES_ON, GOES_ON]
    items = group.in_step("abc")
    assert next(items) == "a"
    with group.deferred():
        raise OSError("full")
    with pytest.raises(OSError, match="full"):
        next(items)


def test_a_signal_ends_the_work_of_both_after_a_chunk(group):
    group.others = [GOES_ON, GOES_ON]
    items = group.in_step("abc")
    assert next(items) == "a"
    group._on_signal(signal.SIGTERM, None)
    with pytest.raises(KeyboardInterrupt):
        next(items)
    group.others = [IS_INTERRUPTED]
    with pytest.raises(KeyboardInterrupt):
        list(group.in_step("abc"))


def test_uneven_data_are_refused(group):
    group.others = [GOES_ON, HAS_NO_MORE]
    with pytest.raises(PeerFailedError, match=r"process 1 \(on there, pid 2\) has fewer batches than others"):
        list(group.in_step("ab"))


def test_each_process_computes_every_second_item(group):
    computed = []

    def square(x):
        computed.append(x)
        return np.array(x**2)

    group.others = [np.array([1, 9, 0])]  # of items 1 and 3, and of one that fills up
    assert [int(value) for value in group.together(square, [0, 1, 2, 3, 4])] == [0, 1, 4, 9, 16]
    assert computed == [0, 2, 4]


def test_a_difference_is_named(group):
    group.others = [np.zeros((2, 32), np.uint8)]
    with pytest.raises(PeersError, match=r"data: not the same in process 1 \(on there, pid 2\)"):
        group.verify(lambda: {"data": "a", "seed": "b"})
