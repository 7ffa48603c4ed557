"""Why a point may not be published as measured: reasons with codes, from its table and the engine's counters.

Pure: the caller gives what it knows (None: not known, no judgement). Client-bound is a status of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from infx.measure.table import RequestTable
from infx.measure.window import Span, in_flight, measured
from infx.schema.result import Reason

RECOMPUTE_LIMIT = 0.01
HIT_LIMIT = 0.01
ACCEPTANCE_TOLERANCE = 0.02


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What the engine's counters say of the window; None where they say nothing.

    ``hit_share`` = prefix hits ÷ queried prompt tokens, ``recompute_share`` = prompt tokens computed again ÷
    prompt tokens, ``drafts`` and ``acceptance_length`` of speculation, ``sequence_cap`` the most sequences that
    the engine runs at once, ``running_peak`` and ``waiting_peak`` the most it was seen to run and hold back.
    """

    hit_share: float | None = None
    recompute_share: float | None = None
    drafts: float | None = None
    acceptance_length: float | None = None
    sequence_cap: int | None = None
    running_peak: float | None = None
    waiting_peak: float | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What the recipe says: failure share allowed, known common prefix, lanes, speculation.

    ``known_hit_share``: prefix hits that the workload itself explains (template, shared prefixes); None: any.
    ``synthetic_acceptance``: the golden acceptance length that the engine was told to imitate, else None.
    ``speculative``: drafts must not be 0.
    """

    concurrency: int
    failure_limit: float = 0.0
    known_hit_share: float | None = 0.0
    synthetic_acceptance: float | None = None
    speculative: bool = False


def invalid_reasons(
    table: RequestTable, span: Span, expected: Expected, engine: EngineFacts | None = None
) -> list[Reason]:
    """Every reason for which the window is not valid; an empty list: none is known."""
    chosen = table.select(measured(table, span))
    found = [*_requests(chosen, expected), *_prompts(chosen)]
    if engine is not None:
        found += [*_cache(expected, engine), *_speculation(expected, engine), *_cap(table, span, expected, engine)]
    return found


def _requests(chosen: RequestTable, expected: Expected) -> list[Reason]:
    if not len(chosen):
        return [Reason(code="no-measured-request", message="no request of phase main started in the window")]
    failed = int(chosen.failed.sum())
    share = failed / len(chosen)
    found = []
    if share > expected.failure_limit:
        kinds = ", ".join(f"{count} {kind}" for kind, count in chosen.failures().items())
        found.append(
            Reason(
                code="failures-above-limit",
                message=f"{failed} of {len(chosen)} measured requests failed "
                        f"({share:.2%}, limit {expected.failure_limit:.2%}): {kinds}",
            )
        )  # fmt: skip
    if not chosen.ok.any():
        found.append(Reason(code="no-good-request", message="no measured request ended well"))
    return found


def _prompts(chosen: RequestTable) -> list[Reason]:
    sent, counted = chosen["prompt_sent"], chosen["prompt_usage"]
    differ = chosen.ok & (sent > 0) & (counted >= 0) & (counted != sent)
    if not differ.any():
        return []
    first = int(np.flatnonzero(differ)[0])
    return [
        Reason(
            code="prompt-tokens-differ",
            message=f"{int(differ.sum())} requests: the engine counts other prompt tokens than were sent",
            evidence=f"sent {sent[first]} ids, usage.prompt_tokens {counted[first]}",
        )
    ]


def _cache(expected: Expected, engine: EngineFacts) -> list[Reason]:
    found = []
    known = expected.known_hit_share
    if known is not None and engine.hit_share is not None and engine.hit_share > known + HIT_LIMIT:
        found.append(
            Reason(
                code="prefix-hits",
                message=f"{engine.hit_share:.2%} of prompt tokens came from the prefix cache; "
                        f"the workload explains {known:.2%}",
            )
        )  # fmt: skip
    if engine.recompute_share is not None and engine.recompute_share > RECOMPUTE_LIMIT:
        found.append(
            Reason(
                code="preemption-recompute",
                message=f"{engine.recompute_share:.2%} of prompt tokens were computed again after preemption "
                        f"(limit {RECOMPUTE_LIMIT:.0%})",
            )
        )  # fmt: skip
    return found


def _speculation(expected: Expected, engine: EngineFacts) -> list[Reason]:
    if (expected.speculative or expected.synthetic_acceptance is not None) and engine.drafts == 0:
        return [Reason(code="no-drafts", message="the recipe speculates, but the engine drafted nothing")]
    golden, found = expected.synthetic_acceptance, engine.acceptance_length
    if golden is None or found is None or math.isclose(found, golden, rel_tol=ACCEPTANCE_TOLERANCE):
        return []
    return [
        Reason(
            code="acceptance-length",
            message=f"acceptance length {found:.3f} is {found / golden - 1:+.1%} off the golden {golden:.3f} "
                    f"(limit {ACCEPTANCE_TOLERANCE:.0%})",
        )
    ]  # fmt: skip


def _cap(table: RequestTable, span: Span, expected: Expected, engine: EngineFacts) -> list[Reason]:
    cap = engine.sequence_cap
    if cap is None:
        return []
    peak = in_flight(table, span, expected.concurrency).peak
    asked = max(peak, expected.concurrency)
    if cap >= asked:
        return []
    waiting = "" if engine.waiting_peak is None else f"; up to {engine.waiting_peak:.0f} waited"
    return [
        Reason(
            code="server-cap-binds",
            message=f"the engine runs at most {cap} sequences, the load had {asked} in flight{waiting}",
        )
    ]
