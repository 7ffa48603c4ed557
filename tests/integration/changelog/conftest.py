"""A real git repository with the merge driver, as a World of tests/fakes/changelog_histories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from infx.changelog.driver import Repository, install
from infx.changelog.gate import PATH
from infx.changelog.rebuild import rebuild
from infx.changelog.spans import split

IDENTITY = {
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


class Git:
    """A repository whose trunk is `main`; `origin/main` stands for what was last fetched."""

    def __init__(self, top: Path, start: bytes, driver: bool = True) -> None:
        top.mkdir(parents=True, exist_ok=True)
        self.top = top
        self.run("init", "-q", "-b", "main")
        (top / ".gitattributes").write_text(f"{PATH} -text merge=infx-changelog\n")
        (top / PATH).write_bytes(start)
        self.run("add", ".")
        self.run("commit", "-q", "-m", "start")
        self.repository = Repository(top)
        if driver:
            install(self.repository)

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(["git", *words], cwd=self.top, env={**os.environ, **IDENTITY}, capture_output=True,
                              encoding="utf-8", errors="replace", timeout=100)
        assert not check or done.returncode == 0, f"git {' '.join(words)}: {done.stdout}{done.stderr}"
        return done

    def read(self, branch: str) -> bytes:
        return self.repository.bytes_at(branch)

    def base(self, branch: str) -> bytes:
        return self.repository.base("main", branch, self.read(branch))[1]

    def tip(self, branch: str) -> tuple[bytes, bytes] | None:
        if len(self.run("rev-list", "--parents", "-n", "1", branch).stdout.split()) != 2:
            return None
        return self.read(f"{branch}^"), self.read(branch)

    def fork(self, new: str, old: str) -> None:
        self.run("branch", new, old)

    def commit(self, branch: str, data: bytes, message: str = "") -> None:
        self.run("checkout", "-q", branch)
        (self.top / PATH).write_bytes(data)
        self.run("commit", "-q", "--allow-empty", "-m", message or f"{len(split(data).spans)} entries", PATH)

    def merge(self, into: str, other: str, how: str = "") -> list[str]:
        self.run("checkout", "-q", into)
        done = self.run("merge", "-q", "--no-edit", *([f"--{how}"] if how else []), other, check=False)
        if done.returncode != 0:
            self.run("reset", "-q", "--hard")
            return [done.stderr + done.stdout]
        if how == "squash" and self.run("diff", "--cached", "--quiet", check=False).returncode:
            self.run("commit", "-q", "-m", f"squash of {other}")
        return []

    def rebase(self, branch: str) -> list[str]:
        done = self.run("rebase", "-q", "main", branch, check=False)
        if done.returncode != 0:
            self.run("rebase", "--abort")
            return [done.stderr + done.stdout]
        return []

    def pick(self, onto: str, other: str) -> list[str]:
        self.run("checkout", "-q", onto)
        done = self.run("cherry-pick", other, check=False)
        if done.returncode == 0:
            return []
        conflict = bool(self.run("ls-files", "--unmerged").stdout)
        self.run("cherry-pick", "--abort" if conflict else "--skip")
        return [done.stderr + done.stdout] if conflict else []

    def rebuild(self, branch: str) -> None:
        steps = self.repository.steps("main", branch)
        self.commit(branch, rebuild(self.read("main"), steps, self.read(branch)).data)

    def fetch(self) -> None:
        self.run("update-ref", "refs/remotes/origin/main", "main")


@pytest.fixture
def git(tmp_path: Path):
    """Makes a repository from the trunk's bytes."""
    return lambda start, name="repo", driver=True: Git(tmp_path / name, start, driver)
