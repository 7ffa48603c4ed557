"""Random histories of a changelog: who appends, fills in links, merges, squashes, rebases, and what must hold.

`play` drives a World: the one in this file keeps commits in memory and calls the merge for every file-level merge that
git would do; tests/integration has another that is a real repository.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from infx.changelog.gate import check, choose_base
from infx.changelog.merge import merge
from infx.changelog.rebuild import rebuild
from infx.changelog.render import render
from infx.changelog.spans import join, split
from infx.schema.changelog import Change

HEADS = [
    b"",
    b"# A changelog.\n",
    b"- config-keys:\n    - old\n  description:\n    - first\n  pr-link: https://git.example/o/n/pull/1\n",
    b"- config-keys:\n    - old\n  description:\n    - odd\n  pr-link: https://git.example/o/n/pull/1\n  \n",
    b"- config-keys:\n  - old\n  description: scalar  \n\n\n- config-keys:\n    - old\n  pr-link: nowhere\n \n\n",
    b"- config-keys:\n    - old\n  description:\n    - no newline\n  pr-link: https://git.example/o/n/pull/1",
    b"# Notes\n\n- config-keys: [a]\n  pr-link: x\n    - lost\n  pr-link: y\n\n- config-keys:\n    - old\n",
]
"""Trunks to start from: empty, with a comment, sound, with odd separators, damaged, without a final newline."""


class World(Protocol):
    """Branches of one repository with one file; `main` is the trunk."""

    def read(self, branch: str) -> bytes: ...
    def base(self, branch: str) -> bytes: ...
    def tip(self, branch: str) -> tuple[bytes, bytes] | None: ...
    def fork(self, new: str, old: str) -> None: ...
    def commit(self, branch: str, data: bytes) -> None: ...
    def merge(self, into: str, other: str, how: str = "") -> list[str]: ...
    def rebase(self, branch: str) -> list[str]: ...
    def pick(self, onto: str, other: str) -> list[str]: ...
    def rebuild(self, branch: str) -> None: ...
    def fetch(self) -> None: ...


@dataclass(frozen=True)
class Commit:
    parents: tuple[int, ...]
    data: bytes


@dataclass
class Memory:
    """A World in memory; `trunks` of a merge are what was last fetched, then `main`."""

    start: bytes
    commits: list[Commit] = field(default_factory=list)
    tips: dict[str, int] = field(default_factory=dict)
    fetched: int = 0

    def __post_init__(self) -> None:
        self.commits.append(Commit((), self.start))
        self.tips["main"] = 0

    def read(self, branch: str) -> bytes:
        return self.commits[self.tips[branch]].data

    def base(self, branch: str) -> bytes:
        """The trunk's bytes that the branch builds on, as the gate would choose them."""
        forks = [self.commits[number].data for number in self._bases(self.tips[branch], self.tips["main"])]
        return choose_base(self.read(branch), self.read("main"), self._states(branch), forks)

    def _states(self, branch: str) -> Iterator[bytes]:
        above, number = self._above(self.tips[branch]), self.tips["main"]
        while True:
            if number in above:
                yield self.commits[number].data
            if not self.commits[number].parents:
                return
            number = self.commits[number].parents[0]

    def tip(self, branch: str) -> tuple[bytes, bytes] | None:
        """Before and after of the last commit, where it is a plain one."""
        here = self.commits[self.tips[branch]]
        return None if len(here.parents) != 1 else (self.commits[here.parents[0]].data, here.data)

    def fork(self, new: str, old: str) -> None:
        self.tips[new] = self.tips[old]

    def commit(self, branch: str, data: bytes) -> None:
        self._add(branch, (self.tips[branch],), data)

    def rebuild(self, branch: str) -> None:
        data = rebuild(self.read("main"), [(self.base(branch), self.read(branch))], self.read(branch)).data
        self.commit(branch, data)

    def fetch(self) -> None:
        self.fetched = self.tips["main"]

    def merge(self, into: str, other: str, how: str = "") -> list[str]:
        mine, its = self.tips[into], self.tips[other]
        squash = how == "squash"
        if its in self._above(mine):
            return []
        if mine in self._above(its) and not how:
            self.tips[into] = its
            return []
        result = self._merge(self._ancestor(mine, its), mine, its)
        if not result.conflicts:
            self._add(into, (mine,) if squash else (mine, its), result.data)
        return result.conflicts

    def rebase(self, branch: str) -> list[str]:
        onto = self.tips["main"]
        mine = self._above(self.tips[branch]) - self._above(onto)
        tip = onto
        for number in sorted(mine):
            if len(self.commits[number].parents) != 1:
                continue
            made, conflicts = self._pick(tip, number)
            if conflicts:
                return conflicts
            tip = made
        self.tips[branch] = tip
        return []

    def pick(self, onto: str, other: str) -> list[str]:
        made, conflicts = self._pick(self.tips[onto], self.tips[other])
        if not conflicts:
            self.tips[onto] = made
        return conflicts

    def _pick(self, tip: int, number: int) -> tuple[int, list[str]]:
        old, new, here = (self.commits[n].data for n in (self.commits[number].parents[0], number, tip))
        if here == old or old == new:
            data = new if here == old else here
        elif here == new:
            data = here
        else:
            result = self._files(old, here, new, False)
            if result.conflicts:
                return tip, result.conflicts
            data = result.data
        if data == here:
            return tip, []
        self.commits.append(Commit((tip,), data))
        return len(self.commits) - 1, []

    def _files(self, old: bytes, mine: bytes, its: bytes, joining: bool):
        trunks = [self.commits[self.fetched].data, self.read("main")]
        return merge(old, mine, its, trunks, joining=joining)

    def _merge(self, old: bytes, mine: int, its: int):
        return self._files(old, self.commits[mine].data, self.commits[its].data, True)

    def _add(self, branch: str, parents: tuple[int, ...], data: bytes) -> None:
        self.commits.append(Commit(parents, data))
        self.tips[branch] = len(self.commits) - 1

    def _above(self, number: int) -> set[int]:
        seen, todo = set(), [number]
        while todo:
            here = todo.pop()
            if here not in seen:
                seen.add(here)
                todo += self.commits[here].parents
        return seen

    def _bases(self, one: int, other: int) -> list[int]:
        shared = self._above(one) & self._above(other)
        return [n for n in sorted(shared) if not any(n in self._above(m) - {m} for m in shared)]

    def _ancestor(self, one: int, other: int) -> bytes:
        """The merge base's bytes; of several the merge of them, as git makes it."""
        best = self._bases(one, other)
        data = self.commits[best[0]].data
        for number in best[1:]:
            lower = self._ancestor(best[0], number)
            data = self._files(lower, data, self.commits[number].data, True).data
        return data


@dataclass
class Entry:
    """What the test knows of an entry: its text, its link once filled in, and whether it is."""

    uid: int
    text: str
    filled: bool

    def body(self) -> bytes:
        link = f"https://git.example/o/n/pull/{self.uid + 2}" if self.filled else "XXX"
        return render(Change(config_keys=["same-key"], description=[self.text], pr_link=link))


@dataclass
class Count:
    """What was done and seen."""

    operations: Counter[str] = field(default_factory=Counter)
    entries: int = 0
    conflicts: int = 0


class Player:
    """One random history and the checks after each of its steps."""

    def __init__(self, world: World, seed: int, count: Count) -> None:
        self.world, self.count = world, count
        self.random = random.Random(seed)
        self.own: dict[str, dict[int, Entry]] = {"main": {}}
        self.old = Counter(split(world.read("main")).bodies)
        self.uid = 0
        self.repeated: set[int] = set()
        self.seen: set[tuple[bytes, bytes]] = set()

    def step(self) -> None:
        """One operation on one branch, then every check."""
        trunk = self.world.read("main")
        branches = [name for name in self.own if name != "main"]
        if len(branches) < 2 or (len(branches) < 5 and self.random.random() < 0.15):
            self._fork(branches)
        else:
            name = self.random.choice(branches)
            act = self.random.choice([
                self._append, self._append, self._append, self._fill, self._repeat, self._update, self._rebase,
                self._land, self._forward, self._squash, self._pick, self._join, self._fetch])
            self.count.operations[act.__name__.strip("_")] += 1
            act(name)
        assert self.world.read("main").startswith(trunk), "the trunk's bytes are no longer a prefix"
        for name in self.own:
            self._look(name)

    def _look(self, name: str) -> None:
        if (self.world.read(name), self.world.base(name)) not in self.seen:
            self._mended(name)
        data, base = self.world.read(name), self.world.base(name)
        found = Counter(split(data).bodies)
        assert found == self.old + Counter(entry.body() for entry in self.own[name].values()), f"entries of {name}"
        if (data, base) not in self.seen:
            assert check(data, base) == [], f"the gate on {name}"
            self.seen.add((data, base))

    def _new(self, text: str = "") -> Entry:
        self.uid += 1
        self.count.entries += 1
        return Entry(self.uid, text or f"change {self.uid}", self.random.random() < 0.3)

    def _write(self, name: str, *entries: Entry) -> None:
        data = self.world.read(name)
        self.world.commit(name, join(data, [entry.body() for entry in entries], len(data)))
        self.own[name] |= {entry.uid: entry for entry in entries}

    def _fork(self, branches: list[str]) -> None:
        name, old = f"b{len(branches)}-{self.uid}", self.random.choice(["main", *branches])
        self.world.fork(name, old)
        self.own[name] = dict(self.own[old])
        self._append(name)

    def _append(self, name: str) -> None:
        self._write(name, *(self._new() for _ in range(self.random.choice([1, 1, 2, 3]))))

    def _repeat(self, name: str) -> None:
        """A legitimate exact duplicate of an entry of the trunk."""
        again = [entry for entry in self.own[name].values()
                 if entry.uid > 0 and entry.uid in self.own["main"] and entry.filled and entry.uid not in self.repeated]
        inherited = self.world.base(name)
        again = [entry for entry in again if entry.body() in split(inherited).bodies]
        if again:
            entry = self.random.choice(again)
            self.repeated.add(entry.uid)
            twin = Twin(-entry.uid, entry.text, True)
            self._write(name, twin)

    def _fill(self, name: str) -> None:
        """The pull request has its number now: a second commit fills it in."""
        self._filled(name, [uid for uid in self.own[name] if self.random.random() < 0.7])

    def _filled(self, name: str, uids: list[int]) -> None:
        data = after = self.world.read(name)
        for uid in uids:
            entry = self.own[name][uid]
            if not entry.filled and uid not in self.own["main"]:
                full = Entry(entry.uid, entry.text, True)
                after = after.replace(entry.body(), full.body())
                self.own[name][uid] = full
        if after != data:
            self.world.commit(name, after)

    def _union(self, name: str, other: str) -> dict[int, Entry]:
        mine, its = self.own[name], self.own[other]
        return {uid: next((side[uid] for side in (mine, its) if uid in side and side[uid].filled),
                          mine.get(uid) or its[uid]) for uid in {**mine, **its}}

    def _update(self, name: str) -> None:
        assert self.world.merge(name, "main") == []
        self.own[name] = self._union(name, "main")

    def _join(self, name: str) -> None:
        other = self.random.choice([branch for branch in self.own if branch not in ("main", name)])
        assert self.world.merge(name, other) == []
        self.own[name] = self._union(name, other)

    def _rebase(self, name: str) -> None:
        assert self.world.rebase(name) == []
        self.own[name] = self._union(name, "main")

    def _land(self, name: str, how: str = "no-ff") -> None:
        self._filled(name, list(self.own[name]))
        assert self.world.merge("main", name, how) == []
        self.own["main"] = self._union("main", name)

    def _forward(self, name: str) -> None:
        """Lands without a merge commit where git can."""
        self._land(name, "")

    def _mended(self, name: str) -> None:
        """The gate refuses a branch that has all of the trunk's entries, but not first and in order: rebuild it."""
        found = check(self.world.read(name), self.world.base(name))
        if found:
            assert name != "main" and {item.code for item in found} == {"C-015"}, f"the gate on {name}"
            self.count.operations["rebuild"] += 1
            self.world.rebuild(name)
            self.own[name] = self._union(name, "main")

    def _squash(self, name: str) -> None:
        self._land(name, "squash")

    def _pick(self, name: str) -> None:
        """A cherry-pick of another branch's last commit; where it edits an entry that is not here, a conflict."""
        other = self.random.choice([branch for branch in self.own if branch not in ("main", name)])
        step = self.world.tip(other)
        if step is None:
            return
        was, now = (Counter(split(data).bodies) for data in step)
        added, removed = now - was, was - now
        if any(uid < 0 and added[entry.body()] for uid, entry in self.own[other].items()):
            return  # Picked onto a branch that gained the original of its own, a repeat is that one: documented.
        before = Counter(split(self.world.read(name)).bodies)
        conflicts = self.world.pick(name, other)
        if conflicts:
            self.count.conflicts += 1
            assert Counter(split(self.world.read(name)).bodies) == before
            assert removed - before, "a conflict though the branch has all that the commit edits"
            return
        for uid, entry in sorted(self.own[other].items()):
            if added[entry.body()] and (uid > 0 or uid not in self.own[name]):
                added[entry.body()] -= 1
                if uid not in self.own[name] or not self.own[name][uid].filled:
                    self.own[name][uid] = entry

    def _fetch(self, _: str) -> None:
        self.world.fetch()


class Twin(Entry):
    """A repeat: the same text and link as the entry whose negative uid it has."""

    def body(self) -> bytes:
        return Entry(-self.uid, self.text, True).body()


def play(world: World, seed: int, steps: int, count: Count) -> Iterator[str]:
    """Drive a world through `steps` random operations; yields after each, raises AssertionError where one breaks."""
    player = Player(world, seed, count)
    for number in range(steps):
        player.step()
        yield f"{seed}:{number}"
