"""Real git, real driver, real commands: both ways, rebase, stacked, squash, damage, repair, and a killed driver."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from infx.changelog.driver import NAME
from infx.changelog.gate import PATH, check
from infx.changelog.render import render
from infx.changelog.spans import join, split
from infx.schema.changelog import Change

from .conftest import IDENTITY

ODD = b"- config-keys:\n  - old\n  description: scalar  \n\n\n- config-keys:\n    - x\n  pr-link: nowhere\n  \n"


def entry(name: str, link: str = "XXX") -> bytes:
    url = link if link == "XXX" else f"https://git.example/o/n/pull/{link}"
    return render(Change(config_keys=["same-key"], description=[f"words of {name}"], pr_link=url))


def grown(data: bytes, *bodies: bytes) -> bytes:
    return join(data, bodies, len(data))


def infx(top: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "infx.cli", "changelog", *words], cwd=top, capture_output=True,
                          encoding="utf-8", env={**os.environ, **IDENTITY}, timeout=100)


@pytest.fixture
def two(git):
    """A trunk and a branch that both appended an entry of the same skeleton to odd history."""
    world = git(ODD)
    world.fork("branch", "main")
    world.commit("branch", grown(ODD, entry("branch")))
    world.commit("main", grown(ODD, entry("trunk", "4")))
    return world


def test_both_ways_and_rebase_give_the_trunk_first(two):  # P37
    wanted = grown(ODD, entry("trunk", "4"), entry("branch"))
    for name in ("merged", "rebased"):
        two.fork(name, "branch")
    assert two.merge("merged", "main") == [] and two.read("merged") == wanted
    assert two.rebase("rebased") == [] and two.read("rebased") == wanted
    assert infx(two.top, "check", "--base", "main").returncode == 0
    two.fork("landing", "main")
    assert two.merge("landing", "branch") == [] and two.read("landing") == wanted


def test_a_branch_behind_the_trunk_passes_the_gate(two):  # P38
    two.run("checkout", "-q", "branch")
    done = infx(two.top, "check", "--base", "main")
    assert (done.returncode, done.stdout) == (0, "")


def test_the_gate_says_path_line_and_repair(two):
    two.run("checkout", "-q", "branch")
    (two.top / PATH).write_bytes(two.read("branch").replace(b"scalar", b"other") + b"\n")
    done = infx(two.top, "check", "--base", "main")
    assert done.returncode == 8
    assert done.stdout.startswith(f"{PATH}:1:1: C-015 the trunk's entry ") and "rebase --onto" in done.stdout


def test_only_merge_refuses_the_placeholder(two):
    two.run("checkout", "-q", "branch")
    assert infx(two.top, "check", "--base", "main", "--at", "pr").returncode == 0
    done = infx(two.top, "check", "--base", "main", "--at", "merge")
    assert done.returncode == 8 and f"{PATH}:15:3: C-019" in done.stdout


def test_stacked_branches_follow_a_squash_with_the_link_filled_in_later(git):
    world = git(ODD)
    world.fork("lower", "main")
    world.commit("lower", grown(ODD, entry("low")))
    world.fork("upper", "lower")
    world.commit("upper", grown(ODD, entry("low"), entry("up")))
    world.commit("lower", grown(ODD, entry("low", "7")))
    world.commit("main", grown(ODD, entry("other", "5")))
    assert world.merge("main", "lower", "squash") == []
    trunk = grown(ODD, entry("other", "5"), entry("low", "7"))
    assert world.read("main") == trunk
    world.fork("again", "upper")
    assert world.rebase("upper") == [] and world.read("upper") == grown(trunk, entry("up"))
    assert world.merge("again", "main") == [] and world.read("again") == grown(trunk, entry("up"))


def test_cherry_pick_to_and_from_the_trunk(two):
    two.fork("picked", "branch")
    assert two.pick("picked", "main") == []
    assert two.read("picked") == grown(ODD, entry("trunk", "4"), entry("branch"))
    two.fork("release", "main")
    assert two.pick("release", "branch") == []
    assert two.read("release") == grown(ODD, entry("trunk", "4"), entry("branch"))


def test_a_revert_of_a_landed_entry_is_a_conflict_that_names_the_way(two):
    two.commit("main", grown(ODD, entry("trunk", "4"), entry("later", "6")))
    two.run("checkout", "-q", "main")
    done = two.run("revert", "--no-edit", "HEAD~1", check=False)
    assert done.returncode != 0
    assert "entries on the trunk are never edited" in done.stderr and "infx changelog retract" in done.stderr
    assert b"<<<<<<<" in (two.top / PATH).read_bytes()
    two.run("revert", "--abort")


def test_a_clone_without_the_driver_conflicts_instead_of_fusing(git):
    world = git(ODD, driver=False)
    world.fork("branch", "main")
    world.commit("branch", grown(ODD, entry("branch")))
    world.commit("main", grown(ODD, entry("trunk", "4")))
    assert world.merge("branch", "main") != []


def test_install_driver_names_driver_and_trunk(git):
    world = git(ODD, driver=False)
    done = infx(world.top, "install-driver", "--trunk", "main")
    assert done.returncode == 0
    assert "-m infx.changelog.driver %O %A %B %P" in world.run("config", f"merge.{NAME}.driver").stdout
    assert world.run("config", "infx.changelogTrunk").stdout == "main\n"
    assert infx(world.top, "install-driver", "--trunk", "nowhere").returncode == 2


# --- a damaged branch ----------------------------------------------------------------------------------


def test_rebase_onto_rebuilds_what_a_merge_by_hand_fused(two):
    two.run("checkout", "-q", "branch")
    two.commit("branch", grown(ODD, entry("branch"), entry("second")))
    two.run("merge", "-q", "-s", "ours", "--no-edit", "main")
    fused = grown(ODD, entry("trunk", "4") + b"\n    - words of branch", entry("second"))
    (two.top / PATH).write_bytes(fused)
    two.run("commit", "-q", "--amend", "--no-edit", PATH)
    assert infx(two.top, "check", "--base", "main").returncode == 8
    done = infx(two.top, "rebase", "--onto", "main")
    assert done.returncode == 0 and "then 2 of this branch" in done.stdout
    assert (two.top / PATH).read_bytes() == grown(ODD, entry("trunk", "4"), entry("branch"), entry("second"))
    assert "left out" in done.stdout and "words of branch" in done.stdout
    assert infx(two.top, "check", "--base", "main").returncode == 0


def test_rebase_onto_keeps_the_branchs_edits_and_what_is_not_committed(two):
    two.commit("branch", grown(ODD, entry("branch", "9")))
    two.run("checkout", "-q", "branch")
    (two.top / PATH).write_bytes(grown(ODD, entry("branch", "9"), entry("uncommitted")))
    assert infx(two.top, "rebase", "--onto", "main").returncode == 0
    assert (two.top / PATH).read_bytes() == grown(ODD, entry("trunk", "4"), entry("branch", "9"), entry("uncommitted"))


def test_repair_retracts_and_appends_again(git):
    folded = (b"- config-keys:\n    - a\n  description:\n    - first\n  pr-link: https://git.example/o/n/pull/963\n"
              b"    - b\n  description:\n    - second\n  pr-link: https://git.example/o/n/pull/926\n")
    world = git(folded)
    done = infx(world.top, "repair")
    assert done.returncode == 0 and "2 entries appended again" in done.stdout
    data = (world.top / PATH).read_bytes()
    assert check(data, folded, at="merge") == []
    shown = infx(world.top, "show").stdout
    assert "a  https://git.example/o/n/pull/963\n    first" in shown and "b  https://git.example/o/n/pull/926" in shown
    assert split(folded).ids[0] not in shown.split("retracts")[0]
    assert infx(world.top, "repair").stdout == "" and (world.top / PATH).read_bytes() == data


# --- the driver is killed ------------------------------------------------------------------------------


def test_a_driver_killed_midway_leaves_the_file_as_it_was(two):
    script = two.top.parent / "killed.sh"
    program = (
        "import os, signal, sys\nfrom infx.changelog import driver\n"
        "driver.replace_bytes = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "driver.drive(sys.argv[1:], os.environ)\n")
    (two.top.parent / "killed.py").write_text(program)
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -P {two.top.parent / 'killed.py'} \"$@\"\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    two.run("config", f"merge.{NAME}.driver", f"{script} %O %A %B %P")
    two.run("checkout", "-q", "branch")
    before = (two.top / PATH).read_bytes()
    done = two.run("merge", "--no-edit", "main", check=False)
    assert done.returncode != 0
    assert (two.top / PATH).read_bytes() == before
    two.run("merge", "--abort", check=False)
    two.run("reset", "-q", "--hard")
    assert (two.top / PATH).read_bytes() == before


def test_a_branch_that_took_an_unpublished_one_behind_its_own_is_refused_once_that_has_landed(git):
    world = git(ODD)
    world.fork("other", "main")
    world.commit("other", grown(ODD, entry("other", "4")))
    world.fork("branch", "main")
    world.commit("branch", grown(ODD, entry("own", "5")))
    assert world.merge("branch", "other") == []
    assert world.merge("main", "other", "no-ff") == []
    world.run("checkout", "-q", "branch")
    done = infx(world.top, "check", "--base", "main")
    assert done.returncode == 8 and "C-015" in done.stdout and "--onto main" in done.stdout
    world.fork("landing", "main")
    assert world.merge("landing", "branch") == [] and not world.read("landing").startswith(world.read("main"))
    world.run("checkout", "-q", "branch")
    assert infx(world.top, "rebase", "--onto", "main").returncode == 0
    world.run("commit", "-q", "-m", "trunk first", PATH)
    assert world.read("branch") == grown(world.read("main"), entry("own", "5"))
    assert infx(world.top, "check", "--base", "main").returncode == 0


def test_a_shallow_clone_is_told_what_it_lacks(git, tmp_path):
    world = git(ODD)
    world.fork("branch", "main")
    world.commit("branch", grown(ODD, entry("own", "5")))
    world.commit("branch", grown(world.read("branch"), entry("more", "5")))
    world.commit("main", grown(ODD, entry("trunk", "4")))
    clone = tmp_path / "shallow"
    world.run("clone", "-q", "--depth=1", "--no-single-branch", "-b", "branch", world.top.as_uri(), str(clone))
    done = infx(clone, "check", "--base", "origin/main")
    assert done.returncode == 2 and "this clone is shallow" in done.stderr and "--unshallow" in done.stderr
    world.run("-C", str(clone), "fetch", "-q", "--unshallow")
    assert infx(clone, "check", "--base", "origin/main").returncode == 0


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_the_driver_killed_while_writing_leaves_its_file(tmp_path, two, moment):
    files = [two.top / name for name in ("o", "a", "b")]
    for path, data in zip(files, (ODD, two.read("branch"), two.read("main")), strict=True):
        path.write_bytes(data)
    program = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom infx.changelog import driver\n"
        "kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        + ("os.fsync = kill\n" if moment == "fsync" else "Path.replace = kill\n")
        + "driver.drive(sys.argv[1:], os.environ)\n")
    done = subprocess.run([sys.executable, "-c", program, "o", "a", "b", PATH], cwd=two.top, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert files[1].read_bytes() == two.read("branch")
