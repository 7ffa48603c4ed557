"""Shows the changelog in a real git repository: merges both ways, a rebase, a stacked pair, damage and its repair.

    python bench/changelog_demo.py [--files DIR] [--history FILE]

Prints Markdown. ``--files`` names a folder of corrupted changelogs, each shown with what the gate says of it;
``--history`` a long foreign changelog that must pass as a base. Everything happens in a temporary folder.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from infx.changelog.gate import PATH, check
from infx.changelog.render import render
from infx.changelog.spans import join, split
from infx.schema.changelog import Change

IDENTITY = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "Someone"), ("EMAIL", "someone@example.org"))}
ENVIRONMENT = {**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_EDITOR": "true", "PYTHONPATH": ""}
TRUNK = b"""\
- config-keys:
  - qwen-fp8-mi300x
  description: an older schema, with blanks at its end  \n\n\n- config-keys:
    - qwen-fp4-mi355x
  description:
    - "the last entry of the trunk, with an odd separator below"
  pr-link: https://git.example/o/n/pull/11
  \n"""
BLANKS = ("C-013", "C-014")


class Stage:
    """A repository whose commands are printed as they run."""

    def __init__(self, top: Path, data: bytes) -> None:
        self.top = top
        top.mkdir()
        (top / ".gitattributes").write_text(f"{PATH} -text merge=infx-changelog\n")
        self.quiet("git", "init", "-q", "-b", "main")
        self.write(data)
        self.quiet("git", "add", ".")
        self.quiet("git", "commit", "-qm", "the trunk")
        self.quiet(sys.executable, "-m", "infx.cli", "changelog", "install-driver", "--trunk", "main")

    def write(self, data: bytes) -> None:
        (self.top / PATH).write_bytes(data)

    def quiet(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=self.top, env=ENVIRONMENT, capture_output=True, encoding="utf-8",
                              errors="replace", check=False)

    def run(self, line: str) -> int:
        """Run a git or infx command line and print it with what it says."""
        words = line.split()
        command = [sys.executable, "-m", "infx.cli", *words[1:]] if words[0] == "infx" else words
        done = self.quiet(*command)
        print(f"$ {line}")
        for text in (done.stdout + done.stderr).splitlines():
            print(f"  {text[:200]}")
        print(f"  → exit {done.returncode}")
        return done.returncode

    def append(self, branch: str, name: str, link: str = "XXX") -> None:
        """Add one entry on a branch and commit it."""
        self.quiet("git", "checkout", "-q", branch)
        data = (self.top / PATH).read_bytes()
        self.write(join(data, [entry(name, link)], len(data)))
        self.quiet("git", "commit", "-qam", f"append {name}")

    def tail(self) -> None:
        """Print the entries behind the trunk's first two, one line each, and whether the trunk is a prefix."""
        data = (self.top / PATH).read_bytes()
        trunk = self.quiet("git", "show", f"main:{PATH}").stdout.encode()
        for name, span in zip(split(data).ids[2:], split(data).spans[2:], strict=True):
            words = [line.strip() for line in span.body.decode().split("\n")]
            print(f"    line {span.line:3}  {name}  {words[4][2:]}  {words[5] if len(words) > 5 else ''}")
        print(f"    the trunk's {len(trunk)} bytes are a prefix: {data.startswith(trunk)}")


def entry(name: str, link: str = "XXX") -> bytes:
    """One entry; all have the same skeleton."""
    url = link if link == "XXX" else f"https://git.example/o/n/pull/{link}"
    return render(Change(config_keys=["same-key"], description=[f"words of {name}"], pr_link=url))


def both_ways(folder: Path) -> None:
    """Two branches that append at the same place, merged both ways and rebased."""
    print("\n## Two appending branches, merged both ways and rebased\n\n```")
    stage = Stage(folder / "both", TRUNK)
    stage.quiet("git", "branch", "mine")
    stage.append("mine", "my branch")
    stage.append("main", "the trunk's newcomer", "12")
    for name in ("merged", "rebased", "landing"):
        stage.quiet("git", "branch", name, "main" if name == "landing" else "mine")
    for branch, line in (("mine", "infx changelog check --base main"), ("merged", "git merge --no-edit main"),
                         ("landing", "git merge --no-edit mine"), ("rebased", "git rebase main")):
        stage.run(f"git checkout -q {branch}")
        stage.run(line)
        if branch != "mine":
            stage.tail()
            stage.run("infx changelog check --base main")
    print("```")


def stacked(folder: Path) -> None:
    """A stacked pair: the lower branch fills in its link and lands squashed, the upper follows."""
    print("\n## A stacked pair; the lower one gets its link, lands squashed, and the upper one follows\n\n```")
    stage = Stage(folder / "stacked", TRUNK)
    stage.quiet("git", "branch", "lower")
    stage.append("lower", "the lower branch")
    stage.quiet("git", "branch", "upper", "lower")
    stage.append("upper", "the upper branch")
    stage.quiet("git", "checkout", "-q", "lower")
    stage.write((stage.top / PATH).read_bytes().replace(b"XXX", b"https://git.example/o/n/pull/13"))
    stage.quiet("git", "commit", "-qam", "fill in the link")
    stage.append("main", "somebody else", "12")
    stage.run("git merge --squash lower")
    stage.quiet("git", "commit", "-qm", "the lower branch, squashed")
    stage.run("git checkout -q upper")
    stage.run("git rebase main")
    stage.tail()
    stage.run("infx changelog check --base main")
    print("```")


def damaged(folder: Path) -> None:
    """A merge that was resolved by hand and fused two entries, found and rebuilt; then damage on the trunk itself."""
    print("\n## A damaged branch: a merge resolved by hand fused two entries\n\n```")
    stage = Stage(folder / "damaged", TRUNK)
    stage.quiet("git", "branch", "mine")
    stage.append("mine", "my branch")
    stage.append("main", "the trunk's newcomer", "12")
    stage.quiet("git", "checkout", "-q", "mine")
    stage.quiet("git", "merge", "-q", "-s", "ours", "--no-edit", "main")
    fused = entry("the trunk's newcomer", "12").replace(b"  pr-link", b'    - "words of my branch"\n  pr-link')
    stage.write(join(TRUNK, [fused], len(TRUNK)))
    stage.quiet("git", "commit", "-q", "--amend", "--no-edit", "-a")
    for line in ("infx changelog check --base main", "infx changelog rebase --onto main"):
        stage.run(line)
    stage.tail()
    stage.run("infx changelog check --base main")
    print("```\n\n## Damage that is on the trunk already: tolerated, and repaired by appending\n\n```")
    lost = (entry("first", "963") + b"\n    - second-key\n  description:\n    - words of the second\n"
            b"  pr-link: https://git.example/o/n/pull/926\n")
    stage = Stage(folder / "trunk", join(TRUNK, [lost.rstrip()], len(TRUNK)))
    for line in ("infx changelog check --base main", "infx changelog repair", "infx changelog check --base main",
                 "infx changelog show --last 2"):
        stage.run(line)
    print("```")


def corrupted(files: Path) -> None:
    """Each corrupted file against a trunk that ends where its first damage begins."""
    print("\n## Corrupted files, each as a change to a trunk that ends where its first damage begins\n")
    for path in sorted(files.glob("*.yaml")):
        data = path.read_bytes()
        alone = [item for item in check(data, path=path.name) if item.code not in BLANKS]
        first = min((item.where.line for item in alone), default=0)
        starts = [span.start for span in split(data).spans if span.line <= first]
        base = data[: starts[-1]].rstrip() + b"\n" if starts and starts[-1] else b""
        found = check(data, base, path=path.name)
        print(f"### {path.name}: {len(split(data).spans)} entries, {len(data):,} bytes, the trunk holds "
              f"{len(split(base).spans)} of them\n\n```")
        shown: Counter[str] = Counter()
        for item in found:
            pattern = item.code + re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "", item.message)[:40]
            shown[pattern] += 1
            if shown[pattern] <= 2:
                print(str(item)[:330])
        counts = dict(sorted(Counter(item.code for item in found).items()))
        print(f"→ refused with {len(found)} findings (at most two of a kind are listed): {counts}\n```\n")


def history(path: Path) -> None:
    """A long foreign history as a base: it passes, and so does an entry behind it."""
    data = path.read_bytes()
    grown = join(data, [entry("the next one", "99")], len(data))
    print(f"\n## {path.name} as a base: {len(split(data).spans)} entries\n\n"
          f"- itself: {len(check(data, data, at='merge'))} findings\n"
          f"- with one entry appended: {len(check(grown, data, at='merge'))} findings\n"
          f"- exact duplicates, told apart by ordinal: "
          f"{', '.join(name for name in split(data).ids if not name.endswith('-1'))}\n"
          f"- judged as if it were new: {dict(sorted(Counter(i.code for i in check(data)).items()))}")


def main() -> None:
    """Run every scene."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path, help="folder of corrupted changelogs")
    parser.add_argument("--history", type=Path, help="a long foreign changelog")
    asked = parser.parse_args()
    print("# The changelog in real git")
    sys.stdout.reconfigure(line_buffering=True)
    with tempfile.TemporaryDirectory() as name:
        for scene in (both_ways, stacked, damaged):
            scene(Path(name))
    if asked.history:
        history(asked.history)
    if asked.files:
        corrupted(asked.files)


if __name__ == "__main__":
    main()
