"""What infx needs to know of an engine: its command line, its layout, its counters and its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from infx.schema.recipe import Speculative
from infx.schema.result import Observed


@dataclass(frozen=True)
class ServerFacts:
    """What an engine's argv is made of, resolved for one point. Serve keys are kebab-case."""

    model_path: str
    served_name: str
    tp: int
    pp: int
    dp: int
    ep: int
    serve: Mapping[str, JsonValue]
    speculative: Speculative | None
    acceptance_length: float | None


@dataclass(frozen=True)
class OffloadFacts:
    """What KV offload to host memory may use: ``budget_gb`` decimal gigabytes for all ranks of the server together."""

    budget_gb: int
    tp: int
    pp: int
    dp: int


@dataclass(frozen=True)
class Counters:
    """Names of an engine's counters and histograms in ``/metrics`` (prometheus sample names).

    ``steps`` counts engine steps by ``kind`` and by what ``engaged`` (``mono`` is in the
    names of mono decode kernels); ``rows`` is a histogram of decode rows. ``acceptance`` is a gauge of the
    acceptance length, for engines that do not count drafts. ``rank`` is the label that tells data-parallel
    ranks apart.
    """

    running: str
    waiting: str
    kv_usage: str
    prefix_queries: str
    prefix_hits: str
    preemptions: str
    prompt_tokens: str
    generation_tokens: str
    drafts: str
    draft_tokens: str
    accepted_tokens: str
    ttft: str
    itl: str
    tpot: str
    e2el: str
    queue: str
    recomputed_tokens: str | None = None
    steps: str | None = None
    mono: str = "mono"
    rows: str | None = None
    acceptance: str | None = None
    rank: str = "engine"


class Gpus(Protocol):
    def __call__(self, *, tp: int, pp: int, dp: int, ep: int) -> int: ...


class Observe(Protocol):
    def __call__(
        self, log: str, argv: Sequence[str], env: Mapping[str, str], environ: Mapping[str, str] | None
    ) -> list[Observed]: ...


@dataclass(frozen=True)
class Engine:
    """One engine module, as data and pure functions.

    ``program``: the words that start it inside an image; a profile's executable replaces the first.
    ``homes``: serve keys that a recipe must not set, with where they belong. ``gpus``: GPUs that a layout
    uses. ``argv``: arguments after the program's name, without host and port, which ``listen`` gives.
    ``context_limit``: the longest request that serve arguments allow, None when they do not say.
    ``version_of``: the engine's version out of its ``/version`` reply. ``observe``, ``features`` and
    ``effective`` read a log back: verdicts on what was asked, proofs of claimed features, settings as reported.
    ``server_pid``: the process id that the engine logs for its server. ``env``: names that the engine needs beside
    what the recipe sets. ``offloads``: backend of KV offload to the serve keys that ask for it. ``version_path``:
    where ``version_of``'s reply comes from. ``decides``: flag to the settings of ``effective`` that it decides, where
    they are not one setting of the flag's own name.
    """

    name: str
    program: tuple[str, ...]
    homes: Mapping[str, str]
    gpus: Gpus
    argv: Callable[[ServerFacts], list[str]]
    listen: Callable[[str, int], list[str]]
    counters: Counters
    context_limit: Callable[[Mapping[str, JsonValue]], int | None]
    version_of: Callable[[Mapping[str, JsonValue]], str | None]
    reset_prefix_cache: str | None
    observe: Observe
    features: Callable[[str, Mapping[str, str]], list[Observed]]
    effective: Callable[[str], dict[str, JsonValue]]
    server_pid: Callable[[str], int | None]
    env: Callable[[ServerFacts], dict[str, str]] = lambda facts: {}
    offloads: Mapping[str, Callable[[OffloadFacts], dict[str, JsonValue]]] = field(default_factory=dict)
    version_path: str = "/version"
    decides: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
