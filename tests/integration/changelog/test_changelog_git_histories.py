"""Fifty random histories through real git, its merges, rebases, squashes and picks calling the driver."""

from __future__ import annotations

import pytest

from tests.fakes.changelog_histories import HEADS, Count, play

HISTORIES = 50
CHUNK = 5
STEPS = 14


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, HISTORIES, CHUNK))
def test_random_histories_through_git_lose_double_and_alter_nothing(git, first):
    count = Count()
    for seed in range(first, first + CHUNK):
        world = git(HEADS[seed % len(HEADS)], f"repo-{seed}")
        for _ in play(world, 1_000_000 + seed, STEPS, count):
            pass
    assert count.entries >= CHUNK * 4
    assert sum(count.operations.values()) >= CHUNK * (STEPS - 5)
