"""What infx finds about a branch and its runs: the facts of a sign-off's boxes, and what a comment shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from infx.ci.evals import eval_wants, explicit_evals
from infx.ci.labels import Ask
from infx.ci.reuse import Refusal, Reuse, judge
from infx.ci.signoff import Fact
from infx.errors import InfxError

if TYPE_CHECKING:
    from infx.cli.ci_branch import Branch
    from infx.cli.compare_request import Desk
    from infx.compare.claims import Judged
    from infx.compare.coverage import Coverage
    from infx.compare.sides import Side
    from infx.findings import Finding
    from infx.results.load import LoadedRun
    from infx.schema.changelog import Change
    from infx.schema.plan import Plan

MOST = 6
"""Reasons that a fact's message lists."""


@dataclass(frozen=True)
class Pair:
    """A recipe's latest results entry (None: it has none) and its new results, base arm."""

    recipe: str
    before: Side | None
    after: Side
    append_only: bool


@dataclass
class Evidence:
    """A branch with the run folders that are to bear it out; what is worked out is kept."""

    branch: Branch
    runs: Sequence[LoadedRun]
    desk: Desk
    harness: Callable[[str], str]
    digests: dict[str, str] = field(default_factory=dict)
    pull: int | None = None
    eval_labels: bool = False
    unfetched: Sequence[Refusal] = ()

    @cached_property
    def changes(self) -> list[Change]:
        """The branch's own change entries."""
        from infx.cli.ci_branch import fresh_changes

        return fresh_changes(self.branch)

    @cached_property
    def plans(self) -> list[Plan]:
        """What they ask to be measured, in full."""
        from infx.cli.ci_branch import wanted_points

        return wanted_points(self.branch)

    @cached_property
    def reuse(self) -> Reuse:
        """Whether the runs stand for that; what could not be fetched stands for nothing."""
        if self.unfetched:
            return Reuse((), tuple(self.unfetched))
        asked = explicit_evals(self.eval_labels, self.changes, self.branch.recipes)
        return judge(self.plans, self.runs, harness=self.harness, digests=self.digests, evals=asked)

    def of(self, recipe: str) -> list[LoadedRun]:
        """The run folders of a recipe."""
        return [run for run in self.runs if run.run.recipe == recipe]

    @cached_property
    def pairs(self) -> list[Pair]:
        """Each recipe that is to be measured and has runs, beside its latest entry on the trunk."""
        from infx.compare.sides import side_of

        found = []
        for recipe in dict.fromkeys(plan.recipe for plan in self.plans):
            if runs := self.of(recipe):
                only = all(change.append_only for change in self._about(recipe))
                found.append(Pair(recipe, self._before(recipe), side_of("this change", runs, None, "latest"), only))
        return found

    @cached_property
    def claims(self) -> list[tuple[str, Judged]]:
        """Every claim of the new entries about every recipe that they select, judged from the runs."""
        from infx.changelog.coverage import selected
        from infx.cli.compare_request import sha256
        from infx.compare.claims import judge_all
        from infx.compare.sides import Side, side_of

        found = []
        for change in self.changes:
            for recipe in selected(change, self.branch.recipes) if change.expect else []:
                runs = self.of(recipe)
                arms = {None, *(point.arm for run in runs for point in run.plan.points)}
                sides = {arm: side_of(arm or "base", runs, arm, "latest") for arm in arms}
                judged = judge_all(change.expect, self._before(recipe), lambda arm, s=sides: s.get(arm, Side("", {})),
                                   self.desk.options((), ()), hash_of=sha256)
                found += [(recipe, item) for item in judged]
        return found

    @cached_property
    def coverage(self) -> list[tuple[str, Coverage]]:
        """Published curves that the new results would narrow; append-only entries replace none."""
        from infx.changelog.entries import ledger
        from infx.ci.published import published
        from infx.compare.coverage import coverage
        from infx.schema.changelog import Results

        entries = [item.entry for item in ledger(self.branch.trunk, self.branch.clone.path)
                   if isinstance(item.entry, Results) and item.retracted is None]
        sides = [(pair, published(entries, pair.recipe)) for pair in self.pairs if not pair.append_only]
        return [(pair.recipe, item) for pair, before in sides if before is not None
                for item in coverage(before, pair.after) if item.narrower]

    @cached_property
    def linted(self) -> tuple[int, list[Finding]]:
        """How many recipes and profiles the head has, and every finding about them."""
        from infx.lint.about import linter
        from infx.plan.load import check_all

        check, found = linter(self.branch.tree)
        checked = check_all(self.branch.tree, [], Path.cwd(), check)
        return checked.files, sorted({*checked.findings, *found})

    def _about(self, recipe: str) -> list[Change]:
        from infx.changelog.coverage import selected

        return [change for change in self.changes if recipe in selected(change, self.branch.recipes)]

    def _before(self, recipe: str) -> Side | None:
        from infx.changelog.entries import ledger
        from infx.errors import UsageError

        records = [item for item in ledger(self.branch.trunk, self.branch.clone.path) if item.retracted is None]
        try:
            return self.desk.entry(recipe, records=records)
        except UsageError:
            return None


def facts_of(evidence: Evidence) -> dict[str, Fact]:
    """A fact for every box that infx decides; what cannot be worked out does not hold, and says why."""
    return {key: _guarded(work, evidence) for key, work in {
        "recipes": _recipes, "waivers": _waivers, "changelog": _changelog, "measured": _measured, "claims": _claims,
        "coverage": _coverage, "evals": _evals}.items()}


def _guarded(work: Callable[[Evidence], Fact], evidence: Evidence) -> Fact:
    try:
        return work(evidence)
    except InfxError as error:
        return Fact(False, f"cannot be worked out: {error}")


def _said(problems: Sequence[str], fine: str) -> Fact:
    more = f" (and {len(problems) - MOST} more)" if len(problems) > MOST else ""
    return Fact(False, "; ".join(problems[:MOST]) + more) if problems else Fact(True, fine)


def _recipes(evidence: Evidence) -> Fact:
    from infx.findings import errors

    files, found = evidence.linted
    return _said([str(item) for item in errors(found)], f"{files} files without an error")


def _waivers(evidence: Evidence) -> Fact:
    from infx.ci.waivers import against_waivers
    from infx.lint.rules import RULES
    from infx.sources.waivers import load_waivers

    branch = evidence.branch
    waivers, read = load_waivers(branch.tree)
    names = branch.clone.lines("diff", "--name-only", branch.fork or branch.head, branch.head, "--", "docs/waiver")
    added = {int(stem) for name in names if (stem := PurePosixPath(name).stem).isdigit()}
    said = against_waivers(waivers, read, evidence.linted[1], added=added, pull=evidence.pull,
                           recipes=list(branch.recipes.head), rules={rule.code: rule.waivable for rule in RULES})
    return _said(said, f"{len(waivers)} waivers" if waivers else "there is none")


def _changelog(evidence: Evidence) -> Fact:
    from infx.cli.ci_branch import gate_findings

    return _said([str(item) for item in gate_findings(evidence.branch, "merge")], "as the gate wants it at merge")


def _measured(evidence: Evidence) -> Fact:
    if not evidence.plans:
        return Fact(True, "no new entry asks for a measurement")
    found = evidence.reuse
    runs = ", ".join(dict.fromkeys(item.run for item in found.covered))
    return _said([str(item) for item in found.refusals], f"{len(found.covered)} points, by {runs}")


def _claims(evidence: Evidence) -> Fact:
    judged = evidence.claims
    bad = [f"{recipe}: {item.sentence()}" for recipe, item in judged if item.outcome != "met"]
    return _said(bad, f"{len(judged)} claims met" if judged else "no entry claims anything")


def _coverage(evidence: Evidence) -> Fact:
    lost = [f"{recipe}: {item.sentence()}" for recipe, item in evidence.coverage]
    return _said(lost, "no published point is lost")


def _evals(evidence: Evidence) -> Fact:
    ask = Ask("all", evals="all" if evidence.eval_labels else "default")
    wants = eval_wants(ask, evidence.changes, evidence.branch.recipes)
    if not wants:
        return Fact(True, "none is asked for")
    return Fact(None, f"infx runs no evals yet, and {', '.join(wants)} wants some")
