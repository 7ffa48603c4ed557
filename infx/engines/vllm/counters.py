"""vLLM's names in ``/metrics``."""

from __future__ import annotations

from infx.engines.protocol import Counters

COUNTERS = Counters(
    running="vllm:num_requests_running",
    waiting="vllm:num_requests_waiting",
    kv_usage="vllm:kv_cache_usage_perc",
    prefix_queries="vllm:prefix_cache_queries_total",
    prefix_hits="vllm:prefix_cache_hits_total",
    preemptions="vllm:num_preemptions_total",
    prompt_tokens="vllm:prompt_tokens_total",
    generation_tokens="vllm:generation_tokens_total",
    drafts="vllm:spec_decode_num_drafts_total",
    draft_tokens="vllm:spec_decode_num_draft_tokens_total",
    accepted_tokens="vllm:spec_decode_num_accepted_tokens_total",
    ttft="vllm:time_to_first_token_seconds",
    itl="vllm:inter_token_latency_seconds",
    tpot="vllm:request_time_per_output_token_seconds",
    e2el="vllm:e2e_request_latency_seconds",
    queue="vllm:request_queue_time_seconds",
    # No released vLLM counts these; the simulator does, and where they are absent the row says so.
    recomputed_tokens="infx_sim:prompt_tokens_recomputed_total",
    steps="infx_sim:steps_total",
    rows="infx_sim:decode_rows",
)
