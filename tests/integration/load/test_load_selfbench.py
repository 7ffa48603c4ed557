"""The null server and the ladder against it; the worker processes leave nothing behind."""

import json
import os
import signal
import subprocess
import sys
import urllib.request

import numpy as np

from infx.run.load.client import run_load
from infx.run.load.spec import LoadSpec, WindowRule
from infx.run.selfbench.bench import climb, null_server
from infx.workload.lanes import FixedLength
from infx.workload.random import TokenIds


def test_rungs_count_what_the_null_server_sends() -> None:
    [one, many] = climb([2, 32], seconds=0.6)
    assert (one.failed, many.failed) == (0, 0)
    # 50 events a second and stream, and two more at the end of each response of 200
    assert 1200 < many.events_per_s < 1750
    assert 0 < many.us_per_event < 2000
    assert many.ceiling > many.events_per_s


def test_the_null_servers_log_agrees_with_the_clients_table() -> None:
    with null_server("--tick-ms", "5", "--first-ms", "10") as url:
        source = FixedLength(TokenIds(1000), 12, 30, seed=1, salt="n")
        output = run_load(LoadSpec(url, "null", 4, WindowRule(minimum_requests=12, cap_s=20)), source, processes=0)
        with urllib.request.urlopen(f"{url}/null/log") as answer:
            log = json.load(answer)
    ok = output.table.select(output.table.ok)
    logged = {first: (received, last, tokens) for received, first, last, tokens in log["requests"]}
    assert set(ok["prompt_usage"]) == {12}
    firsts = np.array(sorted(logged))
    times = zip(ok["sent_ns"], ok["first_ns"], ok["last_ns"], ok["output_tokens"], strict=True)
    for sent, first, last, tokens in times:
        near = [(at, *logged[at]) for at in firsts[firsts <= first][-8:].tolist()]
        assert any(sent <= got and at <= first and end <= last and count == tokens for at, got, end, count in near)


PARENT = """
import sys
from infx.run.load.client import run_load
from infx.run.load.spec import LoadSpec, WindowRule
from infx.workload.lanes import FixedLength
from infx.workload.random import TokenIds
source = FixedLength(TokenIds(99), 8, 50, seed=1, salt="")
run_load(LoadSpec(sys.argv[1], "null", 4, WindowRule(duration_s=600)), source, processes=2,
         on_window_open=lambda: print("open", flush=True))
"""


def children_of(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def test_workers_end_with_their_killed_parent() -> None:
    with null_server() as url:
        parent = subprocess.Popen([sys.executable, "-c", PARENT, url], stdout=subprocess.PIPE, text=True)
        assert parent.stdout.readline() == "open\n"
        workers = children_of(parent.pid)
        assert len(workers) == 2
        descriptors = [os.pidfd_open(pid) for pid in workers]
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        parent.stdout.close()
        for descriptor in descriptors:
            assert signalled(descriptor)
            os.close(descriptor)


def signalled(descriptor: int) -> bool:
    """Whether the process behind a pidfd ends within ten seconds."""
    import select

    return bool(select.select([descriptor], [], [], 10)[0])
