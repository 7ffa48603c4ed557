"""The checklist's page, the text of a sign-off, and its verdict: the same input, the same verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.ci.checklist import MACHINE, blank, read_checklist, read_signed
from infx.ci.commands import Comment, own_lines
from infx.ci.signoff import Fact, decide, markdown, status
from infx.errors import InputError

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/PR_REVIEW_CHECKLIST.md").read_text()
CHECKLIST = read_checklist(PAGE)
HEAD, OLD = "a" * 40, "b" * 40
PERSON = [item.key for item in CHECKLIST.items if item.by == "person"]
FACTS = {key: Fact(True, f"{key} is fine") for key in MACHINE}


def ticked(*keys, commit=HEAD):
    text = blank(CHECKLIST, commit)
    for key in keys or PERSON:
        text = text.replace(f"[ ] **{key}**", f"[x] **{key}**")
    return text


def verdict(text=None, facts=FACTS, unowned=(), **changes):
    said = {"id": 1, "author": "owner", "association": "MEMBER", "body": text or ticked(), "edited": False,
            "bot": False, "url": ""}
    comment = Comment(**{**said, **changes})
    signed = read_signed(own_lines(comment.body))
    assert signed is not None
    return decide(CHECKLIST, signed, comment, head=HEAD, author="author", unowned=unowned, facts=facts)


def test_the_page_has_every_box_that_infx_decides_and_a_persons():
    assert {item.key for item in CHECKLIST.items if item.by == "machine"} == set(MACHINE)
    assert len(PERSON) >= 3 and CHECKLIST.version >= 1


def test_the_text_to_post_reads_back():
    signed = read_signed(ticked("words").splitlines())
    assert signed is not None and (signed.version, signed.commit, signed.ticked) == (
        CHECKLIST.version, HEAD, {"words"})
    assert list(signed.words) == [(item.key, item.text) for item in CHECKLIST.items]
    assert read_signed(["Thanks!", "- [x] **words**: yes"]) is None


def test_a_complete_sign_off_is_accepted():
    found = verdict()
    assert found.passes and found.refusals == ()
    assert [(item.key, item.by) for item in found.decisions] == [(item.key, item.by) for item in CHECKLIST.items]
    assert status(found) == {"state": "success", "context": "infx/signoff", "description": "signed off by owner"}


def test_the_same_input_gives_the_same_verdict():  # P45
    facts = dict(reversed(FACTS.items()))
    assert verdict() == verdict(facts=facts) and markdown(verdict()) == markdown(verdict(facts=facts))


@pytest.mark.parametrize(("changes", "said"), [
    ({"text": ticked(commit=OLD)}, "it is of commit bbbbbbbbbbbb, the head is aaaaaaaaaaaa: a later push voids"),
    ({"text": ticked(commit=HEAD[:12])}, "it is of commit aaaaaaaaaaaa"),
    ({"text": ticked().replace(f"version {CHECKLIST.version}", f"version {CHECKLIST.version + 6}")},
     f"it is of version {CHECKLIST.version + 6} of the checklist, now it is version {CHECKLIST.version}"),
    ({"association": "NONE"}, "owner is an outsider (NONE)"), ({"bot": True}, "a bot cannot sign off"),
    ({"edited": True}, "was edited"), ({"author": "Author"}, "Author wrote this pull request"),
    ({"unowned": [("infx/x.py", ("@org/team",))]}, "owner does not own infx/x.py (CODEOWNERS: @org/team)"),
    ({"unowned": [(f"f{n}", ()) for n in range(9)]}, "and 4 more files"),
    ({"text": ticked().replace("and no more", "and more")}, "the words of the box words were changed"),
    ({"text": ticked().replace("**claims**", "claims")}, "the box claims is missing"),
    ({"text": ticked() + "- [x] **words**: again\n"}, "the box words comes twice"),
    ({"text": ticked() + "- [x] **trust-me**: please\n"}, "the box trust-me is not of the checklist"),
])
def test_what_voids_a_sign_off(changes, said):
    found = verdict(**changes)
    assert not found.passes and any(said in item for item in found.refusals), found.refusals
    assert said in markdown(found) and status(found)["state"] == "failure"


@pytest.mark.parametrize("key", MACHINE)
def test_a_tick_never_overrules_a_fact(key):
    found = verdict(ticked(*PERSON, *MACHINE), {**FACTS, key: Fact(False, "it is not so | at\nall")})
    bad = [item for item in found.decisions if not item.holds]
    assert [(item.key, item.by) for item in bad] == [(key, "machine")] and not found.passes
    assert f"| {key} | infx | **no** | it is not so \\| at all |" in markdown(found)


def test_what_no_machine_decides_needs_a_persons_tick():
    facts = {**FACTS, "evals": Fact(None, "infx runs none yet")}
    assert [item.message for item in verdict(facts=facts).decisions if not item.holds] == [
        "infx runs none yet; not ticked"]
    assert verdict(ticked(*PERSON, "evals"), facts).passes
    del facts["claims"]
    assert [item.message for item in verdict(ticked(*PERSON, "evals"), facts).decisions if not item.holds] == [
        "nothing is known; not ticked"]


@pytest.mark.parametrize("key", PERSON)
def test_every_word_of_a_person_is_needed(key):
    found = verdict(ticked(*(other for other in PERSON if other != key)))
    assert [item.key for item in found.decisions if not item.holds] == [key]


def test_a_quoted_checklist_is_no_sign_off():
    assert read_signed(own_lines("\n".join(f"> {line}" for line in ticked().splitlines()))) is None


@pytest.mark.parametrize(("change", "said"), [
    (("Version 1.", ""), "there is no line `Version N`"),
    (("## Decided by infx", "## Others"), "'recipes' stands in no section"),
    (("**claims**", "**upstream**"), "'upstream' is not decided by infx"),
    (("**words**", "**claims**"), "'claims' is decided by infx"),
    (("**words**", "**plausible**"), "'plausible' comes twice"),
    (("- [ ] **evals**", "- **evals**"), "the box 'evals' is missing"),
])
def test_a_damaged_page_is_named(change, said):
    with pytest.raises(InputError) as caught:
        read_checklist(PAGE.replace(*change))
    assert said in caught.value.message and "docs/PR_REVIEW_CHECKLIST.md:" in caught.value.message
