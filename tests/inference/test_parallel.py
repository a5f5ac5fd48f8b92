import os
import time

import jax.numpy as jnp
import pytest

from aevb.inference.parallel import SharedProgress, leaves_a_core, run_in_parallel


@pytest.mark.float64
def test_threads_compute_in_the_precision_of_the_caller():
    results = run_in_parallel(lambda n: jnp.ones(n) / 3, [1, 2, 3], lambda: None)
    assert [result.shape for result in results] == [(1,), (2,), (3,)]
    assert {result.dtype for result in results} == {jnp.dtype("float64")}


def test_when_one_batch_fails_the_others_stop_at_their_next_report():
    shared, num_reports = SharedProgress(None, 2), []

    def run(name):
        report = shared.of_batch(name)
        if name == "bad":
            raise KeyboardInterrupt
        while True:
            num_reports.append(1)
            report(0.5)

    with pytest.raises(KeyboardInterrupt):
        run_in_parallel(run, ["bad", "endless"], shared.stop)


def test_fractions_of_batches_add_up_and_never_decrease():
    seen = []
    shared = SharedProgress(seen.append, 2)
    one, other = shared.of_batch(0), shared.of_batch(1)
    for report, share in [(one, 0.5), (other, 0.5), (one, 0.0), (one, 1.0), (other, 1.0)]:
        report(share)
    assert seen == [0.25, 0.5, 0.5, 0.75, 1.0]


def test_programs_with_lapack_leave_one_core_free():
    """Two at a time on two cores would deadlock."""
    running, most = [], []

    @leaves_a_core
    def program(value):
        running.append(value)
        most.append(len(running))
        time.sleep(0.01)
        running.remove(value)
        return value

    assert run_in_parallel(program, range(20), lambda: None) == list(range(20))
    assert max(most) <= max((os.cpu_count() or 1) - 1, 1)
