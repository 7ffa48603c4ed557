"""What every test kind shares: marks by folder, skips that cannot hide, and proof that a test leaves nothing behind.

`INFX_REQUIRE=vllm,docker` turns a skip of a test with such a mark into a failure, and fails a run over tests/real in
which no test of a named component ran.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent
COMPONENTS = ("vllm", "docker", "slurm", "browser")
TOKEN = "INFX_TEST_TOKEN"
GRACE_S = 10.0
RAN = pytest.StashKey[set[str]]()
MISSING = pytest.StashKey[set[str]]()
# In CI the same examples every time: a change is judged by what it changed. At home new ones are tried.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("home", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "home")


def required() -> set[str]:
    """The components that `INFX_REQUIRE` names."""
    return {name.strip() for name in os.environ.get("INFX_REQUIRE", "").split(",") if name.strip()}


def pytest_configure(config: pytest.Config) -> None:
    unknown = required() - set(COMPONENTS)
    if unknown:
        raise pytest.UsageError(f"INFX_REQUIRE names {', '.join(sorted(unknown))}; known are {', '.join(COMPONENTS)}")
    config.addinivalue_line("markers", "leaves(*patterns): temp files that a foreign program is known to leave")
    config.stash[RAN] = set()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test under tests/real/<component>/ carries that mark, and every test with such a mark carries `real`."""
    for item in items:
        parts = item.path.relative_to(TESTS).parts if item.path.is_relative_to(TESTS) else ()
        if parts[:1] == ("real",) and parts[1] in COMPONENTS:
            item.add_marker(parts[1])
        if components_of(item):
            item.add_marker("real")


def components_of(item: pytest.Item) -> set[str]:
    return {name for name in COMPONENTS if item.get_closest_marker(name)}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    report = yield
    needed = components_of(item) & required()
    if report.skipped and needed and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"INFX_REQUIRE names {', '.join(sorted(needed))}, yet: {reason}"
    if report.when == "call" and not report.skipped:
        item.config.stash[RAN] |= components_of(item)
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    missing = required() - session.config.stash[RAN]
    if missing and covers_real(session.config.args) and not session.config.option.collectonly:
        session.config.stash[MISSING] = missing
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for name in sorted(config.stash.get(MISSING, set())):
        terminalreporter.write_line(f"FAILED: INFX_REQUIRE names {name}, but no test of it ran", red=True)


def covers_real(arguments: list[str]) -> bool:
    return any(TESTS.resolve() in [p := Path(a).resolve(), p.parent] and p.name in ("tests", "real") for a in arguments)


# --- nothing left behind -------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test of tests/integration or tests/real that leaves processes, containers, jobs or temp files.

    Processes are found by a token in their environment, so that one which was orphaned is found too. The test gets a
    temp folder of its own, short enough for socket paths. What a foreign program is known to leave there is named by
    the mark `leaves("pattern", …)`.
    """
    kind = request.path.relative_to(TESTS).parts[0] if request.path.is_relative_to(TESTS) else ""
    if kind not in ("integration", "real"):
        yield
        return
    token = uuid.uuid4().hex
    request.getfixturevalue("tmp_path_factory").getbasetemp()  # made outside the folder that this test loses
    folder = Path(tempfile.mkdtemp(prefix="infx-t-"))
    monkeypatch.setenv(TOKEN, token)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    counts = [count for name, count in (("docker", containers), ("slurm", jobs)) if name in components_of(request.node)]
    before = [count() for count in counts]
    yield
    left = settle(lambda: processes(token))
    for count, known in zip(counts, before, strict=True):
        left += settle(lambda count=count, known=known: sorted(set(count()) - set(known)))
    allowed = [pattern for mark in request.node.iter_markers("leaves") for pattern in mark.args]
    files = [p for p in sorted(folder.iterdir()) if not any(fnmatch.fnmatch(p.name, a) for a in allowed)]
    left += [f"temp file {path.name}" for path in files]
    shutil.rmtree(folder, ignore_errors=True)
    assert not left, "left behind: " + "; ".join(left)


def settle(look: Callable[[], list[str]]) -> list[str]:
    """What ``look`` still finds after a grace in which things that were told to end may end."""
    deadline = time.monotonic() + GRACE_S
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def processes(token: str) -> list[str]:
    """Living processes that were started under ``token`` (this one apart)."""
    found, wanted = [], f"{TOKEN}={token}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                    found.append(f"process {entry.name} ({command[:120]})")
            except OSError:
                continue
    return found


def containers() -> list[str]:
    """Every container of the daemon, running or not."""
    return lines("container", "docker", "ps", "--all", "--format", "{{.ID}} {{.Names}} {{.Status}}")


def jobs() -> list[str]:
    """Every job that is pending or running."""
    return lines("job", "squeue", "--noheader", "--format", "%i %j %T")


def lines(what: str, *command: str) -> list[str]:
    if shutil.which(command[0]) is None:
        return []
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return [f"{what} {line.strip()}" for line in done.stdout.splitlines()] if done.returncode == 0 else []
