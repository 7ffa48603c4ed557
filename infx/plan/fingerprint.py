"""Fingerprints: declared facts only, canonical and versioned, equal in a pull request and at run time."""

from __future__ import annotations

import hashlib
import json

from pydantic import JsonValue

from infx.schema.plan import Workload
from infx.schema.recipe import KvOffload
from infx.schema.settings import Parallel
from infx.schema.version import FINGERPRINT


def digest_of(facts: JsonValue) -> str:
    """``f1-`` and 16 hex digits of the sha256 of canonical JSON."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return f"{FINGERPRINT}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def server_fingerprint(
    *, engine: str, image: str, hardware: str, precision: str, parallel: Parallel, argv: list[str],
    env: dict[str, str], kv_offload: KvOffload | None = None,
) -> str:
    """Of what an engine start is asked to be: engine, image, hardware, precision, layout, argv, environment, offload.

    Facts that came later (offload) are left out when absent, so that older fingerprints stay.
    """
    layout = parallel.model_dump(mode="json", by_alias=True)
    facts: dict[str, JsonValue] = {"engine": engine, "image": image, "hardware": hardware, "precision": precision,
                                   "parallel": layout, "argv": list(argv), "env": dict(env)}
    if kv_offload is not None:
        facts["kv-offload"] = kv_offload.model_dump(mode="json", by_alias=True)
    return digest_of(facts)


def point_fingerprint(*, server: str, workload: Workload, concurrency: int) -> str:
    """Of a measurement: its server, its workload (pinned trace and data set hashes in it) and its concurrency.

    Recorded answers, the default, are left out, so that fingerprints from before there was a choice stay.
    """
    facts = workload.model_dump(mode="json", by_alias=True)
    if facts.get("answers") == "recorded":
        del facts["answers"]
    return digest_of({"server": server, "workload": facts, "concurrency": concurrency})
