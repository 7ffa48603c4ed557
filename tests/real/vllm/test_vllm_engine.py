"""The CPU build of vLLM does what infx takes for granted of any vLLM: usage, counts, limits, names, a clean end."""

import json
import re
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from infx.engines.vllm.counters import COUNTERS

pytestmark = pytest.mark.timeout(400)
PROMPT = list(range(300, 364))
USAGE = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
EXACT = {"ignore_eos": True, "temperature": 0.8, "seed": 7, **USAGE}


@pytest.fixture(scope="module")
def plain(cpu_engine, serving):
    with serving(cpu_engine, cpu_engine.tiny, "--enable-prefix-caching") as served:
        yield served


@pytest.fixture(scope="module")
def drafting(cpu_engine, serving):
    config = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3}
    with serving(cpu_engine, cpu_engine.tiny, "--speculative-config", json.dumps(config)) as served:
        yield served


def samples(text: str) -> dict[str, float]:
    """Sum over labels of every sample of a Prometheus page."""
    found: dict[str, float] = {}
    for name, value in re.findall(r"^([\w:]+)(?:\{.*\})? (\S+)$", text, re.MULTILINE):
        found[name] = found.get(name, 0.0) + float(value)
    return found


def test_usage_counts_every_token(plain):
    events = plain.stream("/v1/completions", {"prompt": PROMPT, "max_tokens": 20, **EXACT})
    counts = [event["usage"]["completion_tokens"] for event in events if event.get("usage")]
    assert counts == sorted(counts)
    assert counts[-1] == 20
    assert {event["usage"]["prompt_tokens"] for event in events if event.get("usage")} == {len(PROMPT)}
    assert [e["choices"][0]["finish_reason"] for e in events if e["choices"]][-1] == "length"
    assert all(choice["text"] for event in events for choice in event["choices"])


def test_chat_uses_the_template_of_the_model(plain):
    body = {"messages": [{"role": "user", "content": "bo da ku"}], "max_tokens": 8, **EXACT}
    events = plain.stream("/v1/chat/completions", body)
    rendered = "<|im_start|>user\nbo da ku<|im_end|>\n<|im_start|>assistant\n"
    tokens = json.loads(post(plain, "/tokenize", {"prompt": rendered, "add_special_tokens": False}))
    assert events[-1]["usage"] == {
        "prompt_tokens": tokens["count"],
        "completion_tokens": 8,
        "total_tokens": tokens["count"] + 8,
    }


def post(served, path: str, body: dict) -> str:
    data = json.dumps({"model": served.model, **body}).encode()
    with urlopen(Request(served.url + path, data, {"Content-Type": "application/json"}), timeout=60) as reply:
        return reply.read().decode()


def test_a_prompt_beyond_the_model_length_is_refused(plain):
    with pytest.raises(HTTPError) as refused:
        post(plain, "/v1/completions", {"prompt": [300] * 8200, "max_tokens": 20})
    assert refused.value.code == 400
    assert "8192" in refused.value.read().decode()


def test_an_output_beyond_the_model_length_is_cut_in_silence(plain):
    """Why a client must compare the tokens it got with those it asked for."""
    body = {"prompt": [300] * 8190, "max_tokens": 20, "ignore_eos": True}
    reply = json.loads(post(plain, "/v1/completions", body))
    assert reply["choices"][0]["finish_reason"] == "length"
    assert reply["usage"]["completion_tokens"] == 2


def test_counters_move_by_what_was_asked(plain):
    prompt = list(range(1000, 1384))
    before = samples(plain.get("/metrics"))
    for _ in range(2):
        plain.stream("/v1/completions", {"prompt": prompt, "max_tokens": 10, **EXACT})
    after = samples(plain.get("/metrics"))
    delta = {name: after[name] - before.get(name, 0.0) for name in after}
    assert delta[COUNTERS.prompt_tokens] == 2 * len(prompt)
    assert delta[COUNTERS.generation_tokens] == 20
    assert delta[COUNTERS.prefix_queries] == 2 * len(prompt)
    # whole blocks of the repeated prompt, its last token apart, come from the cache
    assert 0 < delta[COUNTERS.prefix_hits] < len(prompt)
    for histogram in (COUNTERS.ttft, COUNTERS.tpot, COUNTERS.e2el, COUNTERS.queue):
        assert delta[f"{histogram}_count"] == 2, histogram
    assert delta[f"{COUNTERS.itl}_count"] == 18
    assert after[COUNTERS.running] == after[COUNTERS.waiting] == 0
    assert {COUNTERS.kv_usage, COUNTERS.preemptions} <= set(after)


def test_version_is_the_installed_one(plain):
    assert json.loads(plain.get("/version")) == {"version": "0.32.0"}


def test_drafts_are_counted(drafting):
    before = samples(drafting.get("/metrics"))
    body = {"prompt": PROMPT[:8] * 16, "max_tokens": 64, "ignore_eos": True, "temperature": 0, **USAGE}
    events = drafting.stream("/v1/completions", body)
    after = samples(drafting.get("/metrics"))
    drafts, drafted, accepted = (
        after[name] - before.get(name, 0.0)
        for name in (COUNTERS.drafts, COUNTERS.draft_tokens, COUNTERS.accepted_tokens)
    )
    assert events[-1]["usage"]["completion_tokens"] == 64
    assert 0 < drafts <= 64
    assert drafts <= drafted <= 3 * drafts
    assert 0 < accepted <= drafted
    # one step yields its accepted drafts and one token of its own, so chunks carry several tokens
    assert len([e for e in events if e["choices"] and e["choices"][0]["text"]]) < 64


def test_it_stops_when_told(cpu_engine, serving):
    with serving(cpu_engine, cpu_engine.tiny) as served:
        assert served.process.poll() is None
    assert served.process.returncode == 0
