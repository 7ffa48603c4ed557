"""Owns reading a pull request's event as the code host sends it: the few facts that a sweep's plan needs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infx.ci.labels import restarts
from infx.errors import InputError

STARTING = ("opened", "reopened", "synchronize", "labeled", "unlabeled")
"""Actions of a pull request that may start a sweep."""


@dataclass(frozen=True)
class PullEvent:
    """A pull request's event. ``label`` is the one that was put on or taken off; ``head_repository`` None: deleted."""

    action: str
    number: int
    repository: str
    head_repository: str | None
    head_ref: str
    head_sha: str
    labels: tuple[str, ...]
    label: str | None

    @property
    def from_fork(self) -> bool:
        return self.head_repository != self.repository

    def idle(self) -> str:
        """Why this event starts nothing whatever its labels are, or an empty text."""
        if self.action not in STARTING:
            return f"the action {self.action!r} starts no sweep"
        if self.action in ("labeled", "unlabeled") and self.label is not None:
            rest = [label for label in self.labels if label != self.label]
            if not restarts(rest, [*rest, self.label]):
                return f"the label {self.label!r} does not change the plan"
        return ""


def read_event(value: object, path: str) -> PullEvent:
    """The event out of parsed JSON. Raises InputError that names every missing field at once."""
    if not isinstance(value, Mapping) or not isinstance(value.get("pull_request"), Mapping):
        raise InputError("not an event of a pull request: there is no `pull_request`", where=path,
                         hint="give the file that GITHUB_EVENT_PATH names in a workflow on pull_request")
    missing: list[str] = []

    def text(*keys: str, kind: type = str) -> Any:
        found: object = value
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        if not isinstance(found, kind) or isinstance(found, bool):
            missing.append(".".join(keys))
        return found

    labels = text("pull_request", "labels", kind=list) or []
    names = [label.get("name") for label in labels if isinstance(label, Mapping)] if isinstance(labels, list) else []
    if isinstance(labels, list) and (len(names) != len(labels) or not all(isinstance(name, str) for name in names)):
        missing.append("pull_request.labels[].name")
    head = value["pull_request"].get("head")
    gone = isinstance(head, Mapping) and "repo" in head and head["repo"] is None
    action = text("action")
    event = PullEvent(
        action, text("pull_request", "number", kind=int), text("repository", "full_name"),
        None if gone else text("pull_request", "head", "repo", "full_name"), text("pull_request", "head", "ref"),
        text("pull_request", "head", "sha"), tuple(names),
        text("label", "name") if action in ("labeled", "unlabeled") else None)
    if missing:
        raise InputError(f"the event lacks {', '.join(missing)}", where=path,
                         hint="give the whole payload of a pull_request event, as the code host sent it")
    return event
