"""One deployment as plain data, and closed predicates over it: true, false, or unknown where a fact is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from infx.schema.facts import HardwareFacts, ModelFacts
from infx.schema.features import ImageTable, Predicate

TRUE = frozenset({"1", "true"})
FALSE = frozenset({"0", "false", ""})


@dataclass(frozen=True)
class Deployment:
    """What a point's server is: facts of model and device, layout, environment, serve arguments, speculation, image.

    ``serve`` has kebab-case keys and plain values; ``speculative`` has kebab-case keys (method, draft-tokens, …) or is
    None; ``env`` is what the recipe sets: what the image sets beneath it is added from ``images``.
    """

    model: ModelFacts
    hardware: HardwareFacts
    image: str
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    concurrency: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    serve: Mapping[str, Any] = field(default_factory=dict)
    speculative: Mapping[str, Any] | None = None
    images: ImageTable = field(default_factory=lambda: ImageTable({}))

    @property
    def drafts(self) -> int:
        """Draft tokens a step; 0 without speculation."""
        return int((self.speculative or {}).get("draft-tokens") or 0)

    @property
    def rows(self) -> int | None:
        """Decode rows of a step with every stream decoding: concurrency × (1 + drafts); None without a concurrency."""
        return None if self.concurrency is None else self.concurrency * (1 + self.drafts)

    def variable(self, name: str) -> str | None:
        """An environment value as the engine sees it: the recipe's, else the image's own."""
        if name in self.env:
            return self.env[name]
        contents = self.images.contents(self.image)
        return contents.env.get(name) if contents else None


def subject(deployment: Deployment, of: str) -> Any:
    """The value that a predicate speaks of; None where it is not set. KeyError for a subject that does not exist."""
    head, _, rest = of.partition(".")
    if head == "env" and rest:
        return deployment.variable(rest)
    if head == "serve" and rest:
        return _nested(deployment.serve, rest)
    if head == "speculative":
        return _nested(deployment.speculative, rest) if rest else deployment.speculative
    if head == "model" and rest in ("architecture", "quantization", "key"):
        return getattr(deployment.model, rest)
    if head == "hardware" and rest in ("key", "arch"):
        return getattr(deployment.hardware, rest)
    if head == "hardware" and rest:
        fact = deployment.hardware.known.get(rest)
        return fact.value if fact else None
    if of in ("tp", "pp", "dp", "ep", "concurrency", "image"):
        return getattr(deployment, of)
    raise KeyError(of)


def holds(predicate: Predicate, deployment: Deployment) -> bool | None:
    """Whether any of the predicate's tests is fulfilled; None where the fact or the image's contents are unknown."""
    value = subject(deployment, predicate.of)
    if predicate.image_has is not None:
        return deployment.images.has(deployment.image, predicate.image_has)
    if value is None:
        if predicate.of.startswith("hardware."):
            return None
        return predicate.absent is True
    given = predicate.model_fields_set
    passed = [
        "absent" in given and predicate.absent is False,
        "equals" in given and same(value, predicate.equals),
        predicate.in_ is not None and any(same(value, item) for item in predicate.in_),
        predicate.not_in is not None and not any(same(value, item) for item in predicate.not_in),
        predicate.range is not None and _within(value, predicate.range.min, predicate.range.max),
    ]
    return any(passed)


def same(value: Any, wanted: Any) -> bool:
    """Equality as an engine reads it: the text ``1`` or ``true`` is true, ``8`` is 8; letters keep their case."""
    if isinstance(wanted, bool):
        if isinstance(value, str):
            return value.strip().lower() in (TRUE if wanted else FALSE)
        return isinstance(value, bool) and value == wanted
    if isinstance(wanted, (int, float)):
        number = as_number(value)
        return number is not None and number == wanted
    return value == wanted


def as_number(value: Any) -> float | None:
    """A number, or a text that is one; None otherwise."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def as_count(value: Any) -> int | None:
    """An integer that may carry k, m, g (thousands) or K, M, G (1024s), as vLLM reads such flags; None otherwise."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if not isinstance(value, str) or not value:
        return None
    scale = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}.get(value[-1])
    number = as_number(value[:-1] if scale else value)
    if number is None or (not scale and not value.lstrip("+-").isdigit()):
        return None
    return int(number * (scale or 1))


def _nested(mapping: Mapping[str, Any] | None, path: str) -> Any:
    value: Any = mapping
    for step in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(step, value.get(step.replace("_", "-"), value.get(step.replace("-", "_"))))
    return value


def _within(value: Any, low: float | None, high: float | None) -> bool:
    number = as_number(value)
    return number is not None and (low is None or number >= low) and (high is None or number <= high)
