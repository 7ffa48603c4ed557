"""Versions of what infx writes: one integer each; newer than ours is refused, older is migrated at read."""

from __future__ import annotations

RUN_FORMAT = 1
"""Format of a run folder (run.json, plan.json, start.json, result.json)."""

FINGERPRINT = "f1"
"""Prefix of point fingerprints; raised when the set of declared facts or their spelling changes."""

CLIENT = "c1"
"""Version of the load client's definitions; results of two client versions are never mixed silently."""

__version__ = "0.1.0"
