"""Complaints of a model carry the place, what was found, what is allowed and a near spelling."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import pytest
from pydantic import Field, model_validator

from infx.schema.strict import Strict
from infx.sources import modelio, yamlio


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Plain(Strict):
    kind: Literal["plain"] = Field(description="-")
    max_len: int = Field(gt=0, description="-")


class Named(Strict):
    kind: Literal["named"] = Field(description="-")
    name: str = Field(pattern="^[a-z]+$", description="-")


class Span(Strict):
    lo: int = Field(description="-")
    hi: int = Field(description="-")


class Rung(Strict):
    tp: int = Field(description="-")
    at: tuple[int, ...] | Span = Field(description="-")


class Model(Strict):
    key: str = Field(default="x", description="-")
    what: Annotated[Plain | Named, Field(discriminator="kind")] = Field(description="-")
    env: dict[Annotated[str, Field(pattern="^[A-Z]+$")], str] = Field(default_factory=dict, description="-")
    colour: Colour = Field(default=Colour.RED, description="-")
    ladder: tuple[Rung, ...] = Field(default=(), max_length=3, description="-")

    @model_validator(mode="after")
    def rule(self) -> Model:
        if self.colour is Colour.BLUE and not self.ladder:
            raise ValueError("blue needs a ladder")
        return self


GOOD = "what: {kind: plain, max-len: 3}\n"


def parse(text: str, **more):
    document, found = yamlio.load(text.encode(), "f.yaml")
    model, complaints = modelio.parse(document, Model, **more)
    return model, [*found, *complaints]


def test_a_good_text_gives_the_model():
    model, found = parse(GOOD + "ladder: [{tp: 1, at: [1, 2]}, {tp: 2, at: {lo: 1, hi: 2}}]\ncolour: blue\n")
    assert found == []
    assert model.what == Plain(kind="plain", max_len=3)
    assert model.ladder == (Rung(tp=1, at=(1, 2)), Rung(tp=2, at=Span(lo=1, hi=2)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("colur: red", ["2:1: S-001 unknown key 'colur' (perhaps you meant 'colour')"]),
        ("zzz: 1", ["2:1: S-001 unknown key 'zzz' (known keys: colour, env, key, ladder, what)"]),
        ("ladder:\n  - {tpp: 1, tp: 1, at: [1]}", ["3:6: S-001 unknown key 'ladder[0].tpp' (perhaps you meant 'tp')"]),
        ("ladder:\n  - tp: 1", ["3:5: S-002 key 'ladder[0].at' is missing (add it)"]),
        (
            'ladder: [{tp: "2", at: [1]}]',
            ['2:15: S-003 ladder[0].tp is the text "2"; it must be an integer (write it without quotes)'],
        ),
        ("ladder: [{tp: true, at: [1]}]", ["2:15: S-003 ladder[0].tp is true; it must be an integer"]),
        ("ladder: [{tp: 1.5, at: [1]}]", ["2:15: S-003 ladder[0].tp is 1.5; it must be an integer"]),
        ("ladder: [{tp: 1, at: 3}]", ["2:22: S-003 ladder[0].at is 3; it must be a list or a mapping"]),
        ("ladder: [{tp: 1, at: {lo: 1}}]", ["2:18: S-002 key 'ladder[0].at.hi' is missing (add it)"]),
        ("ladder: [{tp: 1, at: [1, x]}]", ['2:26: S-003 ladder[0].at[1] is the text "x"; it must be an integer']),
        ("ladder: 3", ["2:9: S-003 ladder is 3; it must be a list"]),
        ("env: {A: 1}", ['2:10: S-003 env.A is 1; it must be text (quote it: "1")']),
        ("env: {A: 1.10}", ['2:10: S-003 env.A is 1.1; it must be text (quote it: "1.10")']),
        ("env: {a: x}", ['2:7: S-006 the name the text "a" must match ^[A-Z]+$']),
        ("env: {A: null}", ['2:10: S-003 env.A is null; it must be text (quote it: "null")']),
        (
            "colour: bleu",
            ["2:9: S-004 colour is the text \"bleu\"; allowed: 'red' or 'blue' (perhaps you meant 'blue')"],
        ),
        ("colour: blue", ["1:1: S-007 blue needs a ladder"]),
        (
            "ladder: [{tp: 1, at: []}, {tp: 1, at: []}, {tp: 1, at: []}, {tp: 1, at: []}]",
            ["2:9: S-005 ladder has 4 items; it must have at most 3"],
        ),
    ],
)
def test_complaints(text, expected):
    model, found = parse(GOOD + text)
    assert model is None
    assert [str(item) for item in found] == [f"f.yaml:{line}" for line in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "what: {kind: plan}",
            "1:14: S-004 what.kind is 'plan'; allowed: 'plain', 'named' (perhaps you meant 'plain')",
        ),
        ("what: {name: x}", "1:1: S-008 what does not say its 'kind' (add the key 'kind')"),
        ("what: {kind: named, name: X1}", '1:27: S-006 what.name is the text "X1"; it must match ^[a-z]+$'),
        ("what: {kind: plain, max_len: 0}", "1:30: S-005 what.max_len is 0; input should be greater than 0"),
        ("what: {kind: named, nam: x, name: x}", "1:21: S-001 unknown key 'what.nam' (perhaps you meant 'name')"),
        ("env: {}", "1:1: S-002 key 'what' is missing (add it)"),
    ],
)
def test_complaints_about_kinds(text, expected):
    assert [str(item) for item in parse(text)[1]] == [f"f.yaml:{expected}"]


def test_refused_words_are_not_reported_twice_and_never_give_a_model():
    model, found = parse(GOOD + "env: {A: yes}\n")
    assert model is None
    assert [item.code for item in found] == ["Y-020"]
    model, found = parse(GOOD + "key: 'k'\nkey: 'l'\n")
    assert (model, [item.code for item in found]) == (None, ["Y-012"])


def test_fields_given_from_elsewhere_may_not_be_written():
    model, found = parse(GOOD, given={"key": "stem"})
    assert (model.key, found) == ("stem", [])
    model, found = parse(GOOD + "key: other\n", given={"key": "stem"})
    assert model is None
    assert str(found[0]) == "f.yaml:2:1: S-001 'key' is not written in the file (remove it; it is 'stem')"
