"""Expressions that need Python made statements of their own, so that the rest of their statements can be taken out.

``total += criterion(net(x), y) * weight()`` becomes assignments to variables that no source has: one of what the
criterion gives, which can be taken out, one of what ``weight()`` gives, and ``total += ...`` of both. All is evaluated
once, in the order in which it was.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Iterable
from typing import Any

from leafgrad.compile.ir.lines import Position

COUNT = itertools.count()
EXPRESSIONS = {
    ast.Assign: "value",
    ast.AnnAssign: "value",
    ast.AugAssign: "value",
    ast.Expr: "value",
    ast.If: "test",
    ast.For: "iter",
}
HEADS = (ast.If, ast.For)


def span(node: Any) -> Position:
    """From where to where in the source a node is."""
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def covers(node: ast.AST, position: Position) -> bool:
    """Whether a position is in a node."""
    at = span(node)
    return at[:2] <= position[:2] and position[2:] <= at[2:]


def calls(node: ast.AST) -> bool:
    """Whether an expression calls anything."""
    return any(isinstance(inner, ast.Call) for inner in ast.walk(node))


def split(
    statement: ast.stmt, breaks: Iterable[Position], local: frozenset[str], set_: frozenset[str]
) -> list[ast.stmt]:
    """A statement in parts, each with a mark: whether it is ``free`` to be taken out. Itself if nothing is gained.

    Args:
        breaks: where Python is needed.
        local: variables that nothing else sees.
        set_: those of them that always have a value.
    """
    field = EXPRESSIONS.get(type(statement))
    value: Any = None if field is None else getattr(statement, field)
    if field is None or value is None or any(map(is_tied, ast.walk(value))):
        return [statement]
    target = getattr(statement, "target", None)
    if isinstance(statement, ast.AugAssign) and not (isinstance(target, ast.Name) and target.id in local):
        return [statement]
    inner = {b for b in breaks if covers(value, b)}
    head = isinstance(statement, HEADS)
    outer = not head and any(b not in inner and covers(statement, b) for b in breaks)
    if not inner and not outer:
        return [statement]
    whole = copy.deepcopy(statement)
    parts = Extraction(inner, set_)
    given = getattr(whole, field)
    rest = parts.rest(given) if inner else parts.now(given)
    if inner and parts.found and parts.found[-1].value is given:  # the statement does that itself
        rest, outer = parts.found.pop().value, True
    setattr(whole, field, rest)
    found: list[Any] = [*parts.found, whole]
    found[-1].free = not (outer or head or isinstance(rest, ast.Name))
    if not any(part.free and calls(part) for part in found):
        return [statement]
    return [ast.fix_missing_locations(part) for part in found]


def is_tied(node: ast.AST) -> bool:
    """Whether an expression cannot be moved out of its statement: it sets a variable, or looks at the frame."""
    return isinstance(node, (ast.NamedExpr, ast.Starred)) or (isinstance(node, ast.Name) and node.id == "super")


class Extraction:
    """What is evaluated before the rest of an expression.

    Args:
        breaks: where it needs Python.
        set_: variables that are set and stay as they are.
    """

    def __init__(self, breaks: set[Position], set_: frozenset[str]) -> None:
        self.breaks, self.set = breaks, set_
        self.found: list[Any] = []

    def rest(self, node: Any) -> Any:
        """What is left of an expression when all that needs Python is done, and all that comes before."""
        inside = {b for b in self.breaks if covers(node, b)}
        if not inside:
            return node
        itself = span(node) in inside and not is_slice(node)
        inside.discard(span(node))
        places = operands(node)
        found = [operand_at(node, at) for at in places]
        torn = [any(covers(child, b) for b in inside) for child in found]
        if not all(any(covers(child, b) for child in found) for b in inside):
            return self.out(node, False)
        last = max((k for k, child in enumerate(found) if torn[k] or (itself and calls(child))), default=-1)
        for k in range(last + 1):
            rest = self.rest(found[k])
            set_operand(node, places[k], self.now(rest) if itself or k < last else rest)
        return self.out(node, False) if itself else node

    def now(self, node: Any) -> Any:
        """What stands for an expression that is evaluated here."""
        if isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and (node.id in self.set or is_ours(node.id))):
            return node
        if is_slice(node):
            for at in operands(node):
                set_operand(node, at, self.now(operand_at(node, at)))
            return node
        if isinstance(node, ast.Attribute):
            node.value = self.now(node.value) if calls(node.value) else node.value
        return self.out(node, not isinstance(node, (ast.Name, ast.Attribute)))

    def out(self, node: Any, free: bool) -> ast.expr:
        """A new variable, which has the value of an expression."""
        name = f"__value{next(COUNT)}__"
        part: Any = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], node), node)
        part.free = free
        self.found.append(part)
        return ast.copy_location(ast.Name(name, ast.Load()), node)


def is_slice(node: Any) -> bool:
    """Whether it stands in brackets alone, so that no variable can have its value."""
    return isinstance(node, ast.Slice) or (isinstance(node, ast.Tuple) and any(map(is_slice, node.elts)))


def is_ours(name: str) -> bool:
    return name.startswith("__value") and name.endswith("__")


At = tuple[str, int | None]  # a field of a node, and the place in it


def operands(node: Any) -> list[At]:
    """Where the expressions are that are evaluated before a node is, in their order; none where that is not plain."""
    match node:
        case ast.BinOp():
            return [("left", None), ("right", None)]
        case ast.UnaryOp():
            return [("operand", None)]
        case ast.Attribute():
            return [("value", None)]
        case ast.Subscript():
            return [("value", None), ("slice", None)]
        case ast.Slice():
            return [(name, None) for name in ("lower", "upper", "step") if getattr(node, name) is not None]
        case ast.Tuple() | ast.List() | ast.Set():
            return [("elts", i) for i in range(len(node.elts))]
        case ast.Call() if all(k.arg is not None for k in node.keywords):
            return [("func", None), *(("args", i) for i in range(len(node.args)))] + [
                ("keywords", i) for i in range(len(node.keywords))
            ]
        case ast.Compare(comparators=[_]):
            return [("left", None), ("comparators", 0)]
        case ast.BoolOp():
            return [("values", 0)]
        case ast.IfExp():
            return [("test", None)]
    return []


def operand_at(node: Any, at: At) -> Any:
    field, i = at
    found = getattr(node, field) if i is None else getattr(node, field)[i]
    return found.value if isinstance(found, ast.keyword) else found


def set_operand(node: Any, at: At, value: Any) -> None:
    field, i = at
    if i is None:
        setattr(node, field, value)
    elif isinstance(node, ast.Call) and field == "keywords":
        node.keywords[i].value = value
    else:
        getattr(node, field)[i] = value
