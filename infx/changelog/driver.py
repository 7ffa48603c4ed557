"""Owns the edge to git: what the changelog asks a repository, and the merge driver that git calls.

Git runs ``python -P -m infx.changelog.driver %O %A %B %P`` for each file-level merge of a changelog; the result goes to
``%A`` in one step. Exit status 1 tells git that a person must decide.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from infx.changelog.append import replace_bytes
from infx.changelog.gate import PATH, choose_base
from infx.changelog.merge import merge
from infx.errors import RemoteError, UsageError

NAME = "infx-changelog"
"""The merge driver's name in .gitattributes and in git's configuration."""

TRUNK_KEY = "infx.changelogTrunk"
"""Git configuration: the trunk's refs, most trusted first (several values allowed)."""

USUAL_TRUNKS = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


class Repository:
    """A git repository with a changelog at ``path`` below its top folder. Raises UsageError outside of one."""

    def __init__(self, cwd: Path, path: str = PATH) -> None:
        self.top = cwd
        shown = self.git("rev-parse", "--show-toplevel")
        if shown.returncode != 0:
            raise UsageError(f"{cwd} is not in a git repository", hint="run this inside of the clone")
        self.top = Path(shown.stdout.decode().rstrip("\n"))
        self.path = path

    @property
    def file(self) -> Path:
        """The changelog in the working copy."""
        return self.top / self.path

    def git(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """Run git; RemoteError where it cannot be started."""
        try:
            return subprocess.run(["git", *words], cwd=self.top, capture_output=True, check=False)
        except OSError as error:
            raise RemoteError(f"cannot run git in {self.top}: {error.strerror}", hint="install git") from error

    def commit(self, ref: str) -> str:
        """The commit that ``ref`` names. Raises UsageError for an unknown one."""
        found = self._commit(ref)
        if found is None:
            raise UsageError(f"there is no commit {ref!r} in {self.top}",
                             hint="fetch it first (CI: a checkout with its whole history, e.g. fetch-depth: 0)")
        return found

    def _commit(self, ref: str) -> str | None:
        found = self.git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        return found.stdout.decode().strip() if found.returncode == 0 else None

    def bytes_at(self, ref: str) -> bytes:
        """The changelog's bytes in a commit; empty where it has none."""
        shown = self.git("cat-file", "blob", f"{ref}:{self.path}")
        return shown.stdout if shown.returncode == 0 else b""

    def trunks(self) -> list[str]:
        """The configured trunk refs, else the usual ones, as far as they exist; most trusted first."""
        configured = self.git("config", "--get-all", TRUNK_KEY).stdout.decode().split()
        return [ref for ref in configured or USUAL_TRUNKS if self._commit(ref)]

    def base(self, ref: str, head: str, data: bytes) -> tuple[str, bytes]:
        """Where ``head`` left the trunk ``ref``: that commit, and the trunk's bytes that ``data`` builds on."""
        trunk, tip = self.commit(ref), self.commit(head)
        ahead = self.lines("rev-list", "--first-parent", trunk, f"^{tip}")
        fork = self._commit(f"{ahead[-1]}^1") if ahead else trunk
        merge_bases = self.git("merge-base", "--all", trunk, tip).stdout.decode().split()
        self._whole(ref, merge_bases)
        forks = [self.bytes_at(commit) for commit in merge_bases]
        if fork is None:
            return "", choose_base(data, self.bytes_at(trunk), [], forks)
        return fork, choose_base(data, self.bytes_at(trunk), self._states(fork), forks)

    def _whole(self, ref: str, merge_bases: Sequence[str]) -> None:
        """Raises UsageError where a shallow clone hides where the branch left the trunk."""
        if not merge_bases and self.lines("rev-parse", "--is-shallow-repository") == ["true"]:
            raise UsageError(f"this clone is shallow and does not hold the commit where the branch left {ref}",
                             hint="fetch the whole history: `git fetch --unshallow` (CI: fetch-depth: 0)")

    def _states(self, fork: str) -> Iterator[bytes]:
        yield self.bytes_at(fork)
        for commit in self.lines("rev-list", "--first-parent", fork, "--", self.path):
            yield self.bytes_at(commit)

    def steps(self, ref: str, head: str = "HEAD") -> list[tuple[bytes, bytes]]:
        """The changelog before and after each plain commit that ``head`` has and ``ref`` has not, oldest first."""
        commits = self.lines("rev-list", "--reverse", "--topo-order", "--no-merges", "--full-history", head, f"^{ref}",
                             "--", self.path)
        return [(self.bytes_at(f"{commit}^"), self.bytes_at(commit)) for commit in commits]

    def lines(self, *words: str) -> list[str]:
        """Lines of git's output. Raises RemoteError where git fails."""
        done = self.git(*words)
        if done.returncode != 0:
            raise RemoteError(f"git {words[0]} failed: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode().splitlines()

    def configure(self, key: str, value: str) -> None:
        """Set one value of the clone's own configuration."""
        self.lines("config", "--local", "--replace-all", key, value)


def install(repository: Repository, trunks: Sequence[str] = ()) -> list[str]:
    """Register the merge driver in the clone's configuration; returns the settings made.

    ``.gitattributes`` names the driver for everyone; what it runs is each clone's own configuration.
    """
    command = f"{shlex.quote(sys.executable)} -P -m infx.changelog.driver %O %A %B %P"
    title = "infx changelog: trunk first, entry by entry"
    settings = [(f"merge.{NAME}.name", title), (f"merge.{NAME}.driver", command)]
    for key, value in settings:
        repository.configure(key, value)
    if trunks:
        for ref in trunks:
            repository.commit(ref)
        repository.configure(TRUNK_KEY, trunks[0])
        for ref in trunks[1:]:
            repository.lines("config", "--local", "--add", TRUNK_KEY, ref)
    return [f"{key} = {value}" for key, value in [*settings, *((TRUNK_KEY, ref) for ref in trunks)]]


def drive(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """What git asks of the driver: merge the files ``%O %A %B`` of the changelog ``%P``. Returns the exit status."""
    if len(words) != 4:
        print("infx changelog merge-driver: wants %O %A %B %P from git", file=sys.stderr)
        return 2
    old, mine, its = (Path(word) for word in words[:3])
    repository = Repository(Path.cwd(), words[3])
    trunks = [repository.bytes_at(ref) for ref in repository.trunks()]
    joining = any(name.startswith("GITHEAD_") for name in environment)
    result = merge(old.read_bytes(), mine.read_bytes(), its.read_bytes(), trunks, joining=joining, path=words[3])
    for note in result.notes:
        print(f"infx: {words[3]}: {note}", file=sys.stderr)
    for conflict in result.conflicts:
        print(f"infx: {words[3]}: conflict: {conflict}", file=sys.stderr)
    replace_bytes(mine, result.data)
    return 1 if result.conflicts else 0


if __name__ == "__main__":
    sys.exit(drive(sys.argv[1:], os.environ))
