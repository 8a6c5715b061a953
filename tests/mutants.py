"""Plant faults in copies of the source, one at a time, and count those that the tests find: how good the tests are.

``python tests/mutants.py [--count 200] [--seed 0] [--room compile] [--timeout 300] [--missed FILE] [PYTEST OPTIONS]``

They are drawn from all rooms: another operator, comparison, constant or order of arguments, a statement left out, a
condition turned round. Each is met by the tests of its file (see ``mirror``), then those of its room, then the op
table, until one fails, which is printed. Some faults change nothing that anybody could see, and some only how fast
something is: none of these can be found, so compare shares of the same seed. Those that were missed are printed, and
kept in ``--missed`` for another run with other options, say ``-m slow``.
"""

from __future__ import annotations

import argparse
import ast
import collections
import copy
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import mirror
from mirror import PACKAGE, ROOT

SWAPPED = [
    (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.FloorDiv, ast.Mult), (ast.Mod, ast.Mult), (ast.BitAnd, ast.BitOr),
    (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn),
    (ast.And, ast.Or), (ast.USub, ast.UAdd),
]  # fmt: skip
OTHER = dict(SWAPPED) | {b: a for a, b in reversed(SWAPPED)}
OP_TABLE = [f"tests/{room}/test_op_table.py" for room in ("ops", "func", "batching", "compile")]
MATHEMATICS = {"ops", "tensor", "autograd", "batching", "func", "backends", "compile"}
"""The rooms whose faults show in the op table."""
LAST = "test_scenarios.py", "test_op_table.py"
"""What takes long comes after all else."""


class Fault(NamedTuple):
    """A mutant: the ``number``-th place of ``file`` that can be changed, ``kind`` of change, and its line."""

    file: str
    number: int
    kind: str
    line: int


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """The nodes that can be changed and how, but for what only types and error messages are made of."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        typed = (getattr(node, "annotation", None), getattr(node, "returns", None))
        if not (isinstance(node, (ast.Assign, ast.AnnAssign)) and "__all__" in ast.unparse(node)[:8]):
            waiting += [child for child in ast.iter_child_nodes(node) if child not in typed]
        if (kind := change(node, look=True)) is not None:
            yield node, kind


def change(node: ast.AST, look: bool = False) -> str | None:
    """Change a node in place; with ``look``, only say how it would be. None if it cannot be changed."""
    found: tuple[str, str, object] | None = None
    match node:
        case ast.BinOp(op=op) | ast.UnaryOp(op=ast.USub() as op) | ast.BoolOp(op=op) | ast.AugAssign(op=op):
            if type(op) in OTHER:
                found = "operator", "op", OTHER[type(op)]()
        case ast.Compare(ops=[op]) if type(op) in OTHER:
            found = "comparison", "ops", [OTHER[type(op)]()]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            found = "condition", "operand", ast.UnaryOp(ast.Not(), operand)
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare):
            found = "condition", "test", ast.UnaryOp(ast.Not(), test)
        case ast.Constant(value=bool() as value):
            found = "constant", "value", not value
        case ast.Constant(value=int() | float() as value):
            found = "constant", "value", value + 1
        case ast.Call(args=[first, second, *rest]) if not isinstance(first, ast.Starred):
            found = "arguments", "args", [second, first, *rest]
        case ast.Expr(value=ast.Call()):
            found = "statement", "value", ast.Constant(None)
    if found is None:
        return None
    if not look:
        setattr(node, found[1], found[2])
    return found[0]


def drawn(rooms: list[str], count: int, seed: int) -> list[Fault]:
    """Faults from all rooms, from a larger one more, but not in proportion; of all kinds alike."""
    found: dict[str, dict[str, list[Fault]]] = {}
    for room in rooms:
        base = ROOT / PACKAGE / room
        kinds: dict[str, list[Fault]] = collections.defaultdict(list)
        for file in sorted(base.rglob("*.py")) if base.is_dir() else [base.with_suffix(".py")]:
            for i, (node, kind) in enumerate(places(ast.parse(file.read_text(encoding="utf-8")))):
                kinds[kind].append(Fault(str(file.relative_to(ROOT)), i, kind, getattr(node, "lineno", 0)))
        if kinds:
            found[room] = dict(kinds)
    rng = random.Random(seed)
    sizes = [math.sqrt(sum(map(len, kinds.values()))) for kinds in found.values()]
    chosen = rng.choices(list(found.values()), sizes, k=count)
    return [rng.choice(kinds[rng.choice(sorted(kinds))]) for kinds in chosen]


def planted(fault: Fault) -> tuple[str, str]:
    """The source with the fault, and the two forms of the line."""
    tree = ast.parse((ROOT / fault.file).read_text(encoding="utf-8"))
    node = next(node for i, (node, _) in enumerate(places(tree)) if i == fault.number)
    before = ast.unparse(copy.deepcopy(node))
    change(node)
    after = ast.unparse(ast.fix_missing_locations(node))
    return ast.unparse(tree), f"{before.splitlines()[0][:70]}  ->  {after.splitlines()[0][:70]}"


def relevant(file: str) -> list[str]:
    """The test files for a source file, nearest first: its own, those beside them, its room's, then the op table."""
    path = Path(file).relative_to(PACKAGE)
    room = path.parts[0].removesuffix(".py")
    own = mirror.files_for(Path(file))
    around = [ROOT / "tests" / path.parent, *(ROOT / found.parent for found in own), ROOT / "tests" / room]
    beside = [found for folder in around if folder != ROOT / "tests" for found in sorted(folder.rglob("test_*.py"))]
    nearest = [str(found) for found in [*own, *(found.relative_to(ROOT) for found in beside)]]
    found = [name for name in nearest if not name.endswith(LAST)]
    found += OP_TABLE if room in MATHEMATICS else []
    found += [name for name in nearest if name.endswith(LAST)]
    return list(dict.fromkeys(found))


def met(fault: Fault, tree: Path, timeout: float, options: list[str]) -> tuple[str, str]:
    """What became of the tests, and the one that failed.

    "failed", "passed", "broken" where they cannot even be collected, or "endless".
    """
    source, _ = planted(fault)
    target = tree / fault.file
    target.write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *options, *relevant(fault.file)]
    settings = {"PYTHONPATH": str(tree / "framework"), "PYTHONPYCACHEPREFIX": str(tree / "bytecode")}
    environment = {**os.environ, **settings, "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return "endless", ""
    finally:
        shutil.copyfile(ROOT / fault.file, target)
    failed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return {0: "passed", 1: "failed"}.get(done.returncode, "broken"), "".join(failed[:1])


def main() -> None:
    rooms = sorted(p.stem for p in (ROOT / PACKAGE).iterdir() if p.stem[0] != "_" and p.suffix in ("", ".py"))
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="how many (200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--room", action="append", help="of these rooms alone")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for the tests of one")
    parser.add_argument("--missed", type=Path, help="keep those that were missed in this file, or begin with them")
    given, options = parser.parse_known_args()
    if given.missed and given.missed.exists():
        faults = [Fault(*entry) for entry in json.loads(given.missed.read_text())]
    else:
        faults = drawn(given.room or rooms, given.count, given.seed)
    outcomes: collections.Counter[tuple[str, str]] = collections.Counter()
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        shutil.copytree(ROOT / PACKAGE, tree / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
        for fault in faults:
            outcome, test = met(fault, tree, given.timeout, options)
            room = Path(fault.file).relative_to(PACKAGE).parts[0].removesuffix(".py")
            outcomes[room, outcome] += 1
            if outcome == "passed":
                missed.append(fault)
            print(f"{outcome:7} {fault.file}:{fault.line}: {planted(fault)[1]}  {test}", flush=True)
            if given.missed:
                given.missed.write_text(json.dumps(missed))
    print(f"\n{'room':16}planted  found")
    for room in sorted({room for room, _ in outcomes}):
        planted_here = sum(n for (r, _), n in outcomes.items() if r == room)
        print(f"{room:16}{planted_here:7}{planted_here - outcomes[room, 'passed']:7}")
    print(f"{'all':16}{len(faults):7}{len(faults) - len(missed):7}")


if __name__ == "__main__":
    main()
