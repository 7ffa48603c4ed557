"""The sweep: one loop over the blocks that a policy names, into one run folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from infx.errors import InterruptedSweep, RunnerError
from infx.findings import Finding
from infx.run.block import run_block
from infx.run.context import Context
from infx.run.policy import Outcome, Policy
from infx.schema.image import Pin, parse_image
from infx.schema.plan import Plan
from infx.schema.result import Status
from infx.schema.runner import Runner


@dataclass(frozen=True)
class SweepOutcome:
    """What a sweep did: blocks in order, and whether it was stopped."""

    outcomes: tuple[Outcome, ...]
    stopped: bool

    @property
    def ok(self) -> bool:
        """True when every point that was to be measured is ok."""
        return not self.stopped and all(outcome.ok for outcome in self.outcomes)

    def count(self, status: Status) -> int:
        """Points that ended with this status."""
        return sum(found is status for outcome in self.outcomes for found in outcome.statuses.values())


def sweep(context: Context, policy: Policy) -> SweepOutcome:
    """Run blocks until the policy names no more, or the user asked to stop."""
    done: list[Outcome] = []
    try:
        while not context.should_stop() and (block := policy(done)) is not None:
            done.append(run_block(context, block))
    except InterruptedSweep:
        return SweepOutcome(tuple(done), stopped=True)
    return SweepOutcome(tuple(done), stopped=context.should_stop())


def admit(plan: Plan, runner: Runner, findings: Sequence[Finding] = ()) -> None:
    """Refuse a plan that this runner may not sweep: label, hardware or image. Raises RunnerError."""
    profile = f"runners/{runner.name}.yaml"
    if runner.serves != "any" and plan.label not in runner.serves:
        raise RunnerError(f"the runner {runner.name!r} does not serve the label {plan.label!r} of {plan.recipe}",
                          where=profile, allowed=", ".join(runner.serves),
                          hint="take a runner that serves the label, or add the label to the profile's `serves`")
    if runner.hardware is not None and plan.hardware not in runner.hardware:
        raise RunnerError(f"the runner {runner.name!r} has no {plan.hardware}, which {plan.recipe} names",
                          where=profile, allowed=", ".join(runner.hardware))
    if runner.stands_in:
        return
    for server in plan.servers.values():
        pin = parse_image(server.image).pin
        if pin is Pin.PLACEHOLDER:
            raise RunnerError(f"{plan.recipe} has a placeholder image ({server.image}): there is no engine to start",
                              where=profile, allowed="runner simulator",
                              hint="sweep it with --runner simulator, or pin an image that has its kernels")
        if runner.launch in ("docker", "pyxis") and pin is Pin.PACKAGE:
            raise RunnerError(f"{plan.recipe} pins a package ({server.image}), but {runner.name!r} starts containers",
                              where=profile, hint="take a runner whose launch is process")
        if runner.launch == "process" and pin is not Pin.PACKAGE:
            raise RunnerError(f"{plan.recipe} pins a container image, but {runner.name!r} starts processes",
                              where=profile, allowed="image: pypi:NAME==VERSION",
                              hint="take a runner whose launch is docker")
