"""A small repository of its own for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)
