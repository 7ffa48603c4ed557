"""What engages: for a deployment, each engine feature's state with all reasons at once, and which steps take it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from infx.predict.deployment import Deployment, as_number, holds, subject
from infx.schema.features import Feature, Floor, KnownFailure, Launch, Predicate, Requirement


class State(StrEnum):
    """What a feature or a launch of it is in a deployment.

    possible: steps within its limits take it. clamped: so too, but a setting was out of the built range.
    off: not asked for, or left off in silence. refused: asked for where the engine refuses to start.
    unknown: whether the image knows it is not recorded. not-applicable: it is about other deployments.
    """

    POSSIBLE = "possible"
    CLAMPED = "clamped"
    OFF = "off"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not-applicable"


RUNS = frozenset({State.POSSIBLE, State.CLAMPED})


@dataclass(frozen=True)
class LaunchState:
    """One launch: its state, the most rows or tokens of a step, the least tokens, and why.

    ``layers`` counts the layers that it serves, where the model's facts say so.
    """

    name: str
    title: str
    state: State
    counts: str
    pure_decode: bool
    cap: int | None = None
    floor: int | None = None
    layers: int | None = None
    reasons: tuple[str, ...] = ()

    def engages(self, rows: int, has_prefill: bool, tokens: int) -> bool:
        """Whether a step of ``rows`` decode rows and ``tokens`` tokens in all takes this launch."""
        if self.state not in RUNS or (self.pure_decode and (has_prefill or rows < 1)):
            return False
        size = rows if self.counts == "rows" else tokens
        return size >= (self.floor or 1) and (self.cap is None or size <= self.cap)


@dataclass(frozen=True)
class FeatureState:
    """One feature in one deployment; ``reasons`` are all of them, whether or not one would do."""

    name: str
    title: str
    state: State
    reasons: tuple[str, ...]
    launches: tuple[LaunchState, ...]
    proof: tuple[str, ...] = ()
    asked: bool = False


class Engagement:
    """Every feature of a deployment, and the rule that a step follows."""

    def __init__(self, features: Iterable[FeatureState]) -> None:
        self.features: Mapping[str, FeatureState] = {feature.name: feature for feature in features}
        self._live = [
            (f"{feature.name}.{launch.name}", launch)
            for feature in self.features.values()
            for launch in feature.launches
            if feature.state in RUNS and launch.state in RUNS
        ]

    def step_engages(self, rows: int, has_prefill: bool, tokens: int | None = None) -> set[str]:
        """Names ``feature.launch`` that a step takes; ``tokens`` (default: rows) counts prompt tokens too."""
        total = rows if tokens is None else tokens
        return {name for name, launch in self._live if launch.engages(rows, has_prefill, total)}


def evaluate(features: Iterable[Feature], deployment: Deployment) -> Engagement:
    """The state of every feature in ``deployment``."""
    return Engagement(_feature(feature, deployment) for feature in features)


def failures(known: Iterable[KnownFailure], deployment: Deployment) -> list[KnownFailure]:
    """Recorded failures whose conditions all hold (an unknown condition does not)."""
    return [item for item in known if all(holds(condition, deployment) is True for condition in item.when)]


def _feature(feature: Feature, deployment: Deployment) -> FeatureState:
    def state(what: State, reasons: Iterable[str], launches: Iterable[LaunchState] = (), asked: bool = False):
        return FeatureState(
            feature.name, feature.title, what, tuple(reasons), tuple(launches), tuple(feature.proof), asked
        )

    foreign = [item for item in feature.applies if holds(item, deployment) is not True]
    if foreign:
        return state(State.NOT_APPLICABLE, (_is_not(item, deployment) for item in foreign))
    unasked = [item for item in feature.asked_by if holds(item, deployment) is not True]
    if unasked:
        return state(State.OFF, (_is_not(item, deployment) for item in unasked))
    asked = bool(feature.asked_by)
    what, reasons = _requirements(feature.requires, deployment)
    launches = [_launch(name, launch, deployment) for name, launch in feature.launches.items()]
    if what is None:
        invalid = [reason for item in launches if item.state is State.REFUSED for reason in item.reasons]
        if invalid:
            return state(State.REFUSED, dict.fromkeys(invalid), launches, asked)
        running = [item.state for item in launches if item.state in RUNS]
        what = State.CLAMPED if State.CLAMPED in running else State.POSSIBLE if running else State.OFF
        reasons = [f"{item.name}: {reason}" for item in launches for reason in item.reasons]
    return state(what, reasons, launches, asked)


def _requirements(requires: Iterable[Requirement], deployment: Deployment) -> tuple[State | None, list[str]]:
    """The state that unmet requirements force (None: all met) and every one of them.

    An image that lacks the feature ignores its setting, so it is off whatever else is wrong; where the image is
    unknown, a refusal is still certain for every image that has it.
    """
    states, reasons = set(), []
    for item in requires:
        if item.only_tp is not None and deployment.tp not in item.only_tp:
            continue
        met = holds(item, deployment)
        if met is True:
            continue
        states.add(State.UNKNOWN if met is None else State(item.unmet))
        reasons.append(f"needs {item.why}; {_found(item, deployment, met)}")
    order = (State.OFF, State.REFUSED, State.NOT_APPLICABLE, State.UNKNOWN)
    return next((what for what in order if what in states), None), reasons


def _launch(name: str, launch: Launch, deployment: Deployment) -> LaunchState:
    what, reasons = _requirements(launch.requires, deployment)
    state = what or State.POSSIBLE
    cap, problem, clamped = _cap(launch, deployment)
    if problem:
        reasons = [*reasons, problem]
        if state is State.POSSIBLE:
            state = State.CLAMPED if clamped else State.REFUSED if cap is None else state
    floor = _floor(launch.floor, deployment) if launch.floor else None
    layers = deployment.model.number(launch.layers, -1) if launch.layers else -1
    return LaunchState(
        name, launch.title, state, launch.counts, launch.pure_decode, cap, floor,
        int(layers) if layers >= 0 else None, tuple(reasons),
    )  # fmt: skip


def _cap(launch: Launch, deployment: Deployment) -> tuple[int | None, str, bool]:
    """The cap, a reason where it is not plainly the setting or default, and whether it was clamped."""
    cap = launch.cap
    if cap is None or cap.fixed is not None:
        return (cap.fixed if cap else None), "", False
    default = cap.default_at(deployment.tp)
    text = deployment.variable(cap.env) if cap.env else None
    if text is None:
        return default, ("" if default is not None else f"no default at TP {deployment.tp}"), False
    number = as_number(text)
    if number is None or number != int(number):
        return None, f"{cap.env} is {text!r}, not an integer", False
    built = (cap.built or {}).get(str(deployment.tp))
    if built is not None and not 1 <= number <= built:
        value = min(max(int(number), 1), built)
        return value, f"{cap.env}={text} is outside 1…{built} at TP {deployment.tp} and is clamped to {value}", True
    return int(number), "", False


def _floor(floor: Floor, deployment: Deployment) -> int | None:
    """Tokens from which one all-reduced activation is large enough: ceil(bytes ÷ (hidden × element bytes))."""
    row = floor.bytes_by.get(str(deployment.variable(floor.setting)), {})
    least = row.get(str(deployment.tp))
    override = as_number(deployment.variable(floor.override_mb)) if floor.override_mb else None
    if override is not None:
        least = int(override * 2**20)
    return None if least is None else math.ceil(least / (deployment.model.number("hidden") * floor.element_bytes))


def _is_not(item: Predicate, deployment: Deployment) -> str:
    return f"{_name(item.of)} is {_shown(subject(deployment, item.of))}, not {_wanted(item)}"


def _found(item: Requirement, deployment: Deployment, met: bool | None) -> str:
    if item.image_has is not None:
        return "nothing is recorded about this image" if met is None else "this image lacks it"
    if met is None:
        return f"{_name(item.of)} is unknown"
    return f"{_name(item.of)} is {_shown(subject(deployment, item.of))}"


def _name(of: str) -> str:
    return of.removeprefix("env.").removeprefix("serve.")


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    return "set" if isinstance(value, Mapping) else str(value).lower() if isinstance(value, bool) else str(value)


def _wanted(item: Predicate) -> str:
    parts = []
    if "equals" in item.model_fields_set:
        parts.append(_shown(item.equals) if not isinstance(item.equals, bool) else str(int(item.equals)))
    parts += [_shown(value) for value in item.in_ or ()]
    if item.range is not None:
        parts.append(f"{item.range.min or ''}…{item.range.max or ''}")
    return " or ".join(parts) or "set"
