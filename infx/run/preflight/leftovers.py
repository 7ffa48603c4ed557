"""What dead sweeps left on this machine: containers, engine processes, lease notes. A living sweep's are never touched.

Every container carries its owner in a label and every engine process in ``INFX_OWNER``: run, process id of the
sweep and when that process began (ids are used again). An owner that another scheduler's job started, or that
cannot be read, counts as living.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from infx.errors import RunnerError
from infx.run.launch import OWNER, began
from infx.run.launch.container import LABEL, last_line, tool
from infx.run.lease import drop_note, lease_folder, stale_note
from infx.schema.runner import Runner

END_S = 5.0


@dataclass(frozen=True)
class Leftover:
    """``kind``, its ``id`` (container, process or file) and the run that it was ``of``."""

    kind: Literal["container", "process", "lease"]
    id: str
    of: str


def owner_is_dead(owner: str) -> bool:
    """True when the sweep that an owner names ran on this machine's process table and is gone."""
    parts = owner.split(":")
    if len(parts) != 3 or not parts[1].isdecimal():
        return False
    return began(int(parts[1])) != parts[2]


def leftovers(runner: Runner, environment: Mapping[str, str]) -> list[Leftover]:
    """Everything of dead sweeps. Raises RunnerError when the container tool does not answer."""
    found = _containers(runner) if runner.container is not None else []
    found += _processes()
    note = stale_note(lease_folder(environment))
    return found + ([Leftover("lease", str(note), "a dead sweep")] if note is not None else [])


def remove(runner: Runner, left: Leftover) -> str:
    """Remove one; returns what went wrong, or an empty string. A process is asked first, then killed."""
    if left.kind == "container" and runner.container is not None:
        done = tool(runner.container.tool, "rm", "--force", left.id)
        return "" if done.returncode == 0 or "o such container" in done.stderr else last_line(done.stderr)
    if left.kind == "lease":
        return "" if drop_note(Path(left.id).parent) else "a sweep has taken it meanwhile"
    return _end(int(left.id))


def _containers(runner: Runner) -> list[Leftover]:
    assert runner.container is not None
    name = runner.container.tool
    listed = tool(name, "ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={LABEL}")
    if listed.returncode != 0:
        raise RunnerError(f"{name}: {last_line(listed.stderr)}", hint="start its daemon, or join its group")
    found = []
    for container in listed.stdout.split():
        shown = tool(name, "inspect", "--type", "container", container)
        if shown.returncode != 0:  # it went away meanwhile
            continue
        owner = str((json.loads(shown.stdout)[0].get("Config", {}).get("Labels") or {}).get(LABEL, ""))
        if owner_is_dead(owner):
            found.append(Leftover("container", container, owner.split(":")[0]))
    return found


def _processes() -> list[Leftover]:
    """Processes of this user (all, for root) whose environment names a dead owner."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            owner = _owner_of(int(folder.name))
            if owner and owner_is_dead(owner):
                found.append(Leftover("process", folder.name, owner.split(":")[0]))
    return found


def _owner_of(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    mark = f"{OWNER}=".encode()
    return next((word[len(mark):].decode("utf-8", "replace") for word in words if word.startswith(mark)), "")


def _end(pid: int) -> str:
    """SIGTERM, and SIGKILL after a while; the owner is looked at again before each, since ids are used again."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not owner_is_dead(_owner_of(pid)):
            return ""
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return ""
        except PermissionError:
            return "not permitted"
        until = time.monotonic() + END_S
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                if _owner_of(pid):
                    time.sleep(0.05)
                    continue
            return ""
    return "it lives on after SIGKILL"
