"""Metrics text: sums over labels, differences that know resets, means between two scrapes."""

import pytest

from infx.errors import EngineError
from infx.run.telemetry.scrape import Delta, delta, gauge, histogram_mean, parse

TEXT = """# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 100.0
vllm:prompt_tokens_total{engine="1",model_name="m"} 50.0
# TYPE vllm:ttft_seconds histogram
vllm:ttft_seconds_bucket{le="0.1"} 3.0
vllm:ttft_seconds_bucket{le="+Inf"} 4.0
vllm:ttft_seconds_count 4.0
vllm:ttft_seconds_sum 0.8
# TYPE other gauge
other 7.0
"""


def test_samples_sum_over_labels() -> None:
    samples = parse(TEXT)
    assert samples.total("vllm:prompt_tokens_total") == 150
    assert samples.total("vllm:prompt_tokens_total", engine="1") == 50
    assert samples.total("vllm:nothing") is None
    assert samples.total("vllm:ttft_seconds_count") == 4


def test_only_named_families_are_parsed() -> None:
    assert parse(TEXT, ["vllm:"]).total("other") is None
    chosen = parse(TEXT.encode(), ["vllm:ttft_seconds"])
    assert chosen.total("vllm:ttft_seconds_sum") == 0.8
    assert chosen.total("vllm:prompt_tokens_total") is None


def test_differences_and_resets() -> None:
    later = TEXT.replace("100.0", "130.0").replace("} 50.0", "} 55.0")
    assert delta(parse(TEXT), parse(later), "vllm:prompt_tokens_total") == Delta(35.0)
    fell = delta(parse(TEXT), parse(TEXT.replace("100.0", "3.0")), "vllm:prompt_tokens_total")
    assert fell.value is None
    assert "restarted" in fell.reason
    assert "no vllm:x" in delta(parse(TEXT), parse(TEXT), "vllm:x").reason
    assert "disappeared" in delta(parse(TEXT), parse(""), "other").reason
    assert delta(parse(""), parse(TEXT), "other") == Delta(7.0)


def test_the_mean_of_a_histogram_between_two_scrapes() -> None:
    later = TEXT.replace("_count 4.0", "_count 6.0").replace("_sum 0.8", "_sum 1.4")
    assert histogram_mean(parse(TEXT), parse(later), "vllm:ttft_seconds").value == pytest.approx(0.3)
    assert "nothing" in histogram_mean(parse(TEXT), parse(TEXT), "vllm:ttft_seconds").reason


def test_gauges_over_a_window() -> None:
    series = [(0, 9.0), (10, 4.0), (20, 2.0), (30, 4.0), (40, 9.0)]
    found = gauge(series, 10, 40, threshold=4)
    assert (found.mean, found.low, found.high, found.n) == (pytest.approx(10 / 3), 2, 4, 3)
    assert found.share_below == pytest.approx(1 / 3)
    assert gauge(series, 50, 60) is None


def test_text_in_another_format_is_refused() -> None:
    with pytest.raises(EngineError, match="format"):
        parse('x{a="b" 3 4 5\n')
