"""Reading runner profiles: runners/NAME.yaml → Runner, or findings."""

from __future__ import annotations

from pathlib import PurePosixPath

from infx.errors import InputError, UsageError
from infx.findings import Finding, Mark, Severity, did_you_mean
from infx.schema.runner import Runner
from infx.sources import modelio, yamlio
from infx.sources.codes import finding
from infx.sources.tree import Tree

PATTERN = "runners/*.yaml"


def runner_paths(tree: Tree) -> dict[str, str]:
    """Profile name (file stem) → path, sorted."""
    return {PurePosixPath(path).stem: path for path in tree.glob(PATTERN)}


def read_runner(tree: Tree, path: str) -> tuple[Runner | None, list[Finding]]:
    """Read one profile; nothing stops at the first finding."""
    try:
        text = tree.read_bytes(path)
    except (FileNotFoundError, PermissionError) as error:
        return None, [finding(Mark(path), "Y-028", str(error))]
    document, findings = yamlio.load(text, path)
    if document is None:
        return None, findings
    runner, more = modelio.parse(document, Runner, given={"name": PurePosixPath(path).stem})
    findings = sorted([*findings, *more])
    return (None if any(f.severity is Severity.ERROR for f in findings) else runner), findings


def get_runner(tree: Tree, name: str) -> Runner:
    """The profile of this name. Raises UsageError when there is none, InputError with its findings when it is bad."""
    paths = runner_paths(tree)
    if name not in paths:
        raise UsageError(f"no runner is named {name!r}", allowed=", ".join(paths), hint=did_you_mean(name, paths))
    runner, findings = read_runner(tree, paths[name])
    if runner is None:
        raise InputError("the runner profile is not acceptable:\n" + "\n".join(map(str, findings)), where=paths[name])
    return runner
