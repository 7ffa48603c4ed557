"""``infx ci links``: whether the addresses that documentation, recipes and facts name still lead somewhere."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from infx.ci.links import Link

PATTERNS = ("*.md", "docs/**/*.md", "recipes/**/*.yaml", "configs/**/*.yaml", "runners/*.yaml", ".github/**/*.md")
AT_ONCE, TIMEOUT_S = 8, 20.0


def links(root: Annotated[Path, typer.Option("--root", metavar="DIR", help="The repository's folder.")] = Path(),
          ) -> None:
    """Ask every address once. Exit code 1 when one is dead; what cannot be told from here is listed and passes."""
    from infx.ci.links import links_in, verdict
    from infx.errors import IncompleteError, RemoteError

    paths = sorted({path for pattern in PATTERNS for path in root.glob(pattern)
                    if not any(part.startswith(".venv") for part in path.parts)})
    found = links_in((path.relative_to(root).as_posix(), path.read_text(encoding="utf-8", errors="replace"))
                     for path in paths)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(_ask, found))
    if found and all(error == "no such host" for _, error in answers):
        raise RemoteError("no address has a host that is known here", hint="is there a network, and a name server?")
    counts = dict.fromkeys(("ok", "dead", "unknown"), 0)
    for link, (status, error) in zip(found, answers, strict=True):
        word = verdict(status, error)
        counts[word] += 1
        if word != "ok":
            typer.echo(f"{link.path}:{link.line}: {word}: {link.url} ({status or error})")
    typer.echo(f"{len(found)} addresses: " + ", ".join(f"{number} {word}" for word, number in counts.items()), err=True)
    if counts["dead"]:
        raise IncompleteError(f"{counts['dead']} dead addresses", hint="replace them: a fact needs a source")


def _ask(link: Link) -> tuple[int | None, str]:
    """Status code, or what went wrong. GET without reading on: many hosts answer HEAD wrongly."""
    import requests

    for last in (False, True):
        try:
            with requests.get(link.url, timeout=TIMEOUT_S, stream=True, headers={"User-Agent": "infx-links"}) as answer:
                if answer.status_code < 500 or last:
                    return answer.status_code, ""
        except requests.RequestException as error:
            gone = "NameResolutionError" in repr(error)
            if gone or last:
                return None, "no such host" if gone else type(error).__name__
    return None, "no answer"
