"""What a module is tested by: the file at its place in the mirror, or those that say that they test it.

The tests of ``leafgrad.nn.linear`` are ``tests/nn/test_linear.py``. A test file that has several modules, or a table
of all of a kind, names them: ``TESTS = "nn.functional.margin optim.*"``, without leafgrad, the star for any letters.
Where ops are defined, the op table tests them. A module that only lists names has nothing to test.
"""

from __future__ import annotations

import ast
import gc
import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("framework/leafgrad")
OP_TABLE = Path("tests/ops/test_op_table.py")
NAMED = re.compile(r'^TESTS = "+([^"]*)"', re.MULTILINE)


def name_of(module: Path) -> str:
    """``nn.linear``, of framework/leafgrad/nn/linear.py."""
    parts = module.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1].startswith("__") else parts)


def modules(root: Path = ROOT) -> list[Path]:
    """The modules of the framework that define something, relative to the root."""
    found = sorted((root / PACKAGE).rglob("*.py"))
    return [p.relative_to(root) for p in found if defined(p) and not p.name.startswith("__")]


def defined(path: Path) -> list[ast.FunctionDef | ast.ClassDef]:
    """The functions and classes of a file, those in its conditions aside."""
    return [n for n in parsed(path.read_text(encoding="utf-8")).body if isinstance(n, ast.FunctionDef | ast.ClassDef)]


@cache
def parsed(text: str) -> ast.Module:
    """A source as a tree, which several rules look at: out of the collector's sight, who would look through all."""
    tree = ast.parse(text)
    gc.freeze()
    return tree


@cache
def nodes(text: str) -> list[ast.AST]:
    """All nodes of it."""
    return [*ast.walk(parsed(text))]


@cache
def claims(root: Path = ROOT) -> dict[Path, list[str]]:
    """Test file -> the modules that it names."""
    tests = sorted([*(root / "tests").rglob("test_*.py"), *(root / "plugins").glob("*/tests/test_*.py")])
    found = {path.relative_to(root): NAMED.search(path.read_text(encoding="utf-8")) for path in tests}
    return {path: named[1].split() for path, named in found.items() if named}


def mirrored(module: Path) -> Path:
    """Where the tests of a module stand if it has a file of its own."""
    return Path("tests") / module.relative_to(PACKAGE).parent / f"test_{module.stem.lstrip('_')}.py"


def files_for(module: Path, root: Path = ROOT) -> list[Path]:
    """The test files of a module, nearest first."""
    found = [mirrored(module)] if (root / mirrored(module)).exists() else []
    name = name_of(module)
    found += [path for path, patterns in claims(root).items() if any(fnmatchcase(name, p) for p in patterns)]
    decorators = [ast.unparse(d) for node in defined(root / module) for d in node.decorator_list]
    return found + [OP_TABLE] * any(d.partition("(")[0] == "op" for d in decorators)
