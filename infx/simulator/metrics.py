"""Counters of the simulated engine and their Prometheus text: vLLM's names and buckets, plus ``infx_sim:`` ones.

Times are in virtual seconds. Names are spelled here on purpose, apart from infx/engines.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from infx.simulator.scheduler import Scheduler, StepResult
from infx.simulator.sequence import Sequence as Request

TTFT = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
)  # fmt: skip
GAP = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
LATENCY = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
)  # fmt: skip
ITERATION = (1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0)
PREEMPTIONS = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0)
ROWS = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 192.0, 256.0, 384.0, 512.0, 1024.0)
REASONS = ("stop", "length", "abort", "error", "repetition")


def length_buckets(longest: int) -> tuple[float, ...]:
    """1, 2, 5, 10, … up to ``longest``: vLLM's buckets of token counts."""
    found, scale = [], 1
    while True:
        for step in (1, 2, 5):
            if step * scale > longest:
                return tuple(found)
            found.append(float(step * scale))
        scale *= 10


class Histogram:
    """Counts by bucket; ``observe`` takes a value several times at once."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """``times`` observations of ``value``."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def samples(self, name: str, labels: str) -> Iterable[str]:
        """The histogram's sample lines; ``labels`` without braces."""
        total = 0
        for bound, count in zip((*self.bounds, None), self.counts, strict=True):
            total += count
            edge = "+Inf" if bound is None else bound
            yield f'{name}_bucket{{{labels},le="{edge}"}} {float(total)}'
        yield f"{name}_count{{{labels}}} {float(total)}"
        yield f"{name}_sum{{{labels}}} {self.sum}"


class Metrics:
    """All counters of one engine. ``step`` after each step, ``ended`` for requests that end otherwise."""

    def __init__(self, scheduler: Scheduler, model_name: str, cache_info: dict[str, object]) -> None:
        self.scheduler = scheduler
        self.labels = f'engine="0",model_name="{model_name}"'
        self._cache_info = cache_info
        lengths = length_buckets(scheduler.limits.max_model_len)
        self.histograms = {
            "vllm:request_prompt_tokens": Histogram(lengths),
            "vllm:request_generation_tokens": Histogram(lengths),
            "vllm:iteration_tokens_total": Histogram(ITERATION),
            "vllm:request_max_num_generation_tokens": Histogram(lengths),
            "vllm:request_params_n": Histogram((1.0, 2.0, 5.0, 10.0, 20.0)),
            "vllm:request_params_max_tokens": Histogram(lengths),
            "vllm:time_to_first_token_seconds": Histogram(TTFT),
            "vllm:inter_token_latency_seconds": Histogram(GAP),
            "vllm:request_time_per_output_token_seconds": Histogram(GAP),
            "vllm:e2e_request_latency_seconds": Histogram(LATENCY),
            "vllm:request_queue_time_seconds": Histogram(LATENCY),
            "vllm:request_inference_time_seconds": Histogram(LATENCY),
            "vllm:request_prefill_time_seconds": Histogram(LATENCY),
            "vllm:request_decode_time_seconds": Histogram(LATENCY),
            "vllm:request_num_preemptions": Histogram(PREEMPTIONS),
            "vllm:request_prefill_kv_computed_tokens": Histogram(lengths),
            "infx_sim:decode_rows": Histogram(ROWS),
        }
        self.ended_by = dict.fromkeys(REASONS, 0)
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.steps: dict[tuple[str, str], int] = {}
        self.step_seconds: dict[tuple[str, str], float] = {}
        self.running = self.waiting = 0
        self.lag = self.lag_worst = self.virtual_seconds = 0.0
        self.late_steps = 0

    def step(self, result: StepResult) -> None:
        """Account for a step whose outputs are being handed out."""
        shape, histograms = result.shape, self.histograms
        kind = "decode" if not shape.prompt_tokens else "mixed" if shape.decode_seqs else "prompt"
        key = (kind, "+".join(result.engaged) or "none")
        self.steps[key] = self.steps.get(key, 0) + 1
        self.step_seconds[key] = self.step_seconds.get(key, 0.0) + result.ended - result.started
        self.running, self.waiting = result.running, result.waiting
        self.virtual_seconds = result.ended
        tokens = shape.prompt_tokens
        gap, times = -1.0, 0
        gaps = histograms["vllm:inter_token_latency_seconds"]
        for output in result.outputs:
            tokens += output.tokens
            if output.gap is None:
                self._first(output.sequence)
            elif output.gap == gap:
                times += 1
            else:
                if times:
                    gaps.observe(gap, times)
                gap, times = output.gap, 1
        if times:
            gaps.observe(gap, times)
        histograms["vllm:iteration_tokens_total"].observe(tokens)
        if shape.decode_rows:
            histograms["infx_sim:decode_rows"].observe(shape.decode_rows)
        for sequence in result.finished:
            self._finished(sequence)

    def ended(self, reason: str) -> None:
        """A request that ended outside a step (abort, error)."""
        self.ended_by[reason] += 1

    def _first(self, sequence: Request) -> None:
        self.prompt_tokens += sequence.prompt_tokens
        self.cached_tokens += sequence.cached_tokens
        first = max(0.0, sequence.first_token_at - sequence.arrival)
        self.histograms["vllm:time_to_first_token_seconds"].observe(first)

    def _finished(self, sequence: Request) -> None:
        self.ended_by[sequence.finish_reason] += 1
        decode = sequence.finished_at - sequence.first_token_at
        seen = {
            "vllm:request_prompt_tokens": sequence.prompt_tokens,
            "vllm:request_generation_tokens": sequence.generated,
            "vllm:request_max_num_generation_tokens": sequence.generated,
            "vllm:request_params_n": 1,
            "vllm:request_params_max_tokens": sequence.max_tokens,
            "vllm:e2e_request_latency_seconds": max(0.0, sequence.finished_at - sequence.arrival),
            "vllm:request_queue_time_seconds": max(0.0, sequence.scheduled_at - sequence.arrival),
            "vllm:request_inference_time_seconds": sequence.finished_at - sequence.scheduled_at,
            "vllm:request_prefill_time_seconds": sequence.first_token_at - sequence.scheduled_at,
            "vllm:request_decode_time_seconds": decode,
            "vllm:request_num_preemptions": sequence.preemptions,
            "vllm:request_prefill_kv_computed_tokens": sequence.prompt_tokens - sequence.cached_tokens,
        }
        if sequence.generated > 1:
            seen["vllm:request_time_per_output_token_seconds"] = decode / (sequence.generated - 1)
        for name, value in seen.items():
            self.histograms[name].observe(value)

    def render(self) -> bytes:
        """The exposition text."""
        lines: list[str] = []
        for name, kind, samples in (*self._gauges(), *self._counters()):
            lines.append(f"# HELP {name} {name}")
            lines.append(f"# TYPE {name} {kind}")
            lines += [f"{name}{{{self.labels}{extra}}} {float(value)}" for extra, value in samples]
        for name, histogram in self.histograms.items():
            lines.append(f"# HELP {name} {name}")
            lines.append(f"# TYPE {name} histogram")
            lines += histogram.samples(name, self.labels)
        info = ",".join(f'{key}="{value}"' for key, value in sorted(self._cache_info.items()))
        lines.append("# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig")
        lines.append("# TYPE vllm:cache_config_info gauge")
        lines.append(f'vllm:cache_config_info{{engine="0",{info}}} 1.0')
        return ("\n".join(lines) + "\n").encode()

    def _gauges(self) -> list[tuple[str, str, list[tuple[str, float]]]]:
        scheduler = self.scheduler
        waiting = len(scheduler.waiting)
        return [
            ("vllm:num_requests_running", "gauge", [("", len(scheduler.running))]),
            ("vllm:num_requests_waiting", "gauge", [("", waiting)]),
            (
                "vllm:num_requests_waiting_by_reason", "gauge",
                [(',reason="capacity"', waiting), (',reason="deferred"', 0)],
            ),
            ("vllm:kv_cache_usage_perc", "gauge", [("", scheduler.cache.usage)]),
            ("infx_sim:clock_lag_seconds", "gauge", [("", self.lag)]),
            ("infx_sim:clock_lag_worst_seconds", "gauge", [("", self.lag_worst)]),
            ("infx_sim:virtual_seconds", "gauge", [("", self.virtual_seconds)]),
        ]  # fmt: skip

    def _counters(self) -> list[tuple[str, str, list[tuple[str, float]]]]:
        totals = self.scheduler.totals
        computed = self.prompt_tokens - self.cached_tokens
        plain = {
            "vllm:prefix_cache_queries_total": totals.prefix_queries,
            "vllm:prefix_cache_hits_total": totals.prefix_hits,
            "vllm:num_preemptions_total": totals.preemptions,
            "vllm:prompt_tokens_total": self.prompt_tokens,
            "vllm:prompt_tokens_cached_total": self.cached_tokens,
            "vllm:generation_tokens_total": totals.generated,
            "infx_sim:prompt_tokens_computed_total": totals.prompt_computed,
            "infx_sim:prompt_tokens_recomputed_total": totals.prompt_recomputed,
            "infx_sim:late_steps_total": self.late_steps,
        }
        found = [(name, "counter", [("", value)]) for name, value in plain.items()]
        sources = {"local_compute": computed, "local_cache_hit": self.cached_tokens, "external_kv_transfer": 0}
        by_source = [(f',source="{source}"', count) for source, count in sources.items()]
        found.append(("vllm:prompt_tokens_by_source_total", "counter", by_source))
        reasons = [(f',finished_reason="{reason}"', count) for reason, count in self.ended_by.items()]
        found.append(("vllm:request_success_total", "counter", reasons))
        for name, table in (("infx_sim:steps_total", self.steps), ("infx_sim:step_seconds_total", self.step_seconds)):
            found.append((name, "counter", [(f',kind="{k}",engaged="{e}"', v) for (k, e), v in sorted(table.items())]))
        if self.scheduler.acceptance:
            found += [
                ("vllm:spec_decode_num_drafts_total", "counter", [("", totals.drafts)]),
                ("vllm:spec_decode_num_draft_tokens_total", "counter", [("", totals.draft_tokens)]),
                ("vllm:spec_decode_num_accepted_tokens_total", "counter", [("", totals.accepted_tokens)]),
                (
                    "vllm:spec_decode_num_accepted_tokens_per_pos_total", "counter",
                    [(f',position="{at}"', count) for at, count in enumerate(totals.accepted_per_position)],
                ),
            ]  # fmt: skip
        return found
