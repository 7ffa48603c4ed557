"""``python -m infx.cli``: the same as ``infx``."""

from __future__ import annotations

from infx.cli.app import main

main()
