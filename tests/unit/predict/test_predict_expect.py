"""The limit of whole requests by hand, and which points are off their curve."""

from __future__ import annotations

import pytest

from infx.predict.expect import Traffic, off_curve, served_limit
from infx.predict.roofline import DeviceShape, ModelShape

MODEL = ModelShape(layers=2, prompt_layers=2, hidden=10, dense_bytes=1000.0, active_decode=100.0, active_prompt=80.0,
                   kv_bytes=4.0, pair_flops=0.5)  # fmt: skip
SLOW_MEMORY = DeviceShape(memory_bytes_s=1e3, peak_flops=1e12, link_bytes_s=1e12, memory_bytes=1e9)
SLOW_PEAK = DeviceShape(memory_bytes_s=1e12, peak_flops=1e3, link_bytes_s=1e12, memory_bytes=1e9)
SLOW_LINK = DeviceShape(memory_bytes_s=1e12, peak_flops=1e12, link_bytes_s=10.0, memory_bytes=1e9)
ASKED = Traffic(streams=4, prompt=20, fresh=20, output=11)


def test_memory_bound():
    # 10 steps of 1000 weight bytes and 4 streams × (20 + 5.5) tokens × 4 bytes
    seconds = 10 * (1000 + 4 * 25.5 * 4) / 1e3
    assert served_limit(MODEL, SLOW_MEMORY, 1, ASKED) == (pytest.approx(4 * 11 / seconds), "memory")


def test_compute_bound():
    # steps: 2 × 100 × 4 rows; prompts: 2 × 80 × 20 and half of 20² pairs × 0.5
    seconds = (10 * 2 * 100 * 4 + 4 * (2 * 80 * 20 + 200 * 0.5)) / 1e3
    assert served_limit(MODEL, SLOW_PEAK, 1, ASKED) == (pytest.approx(4 * 11 / seconds), "compute")


def test_link_bound_and_compressed_messages():
    # two all-reduces a layer of 10 values of 2 bytes: 80 bytes a token; a prompt's end passes them again
    decode, prompt = 4 * 2 * 80 / 2, (20 + 1) * 2 * 80 / 2
    seconds = (10 * decode + 4 * prompt) * (2 / 2 * 1) / 10.0
    found = served_limit(MODEL, SLOW_LINK, 2, ASKED)
    assert found == (pytest.approx(4 * 11 / seconds / 2), "link")
    assert served_limit(MODEL, SLOW_LINK, 2, ASKED, 0.25).tokens_s_gpu == pytest.approx(4 * found.tokens_s_gpu)


def test_cached_prompts_and_accepted_drafts_raise_the_limit():
    cached = Traffic(streams=4, prompt=20, fresh=5, output=11)
    # 5 fresh tokens see 15 cached ones each, and one another
    seconds = (10 * 2 * 100 * 4 + 4 * (2 * 80 * 5 + (5 * 15 + 12.5) * 0.5)) / 1e3
    assert served_limit(MODEL, SLOW_PEAK, 1, cached).tokens_s_gpu == pytest.approx(4 * 11 / seconds)
    drafted = Traffic(streams=4, prompt=20, fresh=20, output=11, drafts=3, accepted=2.5)
    plain, faster = (served_limit(MODEL, SLOW_MEMORY, 1, one).tokens_s_gpu for one in (ASKED, drafted))
    assert faster == pytest.approx(2.5 * plain)


LINE = [(4, 0.5), (8, 0.45), (16, 0.405), (32, 0.3645), (64, 0.32805)]


def test_a_straight_line_has_no_outlier():
    assert off_curve(LINE, 0.01) == []
    assert off_curve(LINE[:2], 0.01) == off_curve([], 0.01) == []


def test_the_point_that_lost_a_third_is_named_alone_with_its_loss():
    bent = [(c, ratio * (0.67 if c == 16 else 1)) for c, ratio in reversed(LINE)]
    [(concurrency, off)] = off_curve(bent, 0.15)
    assert (concurrency, off) == (16, pytest.approx(-0.33))
    assert off_curve(bent, 0.35) == []


def test_steps_of_unequal_size_are_straight_in_logarithms():
    # ratio ∝ concurrency^-0.5
    assert off_curve([(1, 1.0), (4, 0.5), (64, 0.125)], 0.001) == []
    [(concurrency, off)] = off_curve([(1, 1.0), (4, 0.75), (64, 0.125)], 0.1)
    assert (concurrency, off) == (4, pytest.approx(0.5))


def test_the_ends_are_not_judged():
    assert off_curve([(1, 9.0), (2, 1.0), (4, 1.0), (8, 1.0)], 5.0) == []
