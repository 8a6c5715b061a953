"""Which tasks over whole arrays are one launch.

Tasks that need each other item by item are done by one thread in turn. Those that need each other row by row, as those
of a softmax do, are phases of one launch, whose blocks take rows of their own through all of them. All others wait for
the launch before; what is ready at the same time shares one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from leafgrad.lowering.forms import Root
from leafgrad_cuda.launches import BLOCKS, THREADS, Group, Section, section
from leafgrad_cuda.walks import Walk
from leafgrad_cuda.writer import ITEMS, Task

MOST = 64  # groups of one phase
RIDERS = 2 * ITEMS  # items that ride along with products by squares, at most
LAUNCH = 2500  # nanoseconds from a launch of a graph to the next
PHASE = 100  # from a phase to the next
TURN = 500  # of a thread from an item to the next
TERM = 100  # to the next element that an item reads
OPERATION = 2


@dataclass(eq=False, repr=False)
class Chain:
    """A group, when it can run, and when the first runs that needs it.

    Attributes:
        starts: its tasks, and at which item of it the first of each is done.
        at: how many others come before it, one after the other.
        needed: of the first that needs it, the same.
    """

    starts: dict[Task, int]
    at: int
    needed: float = math.inf

    @property
    def group(self) -> Group:
        return Group(tuple(self.starts), tuple(self.starts.values()))

    @property
    def count(self) -> int:
        return next(iter(self.starts)).items

    @property
    def alone(self) -> bool:
        return any(t.alone for t in self.starts)

    def start(self, task: Task) -> int | None:
        """With which item of this group the first of ``task`` goes, if items need what their own made, nothing else."""
        if task.alone or any(t.steps for t in self.starts) or (self.alone and task.count != self.count):
            return None
        if self.count == task.count == 1:
            return 0
        found: set[int | None] = set()
        for t, at in self.starts.items():
            for r in (t.makes & (task.needs | task.makes)) | (t.needs & task.makes):
                ours, others = t.walks.get(r, Walk()).first, task.walks.get(r, Walk()).first
                found.add(None if ours is None or others is None else at - ours + others)
        (start, *rest) = found or {None}
        return start if not rest and start is not None and 0 <= start <= self.count - task.count else None


def chains(waiting: Sequence[Task]) -> list[Chain]:
    """Groups in an order in which they can run."""
    groups: list[Chain] = []
    makers: dict[Root, list[Chain]] = {}
    for task in waiting:
        before = list(dict.fromkeys(g for r in task.needs for g in makers.get(r, ())))
        joined = {g: start for g in before if (start := g.start(task)) is not None}
        mixed = len({g.count for g in joined}) > 1 or any(g.alone for g in joined)
        if mixed or any(joined.values()):  # a part of a group, or what follows a square, goes with that one alone
            joined = dict([max(joined.items(), key=lambda pair: pair[0].at)])
        at = max([*(g.at + 1 for g in before if g not in joined), *(g.at for g in joined)], default=0)
        joined = {g: start for g, start in joined.items() if g.at == at or (g.needed > at and not g.alone)}
        starts = {t: s for g in joined for t, s in g.starts.items()} | {task: max(joined.values(), default=0)}
        mine = Chain({t: starts[t] for t in sorted(starts, key=waiting.index)}, at)
        mine.needed = min([g.needed for g in joined], default=math.inf)
        for g in before:
            if g not in joined:
                g.needed = min(g.needed, at)
        groups = [g for g in groups if g not in joined] + [mine]
        for made in makers.values():
            made[:] = dict.fromkeys(mine if g in joined else g for g in made)
        for r in task.makes:
            makers.setdefault(r, []).append(mine)
    return sorted(groups, key=lambda g: g.at)


@dataclass(eq=False, repr=False)
class Cluster:
    """Chains of one launch that need each other row by row.

    Attributes:
        launch: which one.
        phase: of each chain.
        rows: in how many parts they may be taken; 0 of one chain, which may be taken in any.
    """

    launch: int
    phase: dict[Chain, int]
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        touching: dict[Root, dict[Chain, list[Task]]] = {}
        for chain in self.phase:
            for t in chain.starts:
                for r in t.needs | t.makes:
                    touching.setdefault(r, {}).setdefault(chain, []).append(t)
        made = {r for chain in self.phase for t in chain.starts for r in t.makes}
        shared = [(r, n, t) for r in made if len(touching[r]) > 1 for n, tasks in touching[r].items() for t in tasks]
        most = math.gcd(*(t.walks.get(r, Walk()).parts if t.count == n.count else 1 for r, n, t in shared))
        self.rows = min(divisors(most), key=lambda n: (cost(self.phases, n), n)) if most else 0

    @property
    def phases(self) -> list[list[Group]]:
        found: list[list[Group]] = [[] for _ in range(max(self.phase.values()) + 1)]
        for chain, k in self.phase.items():
            found[k].append(chain.group)
        return found

    @property
    def cost(self) -> float:
        return cost(self.phases, self.rows)

    def section(self) -> Section:
        return Section(list(self.phases), self.rows, min(BLOCKS, self.rows))


def divisors(n: int) -> list[int]:
    """Those that are at most twice as many rows as there are blocks."""
    return [d for d in range(1, min(n, 2 * BLOCKS) + 1) if n % d == 0]


def cost(phases: Sequence[Sequence[Group]], rows: int) -> float:
    """Nanoseconds of phases in so many rows, or of one phase without any, about."""
    total = 0.0
    for phase in phases:
        total += PHASE
        for group in phase:
            each, turns = (group.count // rows, -(-rows // BLOCKS)) if rows else (-(-group.count // BLOCKS), 1)
            item = TURN + TERM * (group.terms - 1) + OPERATION * group.operations
            total += turns * -(-each // THREADS) * item
    return total


def clusters(waiting: Sequence[Task]) -> list[Cluster]:
    """Which launch each chain is of: that of those which it needs, where it needs them row by row and that pays."""
    found: dict[Chain, Cluster] = {}
    writers: dict[Root, list[Chain]] = {}
    for chain in chains(waiting):
        before = list(dict.fromkeys(n for t in chain.starts for r in t.needs for n in writers.get(r, ())))
        last = max((found[n].launch for n in before), default=-1)
        near = list(dict.fromkeys(found[n] for n in before if found[n].launch == last))
        mine = Cluster(last + 1, {chain: 0})
        if near and not chain.alone and not any(n.alone for c in near for n in c.phase):
            phase = 1 + max(c.phase[n] for c in near for n in c.phase if n in before)
            merged = Cluster(last, {**{n: k for c in near for n, k in c.phase.items()}, chain: phase})
            if merged.cost <= sum(c.cost for c in near) + mine.cost + LAUNCH:
                mine = merged
        for n in mine.phase:
            found[n] = mine
        for t in chain.starts:
            for r in t.makes:
                writers.setdefault(r, []).append(chain)
    return list(dict.fromkeys(found.values()))


def launches(waiting: Sequence[Task]) -> list[list[Section]]:
    """Sections of each launch, in order. Only little rides along with products by squares: they take many registers."""
    found = clusters(waiting)
    made: list[list[Section]] = []
    for number in range(max((c.launch for c in found), default=-1) + 1):
        now = [c for c in found if c.launch == number]
        single = [chain for c in now if len(c.phase) == 1 for chain in c.phase]
        squares: dict[object, list[Group]] = {}
        for chain in single:
            if (tile := chain.group.tasks[0].tile) is not None:
                squares.setdefault(tile.room, []).append(chain.group)
        rest = [c.section() for c in now if len(c.phase) > 1]
        rest += [section([chain.group]) for chain in single if chain.group.tasks[0].steps]
        plain = [chain.group for chain in single if not chain.alone]
        rest += [section(plain[k : k + MOST]) for k in range(0, len(plain), MOST)]
        ahead = [section(groups) for groups in squares.values()]
        together = work(rest) <= RIDERS and not any(s.scan for s in rest)
        made += [[*ahead, *rest]] if together or not ahead else [ahead, rest]
    return made


def work(sections: Iterable[Section]) -> int:
    """Items in all."""
    return sum(group.count for s in sections for phase in s.phases for group in phase)
