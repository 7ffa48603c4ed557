"""The pool of load workers: what happens when one of them goes."""

from __future__ import annotations

import os
import signal
import threading
import time

import oracle_scripts as scripts
import pytest

from infx.errors import LoadError
from infx.run.load.pool import Pool
from infx.run.load.spec import LoadSpec, WindowRule
from infx.workload.lanes import FixedLength
from infx.workload.random import TokenIds


@pytest.mark.parametrize("told", [False, True])
def test_a_worker_that_is_killed_ends_the_load_with_its_number(oracle, told: bool) -> None:
    """Also when the parent wanted to tell it something first: a worker that cannot be told is not one that ended."""
    spec = LoadSpec(oracle(scripts.engine()).url, "m", 4, WindowRule(minimum_requests=10**6))
    with Pool(spec, FixedLength(TokenIds(1000), 10, 20, seed=1, salt="a"), 2) as pool:
        process = pool._processes[1]
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        if told:
            pool.open(time.perf_counter_ns())
        with pytest.raises(LoadError, match=r"load worker 1 died \(exit status -9\)"):
            for _ in range(100):
                pool.wait(0.1)


def test_a_pool_leaves_no_process_and_its_caller_scheduled_as_before(oracle) -> None:
    spec = LoadSpec(oracle(scripts.engine()).url, "m", 4, WindowRule(minimum_requests=10**6))
    before = os.sched_getscheduler(0), threading.active_count()
    with Pool(spec, FixedLength(TokenIds(1000), 10, 20, seed=1, salt="a"), 2) as pool:
        pids = [process.pid for process in pool._processes]
        pool.wait(0.1)
        pool.stop()
        assert len(pool.health) == 2
    assert (os.sched_getscheduler(0), threading.active_count()) == before
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
