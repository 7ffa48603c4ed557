"""Finding run folders: the list of a parent folder, and the run that a word on a command line means."""

from __future__ import annotations

from pathlib import Path

from infx.errors import UsageError
from infx.findings import did_you_mean
from infx.results.layout import RUNS, START, RunPaths, is_temporary


def list_runs(parent: Path = Path(RUNS)) -> list[Path]:
    """Run folders below ``parent``, oldest first by name; what an interrupted writer left is not listed."""
    if not parent.is_dir():
        return []
    return sorted(
        folder for folder in parent.iterdir() if not is_temporary(folder.name) and RunPaths(folder).run.is_file()
    )


def find_run(word: str, parent: Path = Path(RUNS)) -> Path:
    """The run folder that ``word`` names: a path, ``latest``, a run id, or a part of exactly one run id.

    Raises UsageError when there is none, or several.
    """
    path = Path(word)
    if path.name in ("run.json", "plan.json"):
        path = path.parent
    if RunPaths(path).run.is_file() or (path.is_dir() and word != "latest"):
        return path
    runs = list_runs(parent)
    if word == "latest" and runs:
        return runs[-1]
    hits = [run for run in runs if run.name == word] or [run for run in runs if word in run.name]
    if len(hits) == 1:
        return hits[0]
    if hits:
        names = ", ".join(run.name for run in hits[:5])
        raise UsageError(f"{len(hits)} runs match {word!r}", where=str(parent), allowed=names)
    hint = did_you_mean(word, [run.name for run in runs], cutoff=0.4)
    raise UsageError(f"no run folder {word!r}", where=str(parent), hint=hint or "infx sweep makes one")


def find_starts(word: str, parent: Path = Path(RUNS)) -> tuple[Path, str]:
    """The run folder that ``RUN``, ``RUN/START`` or a start's own path names, and START ("" without one).

    START is not looked up. Raises UsageError when there is no such run, or several.
    """
    path = Path(word)
    if path.name == START:
        path = path.parent
    run = path.parent.parent
    if RunPaths(run).run.is_file() and RunPaths(run).start(path.name).start.is_file():
        return run, path.name
    head, _, part = word.rpartition("/")
    if not head or not part or path.exists():
        return find_run(word, parent), ""
    try:
        run = find_run(head, parent)
    except UsageError:
        return find_run(word, parent), ""
    return (run, part) if RunPaths(run).run.is_file() else (find_run(word, parent), "")
