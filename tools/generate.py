"""Writes the generated parts of docs/: regions between two marks, the rest of a page is written by people.

`python tools/generate.py` writes them; `--check` names the pages that are out of date (exit code 1 if there are any).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from architecture import drawing
from reference import changelog_codes, commands, exit_codes, metric_table, recipe_fields, runner_fields, runner_profiles

DOCS = Path(__file__).resolve().parents[1] / "docs"
REGIONS: dict[str, dict[str, Callable[[], str]]] = {
    "architecture.md": {"floors": drawing},
    "recipe.md": {"fields": recipe_fields},
    "runners.md": {"profiles": runner_profiles, "fields": runner_fields},
    "cli.md": {"exit codes": exit_codes, "commands": commands},
    "changelog.md": {"codes": changelog_codes},
    "metrics.md": {"metrics": metric_table},
}
"""Page → region → the function that writes it."""


def fill(page: str, region: str, text: str) -> str:
    """``page`` with ``text`` in its ``region``. Raises ValueError when a mark is missing."""
    begin, end = f"<!-- begin {region}: written by `make generated` -->", f"<!-- end {region} -->"
    if begin not in page or end not in page:
        raise ValueError(f"the page lacks the marks {begin} and {end}")
    before, rest = page.split(begin, 1)
    return f"{before}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}"


def main(arguments: list[str]) -> int:
    """Writes or checks every page; returns the exit code."""
    outdated = []
    for name, regions in REGIONS.items():
        path = DOCS / name
        page = wanted = path.read_text(encoding="utf-8")
        for region, write in regions.items():
            wanted = fill(wanted, region, write())
        if wanted != page:
            outdated.append(name)
            if "--check" not in arguments:
                path.write_text(wanted, encoding="utf-8")
    for name in outdated:
        print(f"docs/{name} {'is out of date' if '--check' in arguments else 'written'}")
    return int("--check" in arguments and bool(outdated))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
