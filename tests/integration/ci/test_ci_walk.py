"""One pull request from its label to the recorded results, every step the command that a workflow runs.

`python -m tests.integration.ci.test_ci_walk` prints the walk. The code host is the fake one; run folders stand in for
those of a real MI355X.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from infx.schema.plan import Plan
from tests.fakes.github import TOKEN, CodeHost, Trouble
from tests.fakes.pull_world import KEY, LOG, RECIPE, World, make_world, measured

PERSON = ("upstream", "same-work", "plausible", "words", "readable")
pytestmark = pytest.mark.timeout(400)  # a dozen processes, one after another


class Walk:
    """The world and the host, with one method a step; what each command said goes to ``tell``."""

    def __init__(self, world: World, host: CodeHost, tell: Callable[[str], None] = lambda text: None) -> None:
        self.world, self.host, self.tell = world, host, tell
        self.environment = {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": host.api, "GITHUB_REPOSITORY": "org/name"}

    def infx(self, *words: str, code: int = 0, **more: str) -> str:
        done = self.world.infx(*words, timeout=300, **self.environment, **more)
        shown = " ".join(word if " " not in word else f"'{word}'" for word in words)
        self.tell(f"$ infx {shown}\n{(done.stdout + done.stderr).rstrip()}\n[exit code {done.returncode}]\n")
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def label(self) -> list[Plan]:
        """The label is put on; its plan is made and costed; nothing has run yet."""
        self.host.pull(7, self.world.seed, labels=("full-sweep-enabled",), files=[RECIPE, LOG])
        self.host.permissions["maintainer"] = "write"
        event = self.world.event(self.world.seed, "full-sweep-enabled", action="labeled", label="full-sweep-enabled")
        self.infx("ci", "plan", "--event", event, "--base", "main", "--head", self.world.seed, "--out", "plans-sweep")
        files = sorted((self.world.root / "plans-sweep").glob("*.json"),
                       key=lambda path: ("canary" not in path.name, path.name))
        return [Plan.model_validate_json(path.read_text()) for path in files]

    def sweep(self, plans: list[Plan], run: int = 501) -> None:
        """Each job leaves its run folder as an artefact: canary first, then a job a block."""
        self.host.run(run, self.world.seed, jobs=tuple(
            (f"{plan.recipe} {plan.blocks[0].id} / measure", "success") for plan in plans))
        for number, plan in enumerate(plans, 1):
            home = self.world.root / f"runs/jobs-{run}-{number}"
            measured(plan, home, f"20261201T0900{number:02d}Z-{KEY}-{run}{number}", self.world.seed)
            self.host.artefact(run, f"run-{KEY}.{plan.blocks[0].id}.json", home)

    def collect(self) -> str:
        """The sweep's run folders are fetched; the comment with picture, table, claims and proposal is written."""
        self.infx("ci", "fetch", "--workflow-run", "501", "--out", "runs/collected")
        self.infx("ci", "comment", "--base", "main", "--head", self.world.seed, "--pull", "7", "--run",
                  "runs/collected", "--post", "--proposal", "runs/results.yaml", "-o", "runs/comment.md",
                  GITHUB_RUN_ID="501")
        return self.host.comments[7][-1]["body"]

    def command(self, body: str, author: str, association: str = "MEMBER", code: int = 0) -> str:
        """Somebody asks for reuse in a comment, and is answered."""
        self.host.comment(7, author, body, association=association)
        self.tell(f"{author} ({association}) comments: {body}\n")
        self.infx("ci", "plan", "--label", "full-sweep-enabled-no-canary", "--base", "main", "--head",
                  self.world.seed, "--out", "plans-all")
        out = f"runs/asked-{len(self.host.comments[7])}"
        return self.infx("ci", "reuse", "--pull", "7", "--plan", "plans-all", "--head", self.world.seed, "--post",
                         "--out", out, code=code)

    def sign(self, code: int = 0) -> str:
        """An owner posts the checklist; infx decides its boxes and sets the commit's status."""
        page = self.infx("ci", "checklist", "--head", self.world.seed, "--base", "main")
        for key in (*PERSON, "evals"):
            page = page.replace(f"[ ] **{key}**", f"[x] **{key}**")
        comment = self.host.comment(7, "owner", page)
        (self.world.root / "event.json").write_text(json.dumps({
            "action": "created", "comment": comment, "repository": {"full_name": "org/name"},
            "issue": {"number": 7, "user": {"login": "author"}, "pull_request": {"url": "…"}}}))
        return self.infx("ci", "signoff", "--event", "event.json", "--base", "main", "--head", self.world.seed,
                         "--remote", "--post", "--out", f"runs/signed-{len(self.host.comments[7])}", code=code)

    def merge(self) -> str:
        """The pull request is squashed onto the trunk; returns the new commit."""
        before = self.world.git("rev-parse", "main")
        self.world.git("checkout", "-q", "main")
        self.world.git("merge", "-q", "--squash", "mono")
        after = self.world.commit("The seed's change (#7)")
        self.host.merged[after] = [7]
        self.host.pulls[7].update(merged_at="2026-12-01T12:00:00Z", state="closed", merge_commit_sha=after)
        self.host.contents[LOG] = (self.world.root / LOG).read_bytes()
        self.tell(f"merged: {before[:12]} → {after[:12]}\n")
        return before

    def record(self, before: str, code: int = 0, out: str = "runs/recorded") -> str:
        """The push to the trunk records the sweep's results there."""
        return self.infx("ci", "record", "--before", before, "--head", "main", "--branch", "main", "--out", out,
                         code=code)


@pytest.fixture
def host():
    made = CodeHost()
    yield made
    made.close()


def test_from_label_to_recorded_results(tmp_path, host):
    walk = Walk(make_world(tmp_path), host)
    plans = walk.label()
    assert [plan.blocks[0].id for plan in plans] == ["canary-base-tp2", "base-tp2", "base-tp4"]
    walk.sweep(plans)
    said = walk.collect()
    assert "14 points measured, to be recorded at merge." in said and f'run: "sweep-501-{KEY}"' in said
    assert "not-accepted" in walk.command("/use 501", "stranger", "NONE")
    assert "run 501 of commit" in walk.command("/use 501", "maintainer")
    walk.sign()
    assert [status["state"] for status in host.statuses[walk.world.seed]] == ["success"]
    before = walk.merge()
    trunk = host.contents[LOG]
    assert "recorded on main" in walk.record(before)
    assert host.contents[LOG] == trunk + b"\n" + (walk.world.root / "runs/results.yaml").read_bytes()
    [push] = host.pushed
    assert (push["branch"], push["message"]) == ("main", "Record the results of #7 (run 501)")
    assert "recorded already" in walk.record(before, out="runs/again") and len(host.pushed) == 1
    ours = dict(item["body"].split("\n", 1) for item in host.comments[7] if item["user"]["type"] == "Bot")
    assert ours["<!-- infx:reuse -->"] == "**recorded already** (run 501).\n"
    assert list(ours) == ["<!-- infx:sweep -->", "<!-- infx:reuse -->", "<!-- infx:signoff -->"]


def test_at_merge_nothing_is_recorded_that_does_not_qualify_and_the_pull_request_is_told(tmp_path, host):
    walk = Walk(make_world(tmp_path), host)
    walk.sweep(walk.label()[1:])
    before = walk.merge()
    done = walk.record(before, code=13)
    assert done == "" and host.pushed == [] and "**Reuse: no.**" in host.comments[7][-1]["body"]
    assert "`point-missing`" in host.comments[7][-1]["body"]


def test_evals_that_an_entry_asks_for_are_missed_at_merge(tmp_path, host):
    walk = Walk(make_world(tmp_path), host)
    walk.sweep(walk.label())
    host.pulls[7]["labels"].append({"name": "all-evals"})
    walk.record(walk.merge(), code=13)
    assert host.pushed == [] and f"`evals-missing` evals of {KEY}" in host.comments[7][-1]["body"]


def test_somebody_quicker_on_the_trunk_loses_nothing(tmp_path, host):
    walk = Walk(make_world(tmp_path), host)
    walk.sweep(walk.label())
    before = walk.merge()
    host.troubles.append(Trouble(LOG, 409, {}, '{"message": "does not match"}', method="PUT"))
    assert "recorded on main" in walk.record(before) and len(host.pushed) == 1
    host.troubles.append(Trouble("/comments", 403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9999999999"}))
    assert walk.record(before, code=10, out="runs/limited") == ""


def test_a_push_without_a_pull_request_or_without_entries_records_nothing(tmp_path, host):
    walk = Walk(make_world(tmp_path), host)
    walk.host.pull(7, walk.world.seed)
    before = walk.merge()
    host.pulls[7]["merged_at"] = None
    assert "came without a pull request" in walk.record(before)
    host.merged.clear()
    assert "came without a pull request" in walk.record(before)
    assert "no new entry asks for a measurement" in walk.record("main") and host.pushed == []


def main() -> None:
    """Print the walk."""
    with tempfile.TemporaryDirectory() as folder:
        host = CodeHost()
        walk = Walk(make_world(Path(folder)), host, lambda text: print(text.replace(folder, "…")))
        plans = walk.label()
        walk.sweep(plans)
        print("# the comment\n" + walk.collect())
        walk.command("/use 501", "stranger", "NONE")
        walk.command("/use 501", "maintainer")
        walk.sign()
        print("# the sign-off's answer and status\n" + host.comments[7][-1]["body"])
        print(json.dumps(host.statuses, indent=1))
        before = walk.merge()
        walk.record(before)
        print("# what was put on the trunk\n" + host.contents[LOG].decode())
        host.close()


if __name__ == "__main__":
    sys.exit(main())
