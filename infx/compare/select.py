"""What a word on the command line means as a side: runs, an arm of them, or the latest results entry."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from infx.compare.sides import Rerun, Side, side_of, side_of_entry
from infx.errors import UsageError
from infx.findings import did_you_mean
from infx.results.load import LoadedRun
from infx.schema.changelog import Results

LATEST_ENTRY = "entry"
"""The word for the latest results entry of the other side's recipe."""


@dataclass(frozen=True, slots=True)
class Word:
    """``RUN[,RUN…][@ARM]`` taken apart; ``entry`` alone is the changelog's latest results."""

    runs: tuple[str, ...]
    arm: str | None

    @property
    def is_entry(self) -> bool:
        return self.runs == (LATEST_ENTRY,)


def read_word(text: str) -> Word:
    """Take a side's word apart. UsageError for an empty one."""
    names, _, arm = text.rpartition("@") if "@" in text.rpartition("/")[2] else (text, "", "")
    runs = tuple(name for name in names.split(",") if name)
    if not runs:
        raise UsageError(f"{text!r} names no run", allowed="RUN, RUN@ARM, RUN,RUN,… or entry")
    return Word(runs, None if arm in ("", "base") else arm)


def side_from(
    word: Word, text: str, load: Callable[[str], LoadedRun], rerun: Rerun, keep: Collection[str] | None = None
) -> Side:
    """The side that a word names, its runs read one after another. UsageError for an arm that no run has."""
    arms: set[str | None] = set()

    def runs() -> Iterator[LoadedRun]:
        for name in word.runs:
            loaded = load(name)
            arms.update(point.arm for point in loaded.plan.points)
            yield loaded

    side = side_of(text, runs(), word.arm, rerun, keep)
    if word.arm not in arms:
        known = sorted(arm or "base" for arm in arms)
        raise UsageError(f"no arm {word.arm or 'base'!r} in {text}", allowed=", ".join(known),
                         hint=did_you_mean(word.arm or "base", known))
    return side


def arms_of(loaded: LoadedRun) -> list[str | None]:
    """Arms of a run in plan order; None is the base."""
    return list(dict.fromkeys(point.arm for point in loaded.plan.points))


def pairs_of(loaded: LoadedRun, rerun: Rerun) -> list[tuple[Side, Side]]:
    """What one run alone compares: each arm, as the baseline, with the base. UsageError when there is one arm only."""
    arms = arms_of(loaded)
    if len(arms) < 2:
        raise UsageError("one run with one arm has nothing to be compared with", where=loaded.run.id,
                         hint="name a second run, or sweep arms: infx ab KEY --arm NAME")
    second = None if None in arms else arms[-1]
    named = {arm: side_of(arm or "base", [loaded], arm, rerun) for arm in arms}
    return [(named[arm], named[second]) for arm in arms if arm != second]


def latest_entry(entries: Sequence[Results], recipe: str) -> Results:
    """The last results entry of a recipe. UsageError when there is none."""
    for entry in reversed(entries):
        if entry.recipe == recipe:
            return entry
    raise UsageError(f"the changelog has no results of {recipe}", hint="name a run instead of `entry`")


def entry_side(entry: Results, load: Callable[[str], LoadedRun | None], hashes: Callable[[LoadedRun], set[str]]
               ) -> Side:
    """A results entry as a side: its run folder where it still lies there unchanged, else its printed figures."""
    loaded = load(entry.run)
    stored = {point.sha256 for point in entry.points}
    if loaded is not None and stored <= hashes(loaded):
        return side_of(f"entry {entry.run}", [loaded], None)
    return side_of_entry(f"entry {entry.run} (figures as recorded)", entry)
