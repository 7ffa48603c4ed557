"""Prompts from files: what is read, what is refused with a place, and how they are dealt to lanes."""

import json
import pickle
from collections import Counter

import pytest

from infx.workload.dataset import Prompt, Prompts, read_prompts
from infx.workload.lanes import LaneSource


def jsonl(*entries: object) -> bytes:
    return "\n".join(entry if isinstance(entry, str) else json.dumps(entry) for entry in entries).encode()


def test_three_kinds_of_lines() -> None:
    chat = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "é漢"}]
    data = jsonl({"prompt": "hello"}, "", {"messages": chat, "output_tokens": 7}, {"prompt_ids": [1, 2]})
    assert read_prompts(b"\xef\xbb\xbf" + data, "jsonl", "p.jsonl") == (
        [Prompt(text="hello"), Prompt(messages=chat, output_tokens=7), Prompt(ids=[1, 2])], [],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "code", "word"),
    [
        ("{", "D-001", "not JSON"), ("[1]", "D-002", "list"), ("{}", "D-002", "none"),
        ('{"prompt": ""}', "D-002", "empty"), ('{"prompt": "a", "messages": []}', "D-002", "prompt, messages"),
        ('{"messages": []}', "D-002", "role"), ('{"messages": [{"content": "x"}]}', "D-002", "role"),
        ('{"prompt_ids": [1, "2"]}', "D-002", "ids"), ('{"prompt_ids": [true]}', "D-002", "ids"),
        ('{"prompt": "a", "output_tokens": 0}', "D-002", "output_tokens"),
        ('{"prompt": "a", "output_tokens": true}', "D-002", "output_tokens"),
    ],
)  # fmt: skip
def test_bad_lines_are_findings_with_their_place(line: str, code: str, word: str) -> None:
    prompts, [finding] = read_prompts(jsonl({"prompt": "a"}, line, {"prompt": "b"}), "jsonl", "p.jsonl")
    assert [prompt.text for prompt in prompts] == ["a", "b"]
    assert (finding.code, finding.where.line) == (code, 2)
    assert word in finding.message


def test_files_without_prompts() -> None:
    assert read_prompts(b"\n\n", "jsonl", "p")[1][0].code == "D-004"
    assert read_prompts(b"\xff", "jsonl", "p")[1][0].code == "D-001"
    assert read_prompts(b"[]", "sharegpt", "p")[1][0].code == "D-004"
    assert read_prompts(b"{}", "sharegpt", "p")[1][0].code == "D-002"
    assert read_prompts(b"[", "sharegpt", "p")[1][0].code == "D-001"


def test_sharegpt_keeps_the_messages_up_to_the_last_human_one() -> None:
    talk = [{"from": "system", "value": "s"}, {"from": "human", "value": "a"}, {"from": "gpt", "value": "b"},
            {"from": "human", "value": "c"}, {"from": "gpt", "value": "d"}]  # fmt: skip
    data = json.dumps([{"conversations": talk}, {"conversations": [{"from": "gpt", "value": "x"}]}, {"id": 1}]).encode()
    [prompt], findings = read_prompts(data, "sharegpt", "s.json")
    assert [(m["role"], m["content"]) for m in prompt.messages] == [
        ("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "c"),
    ]  # fmt: skip
    assert [(f.code, "entry 1" in f.message or "entry 2" in f.message) for f in findings] == [("D-003", True)] * 2


def dealt(source: Prompts, lanes: int, turns: int) -> list:
    requests = []
    for lane in range(lanes):
        request = source.start(lane)[0].request
        for _ in range(turns):
            requests.append(request)
            request = source.finished(request, None)[0].request
    return requests


def test_every_prompt_is_dealt_once_before_any_comes_again() -> None:
    prompts = [Prompt(text=str(i)) for i in range(12)]
    source = Prompts(prompts, 4, 5, seed=1, salt="a")
    assert isinstance(source, LaneSource)
    assert Counter(r.text for r in dealt(source, 4, 3)) == dict.fromkeys(map(str, range(12)), 1)
    assert Counter(r.text for r in dealt(source, 4, 6)) == dict.fromkeys(map(str, range(12)), 2)
    again = pickle.loads(pickle.dumps(source))
    assert dealt(again, 4, 3) == dealt(source, 4, 3)
    other = Prompts(prompts, 4, 5, seed=1, salt="b")
    assert [r.text for r in dealt(other, 4, 3)] != [r.text for r in dealt(source, 4, 3)]
    assert len({r.session for r in dealt(source, 4, 6)}) == 24


def test_lengths_and_endpoints() -> None:
    prompts = [Prompt(text="a", output_tokens=9)]
    exact = Prompts(prompts, 1, 5, seed=1, salt="a").start(0)[0].request
    assert (exact.text, exact.max_tokens, exact.min_tokens, exact.ignore_eos) == ("a", 9, 9, True)
    free = Prompts(prompts, 1, 5, seed=1, salt="a", chat=True, exact=False).start(0)[0].request
    assert (free.text, free.messages, free.ignore_eos, free.min_tokens) == (
        None, [{"role": "user", "content": "a"}], False, 0)  # fmt: skip
    with pytest.raises(ValueError, match="no prompts"):
        Prompts([], 1, 5, seed=1, salt="a")
