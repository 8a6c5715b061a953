"""A function's statements in runs, each taken out into a function of its own, around statements that stay.

What is made does the same statements in the same order with the same variables: a run is given those that it may read,
and returns those that it may have set. A variable that is not set is passed as UNBOUND, and unset again.
"""

from __future__ import annotations

import ast
import copy
import functools
import operator
import types
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from leafgrad.compile.ir.lines import Position
from leafgrad.compile.run.source import TREES, definition, made, tree_of
from leafgrad.compile.run.split import covers, span, split
from leafgrad.compile.run.variables import MADE, SENTINEL, assign, bind, call, names_in, surely_stored, unbind, variable

UNBOUND = "<a variable that is not set>"
RESULT, ERROR, CALLEE = "__result__", "__error__", "__callee__"  # variables that no source has
LOOPS = (ast.For, ast.While)

CAUGHT: WeakSet[types.CodeType] = WeakSet()  # of runs, after whose errors variables may be read
OUTLINED: WeakKeyDictionary[types.CodeType, types.CodeType] = WeakKeyDictionary()  # of which code one is the outline


class Outline:
    """A function of which runs of statements are functions of their own.

    Args:
        function: what is outlined.
        breaks: positions in statements that stay.
        make: what is called in the place of a run, made of its function.
        callee: what is called in the place of what is called at a break, given that; None if nothing is.

    Attributes:
        parts: what is called in the places of runs, by the names of the variables that hold it.
        outlined: the function; None if nothing is to be done otherwise.
    """

    def __init__(
        self,
        function: types.FunctionType,
        breaks: set[Position],
        make: Callable[[types.FunctionType], Callable[..., Any]],
        callee: Callable[[Any], Any] | None = None,
    ) -> None:
        self.function, self.breaks, self.make = function, breaks, make
        self.facts = facts_of(function)
        self.parts: dict[str, Any] = {}
        self.errors: dict[str, Any] = {}  # what tells variables after an error in a part
        self.outlined: types.FunctionType | None = None
        tree = tree_of(function)
        if tree is None or not breaks:
            return
        tree = copy.deepcopy(tree)
        nodes = [*ast.walk(tree)]
        declared = [node for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal))]
        if any(node not in tree.body for node in declared):
            return
        Body(self, tree, function.__code__ in CAUGHT).divide()
        called: list[Any] = [] if callee is None else [node for node in ast.walk(tree) if self.is_called(node)]
        for node in called:
            node.func = ast.copy_location(ast.Call(variable(CALLEE), [node.func], []), node.func)
        if self.parts or called:
            self.outlined = made(tree, function, self.parts | self.errors | {SENTINEL: UNBOUND, CALLEE: callee})
            OUTLINED[self.outlined.__code__] = function.__code__
            self.outlined.__defaults__, self.outlined.__kwdefaults__ = function.__defaults__, function.__kwdefaults__

    def is_called(self, node: Any) -> bool:
        """Whether a node is a call of the function's at a break."""
        if not isinstance(node, ast.Call) or span(node) not in self.breaks:
            return False
        return not (isinstance(node.func, ast.Name) and node.func.id.startswith("."))

    @property
    def current(self) -> bool:
        """Whether the function is still what was outlined."""
        return all(map(operator.is_, facts_of(self.function), self.facts))

    def replace(self, part: str, function: Callable[..., Any]) -> None:
        """Call something else in the place of a run."""
        assert self.outlined is not None
        at = self.outlined.__code__.co_freevars.index(part)
        (self.outlined.__closure__ or ())[at].cell_contents = function


class Body:
    """The body of a function that is outlined, or of one that is defined in it.

    Args:
        outline: of the whole.
        tree: the definition.
        around: variables of functions around it that have values whenever it runs.
        hidden: others of theirs.
        caught: whether a statement around it may end an error, after which its variables are read.
    """

    def __init__(
        self,
        outline: Outline,
        tree: ast.FunctionDef,
        caught: bool,
        around: frozenset[str] = frozenset(),
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self.outline, self.tree, self.caught = outline, tree, caught
        nodes = [*ast.walk(tree)]
        self.declared = [node for node in tree.body if isinstance(node, (ast.Global, ast.Nonlocal))]
        self.others = {name for node in self.declared for name in node.names}
        given = tree.args
        arguments = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
        self.passed = frozenset(a.arg for a in arguments if a is not None)
        own = self.passed | names_in(tree.body).stored
        self.around, self.hidden = around - own, hidden - own
        handlers = {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
        deleted = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del)}
        self.deleted = handlers | deleted
        self.loop: ast.stmt | None = None  # the outermost one around what is looked at

    def divide(self) -> None:
        """Take runs out of it."""
        body, passed = self.tree.body, self.passed
        whole = names_in(body)
        self.local = whole.stored - whole.later - self.others
        body = self.split(body, (passed - whole.later - whole.stored - self.deleted) | self.around)
        whole = names_in(body)
        stored = whole.stored - self.others
        self.local = stored | passed | {RESULT} | self.around
        self.once = passed - stored
        self.held = whole.later & stored  # by functions made here, which see each new value
        self.all = body
        found = self.block(body, (passed - self.deleted) | self.around)
        self.tree.body = [*map(declared, sorted(stored - passed)), *found]

    def split(self, statements: list[ast.stmt], set_: frozenset[str]) -> list[ast.stmt]:
        """The same block, with expressions that stay in statements of their own."""
        found: list[ast.stmt] = []
        for statement in [part for s in statements for part in without_result(s)]:
            for block in () if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) else blocks(statement):
                block[:] = self.split(block, set_)
            found += split(statement, self.outline.breaks, self.local, set_)
        return found

    def block(self, statements: list[ast.stmt], bound: frozenset[str]) -> list[ast.stmt]:
        """The same block, with its runs taken out. ``bound`` are variables that are set when it begins."""
        found: list[ast.stmt] = []
        run: list[ast.stmt] = []
        start = bound
        for statement in statements:
            stays = self.stays(statement)
            if stays:
                found += [*self.taken_out(run, start), self.divided(statement, bound)]
                run = []
            else:
                run.append(statement)
            bound |= surely_stored(statement) - self.deleted
            start = bound if stays else start
        return found + self.taken_out(run, start)

    def stays(self, statement: ast.stmt) -> bool:
        """Whether a statement, as a whole, cannot be taken out."""
        if isinstance(statement, (ast.Delete, ast.Global, ast.Nonlocal, ast.FunctionDef, ast.ClassDef, ast.Pass)):
            return True
        free = getattr(statement, "free", None)
        if (
            free is False
            or (free is None and any(covers(statement, b) for b in self.outline.breaks))
            or leaves(statement)
        ):
            return True
        if any(isinstance(node, ast.Name) and node.id == SENTINEL for node in ast.walk(statement)):
            return True
        names = names_in([statement])
        return (
            "super" in names.read
            or not self.hidden.isdisjoint(names.read)
            or bool(names.later & self.local - self.once or names.stored & self.held)
        )

    def divided(self, statement: ast.stmt, bound: frozenset[str]) -> ast.stmt:
        """A statement that stays, with the blocks in it outlined."""
        if isinstance(statement, ast.FunctionDef):
            around = (bound & self.local) - self.deleted
            Body(self.outline, statement, False, around, (self.local | self.hidden) - around).divide()
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            return statement
        caught, self.caught = self.caught, self.caught or isinstance(statement, (ast.Try, ast.With))
        loop, self.loop = self.loop, self.loop or (statement if isinstance(statement, LOOPS) else None)
        for block in blocks(statement):
            block[:] = self.block(block, bound)
        self.caught, self.loop = caught, loop
        return statement

    def taken_out(self, run: list[ast.stmt], bound: frozenset[str]) -> list[ast.stmt]:
        """What stands in the place of a run."""
        if not any(isinstance(node, ast.Call) for s in run for node in ast.walk(s)):
            return run
        read, stored, sure, before = set[str](), set[str](), set[str](), set[str]()
        for statement in run:
            names = names_in([statement])
            certain = surely_stored(statement)
            read |= names.read - sure
            before |= names.stored - certain - sure
            stored |= names.stored
            sure |= certain - self.deleted
        later = self.after(run) | (read | before if self.loop else set())
        set_by = sorted(stored & self.local & (later | {RESULT}))
        given = sorted((read | before.intersection(set_by)) & self.local | (set(set_by) if self.caught else set()))
        outline = self.outline
        part, left = (f".{name}{len(outline.parts)}" for name in ("part", "left"))
        function = self.function_of(run, given, set_by, bound, sure)
        outline.parts[part] = outline.make(function)
        outline.errors[left] = functools.partial(left_by, function.__code__, set_by)
        done = [assign(set_by, call(part, given))]
        if self.caught and set_by:
            again = assign(set_by, call(left, [ERROR, *set_by]))
            done = [ast.Try(done, [ast.ExceptHandler(variable("BaseException"), ERROR, [again, ast.Raise()])], [], [])]
        fresh = [name for name in given if name not in bound]
        found = [*map(bind, fresh), *([ast.Try(done, [], [], [*map(unbind, fresh)])] if fresh else done)]
        return [ast.fix_missing_locations(ast.copy_location(s, run[0])) for s in found]

    def after(self, run: list[ast.stmt]) -> set[str]:
        """The variables of what may be done after a run: what follows, and all of a loop around it."""
        inside = {id(name) for statement in run for name in names_of(statement)}
        names = [name for statement in self.all for name in names_of(statement)]
        last = max((i for i, name in enumerate(names) if id(name) in inside), default=-1)
        names = names[last + 1 :] + ([] if self.loop is None else names_of(self.loop))
        return {name.id for name in names if id(name) not in inside}

    def function_of(
        self, run: list[ast.stmt], given: list[str], set_by: list[str], bound: frozenset[str], sure: set[str]
    ) -> types.FunctionType:
        """A run as a function."""
        unset = [bind(name) for name in set_by if name not in sure]
        body = [*self.declared, *[unbind(name) for name in given if name not in bound], *run, *unset]
        result = [*map(variable, set_by)]
        body += [ast.Return(result[0] if len(result) == 1 else ast.Tuple(result, ast.Load()))] if result else []
        tree = copy.deepcopy(definition(self.outline.function.__name__, given, body))
        for node in ast.walk(tree):
            if not hasattr(node, "lineno"):
                ast.copy_location(node, run[0])
        found = made(ast.fix_missing_locations(tree), self.outline.function, {SENTINEL: UNBOUND})
        TREES[found.__code__] = tree
        if self.caught:
            CAUGHT.add(found.__code__)
        return found


def declared(name: str) -> ast.stmt:
    """``name: None``, which does nothing, but that no global is read where a run alone sets the variable."""
    found = ast.AnnAssign(ast.Name(name, ast.Store()), ast.Constant(None), None, 1)
    return ast.fix_missing_locations(found)


def names_of(node: ast.AST) -> list[ast.Name]:
    """All in a node that name variables, in the order of the source."""
    if isinstance(node, ast.Name):
        return [node]
    return [name for child in ast.iter_child_nodes(node) for name in names_of(child)]


def facts_of(function: types.FunctionType) -> tuple[Any, ...]:
    """What may be replaced in a function."""
    return function.__code__, function.__defaults__, function.__kwdefaults__


def without_result(statement: ast.stmt) -> list[ast.stmt]:
    """``return expression`` in two steps."""
    if isinstance(statement, ast.Return) and not isinstance(statement.value, (ast.Name, ast.Constant, type(None))):
        value = ast.Assign([ast.Name(RESULT, ast.Store())], statement.value)
        back = ast.Return(variable(RESULT))
        return [ast.fix_missing_locations(ast.copy_location(s, statement)) for s in (value, back)]
    return [statement]


def blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks in a statement."""
    found = [getattr(statement, name, None) for name in ("body", "orelse", "finalbody")]
    cases = (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ()))
    return [block for block in (*found, *(case.body for case in cases)) if block]


def leaves(statement: ast.stmt) -> bool:
    """Whether a statement may end the function, or a loop around it."""

    def found(node: ast.AST, in_loop: bool) -> bool:
        if isinstance(node, (*MADE, ast.ListComp)):
            return False
        if isinstance(node, ast.Return) or (isinstance(node, (ast.Break, ast.Continue)) and not in_loop):
            return True
        return any(found(child, in_loop or isinstance(node, LOOPS)) for child in ast.iter_child_nodes(node))

    return found(statement, False)


def left_by(code: types.CodeType, names: Sequence[str], error: BaseException, *before: Any) -> Any:
    """What variables are after an error in a part: what its frame says, or as ``before`` if its Python never ran."""
    values = before
    trace = error.__traceback__
    while trace is not None:
        own = trace.tb_frame.f_code
        if OUTLINED.get(own, own) is code:
            values = tuple([trace.tb_frame.f_locals.get(name, UNBOUND) for name in names])
        trace = trace.tb_next
    return values[0] if len(names) == 1 else values
