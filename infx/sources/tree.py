"""Owns the one way to read repository files: a Tree is a working copy, a git revision or the installed package."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Protocol, runtime_checkable

from infx.errors import RemoteError, UsageError

_PACKAGE = Path(__file__).resolve().parent.parent


@runtime_checkable
class Tree(Protocol):
    """Files by POSIX path relative to the repository's top folder."""

    @property
    def label(self) -> str:
        """What the tree is, for messages: a folder, a revision or ``packaged``."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """The file's bytes; raises FileNotFoundError where there is no such regular file in the tree."""
        ...

    def exists(self, path: str) -> bool:
        """True where ``path`` is a file of the tree (folders are not)."""
        ...

    def glob(self, pattern: str) -> list[str]:
        """Sorted paths of files that match; ``*`` and ``?`` stay inside one folder, ``**/`` spans any number."""
        ...


class WorkingTree:
    """The files below a folder as they are on disk now."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root).absolute()

    @property
    def label(self) -> str:
        return str(self.root)

    def read_bytes(self, path: str) -> bytes:
        place = self._place(path)
        if place is None or not place.is_file():
            raise FileNotFoundError(f"no file {path} in {self.label}")
        return place.read_bytes()

    def exists(self, path: str) -> bool:
        place = self._place(path)
        return place is not None and place.is_file()

    def glob(self, pattern: str) -> list[str]:
        start = self._place(_fixed_folder(pattern) or ".")
        if start is None:
            return []
        return _matching(_walk(self.root, start), pattern)

    def _place(self, path: str) -> Path | None:
        clean = _inside(path)
        return None if clean is None else self.root / clean


class Packaged:
    """The files that came with the installed package; in a clone, the clone itself."""

    def __init__(self, package: Path = _PACKAGE) -> None:
        self.package = package
        shipped = package / "_repository"
        self.installed = shipped.is_dir()
        self._rest = WorkingTree(shipped if self.installed else package.parent)
        self._own = WorkingTree(package.parent)

    @property
    def label(self) -> str:
        return "packaged"

    def read_bytes(self, path: str) -> bytes:
        return self._home(path).read_bytes(path)

    def exists(self, path: str) -> bool:
        return self._home(path).exists(path)

    def glob(self, pattern: str) -> list[str]:
        return self._home(pattern).glob(pattern)

    def _home(self, path: str) -> WorkingTree:
        return self._own if path.split("/", 1)[0] == self.package.name else self._rest


class GitTree:
    """The files of one commit, read through git; the working copy is not touched.

    Raises UsageError for an unknown revision and RemoteError where git itself cannot run.
    """

    def __init__(self, root: Path, rev: str) -> None:
        self.root = Path(root).absolute()
        self.rev = rev
        found = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}")
        if found.returncode != 0:
            hint = "fetch it first, or name a commit, tag or branch that `git log` knows"
            raise UsageError(f"no commit {rev!r} in the repository at {self.root}", hint=hint)
        self.commit = found.stdout.decode().strip()

    @property
    def label(self) -> str:
        return f"{self.rev} ({self.commit[:12]})"

    def read_bytes(self, path: str) -> bytes:
        clean = _inside(path)
        if clean is None or clean not in self._files:
            raise FileNotFoundError(f"no file {path} in {self.label}")
        shown = self._git("cat-file", "blob", self._files[clean])
        if shown.returncode != 0:
            raise RemoteError(f"git cannot read {path} of {self.label}", hint="run `git fsck`; is the clone partial?")
        return shown.stdout

    def exists(self, path: str) -> bool:
        return _inside(path) in self._files

    def glob(self, pattern: str) -> list[str]:
        return _matching(self._files, pattern)

    @functools.cached_property
    def _files(self) -> dict[str, str]:
        """Regular files below ``root``: path → blob hash (symbolic links and submodules left out)."""
        listed = self._git("ls-tree", "-r", "-z", self.commit)
        if listed.returncode != 0:
            raise RemoteError(f"git cannot list {self.label}", hint="run `git fsck`; is the clone partial?")
        files: dict[str, str] = {}
        for row in listed.stdout.decode("utf-8", "surrogateescape").split("\0"):
            facts, _, path = row.partition("\t")
            mode, _, blob = facts.partition(" blob ")
            if blob and mode.startswith("100"):
                files[path] = blob
        return files

    def _git(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(["git", *words], cwd=self.root, capture_output=True, check=False)
        except OSError as error:
            raise RemoteError(f"cannot run git in {self.root}: {error.strerror}", hint="install git") from error


def find_tree(cwd: Path) -> WorkingTree | Packaged:
    """The nearest folder at or above ``cwd`` that has ``recipes/`` and ``configs/``; else the packaged files."""
    here = Path(cwd).absolute()
    for folder in (here, *here.parents):
        if (folder / "recipes").is_dir() and (folder / "configs").is_dir():
            return WorkingTree(folder)
    return Packaged()


def _inside(path: str) -> str | None:
    """``path`` in plain form, or None where it would leave the tree."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\0" in path:
        return None
    return str(pure)


def _fixed_folder(pattern: str) -> str:
    """The folders of ``pattern`` before its first wildcard."""
    fixed = re.split(r"[*?]", pattern, maxsplit=1)[0]
    return fixed.rpartition("/")[0]


def _walk(root: Path, start: Path) -> Iterable[str]:
    for folder, folders, names in os.walk(start):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        for name in names:
            yield (Path(folder) / name).relative_to(root).as_posix()


def _matching(paths: Iterable[str], pattern: str) -> list[str]:
    parts = re.split(r"(\*\*/|\*|\?)", pattern)
    wild = {"**/": "(?:[^/]+/)*", "*": "[^/]*", "?": "[^/]"}
    test = re.compile("".join(wild.get(part, re.escape(part)) for part in parts))
    return sorted(path for path in paths if test.fullmatch(path))
