"""What is written reads back to the same entry, and passes its own gate."""

from __future__ import annotations

import yaml
from hypothesis import given
from hypothesis import strategies as st

from infx.changelog.gate import check
from infx.changelog.render import number, quoted, render, word
from infx.changelog.spans import join, split
from infx.changelog.syntax import read_span
from infx.schema.changelog import Change, Expect, Results, ResultsPoint, Retract

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
KEYS = st.from_regex(r"\A[A-Za-z0-9._*?\[\]!-]{1,12}\Z")
CLAIMS = st.builds(
    Expect, points=st.sampled_from(["all", "c<=8", "tp=2, c>=16"]), metric=st.sampled_from(["all", "itl-p50"]),
    verdict=st.sampled_from(["better", "worse", "same"]), arm=st.none() | TEXT, against=st.none() | TEXT,
    margin=st.none() | st.floats(1e-9, 0.999))
CHANGES = st.builds(
    Change, config_keys=st.lists(KEYS, min_size=1, max_size=3), description=st.lists(TEXT, min_size=1, max_size=3),
    scenario_type=st.none() | st.just(["agentic-coding"]), pr_link=st.sampled_from(["XXX", "https://h/o/n/pull/7"]),
    evals_only=st.booleans(), all_evals=st.booleans(), expect=st.lists(CLAIMS, max_size=2))
POINTS = st.builds(
    ResultsPoint, point=TEXT, fingerprint=TEXT, start=st.none() | TEXT, status=st.sampled_from(["ok", "failed"]),
    metrics=st.dictionaries(st.sampled_from(["itl-p50", "ttft-p50"]), st.floats(allow_nan=False, allow_infinity=False)),
    sha256=st.just("0" * 64))
RESULTS = st.builds(Results, kind=st.just("results"), run=TEXT, recipe=TEXT, runner=TEXT, harness=st.none() | TEXT,
                    provenance=st.just(["measured"]), points=st.lists(POINTS, min_size=1, max_size=2))
RETRACTS = st.builds(Retract, kind=st.just("retract"), entry=st.just("0123456789ab-1"), reason=TEXT)


@given(CHANGES | RESULTS | RETRACTS)
def test_an_entry_reads_back_as_it_was(entry):
    body = render(entry)
    (span,) = split(join(b"", [body])).spans
    reading = read_span(span, "f")
    assert (reading.entry, reading.findings) == (entry, [])
    assert span.body == body


@given(CHANGES | RESULTS)
def test_an_entry_passes_the_gate_behind_any_other(entry):
    base = join(b"", [render(Change(config_keys=["k"], description=["d"], pr_link="XXX"))])
    assert check(join(base, [render(entry)], len(base)), base) == []


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back_exactly(value):
    assert yaml.safe_load(number(value)) == value


@given(TEXT)
def test_text_stays_on_one_line_and_reads_back(text):
    for made in (quoted(text), word(text)):
        assert "\n" not in made
        assert yaml.safe_load(f"[{made}]") == [text]


def test_a_change_looks_as_documented():
    entry = Change(config_keys=["dsv*", "k-1"], scenario_type=["agentic-coding"], description=['say "a": → b'],
                   pr_link="XXX", append_only=True,
                   expect=[Expect(points="c<=8", metric="itl-p50", verdict="better", against="no-mono", margin=0.02)])
    assert render(entry).decode() == (
        '- kind: change\n  config-keys:\n    - "dsv*"\n    - k-1\n  scenario-type:\n    - agentic-coding\n'
        '  description:\n    - "say \\"a\\": → b"\n  pr-link: XXX\n  append-only: true\n  expect:\n'
        '    - {points: "c<=8", metric: itl-p50, verdict: better, against: no-mono, margin: 0.02}')
