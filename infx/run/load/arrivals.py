"""When requests of an open loop arrive: seconds after the start, by seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from infx.errors import UsageError
from infx.run.load.spec import Arrivals


def arrival_times(arrivals: Arrivals) -> Iterator[float]:
    """Endless increasing times in seconds; Poisson (exponential gaps) or constant, ``rate`` a second.

    Equal arguments give equal times. Raises UsageError for a rate that is not positive.
    """
    if not arrivals.rate > 0:
        raise UsageError(f"request rate {arrivals.rate} is not above 0")
    source = random.Random(f"arrivals {arrivals.seed}")
    now = 0.0
    while True:
        yield now
        now += source.expovariate(arrivals.rate) if arrivals.kind == "poisson" else 1 / arrivals.rate
