"""The headline recipe in virtual time (bench/traces/headline.py): what mono decode touches, TP4 against TP2, hits."""

import importlib.util
import sys
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from infx.plan.load import plans_for
from infx.sources.tree import WorkingTree

ROOT = Path(__file__).parents[3]
SECONDS = 60.0


def _bench():
    spec = importlib.util.spec_from_file_location("traces_headline", ROOT / "bench" / "traces" / "headline.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


bench = _bench()


@lru_cache
def played(short: str, arm: str = "base"):
    """(play, figures) of a minute of a point of the ladder."""
    (plan,) = plans_for(WorkingTree(ROOT), [bench.KEY], arms=(arm,))
    (point,) = [p for p in plan.points if p.key.endswith(f"/{short}")]
    deployment = bench.deployed(plan, point)
    block = deployment.scheduler().cache.block_size
    play = bench.Play(deployment, bench.source_of(plan, point, None, block), point.concurrency)
    play.run(SECONDS)
    return play, bench.figures(play, SECONDS, point.parallel.gpus)


def steps(play):
    """(seconds, seconds without any saving, decode rows, prompt tokens, mono) of every step."""
    began, ended, _, rows, prompt, mono, alone, *_ = np.array(play.steps, dtype=float).T
    return ended - began, alone, rows, prompt, mono == 1


@pytest.mark.parametrize("short", ["tp2/c8", "tp4/c8", "tp2/c16"])
def test_mono_decode_touches_decode_steps_of_48_rows_alone(short):
    took, alone, rows, prompt, mono = steps(played(short)[0])
    within = (rows <= 48) & (prompt == 0) & (rows > 0)
    assert within.any() and (~within).any()
    assert np.array_equal(mono, within)
    assert np.allclose(took[~within], alone[~within], rtol=0, atol=1e-9)
    assert (took[within] < alone[within] - 1e-6).all()


def test_the_other_arm_takes_every_step_at_the_time_without_it():
    took, alone, rows, prompt, mono = steps(played("tp2/c8", "no-mono")[0])
    assert not mono.any() and ((rows <= 48) & (prompt == 0)).any()
    assert np.allclose(took, alone, rtol=0, atol=1e-9)
    faster, slower = (played("tp2/c8", arm)[1]["interactivity-median"] for arm in ("base", "no-mono"))
    assert faster > 1.1 * slower


def test_tp4_is_quicker_for_each_user_and_hits_are_as_theory_says():
    for c in (1, 8):
        tp2, tp4 = played(f"tp2/c{c}")[1], played(f"tp4/c{c}")[1]
        assert tp4["interactivity-median"] > 1.1 * tp2["interactivity-median"]
        for figures in (tp2, tp4):
            assert figures["kv-peak"] < 1 and figures["preemptions"] == 0
            assert figures["hit-achieved"] == pytest.approx(figures["hit-theory"], abs=0.01)
            assert 0.9 < figures["hit-theory"] < 1
