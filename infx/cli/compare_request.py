"""What comparing commands read from the disk: runs, noise floors, the changelog, and hashes of result files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from pathlib import Path

from infx.changelog.entries import Record, ledger
from infx.compare.ab import schedule_of
from infx.compare.claims import Judged, judge_all
from infx.compare.comparable import LENGTHS
from infx.compare.frontier import X_AXIS, Y_AXIS
from infx.compare.noise import PATH, NoiseBook, lookup, read_book
from infx.compare.select import entry_side, pairs_of, read_word, side_from
from infx.compare.sides import Rerun, Side, side_of
from infx.compare.verdict import DEFAULT_METRICS, Options
from infx.errors import InfxError, InputError, UsageError
from infx.findings import did_you_mean, errors
from infx.results.index import find_run
from infx.results.load import LoadedRun, load_run
from infx.schema.changelog import Change, Results
from infx.schema.metrics import METRICS
from infx.sources.tree import WorkingTree, find_tree


@dataclass(frozen=True)
class Desk:
    """Where a comparing command finds what its words name."""

    cwd: Path
    runs: Path
    changelog: Path | None
    noise: Path | None
    rerun: Rerun

    def options(self, metrics: Sequence[str], margins: Sequence[str]) -> Options:
        """Metrics, margins and floors as asked. UsageError for an unknown metric or a margin that is none."""
        for name in metrics:
            _known(name)
        chosen = tuple(dict.fromkeys(metrics)) or DEFAULT_METRICS
        made: dict[str, float] = {}
        for text in margins:
            name, _, share = text.rpartition("=")
            for each in [_known(name)] if name else chosen:
                made[each] = _share(share, text)
        return Options(chosen, made, lookup(self.book()[1]))

    def scheduled(self, options: Options, first: Side, second: Side) -> Options:
        """``options`` with the schedule of looks that an interleaved A/B of these sides pays for."""
        return replace(options, schedule_of=schedule_of(first, second))

    def book(self) -> tuple[Path, NoiseBook]:
        """The noise floors and where they lie. InputError with every finding; absent: none (UsageError when named)."""
        path = self.noise or self.top() / PATH
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            if self.noise is not None:
                raise UsageError("no such file of noise floors", where=str(path)) from None
            return path, NoiseBook()
        book, findings = read_book(text, str(path))
        if book is None or errors(findings):
            raise InputError("noise floors are not readable\n" + "\n".join(f"  {f}" for f in findings), where=str(path))
        return path, book

    def top(self) -> Path:
        """The repository's folder, or the current one outside of any."""
        tree = find_tree(self.cwd)
        return tree.root if isinstance(tree, WorkingTree) else self.cwd

    def load(self, word: str, keep: frozenset[str] | None = None) -> LoadedRun:
        """A run by path, id, part of one or `latest`, read once; ``keep``: the metrics that are needed."""
        return _loaded(find_run(word, self.runs).resolve(), keep)

    def pairs(self, first: str, second: str | None, metrics: Sequence[str]) -> list[tuple[Side, Side]]:
        """The sides that the words name; one word alone is its arms, or the latest entry before it."""
        keep = frozenset([*metrics, X_AXIS, Y_AXIS, *(name for name, _ in LENGTHS)])
        word = read_word(first)
        if second is None:
            if word.is_entry or len(word.runs) > 1 or word.arm is not None:
                raise UsageError("name what to compare it with", allowed="infx compare A B")
            loaded = self.load(word.runs[0])
            if len({point.arm for point in loaded.plan.points}) > 1:
                return pairs_of(loaded, self.rerun)
            return [(self.entry(loaded.run.recipe, before=loaded.run.id), self.side(first, keep))]
        other = read_word(second)
        if word.is_entry and other.is_entry:
            raise UsageError("`entry` can stand on one side only")
        if word.is_entry:
            recipe = self.load(other.runs[0]).run
            return [(self.entry(recipe.recipe, before=recipe.id), self.side(second, keep))]
        if other.is_entry:
            recipe = self.load(word.runs[0]).run
            return [(self.side(first, keep), self.entry(recipe.recipe, before=recipe.id))]
        return [(self.side(first, keep), self.side(second, keep))]

    def side(self, text: str, keep: frozenset[str] | None = None) -> Side:
        """The side of one word; ``keep``: the metrics that are needed."""
        return side_from(read_word(text), text, partial(self.load, keep=keep), self.rerun, keep)

    def records(self) -> list[Record]:
        """The changelog's entries that still count."""
        path = self.changelog or self.top() / "perf-changelog.yaml"
        try:
            return [r for r in ledger(path.read_bytes(), str(path)) if r.retracted is None]
        except FileNotFoundError:
            raise UsageError("there is no changelog", where=str(path), hint="name a second run") from None

    def entry(self, recipe: str, before: str = "", records: Sequence[Record] | None = None) -> Side:
        """The latest results entry of a recipe as a side; ``before``: a run that is not to be its own baseline."""
        found = [r.entry for r in (self.records() if records is None else records) if isinstance(r.entry, Results)]
        fitting = [e for e in found if e.recipe == recipe and e.run != before]
        if not fitting:
            raise UsageError(f"the changelog has no other results of {recipe}", hint="name a second run")
        return entry_side(fitting[-1], self._kept, _hashes)

    def claims(self, first: str, second: str | None, options: Options) -> tuple[str, list[Judged]]:
        """Judge the newest change entry that claims something about the run's recipe (the last word's run)."""
        new = read_word(second or first)
        runs = [self.load(name) for name in new.runs]
        recipe = runs[0].run.recipe
        records = self.records()
        at = next((i for i in reversed(range(len(records))) if _claims_about(records[i], recipe)), None)
        if at is None:
            raise UsageError(f"no entry of the changelog claims anything about {recipe}",
                             hint="write `expect:` into a change entry")
        change = records[at].entry
        assert isinstance(change, Change)
        sides = {arm: side_of(arm or "base", runs, arm, self.rerun)
                 for arm in {None, *(p.arm for loaded in runs for p in loaded.plan.points)}}
        baseline = None
        if any(claim.against is None for claim in change.expect):
            given = second is not None and not read_word(first).is_entry
            baseline = self.side(first) if given else self._before(recipe, runs[0].run.id, records[:at])
        empty = Side("", {})
        judged = judge_all(change.expect, baseline, lambda arm: sides.get(arm, empty), options, hash_of=sha256)
        return records[at].id, judged

    def _before(self, recipe: str, run: str, records: Sequence[Record]) -> Side | None:
        try:
            return self.entry(recipe, run, records)
        except UsageError:
            return None

    def _kept(self, run: str) -> LoadedRun | None:
        try:
            return self.load(run)
        except InfxError:
            return None


def sha256(path: Path) -> str:
    """Hash of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@lru_cache(maxsize=4)
def _loaded(path: Path, keep: frozenset[str] | None) -> LoadedRun:
    return load_run(path, keep)


def _hashes(loaded: LoadedRun) -> set[str]:
    return {sha256(loaded.paths.point(r.point, r.start).result) for r in loaded.results}


def _claims_about(record: Record, recipe: str) -> bool:
    change = record.entry
    return isinstance(change, Change) and bool(change.expect) and any(
        fnmatchcase(recipe, key) for key in change.config_keys)


def _known(name: str) -> str:
    if name not in METRICS:
        raise UsageError(f"unknown metric {name!r}", hint=did_you_mean(name, METRICS) or "infx show --json lists them")
    return name


def _share(text: str, whole: str) -> float:
    percent = text.endswith("%")
    try:
        value = float(text.removesuffix("%")) / (100.0 if percent else 1.0)
    except ValueError:
        value = -1.0
    if not 0.0 < value < 1.0:
        raise UsageError(f"--margin {whole!r}", allowed="a share between 0 and 1, or a percentage: 0.03, 3%, "
                                                        "ttft-p50=0.1")
    return value
