"""What a way of launching hands over: a command that is ready to run under guard, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from infx.run.launch.process import Ended


@dataclass(frozen=True)
class Prepared:
    """``shown``: the command as stored, without values of the environment; ``env``: set by recipe and profile;
    ``spawn_env``: what the process really gets. ``stop`` asks the engine to stop where SIGTERM to the process
    would not reach it; ``abandon`` clears up when the sweep is dead. ``afterwards`` is called once it has
    ended: it may know more of the end (a container's exit state), and removes what is left.
    """

    shown: list[str]
    env: Mapping[str, str]
    spawn_env: Mapping[str, str]
    passed: list[str]
    digest: str | None = None
    image_env: Mapping[str, str] = field(default_factory=dict)
    container: str | None = None
    stop: list[str] | None = None
    abandon: list[str] | None = None
    afterwards: Callable[[Ended], Ended] = lambda ended: ended
