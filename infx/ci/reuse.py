"""Owns whether a sweep's run folders may stand for a plan: same declared and observed facts, complete, measured. Pure.

A refusal names the run, the point and why; what each code means and how it is cleared is in ``CLEARED``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from infx.results.load import LoadedRun
from infx.schema.image import Pin, parse_image
from infx.schema.plan import Plan, Point
from infx.schema.result import PointResult, Start, Status
from infx.schema.version import CLIENT, __version__

CLEARED: dict[str, str] = {
    "no-run": "name a run, or sweep",
    "nothing-planned": "give the plan that the sweep was of; a change that asks for no measurement needs no reuse",
    "simulated": "measure on hardware",
    "stands-in": "measure with the pinned engine",
    "quick": "sweep without `--quick`",
    "unofficial": "sweep without `agentx-fast` and on a profile that starts the engine",
    "run-incomplete": "`infx sweep --resume RUN`, or sweep again",
    "point-missing": "sweep with a full-sweep label; a lowest-concurrency sweep does not cover a ladder",
    "point-bad": "look at the reason with `infx show RUN`, mend it and measure again",
    "other-fingerprint": "the recipe changed since: sweep again",
    "measured-twice": "name one of the runs",
    "harness-unknown": "sweep from a commit of this repository",
    "harness-dirty": "commit, then sweep",
    "harness-differs": "sweep with the harness that is to be merged",
    "client-differs": "sweep again with this version",
    "digest-unknown": "sweep an image that a registry holds",
    "digest-differs": "pin the digest in the recipe and sweep again",
    "version-unproven": "sweep an engine that answers /version",
    "evals-missing": "run the evals that were asked for",
    "not-accepted": "somebody with write access posts the command in a new comment",
    "other-workflow": "name a run of sweep.yml",
    "other-event": "name a sweep that a pull request's label started",
    "other-repository": "a fork's run does not count: push the reviewed commit to a branch here and sweep",
    "other-commit": "name a sweep of a commit that the pull request has; after a force-push sweep again",
    "not-finished": "wait until it ends",
    "not-green": "mend what failed and sweep, or pin the run by its number to have its points judged one by one",
    "nothing-measured": "name the run that measured; skipped jobs measure nothing",
    "artefact-missing": "sweep again: artefacts expire, and jobs that were cut leave none",
    "artefact-altered": "sweep again; what cannot be verified is not used",
}
"""Code of a refusal → how to clear it."""


@dataclass(frozen=True, order=True)
class Refusal:
    """One reason: ``where`` is a run, a point of one, or an artefact."""

    code: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.code}: {self.message}"


@dataclass(frozen=True)
class Covered:
    """A wanted point, and the run and start whose result stands for it."""

    point: str
    run: str
    start: str
    digest: str | None


@dataclass(frozen=True)
class Reuse:
    """The judgement: what stands for what, every refusal at once, and notes."""

    covered: tuple[Covered, ...]
    refusals: tuple[Refusal, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def qualifies(self) -> bool:
        return not self.refusals


def judge(
    wanted: Sequence[Plan], runs: Sequence[LoadedRun], *, harness: Callable[[str], str],
    digests: Mapping[str, str] | None = None, evals: Sequence[str] = (), client: str = CLIENT,
    version: str = __version__,
) -> Reuse:
    """Whether ``runs`` measured every point of ``wanted`` as it would be measured now.

    ``harness`` says why a commit's harness is not the present one (empty: it is). ``digests``: image reference →
    the digest that it must have run as, where it is known. ``evals``: evals that were asked for and are not there.
    """
    points = {point.key: point for plan in wanted for point in plan.points}
    used = {plan.recipe for plan in wanted}
    mine = [run for run in runs if run.run.recipe in used]
    refusals = [] if points else [Refusal("nothing-planned", "plan", "it has no point")]
    if points and not mine:
        refusals.append(Refusal("no-run", "runs", f"none is of {', '.join(sorted(used))}"))
    for run in mine:
        refusals += _run(run, harness, client, version)
    chosen: dict[str, tuple[LoadedRun, PointResult]] = {}
    for key, point in points.items():
        found = [(run, result) for run in mine if (result := run.chosen(key)) is not None]
        refusals += _point(point, found, bool(mine))
        if len(found) == 1:
            chosen[key] = found[0]
    refusals += _images(chosen, dict(digests or {}))
    refusals += [Refusal("evals-missing", item, "it was asked for and did not run, or did not pass") for item in evals]
    notes = [f"{run.run.id} is of {run.run.recipe}, which is not planned: left out" for run in runs if run not in mine]
    extra = sorted({result.point for run in mine for result in run.results} - set(points))
    notes += [f"measured and not planned: {', '.join(extra)}"] if extra else []
    covered = tuple(Covered(key, run.run.id, result.start, run.starts[result.start].digest)
                    for key, (run, result) in chosen.items())
    return Reuse(covered, tuple(dict.fromkeys(refusals)), tuple(notes))


def _run(run: LoadedRun, harness: Callable[[str], str], client: str, version: str) -> Iterator[Refusal]:
    """What speaks against a whole run."""
    where, facts = run.run.id, run.run
    if any(start.simulated for start in run.starts.values()):
        yield Refusal("simulated", where, "the engine said that it simulates")
    if facts.stands_in:
        yield Refusal("stands-in", where, f"the profile {facts.runner} stands in for the pinned engine")
    if run.quick:
        yield Refusal("quick", where, "prompts and windows were shortened")
    if run.unofficial:
        yield Refusal("unofficial", where, "rules were relaxed (agentx-fast, or an endpoint that infx did not start)")
    if run.missing:
        yield Refusal("run-incomplete", where, f"{len(run.missing)} of {len(run.plan.points)} points have no finished "
                                               f"visit: {', '.join(run.missing[:5])}")
    commit = facts.harness_commit
    if commit is None:
        yield Refusal("harness-unknown", where, f"infx {facts.harness_version} ran outside of a repository")
    elif commit.endswith("+"):
        yield Refusal("harness-dirty", where, f"files differed from commit {commit[:12]} when it ran")
    elif why := harness(commit):
        yield Refusal("harness-differs", where, why)
    if facts.harness_version != version:
        yield Refusal("harness-differs", where, f"infx {facts.harness_version} measured, this is {version}")
    versions = sorted({facts.client_version, *(result.client_version for result in run.results)} - {client})
    if versions:
        yield Refusal("client-differs", where, f"load client {', '.join(versions)}, now {client}")


def _point(point: Point, found: Sequence[tuple[LoadedRun, PointResult]], any_run: bool) -> Iterator[Refusal]:
    """What speaks against the results of one wanted point."""
    if not found:
        if any_run:
            yield Refusal("point-missing", point.key, "no run measured it")
        return
    if len(found) > 1:
        yield Refusal("measured-twice", point.key, f"by {' and '.join(run.run.id for run, _ in found)}")
    for run, result in found:
        declared = {result.fingerprint, *(p.fingerprint for p in run.plan.points if p.key == point.key)}
        if declared != {point.fingerprint}:
            other = ", ".join(sorted(declared - {point.fingerprint}))
            yield Refusal("other-fingerprint", point.key, f"{run.run.id} measured {other}, planned is "
                                                          f"{point.fingerprint}")
        if result.status is not Status.OK:
            why = "; ".join(reason.message for reason in result.reasons) or "no reason was stored"
            yield Refusal("point-bad", point.key, f"{result.status} in {run.run.id}: {why}")


def _images(chosen: Mapping[str, tuple[LoadedRun, PointResult]], digests: dict[str, str]) -> Iterator[Refusal]:
    """Observed identity of the engines: one digest an image, the pinned or given one; packages by their version."""
    for key, (run, result) in chosen.items():
        start = run.starts[result.start]
        image = parse_image(start.image)
        where = f"{run.run.id} start {start.id}"
        if image.pin is Pin.PACKAGE:
            if not _version_proven(start):
                yield Refusal("version-unproven", where, f"nothing shows that {start.image} is what ran")
            continue
        if start.digest is None:
            yield Refusal("digest-unknown", where, f"{start.image} ran under no registry's digest ({key})")
            continue
        wanted = digests.setdefault(start.image, image.digest or start.digest)
        if start.digest != wanted:
            yield Refusal("digest-differs", where, f"{start.image} ran as {start.digest}, elsewhere or by its pin it "
                                                   f"is {wanted}")


def _version_proven(start: Start) -> bool:
    return any(seen.name == "version" and seen.verdict == "verified" for seen in start.observed)
