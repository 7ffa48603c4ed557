"""Which addresses a text names, and what an answer says of them."""

from __future__ import annotations

import pytest

from infx.ci.links import links_in, verdict


@pytest.mark.parametrize(("line", "urls"), [
    ("see [a](https://a.test/b) and <https://c.test>.", ["https://a.test/b", "https://c.test"]),
    ("url: https://a.test/x?y=1&z=2#part", ["https://a.test/x?y=1&z=2"]),
    ("(https://a.test/wiki/A_(b)), then", ["https://a.test/wiki/A_(b)"]),
    ("[![i](https://a.test/i.svg)](https://a.test/l)", ["https://a.test/i.svg", "https://a.test/l"]),
    ("`https://HOST/OWNER/NAME/pull/NUMBER` https://example.org/x https://a.test/…", []),
])
def test_addresses_of_a_line(line, urls):
    assert sorted(link.url for link in links_in([("p.md", line)])) == sorted(urls)


def test_each_address_once_with_its_first_place():
    [one, two] = links_in([("a.md", "\nhttps://a.test/1"), ("b.md", "https://a.test/1 https://a.test/2")])
    assert (one.path, one.line, two.path) == ("a.md", 2, "b.md")


@pytest.mark.parametrize(("status", "error", "word"), [
    (200, "", "ok"), (304, "", "ok"), (404, "", "dead"), (410, "", "dead"), (403, "", "unknown"), (429, "", "unknown"),
    (503, "", "unknown"), (None, "no such host", "dead"), (None, "ConnectTimeout", "unknown")])
def test_what_an_answer_says(status, error, word):
    assert verdict(status, error) == word
