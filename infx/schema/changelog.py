"""The changelog's nouns: what an entry says (change, results, retract) and the claims that a change may make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from infx.schema.metrics import METRICS
from infx.schema.strict import Strict

PLACEHOLDER = "XXX"
"""What stands for the link's number until the pull request has one."""

LINK = re.compile(r"https://[A-Za-z0-9.-]+(?::\d+)?(?:/[A-Za-z0-9._~-]+)+/(?:pull|pulls|merge_requests)/[1-9]\d*")
"""A canonical link to a pull request: nothing behind its number."""

PENDING = re.compile(rf"(?:https://\S+/)?{PLACEHOLDER}")
"""A link that is still to be filled in."""

Provenance = Literal["measured", "simulated", "quick", "unofficial", "stands-in"]

_CONDITION = re.compile(r"(c|tp|pp|dp|ep)\s*(<=|>=|=|<|>)\s*(\d+)")
_TESTS = {
    "<=": lambda have, want: have <= want,
    ">=": lambda have, want: have >= want,
    "=": lambda have, want: have == want,
    "<": lambda have, want: have < want,
    ">": lambda have, want: have > want,
}


@dataclass(frozen=True)
class Condition:
    """One test of a point's axis: ``c<=8``; ``c`` is the concurrency."""

    axis: str
    test: str
    value: int

    def holds(self, axes: Mapping[str, int]) -> bool:
        """Whether a point with these axes passes; a missing axis counts as 1."""
        return _TESTS[self.test](axes.get(self.axis, 1), self.value)


def conditions(text: str) -> tuple[Condition, ...]:
    """``tp=2, c<=8`` → its conditions, all of which must hold; ``all`` → none. Raises ValueError for other text."""
    if text.strip() == "all":
        return ()
    parsed = []
    for part in text.split(","):
        match = _CONDITION.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part.strip()!r} is no condition; write e.g. `c<=8`, `tp=2, c>=16` or `all` "
                             "(axes c, tp, pp, dp, ep; tests <= >= = < >)")
        parsed.append(Condition(match[1], match[2], int(match[3])))
    return tuple(parsed)


def _known_metric(name: str) -> str:
    if name != "all" and name not in METRICS:
        raise ValueError(f"unknown metric {name!r}; `all` or a name of the metric table, e.g. itl-p50")
    return name


def _readable(text: str) -> str:
    conditions(text)
    return text


class Expect(Strict):
    """A claim that results must bear out: these points, this metric, this verdict, against a baseline."""

    points: Annotated[str, AfterValidator(_readable)] = Field(
        description="Points that the claim is about: `c<=8`, `tp=2, c>=16` (all must hold) or `all`.")
    metric: Annotated[str, AfterValidator(_known_metric)] = Field(
        description="A metric of the metric table, or `all` that are compared by default.")
    verdict: Literal["better", "worse", "same"] = Field(description="What the comparison must find.")
    arm: str | None = Field(default=None, description="Arm that the claim is about; null: the recipe without an arm.")
    against: str | None = Field(
        default=None, description="Arm to compare with; null: the latest results entry before this change.")
    margin: float | None = Field(
        default=None, gt=0, lt=1, description="Relative equivalence margin, 0.02 for 2 %; null: the metric's own.")
    by: float | None = Field(
        default=None, gt=0, lt=10, description="Size of the gain or loss, 0.05 for 5 %: at least that much; null: any.")
    within: float | None = Field(
        default=None, gt=0, lt=1, description="With `by`: that size, give or take this much (0.01 for 1 % points).")

    @model_validator(mode="after")
    def sizes_belong_to_gains_and_losses(self) -> Expect:
        if self.by is not None and self.verdict == "same":
            raise ValueError("`by` says how much better or worse; `same` has a `margin`")
        if self.within is not None and self.by is None:
            raise ValueError("`within` needs `by`, the size that it is about")
        return self

    def sentence(self) -> str:
        """``c<=8 itl-p50 better by 5.0% ± 1.0%``."""
        size = "" if self.by is None else f" by at least {self.by:.1%}"
        if self.by is not None and self.within is not None:
            size = f" by {self.by:.1%} ± {self.within:.1%}"
        return f"{self.points} {self.metric} {self.verdict}{size}"

    def selects(self, axes: Mapping[str, int]) -> bool:
        """Whether the claim is about the point with these axes (tp, pp, dp, ep, c)."""
        return all(condition.holds(axes) for condition in conditions(self.points))


def _link(text: str) -> str:
    if not (LINK.fullmatch(text) or PENDING.fullmatch(text)):
        raise ValueError(f"{text!r:.120} is no canonical link: write https://HOST/OWNER/NAME/pull/NUMBER "
                         f"with nothing behind it, or {PLACEHOLDER} while there is no number")
    return text


Text = Annotated[str, Field(min_length=1)]
ConfigKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9._*?\[\]!-]+$")]
PullLink = Annotated[str, AfterValidator(_link)]
EntryId = Annotated[str, Field(pattern=r"^[0-9a-f]{12}-[1-9]\d*$")]


class Change(Strict):
    """What a pull request changes in which recipes, and what it claims of the results."""

    kind: Literal["change"] = Field(default="change", description="Kind of entry; may be left out.")
    config_keys: list[ConfigKey] = Field(min_length=1, description="Recipe keys, or globs of them.")
    scenario_type: list[Literal["fixed-seq-len", "agentic-coding"]] | None = Field(
        default=None, min_length=1, description="Only recipes of these scenarios; absent: of any.")
    description: list[Text] = Field(min_length=1, description="What changed and why, a line each.")
    pr_link: PullLink = Field(description=f"The pull request, or {PLACEHOLDER} until it has a number.")
    append_only: bool = Field(default=False, description="Points are added to curves and none is changed.")
    evals_only: bool = Field(default=False, description="Only evals run; throughput is not measured again.")
    all_evals: bool = Field(default=False, description="Every eval of the selected recipes runs.")
    expect: list[Expect] = Field(default_factory=list, description="Claims, judged from results.")

    @model_validator(mode="after")
    def append_only_alone(self) -> Change:
        if self.append_only and (self.evals_only or self.all_evals):
            raise ValueError("`append-only` excludes `evals-only` and `all-evals`")
        return self

    @property
    def pending(self) -> bool:
        """Whether the link is still the placeholder."""
        return PENDING.fullmatch(self.pr_link) is not None


class ResultsPoint(Strict):
    """One measured point of a results entry."""

    point: str = Field(description="Point key.")
    fingerprint: str = Field(description="Fingerprint of its declared facts.")
    start: str | None = Field(default=None, description="Engine start that measured it.")
    status: Literal["ok", "invalid", "failed", "client-bound", "interrupted"] = Field(description="How it ended.")
    metrics: dict[str, float] = Field(default_factory=dict, description="Headline metrics by name of the metric table.")
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] = Field(description="Hash of its result file.")


class Results(Strict):
    """What a run measured."""

    kind: Literal["results"] = Field(description="Kind of entry.")
    run: Text = Field(description="Id of the run, the name of its folder.")
    recipe: Text = Field(description="Recipe key.")
    runner: Text = Field(description="Runner profile.")
    provenance: list[Provenance] = Field(min_length=1, description="`measured`, or what speaks against publishing.")
    harness: str | None = Field(default=None, description="Commit of the tree that ran.")
    points: list[ResultsPoint] = Field(min_length=1, description="Its points, in order.")

    @model_validator(mode="after")
    def measured_alone(self) -> Results:
        if "measured" in self.provenance and len(self.provenance) > 1:
            raise ValueError("`measured` stands alone; simulated, quick and unofficial runs are not measured ones")
        return self


class Retract(Strict):
    """An earlier entry no longer counts, and why."""

    kind: Literal["retract"] = Field(description="Kind of entry.")
    entry: EntryId = Field(description="Id of the entry, as `infx changelog show` prints it.")
    reason: Text = Field(description="Why it no longer counts.")
    pr_link: PullLink | None = Field(default=None, description="The pull request, where there is one.")


ChangelogEntry = Annotated[Change | Results | Retract, Field(discriminator="kind")]
KINDS: dict[str, type[Change] | type[Results] | type[Retract]] = {
    "change": Change, "results": Results, "retract": Retract,
}
"""The entry classes by the value of their key `kind`."""
