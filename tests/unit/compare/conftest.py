"""Sides of a comparison from a few figures: starts × points with an effect shared by the points of a start."""

from __future__ import annotations

import numpy as np
import pytest

from infx.compare.sides import Facts, Measured, Side
from infx.schema.metrics import METRICS
from infx.schema.result import Reason, Status, Value

FACTS = {
    "recipe": "demo", "arm": None, "fingerprint": "f1", "fixed_length": True, "model": "m", "precision": "fp4",
    "workload": '{"isl": 8192, "kind": "fixed-seq-len", "osl": 1024}', "hardware": "mi355x", "engine": "vllm",
    "gpus": 2, "client": "c1", "simulated": False, "quick": False, "unofficial": False, "image": "i@sha256:1",
    "digest": "sha256:1", "node": "n1", "driver": "6.4", "version": "0.32", "harness": "abc",
}


def measured(start="r1:001", c=4, tp=2, figures=None, status="ok", launched=0.0, reasons=(), **facts):
    axes = {"tp": tp, "pp": 1, "dp": 1, "ep": 1, **facts.pop("axes", {})}
    made = Facts(**{**FACTS, "axes": axes, "concurrency": c, **facts})
    values = {
        name: Value.missing(METRICS[name].unit, "not enough requests") if figure is None
        else Value(value=figure, unit=METRICS[name].unit) for name, figure in (figures or {}).items()
    }
    return Measured(start=start, run=start.split(":")[0], launched=launched, facts=made, status=Status(status),
                    reasons=tuple(Reason(code="x", message=r) for r in reasons), values=values, sha256="0" * 64)


def side(name, *points, **extra):
    found = {}
    for m in points:
        found.setdefault(m.facts.label, []).append(m)
    return Side(name, {label: tuple(ms) for label, ms in found.items()}, **extra)


def drawn(name, rng, starts, *, points=(4, 8, 16), metrics=("itl-p50",), between=0.02, within=0.003, effect=0.0,
          run=None, **facts):
    """A side whose log values are a start's effect plus noise; ``effect``: by concurrency, or one for all."""
    made = []
    for number in range(starts):
        shared = between * rng.standard_normal()
        for c in points:
            gain = effect.get(c, 0.0) if isinstance(effect, dict) else effect
            figures = {m: 100.0 * float(np.exp(shared + gain + within * rng.standard_normal())) for m in metrics}
            made.append(measured(f"{run or name}:{number:03d}", c, figures=figures, launched=float(number), **facts))
    return side(name, *made)


@pytest.fixture
def make():
    class Make:
        measured = staticmethod(measured)
        side = staticmethod(side)
        drawn = staticmethod(drawn)

    return Make
