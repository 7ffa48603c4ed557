"""Whether a file is named for another model or concurrency than its content states."""

from __future__ import annotations

import re
from pathlib import PurePath

from infx.schema.result import Reason

FAMILIES: dict[str, tuple[str, ...]] = {
    "deepseek": ("deepseek", "dsr1", "dsv3", "dsv4", "dsv41", "dsv41flash"),
    "gpt-oss": ("gptoss",),
    "kimi": ("kimi", "kimik2", "kimik3"),
    "minimax": ("minimax", "minimaxm2", "minimaxm3"),
    "qwen": ("qwen", "qwen3", "qwen38"),
    "llama": ("llama", "llama3", "llama4"),
    "glm": ("glm", "glm4", "glm5"),
    "mistral": ("mistral", "mixtral"),
    "gemma": ("gemma",),
}
"""Model families and the words by which file names call them, letters and digits only."""


def mislabelled(source: str, model: str | None, concurrency: int | None) -> list[Reason]:
    """Reasons for what the name of ``source`` (file and the folder above it) says against its content."""
    path = PurePath(source)
    named = " ".join((path.parent.name, path.name))
    reasons = []
    if model:
        meant, stated = families(named), families(model)
        if meant and stated and not meant & stated:
            reasons.append(Reason(
                code="named-for-another-model",
                message=f"named for {', '.join(sorted(meant))}, but its content is of {model}",
                evidence=named.strip(),
            ))
    found = re.findall(r"(?:conc(?:urrency)?[_-]?|(?:^|[_.-])c)(\d+)(?=[_.\s-]|$)", path.name.lower())
    if concurrency is not None and len(set(found)) == 1 and int(found[0]) != concurrency:
        reasons.append(Reason(
            code="named-for-another-concurrency",
            message=f"named for concurrency {found[0]}, but its content says {concurrency}",
            evidence=path.name,
        ))
    return reasons


def families(text: str) -> set[str]:
    """Families whose words stand in ``text``, each at the start of a word (``gpt-oss_fp4`` holds gptoss)."""
    words = re.sub(r"gpt[-_ ]oss", "gptoss", text.lower())
    parts = re.split(r"[^a-z0-9]+", words)
    return {
        family for family, aliases in FAMILIES.items()
        if any(re.fullmatch(rf"{alias}[a-z]?\d*[a-z]?\d*", part) or part.startswith(alias) and len(alias) > 4
               for alias in aliases for part in parts)
    }
