"""What speaks against waivers at a sign-off."""

from __future__ import annotations

import pytest

from infx.ci.waivers import against_waivers
from infx.findings import Finding, Mark, Severity
from infx.sources.waivers import Waiver

USED = Finding(Mark("recipes/a.yaml"), "R-001", Severity.NOTE, "image of … (waived by docs/waiver/7.md)")


def waiver(number=7, recipes=("a",), rules=("R-001",)):
    return Waiver(pull_request=number, recipes=list(recipes), rules=list(rules), what="w", why="y",
                  upstream="https://example.org/1", removal="r")


def against(*waivers, read=(), lint=(USED,), added=(7,), pull=7):
    return against_waivers(waivers, read, lint, added=added, pull=pull, recipes=["a", "b"],
                           rules={"R-001": True, "R-002": False})


def test_a_waiver_in_use_and_an_old_idle_one_pass():
    assert against(waiver()) == [] and against(waiver(3), lint=(), added=()) == []


@pytest.mark.parametrize(("made", "more", "said"), [
    (waiver(recipes=["a", "c"]), {}, "docs/waiver/7.md: there is no recipe 'c'"),
    (waiver(rules=["R-001", "R-01"]), {}, "docs/waiver/7.md: there is no rule 'R-01' perhaps you meant 'R-001'"),
    (waiver(rules=["R-002"]), {}, "docs/waiver/7.md: R-002 cannot be waived"),
    (waiver(), {"lint": ()}, "docs/waiver/7.md: it silences nothing of R-001"),
    (waiver(), {"pull": 8}, "docs/waiver/7.md: this is pull request 8; a waiver is filed under the one that needs it"),
])
def test_what_speaks_against_one(made, more, said):
    assert said in against(made, **more)


def test_a_damaged_waiver_is_told():
    bad = Finding(Mark("docs/waiver/7.md", 1, 1), "Y-001", Severity.ERROR, "no front matter")
    assert against(read=[bad]) == ["docs/waiver/7.md:1:1: Y-001 no front matter"]
