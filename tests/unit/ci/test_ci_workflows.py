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


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_workflow_has_secrets_or_may_write(path):
    text = path.read_text()
    assert "secrets" not in text.replace("no secrets", "") and "pull_request_target" not in text
    value = yaml.safe_load(text)
    assert value["permissions"] == {}
    assert all(set(job["permissions"].values()) == {"read"} for job in value["jobs"].values())


def test_the_labels_of_recipes_are_declared():
    declared = yaml.safe_load((ROOT / ".github/actionlint.yaml").read_text())["self-hosted-runner"]["labels"]
    used = {yaml.safe_load(path.read_text())["runner"] for path in (ROOT / "recipes").rglob("*.yaml")}
    assert used <= set(declared)
