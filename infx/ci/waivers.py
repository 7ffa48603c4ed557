"""Owns what a sign-off asks of waivers: complete, waivable, in use, and new ones filed under the pull request. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from infx.findings import Finding, did_you_mean, errors
from infx.sources.waivers import Waiver


def against_waivers(waivers: Sequence[Waiver], read: Sequence[Finding], lint: Sequence[Finding], *,
                    added: Collection[int], pull: int | None, recipes: Collection[str], rules: Mapping[str, bool]
                    ) -> list[str]:
    """What speaks against the waivers of a tree, one sentence each.

    ``read``: findings about the waiver files. ``lint``: findings of all recipes, where what a waiver silences is a
    note that names it. ``added``: numbers of waivers that the branch adds or changes; those must be ``pull`` and in
    use. ``rules``: code → whether it may be waived.
    """
    said = [str(item) for item in errors(read)]
    for waiver in waivers:
        name = f"docs/waiver/{waiver.pull_request}.md"
        for key in waiver.recipes:
            if key not in recipes:
                said.append(f"{name}: there is no recipe {key!r} {did_you_mean(key, recipes)}".rstrip())
        for code in waiver.rules:
            if code not in rules:
                said.append(f"{name}: there is no rule {code!r} {did_you_mean(code, rules)}".rstrip())
            elif not rules[code]:
                said.append(f"{name}: {code} cannot be waived")
        if waiver.pull_request not in added:
            continue
        if pull is not None and waiver.pull_request != pull:
            said.append(f"{name}: this is pull request {pull}; a waiver is filed under the one that needs it")
        idle = [code for code in waiver.rules if not any(
            item.code == code and f"waived by {name}" in item.message for item in lint)]
        if idle:
            said.append(f"{name}: it silences nothing of {', '.join(idle)}")
    return said
