"""Two engine starts by what ran: image, settings that the engine itself logged, environment, and who asked for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue

from infx.engines.readback import wanted_flags
from infx.schema.result import Start
from infx.schema.settings import ServerConfig

Values = tuple[JsonValue, ...]
"""Distinct values of one name over the starts of a side, in order of launch; empty: no start has the name."""

OURS = frozenset({"host", "port"})
"""What infx chooses for every start anew: never a difference."""
WHAT_RAN = ("engine", "image", "digest", "version")


class Mark(StrEnum):
    """Where a difference comes from."""

    ASKED = "asked"
    """Argument or environment that the recipe or the profile set differ too."""
    SILENT = "silent"
    """Both sides ask for the same, or do not name it: a default changed, or it follows from another setting."""
    UNKNOWN = "unknown"
    """A side was not started by infx, so that nothing says what it was asked."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One side: starts of one server, as their start.json and the plan tell.

    ``settings``: as the engine logged them; empty when no start logged any. ``asked``: flags of the plan's argv, None
    for an engine that infx did not start. ``set_env``: set by recipe and profile; ``image_env``: by the image.
    ``mute``: ids of starts without settings. ``targets``: flag → settings that it decides, where names differ.
    """

    name: str
    starts: tuple[str, ...]
    mute: tuple[str, ...]
    what: Mapping[str, Values]
    settings: Mapping[str, Values]
    asked: Mapping[str, JsonValue] | None
    set_env: Mapping[str, Values]
    image_env: Mapping[str, Values]
    targets: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Difference:
    """One name that differs; an empty side does not have it. ``note``: what the engine said of an asked change."""

    name: str
    first: Values
    second: Values
    mark: Mark | None = None
    note: str = ""

    @property
    def text(self) -> str:
        """``max-num-seqs: 256 → 1024  silent``."""
        shown = f"{self.name}: {_shown(self.first)} → {_shown(self.second)}"
        return shown + (f"  {self.mark}" if self.mark else "") + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True, slots=True)
class SettingsDiff:
    """What differs between two sides, what is the same, and what nothing is known of."""

    first: Reading
    second: Reading
    what: tuple[Difference, ...]
    settings: tuple[Difference, ...]
    asked: tuple[Difference, ...]
    env: tuple[Difference, ...]
    same: int
    unreadable: tuple[str, ...]

    @property
    def differences(self) -> tuple[Difference, ...]:
        return (*self.what, *self.settings, *self.asked, *self.env)

    @property
    def verdict(self) -> str:
        """``differ``; ``unknown`` when nothing differs but something could not be read; else ``same``."""
        if self.differences:
            return "differ"
        return "unknown" if self.unreadable else "same"


def reading_of(name: str, server: ServerConfig, starts: Sequence[Start],
               targets: Mapping[str, tuple[str, ...]]) -> Reading:
    """The side that these starts of one server make (at least one)."""
    ordered = sorted(starts, key=lambda start: (start.launched_unix, start.id))
    settings = _gathered({k: v for k, v in start.effective.items() if k not in OURS | {"version"}}
                         for start in ordered)
    versions = [start.version.get("version") or start.effective.get("version") for start in ordered]
    ours = all(start.argv for start in ordered)
    flags = {**wanted_flags(server.argv), "model": server.model_path}
    return Reading(
        name=name, starts=tuple(start.id for start in ordered),
        mute=tuple(start.id for start in ordered if not start.effective),
        what={"engine": (server.engine,), "image": _distinct(start.image for start in ordered),
              "digest": _distinct(start.digest for start in ordered if start.digest is not None),
              "version": _distinct(version for version in versions if version is not None)},
        settings=settings, asked={k: v for k, v in flags.items() if k not in OURS} if ours else None,
        set_env=_gathered(start.env for start in ordered),
        image_env=_gathered(start.image_env for start in ordered), targets=targets)


def settings_diff(first: Reading, second: Reading) -> SettingsDiff:
    """Compare two sides; settings only when both sides logged some, since silence proves nothing."""
    what = tuple(Difference(name, first.what[name], second.what[name]) for name in WHAT_RAN
                 if _key(first.what[name]) != _key(second.what[name]))
    unreadable = _unreadable(first, second)
    settings: tuple[Difference, ...] = ()
    same = 0
    if first.settings and second.settings:
        settings = tuple(Difference(name, a, b, _mark(name, first, second))
                         for name, a, b in _unequal(first.settings, second.settings))
        same = len({*first.settings, *second.settings}) - len(settings)
    env = _environment(first, second)
    return SettingsDiff(first, second, what, settings, _asked_in_vain(first, second, settings), env, same, unreadable)


def sentences(found: SettingsDiff) -> list[str]:
    """The comparison as lines of text, what ran first."""
    lines = [f"{_side(found.first)} → {_side(found.second)}"]
    differing = {each.name for each in found.what}
    for name in WHAT_RAN:
        each = Difference(name, found.first.what[name], found.second.what[name])
        lines.append(each.text if name in differing else f"{name}: {_shown(each.first, 'unknown')}  same")
    both = [each for each in found.settings if each.first and each.second]
    for title, rows in (("settings that differ", both), ("settings that one side has",
                        [each for each in found.settings if each not in both]),
                        ("asked, without an effect that was read", found.asked), ("environment", found.env)):
        if rows:
            lines += [f"{title}:", *(f"  {each.text}" for each in rows)]
    lines += [f"unreadable: {text}" for text in found.unreadable]
    marks = [each.mark for each in (*found.settings, *found.env)]
    if Mark.SILENT in marks:
        asked = Mark.ASKED in marks or bool(found.asked)
        lines.append("silent: nobody asked for it" + (", or it follows from what was asked" if asked else ""))
    lines.append(f"{found.verdict}: {len(found.differences)} differences, {marks.count(Mark.SILENT)} of them silent; "
                 f"{found.same} settings the same")
    return lines


def as_data(found: SettingsDiff) -> dict[str, JsonValue]:
    """The comparison for scripts; a side's values are lists, empty where it does not have the name."""
    def rows(differences: Iterable[Difference]) -> list[JsonValue]:
        return [{"name": each.name, "first": list(each.first), "second": list(each.second),
                 "mark": each.mark and str(each.mark), "note": each.note} for each in differences]

    def side(reading: Reading) -> dict[str, JsonValue]:
        return {"name": reading.name, "starts": list(reading.starts), "without-settings": list(reading.mute),
                **{name: list(values) for name, values in reading.what.items()}}

    return {"verdict": found.verdict, "first": side(found.first), "second": side(found.second),
            "what-ran": rows(found.what), "settings": rows(found.settings), "asked": rows(found.asked),
            "env": rows(found.env), "same": found.same, "unreadable": list(found.unreadable)}


def _gathered(maps: Iterable[Mapping[str, JsonValue]]) -> dict[str, Values]:
    found: dict[str, list[JsonValue]] = {}
    for each in maps:
        for name, value in each.items():
            found.setdefault(name, []).append(value)
    return {name: _distinct(values) for name, values in found.items()}


def _distinct(values: Iterable[JsonValue]) -> Values:
    return tuple({json.dumps(value, sort_keys=True): value for value in values}.values())


def _key(values: Values) -> frozenset[str]:
    """Values whatever their order; JSON text, in which ``true`` is not 1."""
    return frozenset(json.dumps(value, sort_keys=True) for value in values)


def _unequal(first: Mapping[str, Values], second: Mapping[str, Values]) -> list[tuple[str, Values, Values]]:
    pairs = [(name, first.get(name, ()), second.get(name, ())) for name in sorted({*first, *second})]
    return [(name, a, b) for name, a, b in pairs if _key(a) != _key(b)]


def _changed_flags(first: Reading, second: Reading) -> dict[str, tuple[Values, Values]]:
    one, two = ({name: (value,) for name, value in (reading.asked or {}).items()} for reading in (first, second))
    return {name: (a, b) for name, a, b in _unequal(one, two)}


def _targets(flag: str, first: Reading, second: Reading) -> set[str]:
    return {*first.targets.get(flag, (flag,)), *second.targets.get(flag, (flag,))}


def _mark(setting: str, first: Reading, second: Reading) -> Mark:
    """An environment name asks for a setting when it ends in its name: VLLM_ATTENTION_BACKEND, attention-backend."""
    if first.asked is None or second.asked is None:
        return Mark.UNKNOWN
    if any(setting in _targets(flag, first, second) for flag in _changed_flags(first, second)):
        return Mark.ASKED
    ending = "_" + setting.upper().replace("-", "_")
    changed = [name for name, _, _ in _unequal(first.set_env, second.set_env)]
    return Mark.ASKED if any(name.endswith(ending) for name in changed) else Mark.SILENT


def _asked_in_vain(first: Reading, second: Reading, settings: Sequence[Difference]) -> tuple[Difference, ...]:
    """Flags that differ while no setting of theirs is seen to differ."""
    if first.asked is None or second.asked is None:
        return ()
    moved = {each.name for each in settings}
    made = []
    for flag, (a, b) in _changed_flags(first, second).items():
        targets = _targets(flag, first, second)
        if not targets & moved:
            logged = [name for name in sorted(targets) if name in first.settings and name in second.settings]
            note = (f"the engine logged {logged[0]} {_shown(first.settings[logged[0]])} on both sides" if logged
                    else "not read back")
            made.append(Difference(flag, a, b, Mark.ASKED, note))
    return tuple(made)


def _environment(first: Reading, second: Reading) -> tuple[Difference, ...]:
    """Names as the engine gets them, recipe and profile over image; the image's only where both were read."""
    if first.asked is None or second.asked is None:
        return ()
    both = bool(first.image_env) and bool(second.image_env)
    one, two = ({**(reading.image_env if both else {}), **reading.set_env} for reading in (first, second))
    set_apart = {name for name, _, _ in _unequal(first.set_env, second.set_env)}
    return tuple(Difference(name, a, b, Mark.ASKED if name in set_apart else Mark.SILENT)
                 for name, a, b in _unequal(one, two))


def _unreadable(first: Reading, second: Reading) -> tuple[str, ...]:
    made = []
    for reading in (first, second):
        if not reading.settings:
            made.append(f"settings of {reading.name}: its engine logged none that infx reads, so they are unknown")
        elif reading.mute:
            made.append(f"settings of {len(reading.mute)} of {len(reading.starts)} starts of {reading.name}: "
                        f"{', '.join(reading.mute)} logged none")
        if reading.asked is None:
            made.append(f"arguments and environment of {reading.name}: infx did not start this engine")
    if bool(first.image_env) != bool(second.image_env):
        bare = second if first.image_env else first
        made.append(f"environment that the image of {bare.name} sets: not recorded")
    return tuple(made)


def _side(reading: Reading) -> str:
    count = len(reading.starts)
    return f"{reading.name} ({reading.starts[0] if count == 1 else f'{count} starts'})"


def _shown(values: Values, absent: str = "(none)") -> str:
    return " | ".join(_word(value) for value in values) or absent


def _word(value: JsonValue) -> str:
    if isinstance(value, str) and value and value.isprintable():
        return value
    return json.dumps(value)
