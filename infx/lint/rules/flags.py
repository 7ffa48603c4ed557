"""Rules about environment names and serve flags: known to the engine, of the right type, spelled as it reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from infx.findings import Severity, did_you_mean
from infx.lint.rule import Hit, Rule
from infx.lint.view import RecipeView
from infx.predict.deployment import FALSE, TRUE, as_count, as_number, same
from infx.schema.catalog import Setting


class UnknownEnv(Rule):
    """An environment name with the engine's prefix that the engine does not know.

    Why: an engine ignores names it does not know; a typing error silently switches a feature off.
    Mend: correct the name, or add it to configs/engines/<engine>.yaml with the change that brings it.
    """

    code, title = "R-033", "unknown environment name"
    severity, waivable = Severity.ERROR, True
    message = "{engine} {version} does not know {name}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        if view.engine is None:
            return
        for place, name, _, at in view.written("env"):
            if name.startswith(tuple(view.engine.env_prefixes)) and view.setting("env", name) is None:
                fields = {"engine": view.engine.key, "version": view.engine.version, "name": name}
                yield Hit(view.document.key_mark(*place), fields, at, did_you_mean(name, view.engine.env, 0.75))


class UnknownFlag(Rule):
    """A serve key that the engine's parser does not know.

    Why: the engine refuses to start.
    Mend: correct the name, or add it to configs/engines/<engine>.yaml with the change that brings it.
    """

    code, title = "R-034", "unknown serve flag"
    severity, waivable = Severity.ERROR, True
    message = "{engine} {version} has no flag --{name}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        if view.engine is None or not view.engine.flags:
            return
        for place, name, _, at in view.written("serve"):
            if name not in view.engine.flags:
                known = {**view.engine.flags, **{f"no-{key}": None for key in view.engine.flags}}
                hint = f"write `{name[3:]}: false`" if name in known else did_you_mean(name, view.engine.flags)
                fields = {"engine": view.engine.key, "version": view.engine.version, "name": name}
                yield Hit(view.document.key_mark(*place), fields, at, hint)


class WrongType(Rule):
    """A value that the engine cannot read as the setting's type.

    Why: the engine refuses it, or reads it as something else.
    Mend: write what the message asks for.
    """

    code, title = "R-035", "wrong type of a setting"
    severity, waivable = Severity.ERROR, False
    message = "{name} is {value}; it must be {wanted}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for kind in ("env", "serve"):
            for place, name, value, at in view.written(kind):
                setting = view.setting(kind, name)
                wanted = _wrong(setting, value, kind) if setting else None
                if wanted:
                    fields = {"name": name, "value": json.dumps(value), "wanted": wanted}
                    yield Hit(view.mark(*place), fields, at)


class NotAChoice(Rule):
    """A value that is none of the setting's choices.

    Why: the engine raises when it first reads the value, often minutes after its start; letters keep their case
    (`int4` is not `INT4`).
    Mend: take one of the choices as they are spelled.
    """

    code, title = "R-036", "not one of the choices"
    severity, waivable = Severity.ERROR, False
    message = "{name} is {value}; choices: {choices}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for kind in ("env", "serve"):
            for place, name, value, at in view.written(kind):
                setting = view.setting(kind, name)
                if setting is None or setting.choices is None or not isinstance(value, str):
                    continue
                if value in setting.choices or (setting.any_case and value.lower() in map(str.lower, setting.choices)):
                    continue
                case = next((word for word in setting.choices if word.lower() == value.lower()), None)
                hint = f"write {case}: letters keep their case" if case else did_you_mean(value, setting.choices)
                fields = {"name": name, "value": json.dumps(value), "choices": ", ".join(setting.choices)}
                yield Hit(view.mark(*place), fields, at, hint)


class RepeatsDefault(Rule):
    """A setting repeats the engine's default.

    Why: it says nothing, and hides what the recipe really changes; defaults move from version to version, so keep it
    only to pin one.
    Mend: remove it, or leave it as a pin.
    """

    code, title = "R-037", "repeats the default"
    severity, waivable = Severity.NOTE, True
    message = "{name}={value} is the default of {engine} {version}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        if view.engine is None:
            return
        for kind in ("env", "serve"):
            for place, name, value, at in view.written(kind):
                setting = view.setting(kind, name)
                if place[0] == kind and setting and setting.default is not None and same(value, setting.default):
                    fields = {"name": name, "value": value, "engine": view.engine.key, "version": view.engine.version}
                    yield Hit(view.document.key_mark(*place), fields, at)


class OtherVendor(Rule):
    """A setting for another maker's devices.

    Why: it does nothing here and misleads readers.
    Mend: remove it.
    """

    code, title = "R-038", "setting of another vendor's devices"
    severity, waivable = Severity.WARNING, True
    message = "{name} is for {vendor} devices; {hardware} is none"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        hardware = view.catalog.hardware[view.recipe.hardware]
        for kind in ("env", "serve"):
            for place, name, _, at in view.written(kind):
                setting = view.setting(kind, name)
                if setting is not None and setting.vendor not in (None, hardware.vendor):
                    vendor = "CPU" if setting.vendor == "none" else str(setting.vendor).upper()
                    fields = {"name": name, "vendor": vendor, "hardware": hardware.key}
                    yield Hit(view.document.key_mark(*place), fields, at)


class EagerConflict(Rule):
    """Graph capture is configured and switched off at once.

    Why: one of the two does nothing.
    Mend: remove one.
    """

    code, title = "R-039", "conflicting settings"
    severity, waivable = Severity.WARNING, True
    message = "{limit} has no effect beside {eager}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        limit, eager = view.role("capture-limit"), view.role("eager")
        for server in view.servers:
            serve = server.deployment.serve
            if serve.get(eager) is True and limit in serve:
                yield Hit(view.place_of("serve", limit, server), {"limit": limit, "eager": eager}, server.at)


class CaptureContradicts(Rule):
    """The list of captured sizes and the largest captured size are both given, and do not agree.

    Why: the engine refuses to start, or takes one of them in silence.
    Mend: give one of the two.
    """

    code, title = "R-043", "captured sizes contradict their limit"
    severity, waivable = Severity.ERROR, False
    message = "{limit} is {most}, and the largest of {sizes} is {largest}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        limit, sizes = view.role("capture-limit"), view.role("capture-list")
        for server in view.servers:
            serve = server.deployment.serve
            most, listed = as_count(serve.get(limit)), serve.get(sizes)
            counts = [as_count(size) for size in listed] if isinstance(listed, list) else []
            known = [count for count in counts if count is not None]
            if most is not None and known and max(known) != most:
                fields = {"limit": limit, "most": most, "sizes": sizes, "largest": max(known)}
                yield Hit(view.place_of("serve", limit, server), fields, server.at, "give one of the two")


def _wrong(setting: Setting, value: Any, kind: str) -> str | None:
    """What the value should have been, or None where it is right."""
    text = kind == "env"
    if setting.type == "bool":
        right = value.strip().lower() in (TRUE | FALSE) - {""} if text else isinstance(value, bool)
        return None if right else "0 or 1" if text else "true or false"
    if setting.type in ("int", "count"):
        number = as_number(value) if text else value
        right = number is not None and float(number) == int(number) if text else _whole(value, setting.type)
        return None if right else "an integer"
    if setting.type == "float":
        return None if as_number(value) is not None else "a number"
    if setting.type == "json":
        return None if isinstance(value, (dict, list)) or _json(value) else "a mapping"
    if setting.type == "str" and not text and isinstance(value, (dict, list, bool)):
        return "text"
    return None


def _whole(value: Any, kind: str) -> bool:
    if kind == "count" and isinstance(value, str):
        return as_count(value) is not None
    return isinstance(value, int) and not isinstance(value, bool)


def _json(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        json.loads(value)
    except ValueError:
        return False
    return True
