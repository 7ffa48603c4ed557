"""What a load is to be: the engine's address, how many streams, and when the window opens and closes.

Plain dataclasses, picklable, without heavy imports: every load worker gets a copy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from infx.errors import UsageError


@dataclass(frozen=True, slots=True)
class WindowRule:
    """When the measured window closes, counted from its opening.

    The window opens when every lane has ended one request and has begun one of phase main (the first wave,
    primers and warm-ups are cut). It closes when ``minimum_requests`` that started in it have ended and
    ``minimum_s`` have passed, or after ``cap_s``. With ``duration_s`` it closes then and at no other time.
    With a ``target`` it also waits until the relative half-widths of throughput and of median TPOT are below it
    (measure/stop), or the cap.
    """

    minimum_requests: int = 0
    minimum_s: float = 0.0
    cap_s: float = 3600.0
    duration_s: float | None = None
    target: float | None = None


@dataclass(frozen=True, slots=True)
class Arrivals:
    """An open loop: requests arrive at ``rate`` a second, whether or not earlier ones have ended."""

    rate: float
    kind: Literal["poisson", "constant"] = "poisson"
    seed: int = 0
    warmup_s: float = 1.0  # the window opens this long after the first arrival


@dataclass(frozen=True, slots=True)
class LoadSpec:
    """One load on one engine.

    ``base_url`` is http://host:port with an optional path; ``model`` the name that the engine serves.
    ``concurrency`` lanes are kept busy, unless ``arrivals`` makes it an open loop. ``continuous_usage`` asks
    for a usage count with every event. Times in seconds: a request that takes longer than ``request_timeout_s``
    fails; when no byte comes from any connection for ``stall_s`` while requests are in flight, the engine is
    taken for hung. After ``give_up_after`` failures in a row (default: 3 × concurrency, at least 20) the
    engine is taken for dead. ``body`` overrides or adds keys of the request body, ``headers`` HTTP headers.
    """

    base_url: str
    model: str
    concurrency: int
    window: WindowRule = field(default_factory=WindowRule)
    endpoint: Literal["completions", "chat"] = "completions"
    arrivals: Arrivals | None = None
    temperature: float | None = 0.0
    continuous_usage: bool = True
    request_timeout_s: float = 1800.0
    connect_timeout_s: float = 10.0
    stall_s: float = 600.0
    drain_s: float = 1800.0
    give_up_after: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, object] = field(default_factory=dict)
    tokenize_path: str | None = "/tokenize"

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise UsageError(f"concurrency {self.concurrency} is below 1")
        if urlsplit(self.base_url).scheme != "http" or not urlsplit(self.base_url).hostname:
            raise UsageError(
                f"cannot load {self.base_url!r}", allowed="http://host:port[/path]",
                hint="put the client beside the engine: a TLS proxy would be measured too",
            )  # fmt: skip

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.base_url).port or 80

    @property
    def path(self) -> str:
        prefix = urlsplit(self.base_url).path.rstrip("/")
        return prefix + ("/v1/chat/completions" if self.endpoint == "chat" else "/v1/completions")

    @property
    def failures_in_a_row(self) -> int:
        return self.give_up_after or max(20, 3 * self.concurrency)
