"""Graph breaks: an open function runs as programs between those of its statements that need Python at each call."""

from __future__ import annotations

import ast
import re
import sys
import time
import types
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from leafgrad.compile.guard.environment import Environment
from leafgrad.compile.ir.lines import Line, Position, position_of
from leafgrad.compile.run.callees import Callees, python_of
from leafgrad.compile.run.closing import Attempt
from leafgrad.compile.run.outline import Outline
from leafgrad.compile.run.source import tree_of
from leafgrad.compile.run.split import covers, span
from leafgrad.signals import held

SETTLES = 64  # calls at most until what is compiled has settled
MET = 2  # calls after which callees are compiled
RARE = 8  # calls after which nobody waits for what has not been called
REPAID = 5  # times as long as it settled it runs without parts before the same ones, which were in vain, are made again

LOCAL = (ast.Name, ast.Tuple, ast.List, ast.Starred)  # what assignments to local variables consist of

clock = time.perf_counter


class Breaks:
    """Where a function breaks, and the function with its runs between compiled.

    Args:
        function: what is called, and is open: a function, a method, or an object such as a module.
        compiled: makes a compiled function of a run, or of what is called.

    Attributes:
        positions: of what needs Python.
        outlined: the function in which runs are compiled; None if there is none.
    """

    def __init__(self, function: Any, compiled: Callable[[Any], Any]) -> None:
        self.called, self.compiled = function, compiled
        self.function, self.first = python_of(function)
        self.positions: set[Position] = set()
        self.outlined: Any = None
        self.outline: Outline
        self.divided: set[Position] = set()  # where, last
        self.seconds = [0.0, 0.0]  # of calls since: without parts, and while these settled
        self.callees = Callees(compiled)
        self.gains = False  # whether anything of it is worth it to be compiled
        self.seeks: Environment | None = None  # what a call has changed, to see at the next one which lines do
        self.settling = False

    @property
    def code(self) -> frozenset[types.CodeType]:
        """The function's own, with that of functions in it."""
        return frozenset() if self.function is None else frozenset(codes_in(self.function.__code__))

    def note(self, attempt: Attempt) -> None:
        """A call was not closed."""
        if self.fits:
            self.positions = attempt.watch.positions | self.reading([path for path, _ in attempt.before.open])
            if attempt.changed:
                self.seeks = Environment(attempt.changed)
            else:
                self.divide()

    def note_change(self, path: str) -> None:
        """What the function reads at a path is another thing at each call."""
        if self.fits:
            self.positions = self.reading([path])
            self.divide()

    @property
    def tree(self) -> ast.AST:
        """The definition of the function."""
        return (self.function and tree_of(self.function)) or ast.Pass()

    @property
    def fits(self) -> bool:
        """Whether the function can be divided, and is not yet."""
        return not self.settling and not self.found and isinstance(self.tree, ast.FunctionDef)

    def reading(self, paths: Iterable[str]) -> set[Position]:
        """Where the function reads, and uses, what is at some paths, such as ``self.log`` or ``len(history)``."""
        names = {found[-1] for path in paths if (found := re.findall(r"[^\W\d]\w*", path.partition("[")[0]))}
        nodes = [n for n in ast.walk(self.tree) if isinstance(n, (ast.Name, ast.Attribute))]
        named = [n for n in nodes if (n.id if isinstance(n, ast.Name) else n.attr) in names]
        expressions = [n for n in ast.walk(self.tree) if isinstance(n, ast.expr)]
        return {span(n) for n in expressions if any(covers(n, span(name)) for name in named)}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function returns; nothing is compiled of it if no breaks are known."""
        seeks, self.seeks = self.seeks, None
        if seeks is not None:
            lines = ChangingLines(seeks, self.code)
            with lines:
                result = self.called(*args, **kwargs)
            held(self.divide_at, lines.positions)
            return result
        if self.settling:
            held(self.settle)
        settling, found = self.settling, self.found
        if found and not settling:
            return self.outlined(*self.first, *args, **kwargs)
        start = clock()
        try:
            return self.outlined(*self.first, *args, **kwargs) if found else self.called(*args, **kwargs)
        finally:
            self.seconds[settling] += clock() - start

    @property
    def found(self) -> bool:
        """Whether the function is divided, and gains by it."""
        return self.gains and self.outline.current and python_of(self.called)[0] is self.function

    @property
    def parts(self) -> list[Any]:
        """What is compiled of the function."""
        return [*self.outline.parts.values(), *self.callees.parts] if self.outlined is not None else []

    @property
    def ready(self) -> bool:
        """Whether all is known, and made."""
        return self.seeks is None and not self.settling

    def divide_at(self, positions: set[Position]) -> None:
        """Lines change what the function reads: each statement that begins there may have done it, or what it calls."""
        self.positions |= positions
        lines = {line for line, *_ in positions}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt) and node.lineno in lines and not hasattr(node, "body"):
                self.positions.update(map(span, calls_in(node) or [node]))
        self.divide()

    def divide(self) -> None:
        """Take out the runs between the positions; not again soon where that was in vain."""
        assert self.function is not None
        again = self.outlined is not None and self.outline.current and self.divided == self.positions
        if again and self.seconds[0] < REPAID * self.seconds[1]:
            return
        self.divided, self.seconds = {*self.positions}, [0.0, 0.0]
        self.outline = Outline(self.function, self.positions, self.compiled, self.callees)
        self.runs: dict[str, Any] = {}  # that are called, compiled
        self.outlined = self.outline.outlined
        self.gains = self.settling = self.outlined is not None
        self.calls, self.waits = 0, 4 * SETTLES  # of which callees need some for their own parts
        for name, run in self.outline.parts.items():
            self.outline.replace(name, run.function)

    def settle(self) -> None:
        """Callees become programs or turn out to be open, then runs, which may be given graphs that those leave.

        What is not worth it is left to Python.
        """
        self.calls += 1
        first = not self.runs
        parts = self.callees.parts if first else self.parts
        settled = all(part._calls.settled or (part._calls.is_new and self.calls > RARE) for part in parts)
        if self.calls < self.waits and not (settled and self.calls > MET):
            return
        self.callees.settle()
        self.gains = not all(part._calls.is_idle for part in self.parts)
        self.runs = self.outline.parts
        for name, run in self.runs.items():
            self.outline.replace(name, run.function if run._calls.is_idle else run)
        self.settling = first and bool(self.runs)
        self.calls, self.waits = 0, SETTLES

    def explain(self) -> list[str]:
        """Where the function breaks, and what its parts do; nothing if it has none."""
        if self.function is None or self.outlined is None:
            return []
        where = [
            Line(self.function.__code__.co_filename, number) for number in sorted({line for line, *_ in self.positions})
        ]
        lines = ["  graph breaks, of which Python runs the statements at each call; the others are compiled:"]
        lines += [f"    {line}" for line in where]
        for i, part in enumerate(self.parts):
            function, _ = python_of(part.function)
            lines += [f"  part {i + 1}, from line {function.__code__.co_firstlineno if function else '?'}:"]
            lines += [f"    {line}" for line in part.explain().splitlines()]
        return lines if self.gains else [*lines, "  runs uncompiled, since no part is worth it"]


def calls_in(statement: ast.stmt) -> list[ast.AST]:
    """The calls by which alone a statement changes anything outside; none if it assigns to what may be there."""
    nodes = [*ast.walk(statement)]
    stores = [node for node in nodes if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))]
    return [node for node in nodes if isinstance(node, ast.Call)] if all(isinstance(n, LOCAL) for n in stores) else []


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """Some code, and that of functions in it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes_in(const)


class ChangingLines:
    """Notes where, in frames of ``code``, the places of an environment are changed."""

    def __init__(self, environment: Environment, code: Collection[types.CodeType]) -> None:
        self.environment, self.code = environment, code
        self.positions: set[Position] = set()
        self.last: dict[types.FrameType, tuple[Position | None, Any]] = {}

    def __enter__(self) -> None:
        self.traced = bool(self.environment.snapshot()) and sys.gettrace() is None
        if self.traced:
            sys.settrace(self.called)

    def __exit__(self, *_: object) -> None:
        if self.traced:
            sys.settrace(None)

    def called(self, frame: types.FrameType, event: str, _: Any) -> Any:
        """A function begins: only the lines of some are of interest."""
        return self.at if frame.f_code in self.code else None

    def at(self, frame: types.FrameType, event: str, _: Any) -> Any:
        """A line begins, or the function returns: what has changed since its last one, that one has changed."""
        position, held = self.last.pop(frame, (None, None))
        if position is not None and self.environment.changed(held):
            self.positions.add(position)
        if event != "return":
            self.last[frame] = position_of(frame), self.environment.snapshot()
        return self.at
