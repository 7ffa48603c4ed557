"""What ``infx ci`` commands read from the disk: plans, run folders, the harness of a commit, artefacts unpacked."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from infx.errors import InputError, UsageError

if TYPE_CHECKING:
    from infx.changelog.driver import Repository
    from infx.ci.github import Client
    from infx.results.load import LoadedRun
    from infx.schema.plan import Plan

HARNESS = ("infx", "pyproject.toml")
"""What makes the harness: a run of a commit with other bytes here was made by another one."""

MOST_FILES, MOST_BYTES = 200_000, 16 << 30


def plans(paths: Sequence[Path]) -> list[Plan]:
    """Plans of files, and of every .json file of folders. UsageError for none, InputError for one that is none."""
    import json

    from infx.cli.sweep_request import read_plan_value

    found = []
    for path in paths:
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        for file in files:
            try:
                value = json.loads(file.read_bytes())
            except FileNotFoundError:
                raise UsageError("no such plan file", where=str(file),
                                 hint="write one with `infx ci plan … --out DIR` or `infx plan KEY --json`") from None
            except (ValueError, RecursionError) as error:
                raise InputError(f"not JSON: {error}", where=str(file)) from error
            found += [read_plan_value(item, file) for item in (value if isinstance(value, list) else [value])]
    return found


def runs(words: Sequence[str], parent: Path) -> list[LoadedRun]:
    """Run folders by path, id or `latest`; a folder that is none stands for all run folders below it, two deep.

    Raises UsageError for a word that names none and ResultsError for one that cannot be read.
    """
    from infx.results.index import find_run, list_runs
    from infx.results.layout import RunPaths
    from infx.results.load import load_run

    found: list[Path] = []
    for word in words:
        path = Path(word)
        if path.is_dir() and not RunPaths(path).run.is_file():
            below = [*list_runs(path), *(run for child in sorted(path.iterdir()) if child.is_dir()
                                         and not RunPaths(child).run.is_file() for run in list_runs(child))]
            if not below:
                raise UsageError("there is no run folder in it", where=word, hint="give a folder that holds run.json")
            found += below
        else:
            found.append(find_run(word, parent))
    return [load_run(path) for path in dict.fromkeys(path.resolve() for path in found)]


def harness(clone: Repository | None, head: str = "HEAD") -> Callable[[str], str]:
    """Says why the harness of a commit is not the one of ``head``; empty where its sources are equal."""

    def differs(commit: str) -> str:
        if clone is None:
            return f"there is no repository here that could tell whether commit {commit[:12]} has the same harness"
        if clone.git("cat-file", "-e", f"{commit}^{{commit}}").returncode != 0:
            return f"commit {commit[:12]} is not in this clone: fetch it"
        done = clone.git("diff", "--quiet", commit, head, "--", *HARNESS)
        return "" if done.returncode == 0 else f"{' or '.join(HARNESS)} differ between {commit[:12]} and {head[:12]}"

    return differs


def clone_here() -> Repository | None:
    """The repository that the current folder is in, or None."""
    from infx.changelog.driver import Repository

    try:
        return Repository(Path.cwd())
    except UsageError:
        return None


def client_for(repository: str | None) -> Client:
    """The code host's client for OWNER/NAME: given, GITHUB_REPOSITORY, or the remote origin."""
    from infx.ci.github import Client

    clone = clone_here()
    name = repository or os.environ.get("GITHUB_REPOSITORY") or (origin(clone) if clone else None)
    if name is None:
        raise UsageError("which repository is not known", hint="say --repository OWNER/NAME")
    return Client.from_environment(os.environ, name)


def origin(clone: Repository) -> str | None:
    """OWNER/NAME of the remote ``origin`` where its URL has that form."""
    import re

    url = clone.git("config", "--get", "remote.origin.url").stdout.decode().strip().removesuffix(".git")
    match = re.fullmatch(r"(?:https?://|ssh://|git@)[^/:\s]+(?::\d+)?[/:]([^/\s]+/[^/\s]+)", url)
    return match[1] if match else None


def unpack(data: bytes, into: Path, name: str) -> None:
    """Write the files of an artefact's zip below ``into``, which must not exist yet.

    Raises InputError, having written nothing, for a zip that is damaged, too large, or has a name that leaves the
    folder, comes twice or is no plain file.
    """
    where = f"artefact {name}"
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [item for item in archive.infolist() if not item.is_dir()]
            _look(members, where)
            if (bad := archive.testzip()) is not None:
                raise zipfile.BadZipFile(f"the checksum of {bad} is wrong")
            into.mkdir(parents=True)
            for item in members:
                target = into / item.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(item))
    except FileExistsError as error:
        raise UsageError("there is something already", where=str(into), hint="give an empty folder") from error
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise InputError(f"not a zip file that can be read: {error}", where=where, hint="sweep again") from error


def _look(members: Sequence[zipfile.ZipInfo], where: str) -> None:
    seen = set()
    for item in members:
        path = PurePosixPath(item.filename)
        mode = item.external_attr >> 16
        plain = not mode or stat.S_ISREG(mode) or not stat.S_IFMT(mode)
        if path.is_absolute() or ".." in path.parts or "\\" in item.filename or not path.parts or not plain:
            raise InputError(f"it holds {item.filename!r:.100}, which is no plain file of its own folder", where=where)
        if item.filename in seen:
            raise InputError(f"it holds {item.filename!r:.100} twice", where=where)
        seen.add(item.filename)
    if len(members) > MOST_FILES or sum(item.file_size for item in members) > MOST_BYTES:
        raise InputError(f"it holds over {MOST_FILES} files or {MOST_BYTES} bytes", where=where)
