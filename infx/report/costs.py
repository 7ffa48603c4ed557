"""Cost and power figures of reports: made from a point's own values, its measured power and the price book.

Nothing is assumed: without a price or without measured power the figure is null and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from infx.results.load import LoadedRun
from infx.schema.metrics import METRICS
from infx.schema.result import PointResult, Value, Visit


def with_costs(loaded: LoadedRun, usd_per_gpu_hour: Mapping[str, float]) -> LoadedRun:
    """The run with cost and power figures added to every visit; prices are by hardware key.

    $ per million tokens = price ÷ (tok/s/GPU × 3600) × 10⁶; tok/s/MW = tok/s/GPU × GPUs ÷ mean power × 10⁶.
    """
    price = usd_per_gpu_hour.get(loaded.plan.hardware)
    no_price = f"the price book has no price for {loaded.plan.hardware}"
    results = tuple(
        result.model_copy(update={"visits": [_visit(visit, result, price, no_price) for visit in result.visits]})
        for result in loaded.results
    )
    return replace(loaded, results=results)


def _visit(visit: Visit, result: PointResult, price: float | None, no_price: str) -> Visit:
    values = {**visit.client, **visit.engine, **visit.metrics}
    power = values.get("power-mean")
    added: dict[str, Value] = {}
    for key in ("output", "total"):
        rate = values.get(f"{key}-throughput-per-gpu")
        cost, dense = f"usd-per-million-{key}-tokens", f"{key}-throughput-per-megawatt"
        if rate is None or rate.value is None or rate.value <= 0:
            why = "no throughput per GPU" if rate is None or rate.reason is None else rate.reason
            added[cost], added[dense] = (Value.missing(METRICS[name].unit, why) for name in (cost, dense))
            continue
        if price is None:
            added[cost] = Value.missing(METRICS[cost].unit, no_price)
        else:
            added[cost] = _scaled(rate, cost, lambda y: price / (y * 3600.0) * 1e6)
        if power is None or power.value is None or power.value <= 0:
            why = "power was not measured" if power is None or power.reason is None else power.reason
            added[dense] = Value.missing(METRICS[dense].unit, why)
        else:
            watts = power.value / result.gpus
            added[dense] = _scaled(rate, dense, lambda y, watts=watts: y / watts * 1e6)
    return visit.model_copy(update={"metrics": {**visit.metrics, **added}})


def _scaled(rate: Value, name: str, change) -> Value:
    """``rate`` through a monotone ``change``, with the ends of its interval in order."""
    assert rate.value is not None
    ends = sorted(change(end) for end in (rate.low, rate.high) if end)
    low, high = (ends[0], ends[1]) if len(ends) == 2 else (None, None)
    return Value(value=change(rate.value), unit=METRICS[name].unit, n=rate.n, low=low, high=high)
