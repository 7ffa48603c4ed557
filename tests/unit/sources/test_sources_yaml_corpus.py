"""Each trap of YAML is read in the obvious way or refused at its line and column, never converted silently."""

from __future__ import annotations

import pytest

from infx.sources import yamlio
from infx.sources.codes import CODES

# text → what the mapping's key `a` is
ACCEPTED = {
    b"a: true": True,
    b"a: False": False,
    b"a: null": None,
    b"a: ~": None,
    b"a: ''": "",
    b"a: 'yes'": "yes",
    b'a: "010"': "010",
    b"a: |\n  on\n": "on\n",
    b"a: 0": 0,
    b"a: -12": -12,
    b"a: +12": 12,
    b"a: 0x1F": 31,
    b"a: 9223372036854775807": 9223372036854775807,
    b"a: 0.5": 0.5,
    b"a: .5": 0.5,
    b"a: 1.": 1.0,
    b"a: 1e3": 1000.0,
    b"a: 1E-3": 0.001,
    b"a: 1.5e+3": 1500.0,
    b"a: 2026-09-21": "2026-09-21",
    b"a: 2026-09-21T10:00:00Z": "2026-09-21T10:00:00Z",
    b"a: 1.2.3": "1.2.3",
    b"a: 12ab": "12ab",
    b"a: 8000:80": "8000:80",
    b"a: <<": "<<",
    b"a: '<<'": "<<",
    b"a: =": "=",
    b"a: nan": "nan",
    b"a: inf": "inf",
    b"a: None": "None",
    b"a: y": "y",
    b"a: NONE": "NONE",
    b"a: yEs": "yEs",
    b"a: -": [None],
    b"a: [1, 'x']": [1, "x"],
    b"a: {b: {c: 1}}": {"b": {"c": 1}},
    b"a:\t1": 1,
    b"a: 1\r\nb: 2\r\n": 1,
    b"a: caf\xc3\xa9": "café",
    b"'1': x\na: 1": 1,
    b"x: &q [1]\na: *q": [1],
    b"--- \na: 1\n...\n": 1,
    b"\xef\xbb\xbfa: 1": 1,
}

# text → (line, column, code) of each finding
REFUSED = {
    b"a: yes": [(1, 4, "Y-020")],
    b"a: No": [(1, 4, "Y-020")],
    b"b: 1\na: [on, OFF]": [(2, 5, "Y-020"), (2, 9, "Y-020")],
    b"on: 1": [(1, 1, "Y-015")],
    b"a: Null": [(1, 4, "Y-021")],
    b"a: 1:30": [(1, 4, "Y-022")],
    b"a: 190:20:30.15": [(1, 4, "Y-022")],
    b"a: 010": [(1, 4, "Y-023")],
    b"a: 08": [(1, 4, "Y-023")],
    b"a: 00e5": [(1, 4, "Y-023")],
    b"a: 0o17": [(1, 4, "Y-024")],
    b"a: 0b101": [(1, 4, "Y-024")],
    b"a: 1_000": [(1, 4, "Y-025")],
    b"a: 1_0.5": [(1, 4, "Y-025")],
    b"a: .inf": [(1, 4, "Y-026")],
    b"a: -.INF": [(1, 4, "Y-026")],
    b"a: .nan": [(1, 4, "Y-026")],
    b"a: 1e999": [(1, 4, "Y-026")],
    b"a: 9223372036854775808": [(1, 4, "Y-027")],
    b"a: " + b"7" * 5000: [(1, 4, "Y-027")],
    b"a:": [(1, 3, "Y-019")],
    b"a:\n  -\n  - 1": [(2, 4, "Y-019")],
    b"a: 1\nb: 2\na: 3": [(3, 1, "Y-012")],
    b"x:\n  a: 1\n  a: 1": [(3, 3, "Y-012")],
    b'a: 1\n"a": 2': [(2, 1, "Y-012")],
    b"1: x": [(1, 1, "Y-015")],
    b"true: x": [(1, 1, "Y-015")],
    b"null: x": [(1, 1, "Y-015")],
    b"2.5: x": [(1, 1, "Y-015")],
    b": x": [(1, 1, "Y-001")],
    b"? [a]\n: 1": [(1, 3, "Y-015")],
    b"{{a: 1}: 2}": [(1, 2, "Y-015")],
    b"x: &q a\n*q : 1": [(2, 1, "Y-015")],
    b"x: &q {b: 1}\ny:\n  <<: *q": [(3, 3, "Y-014")],
    b"a: !!str 5": [(1, 4, "Y-011")],
    b"a: !!python/object/apply:os.system ['x']": [(1, 4, "Y-011")],
    b"a: !env HOME": [(1, 4, "Y-011")],
    b"%YAML 1.1\n---\na: 1": [(1, 1, "Y-011")],
    b"a: 1\n---\nb: 2": [(2, 1, "Y-010")],
    b"a: *q": [(1, 4, "Y-018")],
    b"a: &q [*q]": [(1, 8, "Y-018")],
    b"a: &q 1\nb: &q 2": [(2, 4, "Y-018")],
    b"a: [1,\n": [(2, 1, "Y-001")],
    b"a: b: c": [(1, 5, "Y-001")],
    b"a: %x": [(1, 4, "Y-001")],
    b"a: 'x": [(1, 6, "Y-001")],
    b"a: 1\n<<<<<<< HEAD\nb: 2\n=======\nb: 3\n>>>>>>> x": [(2, 1, "Y-001")],
    b"a:\n\tb: 1": [(2, 1, "Y-007")],
    b"a:\n  b: 1\n \tc: 2": [(3, 2, "Y-007")],
    b"": [(1, 1, "Y-008")],
    b"# only a comment\n": [(1, 1, "Y-008")],
    b"---\n": [(1, 1, "Y-008")],
    b"- 1": [(1, 1, "Y-009")],
    b"\n\nhello": [(3, 1, "Y-009")],
    b"a: 1\rb: 2": [(1, 5, "Y-005")],
    b"a: '\xe2\x80\xa8'": [(1, 5, "Y-005")],
    b"a: x\n\x00": [(2, 1, "Y-004")],
    b"a: \x1b[31m": [(1, 4, "Y-004")],
    b"a: x\xef\xbb\xbf": [(1, 5, "Y-004")],
    b"a: 1\nb: \xff": [(2, 4, "Y-003")],
    "a: 1".encode("utf-16"): [(1, 1, "Y-003")],
    b"[" * 900: [(1, 65, "Y-016")],
    b"[" * 100_000: [(1, 1001, "Y-016")],
    b"a: " + b"{b: " * 80: [(1, 256, "Y-016")],
}


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted_words_mean_the_obvious(text):
    document, found = yamlio.load(text, "f.yaml")
    if text == b"a: -":
        assert [str(item.where) for item in found] == ["f.yaml:1:4"]
        return
    assert [item.code for item in found] == (["Y-006"] if text.startswith(b"\xef") else [])
    assert document is not None and not document.doubtful
    value = document.value["a"]
    assert (value, type(value)) == (ACCEPTED[text], type(ACCEPTED[text]))


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text[:40]))
def test_refused_words_are_named_at_their_place(text):
    document, found = yamlio.load(text, "f.yaml")
    assert [(item.where.line, item.where.column, item.code) for item in found] == REFUSED[text]
    assert document is None or document.doubtful
    assert all(item.where.path == "f.yaml" and item.hint for item in found)


def test_all_findings_come_at_once_and_first_key_wins():
    document, found = yamlio.load(b"a: yes\na: 2\nb: 010\nc: ok\n", "f.yaml")
    assert [(item.where.line, item.code) for item in found] == [(1, "Y-020"), (2, "Y-012"), (3, "Y-023")]
    assert document.value["c"] == "ok"


def test_size_is_refused_before_parsing():
    big = b"a: [" + b"1, " * 3_500_000 + b"1]"
    document, found = yamlio.load(big, "big.yaml")
    assert document is None
    assert [(str(item.where), item.code) for item in found] == [("big.yaml:1:1", "Y-002")]
    assert yamlio.load(b"a: 1", "f.yaml", limit=4)[1] == []
    assert [item.code for item in yamlio.load(b"a: 12", "f.yaml", limit=4)[1]] == ["Y-002"]


def test_alias_bomb_is_refused_unexpanded():
    lines = ["a: &x0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"b{n}: &x{n} [{', '.join(f'*x{n - 1}' for _ in range(10))}]" for n in range(1, 30)]
    document, found = yamlio.load("\n".join(lines).encode(), "f.yaml")
    assert document is None
    assert [(item.where.line, item.code) for item in found] == [(5, "Y-017")]


def test_aliases_may_not_hide_depth():
    lines = ["a: &x0 [1]"] + [f"b{n}: &x{n} [*x{n - 1}]" for n in range(1, 80)]
    _, found = yamlio.load("\n".join(lines).encode(), "f.yaml")
    assert [item.code for item in found] == ["Y-016"]


def test_root_may_be_a_list_where_asked():
    document, found = yamlio.load(b"- a: 1\n", "f.yaml", root="sequence")
    assert (document.value, found) == ([{"a": 1}], [])
    assert [item.code for item in yamlio.load(b"a: 1", "f.yaml", root="sequence")[1]] == ["Y-009"]


def test_marks_of_values_keys_and_missing_places():
    document, _ = yamlio.load(b"a: 1\nlist:\n  - x: [10, 20]\n    long-key: v\n", "f.yaml")
    assert str(document.mark("list", 0, "x", 1)) == "f.yaml:3:13"
    assert str(document.key_mark("list", 0, "long-key")) == "f.yaml:4:5"
    assert str(document.mark("list", 0, "gone", "deeper")) == "f.yaml:3:5"
    assert str(document.key_mark("list")) == "f.yaml:2:1"
    assert document.raw("list", 0, "x", 0) == "10"
    assert document.raw("gone") is None


def test_marks_through_an_alias_lead_to_the_written_text():
    document, _ = yamlio.load(b"a: &q\n  k: 1\nb: *q\n", "f.yaml")
    assert str(document.mark("b")) == "f.yaml:3:4"
    assert str(document.mark("b", "k")) == "f.yaml:2:6"


def test_two_spellings_of_a_key_where_a_caller_asks():
    document, found = yamlio.load(b"serve:\n  max-len: 1\n  max_len: 2\n  b: 1\n", "f.yaml")
    assert found == []
    twice = document.spelled_twice("serve")
    assert [(str(item.where), item.code) for item in twice] == [("f.yaml:3:3", "Y-013")]
    assert "'max-len' of line 2" in twice[0].message


def test_codes_have_no_gap_and_every_text_is_filled():
    for letter in "YS":
        numbers = [int(code[2:]) for code in CODES if code.startswith(letter)]
        assert numbers == list(range(1, len(numbers) + 1))
    assert all(code.title and code.doc for code in CODES.values())
