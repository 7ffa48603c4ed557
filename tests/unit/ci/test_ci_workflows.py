"""The workflows as data: they hold the labels that the code knows, pin what they use and have no power to lose."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from infx.ci.labels import PLAN_LABELS

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def steps(path: Path):
    for job in yaml.safe_load(path.read_text())["jobs"].values():
        yield from job.get("steps", [])
        if "uses" in job:
            yield {"uses": job["uses"]}


def test_the_concurrency_group_names_the_labels_that_restart_a_sweep():  # P42
    group = yaml.safe_load((ROOT / ".github/workflows/sweep.yml").read_text())["concurrency"]["group"]
    named = re.search(r"fromJSON\('(\[.*?\])'\)", group, re.DOTALL)
    assert named is not None and json.loads(named[1]) == list(PLAN_LABELS)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_scripts_are_short(path):
    for step in steps(path):
        uses = step.get("uses", "$/")
        assert uses.startswith("$/") or re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", uses)
        assert len(step.get("run", "").strip().splitlines()) <= 5
        if uses.startswith("actions/checkout"):
            assert step["with"]["persist-credentials"] is False


MAY_WRITE = {
    ("sweep.yml", "collect"): {"pull-requests"}, ("answer.yml", "answer"): {"pull-requests", "statuses"},
    ("record.yml", "record"): {"contents", "pull-requests"},
}
"""Jobs with a permission to write, and which."""

TRUNK = (None, "${{ github.event.pull_request.base.sha }}")
"""What such a job may check out: the branch of its event (never one of a pull request), or the base."""


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_workflow_has_secrets_and_only_named_jobs_may_write(path):
    text = path.read_text()
    assert "secrets" not in text.replace("no secrets", "") and "pull_request_target" not in text
    value = yaml.safe_load(text)
    assert value["permissions"] == {}
    for name, job in value["jobs"].items():
        writes = {key for key, level in job["permissions"].items() if level != "read"}
        assert writes == MAY_WRITE.get((path.name, name), set())


@pytest.mark.parametrize(("name", "job"), list(MAY_WRITE))
def test_what_may_write_runs_the_trunks_code_on_a_hosted_machine(name, job):
    value = yaml.safe_load((ROOT / ".github/workflows" / name).read_text())
    made = value["jobs"][job]
    assert made["runs-on"] == "ubuntu-24.04"
    checkouts = [step["with"] for step in made["steps"] if step.get("uses", "").startswith("actions/checkout")]
    assert [step.get("ref") for step in checkouts] == [None if name != "sweep.yml" else TRUNK[1]]
    events = set(value[True])  # YAML 1.1 reads the key `on` as true
    assert events == {"sweep.yml": {"pull_request"}, "answer.yml": {"issue_comment"}, "record.yml": {"push"}}[name]
    assert not any("checkout" in step.get("run", "") or "git switch" in step.get("run", "") for step in made["steps"])


def test_forks_start_nothing_that_has_a_runner_or_may_write():
    sweep = yaml.safe_load((ROOT / ".github/workflows/sweep.yml").read_text())["jobs"]
    assert sweep["plan"]["if"] == "github.event.pull_request.head.repo.full_name == github.repository"
    for name in ("canary", "sweep", "collect"):
        assert "plan" in sweep[name]["needs"]
    assert "needs.plan.result == 'success'" in sweep["collect"]["if"]


def test_one_finding_of_the_linters_is_silenced_and_says_why():
    texts = {path.name: path.read_text() for path in WORKFLOWS}
    ignored = {name: text.count("zizmor: ignore") + text.count("shellcheck disable") for name, text in texts.items()}
    assert {name: count for name, count in ignored.items() if count} == {"answer.yml": 1}


def test_what_a_sweep_leaves_in_the_checkout_is_ignored_by_git():
    """A file that git sees makes the harness's commit a dirty one, and the run is refused at reuse."""
    ignored = (ROOT / ".gitignore").read_text().split()
    block = (ROOT / ".github/workflows/block.yml").read_text()
    for folder in re.findall(r"path: ([^\s#]+)", block) + [".venv1/"]:
        assert any(folder.split("/")[0].startswith(name.rstrip("/*")) for name in ignored), folder


def test_every_command_and_option_of_the_workflows_exists():
    import typer

    from infx.cli import ci

    commands = typer.main.get_command(ci.app).commands  # type: ignore[attr-defined]
    for path in WORKFLOWS:
        for step in steps(path):
            for line in re.findall(r"infx ci ((?:[^\n|]|\n(?=\s*--))+)", step.get("run", "")):
                word, *rest = line.split()
                known = {option for parameter in commands[word].params for option in parameter.opts}
                assert {option for option in rest if option.startswith("--")} <= known, line


def test_the_labels_of_recipes_are_declared():
    declared = yaml.safe_load((ROOT / ".github/actionlint.yaml").read_text())["self-hosted-runner"]["labels"]
    used = {yaml.safe_load(path.read_text())["runner"] for path in (ROOT / "recipes").rglob("*.yaml")}
    assert used <= set(declared)
