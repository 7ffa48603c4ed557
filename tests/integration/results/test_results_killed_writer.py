"""A writer killed by SIGKILL before each of its system calls leaves a run that is readable and can be resumed."""

import os
import signal

import run_folder as fake

from infx.results.load import load_run
from infx.results.store import RunStore

CALLS = ("open", "mkdir", "fsync", "rename", "replace", "unlink", "close")


def write_everything(parent):
    plan = fake.plan(tps=(2,), concurrencies=(1, 8))
    with RunStore.create(parent, fake.run("r"), plan) as store:
        store.start_folder("001")
        store.write_start(fake.start("001", plan.blocks[0].id, plan.blocks[0].server))
        for point in plan.points:
            store.append_visit(point, "001", fake.visit(fake.curve(2, point.concurrency)), b"columns" * 1000)
        store.append_visit(plan.points[0], "001", fake.visit({}), b"again")
        store.write_start(fake.start("001", plan.blocks[0].id, plan.blocks[0].server, exit_code=0))


def killed_at(parent, number):
    """Run the writer in a child that is killed just before system call ``number``; True when it was."""
    child = os.fork()
    if child == 0:
        try:
            count = [0]

            def armed(real):
                def call(*arguments, **named):
                    count[0] += 1
                    if count[0] == number:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return real(*arguments, **named)

                return call

            for name in CALLS:
                setattr(os, name, armed(getattr(os, name)))
            write_everything(parent)
            os._exit(0)
        except BaseException:
            os._exit(3)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"writer failed at call {number}: {status}"
    return os.WIFSIGNALED(status)


def test_killed_before_any_system_call_the_run_is_readable_and_resumable(tmp_path):
    states, number = [], 1
    while killed_at(tmp_path / str(number), number):
        parent = tmp_path / str(number)
        visible = [p for p in parent.iterdir() if not p.name.startswith(".")] if parent.exists() else []
        if visible:
            loaded = load_run(visible[0])
            done = len(loaded.results)
            states.append((done, sum(len(r.visits) for r in loaded.results)))
            for result in loaded.results:
                for visit in result.visits:
                    assert loaded.requests_file(result, visit).stat().st_size in (7000, 5)
            with RunStore.open(visible[0]) as store:
                block = loaded.plan.blocks[0]
                store.write_start(fake.start("002", block.id, block.server, at=99.0))
                for key in loaded.missing:
                    store.append_visit(loaded.plan.point(key), "002", fake.visit({}), b"later")
            assert load_run(visible[0]).missing == []
        else:
            states.append((-1, -1))
        number += 1
    assert number > 60, f"only {number} system calls were seen"
    assert states == sorted(states), "a later kill lost something that an earlier one had"
    assert set(states) == {(-1, -1), (0, 0), (1, 1), (2, 2), (2, 3)}
