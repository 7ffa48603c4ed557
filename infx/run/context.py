"""What a running sweep holds: plan, runner, store, and its ears and mouth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from infx.engines import ENGINES
from infx.engines.protocol import Engine
from infx.results.store import RunStore
from infx.run.events import Sink
from infx.run.expected import Expect
from infx.schema.plan import Plan
from infx.schema.runner import Runner


@dataclass(frozen=True)
class Context:
    """``root``: folder that relative executables and models refer to; ``environment``: the caller's.

    ``digests``: the digest by which each image reference ran so far in this run (filled as engines start).
    ``expect`` sets a visit against limit and prediction; None: it is not.
    ``should_stop`` turns true when the user or the system asked to stop.
    """

    plan: Plan
    runner: Runner
    store: RunStore
    root: Path
    environment: Mapping[str, str]
    emit: Sink
    should_stop: Callable[[], bool]
    digests: dict[str, str] = field(default_factory=dict)
    expect: Expect | None = None

    @property
    def engine(self) -> Engine:
        return ENGINES[self.plan.engine]
