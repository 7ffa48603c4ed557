"""SGLang's names in ``/metrics`` (served with ``--enable-metrics``; srt/observability/metrics_collector.py)."""

from __future__ import annotations

from infx.engines.protocol import Counters

COUNTERS = Counters(
    running="sglang:num_running_reqs",
    waiting="sglang:num_queue_reqs",
    kv_usage="sglang:token_usage",
    # Hits are counted in tokens, as are the prompts that were looked up.
    prefix_queries="sglang:prompt_tokens_total",
    prefix_hits="sglang:cached_tokens_total",
    preemptions="sglang:num_retracted_requests_total",
    prompt_tokens="sglang:prompt_tokens_total",
    generation_tokens="sglang:generation_tokens_total",
    # SGLang counts no drafts: names that it does not have, so that values say so; the length is a gauge.
    drafts="sglang:spec_drafts_total",
    draft_tokens="sglang:spec_draft_tokens_total",
    accepted_tokens="sglang:spec_accepted_tokens_total",
    acceptance="sglang:spec_accept_length",
    ttft="sglang:time_to_first_token_seconds",
    itl="sglang:inter_token_latency_seconds",
    tpot="sglang:time_per_output_token_seconds",
    e2el="sglang:e2e_request_latency_seconds",
    queue="sglang:queue_time_seconds",
    rank="dp_rank",
)
