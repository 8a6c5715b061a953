"""The variables that statements read and set, and statements that set and unset them."""

from __future__ import annotations

import ast
import functools
import symtable
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from leafgrad.compile.run.source import definition

SENTINEL = "__unbound__"  # a variable that no source has: what one that is not set is passed as
MADE = (ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.GeneratorExp)  # may run later, and read variables then


class Variables(NamedTuple):
    """Variables that statements set, that they read, and that functions made in them read, perhaps later."""

    stored: frozenset[str]
    read: frozenset[str]
    later: frozenset[str]


def names_in(statements: Sequence[ast.stmt]) -> Variables:
    """The variables of some statements."""
    told = [s for s in statements if not isinstance(s, (ast.Global, ast.Nonlocal))]
    return variables_of("\n".join(map(ast.unparse, told)) or "pass")


@functools.lru_cache(4096)
def variables_of(text: str) -> Variables:
    """The variables of the statements that a text has: those of one are asked for with each block around it."""
    tree = OfGenerators().visit(definition("run", (), ast.parse(text).body))
    source = ast.unparse(ast.fix_missing_locations(tree))
    tables = symtable.symtable(source, "<statements>", "exec").get_children()  # from Python 3.14 on of annotations, too
    top = next(table for table in tables if isinstance(table, symtable.Function))
    own = {s.get_name(): s for s in top.get_symbols()}
    nodes = [*ast.walk(ast.parse(text))]
    changed = [n.target for n in nodes if isinstance(n, ast.AugAssign)]
    changed += [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)]
    updated = {n.id for n in changed if isinstance(n, ast.Name)}
    inner = {s.get_name() for table in below(top) for s in table.get_symbols() if s.is_free() or s.is_global()}
    read = {name for name, s in own.items() if s.is_referenced()} | updated | inner
    later = inner if any(isinstance(node, MADE) for node in nodes) else set[str]()
    return Variables(frozenset(n for n, s in own.items() if s.is_local()), frozenset(read), frozenset(later))


class OfGenerators(ast.NodeTransformer):
    """Has generators in place of comprehensions, whose variables are the function's own from Python 3.12 on."""

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp) -> ast.expr:
        """The same elements."""
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    visit_SetComp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        """The same keys and values."""
        self.generic_visit(node)
        return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)


def below(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from below(child)


def surely_stored(statement: ast.stmt) -> frozenset[str]:
    """Variables that a statement sets if it ends without an error."""
    simple = isinstance(statement, (ast.Assign, ast.AugAssign, ast.Import, ast.ImportFrom)) or (
        isinstance(statement, ast.AnnAssign) and statement.value is not None
    )
    walrus = simple and any(isinstance(node, ast.NamedExpr) for node in ast.walk(statement))
    return names_in([statement]).stored if simple and not walrus else frozenset()


def variable(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def call(name: str, arguments: Iterable[str]) -> ast.expr:
    """``name(*arguments)``."""
    return ast.Call(variable(name), [*map(variable, arguments)], [])


def bind(name: str) -> ast.stmt:
    """``try: name; except UnboundLocalError: name = UNBOUND``."""
    handler = ast.ExceptHandler(variable("UnboundLocalError"), None, [assign([name], variable(SENTINEL))])
    return ast.Try([ast.Expr(variable(name))], [handler], [], [])


def unbind(name: str) -> ast.stmt:
    """``if name is UNBOUND: del name``."""
    return ast.If(
        ast.Compare(variable(name), [ast.Is()], [variable(SENTINEL)]), [ast.Delete([ast.Name(name, ast.Del())])], []
    )


def assign(names: Sequence[str], value: ast.expr) -> ast.stmt:
    """``names = value``; without names the value alone."""
    if not names:
        return ast.Expr(value)
    targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
    return ast.Assign([targets[0] if len(names) == 1 else ast.Tuple(targets, ast.Store())], value)
