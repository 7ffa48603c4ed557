"""Engine features in the simulator: what refuses to start, which launches a step takes, what they save, what proves it.

The rules are those of configs/engine-features.yaml (infx.predict.features); the log lines are spelled here on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from infx.predict.deployment import Deployment
from infx.predict.features import RUNS, Engagement, FeatureState, State
from infx.predict.steptime import Saving
from infx.schema.catalog import ImageTable
from infx.simulator.scheduler import NOTHING, Engage, Engaged

PROOF = {
    "mono-decode-v41.whole": "DSv4.1 mono decode layer active (decode steps of <= {cap} rows)",
    "mono-decode-v41.ffn": "DSv4.1 mono decode FFN launch active (decode steps of <= {cap} rows)",
}
NOTES = {
    "mono-decode-v41.whole": "DSv4.1 mono decode: the whole standard backbone layers ({layers} of {all})",
    "mono-decode-v41.ffn": (
        "DSv4.1 mono decode: the FFN launch for layers with an Engram, compressor or indexer of their own "
        "({layers} of {all})"
    ),
}
OFF = {"mono-decode-v41": "DSv4.1 mono decode off for some layers: {reasons}"}


class NewestImage(ImageTable):
    """Stands for an image that nobody named: it has every change."""

    def __init__(self) -> None:
        super().__init__({})

    def has(self, reference: str, change: str) -> bool | None:
        """Always True."""
        return True


@dataclass(frozen=True)
class Features:
    """The step rule of a deployment, its proof lines by launch, and what is said at start."""

    engage: Engage
    proof: Mapping[str, str]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def refusals(engagement: Engagement) -> list[str]:
    """For each feature that was asked for and cannot run, one sentence with every reason."""
    refused = [feature for feature in engagement.features.values() if feature.state is State.REFUSED]
    return [f"{feature.title} cannot run on this deployment: {'; '.join(feature.reasons)}" for feature in refused]


def build(engagement: Engagement, deployment: Deployment, savings: Mapping[str, Mapping]) -> Features:
    """The rule; ``savings``: ``launches`` of configs/simulator.yaml."""
    depth = deployment.model.number("layers")
    live = {
        f"{feature.name}.{launch.name}": launch
        for feature in engagement.features.values()
        for launch in feature.launches
        if feature.state in RUNS and launch.state in RUNS
    }
    table: dict[str, Saving] = {}
    for name, launch in live.items():
        table[name] = _saving(savings.get(name, {}), (launch.layers or depth) / depth, deployment.tp)

    def engage(rows: int, tokens: int, has_prompt: bool) -> Engaged:
        names = engagement.step_engages(rows, has_prompt, tokens)
        if not names:
            return NOTHING
        saving = Saving(*(sum(parts) for parts in zip(*(table[name] for name in names), strict=True)))
        return Engaged(tuple(sorted(names)), saving)

    counts = {name: {"cap": launch.cap, "layers": launch.layers, "all": int(depth)} for name, launch in live.items()}
    proof = {name: text.format(**counts[name]) for name, text in PROOF.items() if name in live}
    notes = [text.format(**counts[name]) for name, text in NOTES.items() if name in live]
    notes += [
        text.format(reasons="; ".join(engagement.features[name].reasons))
        for name, text in OFF.items()
        if name in engagement.features and engagement.features[name].state in RUNS and engagement.features[name].reasons
    ]
    return Features(engage, proof, tuple(notes), tuple(_warnings(engagement, deployment)))


def _saving(row: Mapping, served: float, tp: int) -> Saving:
    """One launch's entry, times the share of layers that it ``served``."""
    launch = row.get("launch", 0.0)
    if isinstance(launch, Mapping):
        launch = launch.get(str(tp), 0.0)
    return Saving(launch * served, row.get("weight", 0.0) * served, row.get("row-us", 0.0) * 1e-6 / tp)


def _warnings(engagement: Engagement, deployment: Deployment) -> list[str]:
    found: list[str] = []
    for feature in engagement.features.values():
        if feature.state is State.CLAMPED:
            found += [reason for reason in feature.reasons if "clamped" in reason]
        elif feature.state in (State.OFF, State.UNKNOWN) and feature.asked:
            found.append(f"{feature.title} stays off: {'; '.join(feature.reasons)}")
            found += _unknown_names(feature, deployment)
    return found


def _unknown_names(feature: FeatureState, deployment: Deployment) -> list[str]:
    """What an engine without the feature says of the variable that would switch it on."""
    if not any("lacks it" in reason for reason in feature.reasons):
        return []
    name = "VLLM_ROCM_MONO_DECODE"
    return [f"Unknown vLLM environment variable detected: {name}"] if deployment.variable(name) else []
