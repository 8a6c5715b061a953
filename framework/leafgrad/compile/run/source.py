"""The source of functions: read, believed only if it gives their bytecode, and compiled again with a change."""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import linecache
import types
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from leafgrad.signals import held

LAMBDA = "<lambda>"
STRANGE = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.AsyncFunctionDef, ast.TryStar)
LOCALS = frozenset("locals vars dir eval exec globals".split())  # which see the variables of who calls them
FRAMES = frozenset({"_getframe", "currentframe", "stacklevel"})
PARAMETERS: dict[str, Any] = {"type_params": []}  # which Python knows from 3.12 on
FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)

TREES: WeakKeyDictionary[types.CodeType, ast.FunctionDef | None] = WeakKeyDictionary()


def tree_of(function: types.FunctionType) -> ast.FunctionDef | None:
    """The definition of a function, where its source is at hand and is what it was compiled from; else None."""
    code = function.__code__
    if code not in TREES:
        TREES[code] = held(read_tree, code, function.__globals__)
    return TREES[code]


def read_tree(code: types.CodeType, scope: dict[str, Any]) -> ast.FunctionDef | None:
    """The definition of which a code was made, as its source says."""
    linecache.checkcache(code.co_filename)
    try:
        text = "".join(linecache.getlines(code.co_filename, scope))
        trees, codes = definitions(text, code.co_filename, code.co_flags & FUTURE)
    except (SyntaxError, ValueError):
        return None
    found = trees.get((code.co_name, *start_of(code)))
    if found is None or any(isinstance(node, STRANGE) or sees_frames(node) for node in ast.walk(found)):
        return None
    return found if any(same_code(code, c) for c in codes if c.co_qualname == code.co_qualname) else None


def sees_frames(node: ast.AST) -> bool:
    """Whether what a node says depends on the frame in which it runs, or on those below it."""
    if isinstance(node, ast.Name):
        return node.id in LOCALS or node.id in FRAMES
    return getattr(node, "attr" if isinstance(node, ast.Attribute) else "arg", None) in FRAMES


def start_of(code: types.CodeType) -> tuple[int, int | None]:
    """The first line of a function; of a lambda also where what it returns begins, since a line may have several."""
    if code.co_name != LAMBDA:
        return code.co_firstlineno, None
    places = [(line, column) for line, _, column, end in code.co_positions() if line and column is not None and end]
    return min(places, default=(code.co_firstlineno, None))


@functools.lru_cache(maxsize=8)
def definitions(
    source: str, file: str, flags: int
) -> tuple[dict[tuple[str, int, int | None], ast.FunctionDef], list[types.CodeType]]:
    """The functions that a source defines, by name and where they begin, and all code that it is compiled to."""
    tree = ast.parse(source)
    codes = [compile(tree, file, "exec", flags, dont_inherit=True)]
    for code in codes:  # grows
        codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    trees = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    found = {(t.name, min([t.lineno, *[d.lineno for d in t.decorator_list]]), None): t for t in trees}
    return found | {
        (LAMBDA, node.body.lineno, node.body.col_offset): of_lambda(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda)
    }, codes


def of_lambda(node: ast.Lambda) -> ast.FunctionDef:
    """A lambda as a definition."""
    body = ast.copy_location(ast.Return(node.body), node.body)
    return ast.copy_location(ast.FunctionDef(LAMBDA, node.args, [body], [], None, **PARAMETERS), node)


def code_of(tree: ast.FunctionDef, function: types.FunctionType, more: Sequence[str] = ()) -> types.CodeType:
    """The code of a definition in the place of that of ``function``, with ``more`` variables around it."""
    code = function.__code__
    inner = copy.copy(tree)
    inner.name, inner.decorator_list = ".inner", []  # a name that hides no variable
    around: Any = definition(".around", dict.fromkeys([*code.co_freevars, *more]), [inner])
    owner = ("", *code.co_qualname.split("."))[-2]
    path = [".around", ".inner"]
    if owner.isidentifier():  # a class, whose name is in that of private attributes
        around, path = ast.ClassDef(owner, [], [], [around], [], **PARAMETERS), [owner, *path]
    module = ast.fix_missing_locations(ast.Module([around], []))
    found = compile(module, code.co_filename, "exec", code.co_flags & FUTURE, dont_inherit=True)
    for name in path:
        found = next(c for c in found.co_consts if isinstance(c, types.CodeType) and c.co_name == name)
    return found.replace(co_name=code.co_name, co_qualname=code.co_qualname)


def definition(name: str, arguments: Iterable[str], body: Sequence[ast.stmt]) -> ast.FunctionDef:
    """``def name(arguments): body``."""
    given = ast.arguments([], [ast.arg(a) for a in arguments], None, [], [], None, [])
    return ast.FunctionDef(name, given, [*body], [], None, **PARAMETERS)


def same_code(a: types.CodeType, b: types.CodeType) -> bool:
    """Whether two codes do the same."""
    facts = [
        (c.co_code, c.co_names, c.co_varnames, c.co_freevars, c.co_cellvars, c.co_exceptiontable, len(c.co_consts))
        for c in (a, b)
    ]
    pairs = zip(a.co_consts, b.co_consts, strict=False)
    return facts[0] == facts[1] and all(
        same_code(p, q) if isinstance(p, types.CodeType) and isinstance(q, types.CodeType) else repr(p) == repr(q)
        for p, q in pairs
    )


def made(tree: ast.FunctionDef, function: types.FunctionType, more: dict[str, Any]) -> types.FunctionType:
    """The function of a definition, which has the variables around ``function``, and ``more``."""
    code = code_of(tree, function, [*more])
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells |= {name: types.CellType(value) for name, value in more.items()}
    closure = tuple(cells[name] for name in code.co_freevars)
    found = types.FunctionType(code, function.__globals__, tree.name, None, closure)
    found.__qualname__, found.__module__ = function.__qualname__, function.__module__
    return found
