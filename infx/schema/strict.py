"""The strict base of every serialised noun: frozen, no extra keys, kebab-case names, no coercion."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


def kebab(name: str) -> str:
    """``draft_tokens`` → ``draft-tokens``: the spelling in YAML and JSON."""
    return name.replace("_", "-")


class Strict(BaseModel):
    """Frozen, strict, ``extra="forbid"``; read and written by kebab-case alias."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=kebab,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        use_attribute_docstrings=False,
        protected_namespaces=(),
        allow_inf_nan=False,
    )
