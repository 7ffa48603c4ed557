"""Results as stored: values, visits of a point, engine starts and the run that holds them (no numpy)."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue, model_validator

from infx.schema.strict import Strict


class Value(Strict):
    """One metric's value, or null with the reason why there is none."""

    value: float | None = Field(description="The value in `unit`; null when it could not be determined.")
    unit: str = Field(description="Unit of value, low and high, as in schema/metrics.")
    n: int | None = Field(default=None, description="Observations behind the value (requests, tokens, samples).")
    low: float | None = Field(default=None, description="Lower end of the 95 % interval within this start.")
    high: float | None = Field(default=None, description="Upper end of the 95 % interval within this start.")
    reason: str | None = Field(default=None, description="Why the value is null; required exactly then.")

    @model_validator(mode="after")
    def null_needs_a_reason(self) -> Value:
        if (self.value is None) != (self.reason is not None):
            raise ValueError("a null value needs a reason, and only a null value has one")
        return self

    @classmethod
    def missing(cls, unit: str, reason: str, n: int | None = None) -> Value:
        """A null value with its reason."""
        return cls(value=None, unit=unit, n=n, reason=reason)


class Status(StrEnum):
    """How a visit of a point ended."""

    OK = "ok"
    INVALID = "invalid"
    FAILED = "failed"
    CLIENT_BOUND = "client-bound"
    INTERRUPTED = "interrupted"


class Reason(Strict):
    """Why a point is not ok, or what its reader must know."""

    code: str = Field(description="Stable kebab-case code, e.g. engine-died, failures-above-limit.")
    message: str = Field(description="What was found, with figures.")
    evidence: str = Field(default="", description="The line, counter or file that proves it.")


class Window(Strict):
    """The measured window of a visit."""

    opened_unix: float = Field(description="Wall clock at window open, seconds since the epoch (joins telemetry only).")
    closed_unix: float = Field(description="Wall clock at window close, seconds since the epoch.")
    seconds: float = Field(description="Length by the client's monotonic clock.")


class Visit(Strict):
    """One measurement of a point within one engine start."""

    ordinal: int = Field(description="0 for the first visit in this start; revisits count up.")
    position: int = Field(description="Place in the order of visits of this start, from 0.")
    status: Status = Field(strict=False, description="How the visit ended.")
    reasons: list[Reason] = Field(default_factory=list, description="Why it is not ok; notes when it is.")
    window: Window | None = Field(default=None, description="The window, when one opened.")
    metrics: dict[str, Value] = Field(default_factory=dict, description="By metric name of schema/metrics.")
    engine: dict[str, Value] = Field(default_factory=dict, description="From the engine's own counters in the window.")
    client: dict[str, Value] = Field(default_factory=dict, description="Health of the load client.")
    counts: dict[str, int] = Field(default_factory=dict, description="Requests: sent, measured, ok, failed, cut.")
    failures: dict[str, int] = Field(default_factory=dict, description="Failed requests by kind.")
    requests_file: str | None = Field(default=None, description="Per-request columns (npz) beside this file.")
    seconds: dict[str, float] = Field(default_factory=dict, description="Wall time by phase: warm-up, window, drain, …")


class PointResult(Strict):
    """result.json: all visits of one point in one engine start."""

    format_version: int = Field(description="Format of the run folder.")
    point: str = Field(description="Point key.")
    fingerprint: str = Field(description="Fingerprint of the declared facts.")
    start: str = Field(description="Id of the engine start.")
    concurrency: int = Field(description="Concurrency asked for.")
    gpus: int = Field(description="The divisor: GPUs that the engine's layout uses.")
    status: Status = Field(strict=False, description="Status of the first visit.")
    reasons: list[Reason] = Field(default_factory=list, description="Why the point is not ok.")
    client_version: str = Field(description="Version of the load client's definitions.")
    visits: list[Visit] = Field(default_factory=list, description="First visit and revisits.")


class Observed(Strict):
    """One setting read back from the engine."""

    name: str = Field(description="Setting, by the engine module's name.")
    wanted: JsonValue = Field(default=None, description="What the recipe asked for.")
    found: JsonValue = Field(default=None, description="What the engine said.")
    verdict: Literal["verified", "mismatch", "unreadable"] = Field(description="Verified, mismatch or unreadable.")
    evidence: str = Field(default="", description="Log line, metric or reply that says so.")


class Death(Strict):
    """How an engine ended that should not have."""

    reason: str = Field(description="Stable code: exited, killed, hung, never-ready, …")
    exit_code: int | None = Field(default=None, description="Exit status, when known.")
    signal: str | None = Field(default=None, description="Signal that ended it, when known.")
    message: str = Field(description="One sentence.")
    cause: str = Field(default="", description="Cause that its log proves, by the table of engines/deaths.")
    advice: str = Field(default="", description="What to do about the cause.")
    lines: list[str] = Field(default_factory=list, description="The line that proves it and the last telling ones.")


class Start(Strict):
    """start.json: one engine start."""

    format_version: int = Field(description="Format of the run folder.")
    id: str = Field(description="Id of the start, unique in the run.")
    block: str = Field(description="Block that it served.")
    server: str = Field(description="Server fingerprint.")
    argv: list[str] = Field(description="What was executed, the chosen port included.")
    env: dict[str, str] = Field(description="Environment that the recipe and the profile set (names passed through "
                                "from the caller are listed without values).")
    passed_env: list[str] = Field(default_factory=list, description="Names passed through from the caller.")
    image: str = Field(description="Image reference as declared.")
    digest: str | None = Field(default=None, description="Digest that ran, when the launch knows one.")
    image_env: dict[str, str] = Field(default_factory=dict, description="Environment that the image itself sets.")
    container: str | None = Field(default=None, description="Name of its container.")
    node: str = Field(description="Host that ran it.")
    devices: list[str] = Field(default_factory=list, description="Accelerators it held.")
    driver: str | None = Field(default=None, description="Accelerator driver.")
    version: dict[str, JsonValue] = Field(default_factory=dict, description="The engine's own /version.")
    simulated: bool = Field(default=False, description="True when the engine says that it simulates.")
    observed: list[Observed] = Field(default_factory=list, description="Label against runtime.")
    effective: dict[str, JsonValue] = Field(default_factory=dict, description="Settings as the engine reports them.")
    launched_unix: float = Field(description="Wall clock at launch, seconds since the epoch.")
    ready_s: float | None = Field(default=None, description="Seconds from launch to the first generated token.")
    ended_unix: float | None = Field(default=None, description="Wall clock at the end.")
    exit_code: int | None = Field(default=None, description="Exit status after our stop or its death.")
    death: Death | None = Field(default=None, description="Present when it died, hung or was never ready.")


class Run(Strict):
    """run.json: what one sweep of one recipe is; its state is derived from the other files."""

    format_version: int = Field(description="Format of the run folder.")
    id: str = Field(description="Folder name: UTC time, recipe key and a short id.")
    recipe: str = Field(description="Recipe key.")
    runner: str = Field(description="Runner profile.")
    created_unix: float = Field(description="Wall clock at creation, seconds since the epoch.")
    harness_version: str = Field(description="Version of infx.")
    harness_commit: str | None = Field(default=None, description="Commit of the tree that ran, with + when dirty.")
    client_version: str = Field(description="Version of the load client's definitions.")
    client_host: str = Field(description="Host of the load client.")
    stands_in: bool = Field(default=False, description="The profile's engine stands in for the pinned one.")
    quick: bool = Field(default=False, description="Swept with --quick: never publishable.")
    unofficial: bool = Field(default=False, description="Swept with relaxed rules: never publishable.")
    command: list[str] = Field(default_factory=list, description="The command line.")
