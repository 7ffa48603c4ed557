"""Write docs/lint.md from the rules; with --check, exit 1 when the committed file differs."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from infx.lint.pages import document  # noqa: E402

TARGET = ROOT / "docs" / "lint.md"


def main(arguments: list[str]) -> int:
    """Write, or compare with --check."""
    text = document()
    if "--check" in arguments:
        return 0 if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
