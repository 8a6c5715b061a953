"""The source of functions: read, believed only if it gives their bytecode, and compiled again with a change."""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import inspect
import types
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

STRANGE = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.AsyncFunctionDef, ast.TryStar)
PARAMETERS: dict[str, Any] = {"type_params": []}  # which Python knows from 3.12 on
FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)

TREES: WeakKeyDictionary[types.CodeType, ast.FunctionDef] = WeakKeyDictionary()  # of functions made here


def tree_of(function: types.FunctionType) -> ast.FunctionDef | None:
    """The definition of a function, where its source is at hand and is what it was compiled from; else None."""
    code = function.__code__
    if code in TREES:
        return TREES[code]
    try:
        trees, codes = definitions("".join(inspect.findsource(code)[0]), code.co_filename, code.co_flags & FUTURE)
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    found = trees.get((code.co_name, code.co_firstlineno))
    if found is None or any(isinstance(node, STRANGE) for node in ast.walk(found)):
        return None
    return found if any(same_code(code, c) for c in codes if c.co_qualname == code.co_qualname) else None


@functools.lru_cache(maxsize=8)
def definitions(
    source: str, file: str, flags: int
) -> tuple[dict[tuple[str, int], ast.FunctionDef], list[types.CodeType]]:
    """The functions that a source defines, by name and first line, and all code that it is compiled to."""
    tree = ast.parse(source)
    codes = [compile(tree, file, "exec", flags, dont_inherit=True)]
    for code in codes:  # grows
        codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    trees = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {(t.name, min([t.lineno, *[d.lineno for d in t.decorator_list]])): t for t in trees}, codes


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
