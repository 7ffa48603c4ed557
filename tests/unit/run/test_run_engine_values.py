"""What counters and gauges say of a window, worked out by hand."""

from __future__ import annotations

import pytest

from infx.engines.vllm.counters import COUNTERS
from infx.run.telemetry.engine import engine_facts, engine_values, timeline_csv
from infx.run.telemetry.scrape import parse

SECOND = 1_000_000_000


def samples(running, waiting, **counters):
    base = {"prefix_cache_queries": 1000, "prefix_cache_hits": 100, "num_preemptions": 0, "prompt_tokens": 1000,
            "spec_decode_num_drafts": 10, "spec_decode_num_accepted_tokens": 20, **counters}
    lines = [f"vllm:num_requests_running {running}", f"vllm:num_requests_waiting {waiting}",
             "vllm:kv_cache_usage_perc 0.25"]
    lines += [f"# TYPE vllm:{name} counter\nvllm:{name}_total {value}" for name, value in base.items()]
    return parse("\n".join(lines) + "\n")


def window():
    after = {"prefix_cache_queries": 3000, "prefix_cache_hits": 600, "prompt_tokens": 3000,
             "spec_decode_num_drafts": 110, "spec_decode_num_accepted_tokens": 271}
    return [(0, samples(4, 0)), (SECOND, samples(2, 1)), (3 * SECOND, samples(4, 0)),
            (4 * SECOND, samples(4, 0, **after))]


def test_shares_and_lengths():
    values = engine_values(window(), COUNTERS, 4)
    assert values["prefix-hit-share"].value == pytest.approx(500 / 2000)
    assert values["acceptance-length"].value == pytest.approx(1 + 251 / 100)  # P32
    assert values["preemptions"].value == 0 and values["preemption-recompute-share"].value == 0
    assert values["engine-running-mean"].value == pytest.approx((4 * 1 + 2 * 2 + 4 * 1) / 4)
    assert values["share-of-time-below-concurrency"].value == pytest.approx(0.5)
    assert values["engine-ttft-mean"].value is None and "no vllm:time_to_first" in values["engine-ttft-mean"].reason
    facts = engine_facts(window(), COUNTERS, values)
    assert (facts.drafts, facts.waiting_peak, facts.running_peak) == (100, 1, 4)


def test_no_drafts_is_known_and_a_reset_is_not_a_number():  # P31
    still = [(0, samples(1, 0)), (SECOND, samples(1, 0))]
    assert engine_facts(still, COUNTERS, engine_values(still, COUNTERS, 1)).drafts == 0
    reset = [(0, samples(1, 0)), (SECOND, samples(1, 0, prefix_cache_queries=5))]
    value = engine_values(reset, COUNTERS, 1)["prefix-hit-share"]
    assert value.value is None and "restarted" in value.reason


def test_one_end_alone_says_why():
    values = engine_values(window()[:1], COUNTERS, 4)
    assert values["prefix-hit-share"].value is None and "both ends" in values["prefix-hit-share"].reason


def test_mono_counts_mono_kernels_alone():  # P64
    def steps(mono, other):
        return parse("# TYPE infx_sim:steps counter\n"
                     f'infx_sim:steps_total{{kind="decode",engaged="mono-decode.whole+overlap"}} {mono}\n'
                     f'infx_sim:steps_total{{kind="decode",engaged="overlap"}} {other}\n'
                     'infx_sim:steps_total{kind="mixed",engaged="overlap"} 500\n')

    values = engine_values([(0, steps(10, 0)), (SECOND, steps(40, 70))], COUNTERS, 1)
    assert values["mono-share"].value == pytest.approx(0.3)


def test_the_timeline():
    assert timeline_csv(window()[:2], COUNTERS) == b"seconds,running,waiting,kv-share\n0.000,4,0,0.25\n1.000,2,1,0.25\n"
