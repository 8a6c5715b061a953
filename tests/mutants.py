"""Plant faults in copies of the source, one at a time, and count those that the tests find: how good the tests are.

``python tests/mutants.py [--count 200] [--seed 0] [--room compile] [--rounds 3] [--missed FILE] [PYTEST OPTIONS]``

They are drawn from all rooms: another operator, comparison, constant or order of arguments, a statement left out, a
condition turned round. Each is met in rounds, until a test fails, which is printed: by the tests of its file (see
``mirror``), which find most within seconds, then by those of its folders, then by those of its room and the op tables.
Some faults change nothing that anybody could see, and some only how fast something is: none of these can be found, so
compare shares of the same seed. Those that were missed are printed, and kept in ``--missed`` for another run with other
options, say ``-m slow``, or with more rounds.
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import copy
import json
import math
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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
NOTHING_COLLECTED = 5
"""The exit status of pytest where all tests are deselected."""


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


def rounds(file: str) -> list[list[str]]:
    """The test files for a source file: its own, those beside these and it, then its room's and the op tables."""
    path = Path(file).relative_to(PACKAGE)
    room = path.parts[0].removesuffix(".py")
    own = [str(found) for found in mirror.files_for(Path(file))]
    folders = dict.fromkeys([ROOT / "tests" / path.parent, *((ROOT / found).parent for found in own)])
    beside = [found for folder in folders if folder != ROOT / "tests" for found in sorted(folder.glob("test_*.py"))]
    rest = sorted((ROOT / "tests" / room).rglob("test_*.py"))
    far = [*(str(found.relative_to(ROOT)) for found in rest), *(OP_TABLE if room in MATHEMATICS else [])]
    near = [str(found.relative_to(ROOT)) for found in beside]
    far += [name for name in near if name.endswith(LAST)]
    near = [name for name in near if name not in own and not name.endswith(LAST)]
    far = sorted({*far} - {*own, *near}, key=lambda name: name.endswith(LAST))
    return [files for files in (own, near, far) if files]


def met(fault: Fault, tree: Path, given: argparse.Namespace, options: list[str]) -> tuple[str, str]:
    """What became of the tests, and the one that failed.

    "failed", "passed", "broken" where they cannot even be collected, or "endless" where one does not end.
    """
    target = tree / fault.file
    target.write_text(planted(fault)[0], encoding="utf-8")
    settings = {"PYTHONPATH": str(tree / "framework"), "PYTHONPYCACHEPREFIX": str(tree / "bytecode")}
    environment = {**os.environ, **settings, "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        for files in rounds(fault.file)[: given.rounds]:
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *options, *files]
            status, said = watched(command, environment, given.timeout)
            failed = [line.split()[1] for line in said.splitlines() if line.startswith(("FAILED ", "ERROR "))]
            if status not in (0, NOTHING_COLLECTED):
                return {None: "endless", 1: "failed"}.get(status, "broken"), "".join(failed[:1])
    finally:
        shutil.copyfile(ROOT / fault.file, target)
    return "passed", ""


def watched(command: list[str], environment: dict[str, str], timeout: float) -> tuple[int | None, str]:
    """Exit status and output of a process, which is ended, without a status, when it says nothing for so long."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
        )
        size = -1
        while (status := process.poll()) is None and size < (size := os.fstat(said.fileno()).st_size):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout)
        if status is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        return status, said.read()


def main() -> None:
    rooms = sorted(p.stem for p in (ROOT / PACKAGE).iterdir() if p.stem[0] != "_" and p.suffix in ("", ".py"))
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="how many (200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--room", action="append", help="of these rooms alone")
    parser.add_argument("--rounds", type=int, default=3, help="1: the tests of its file alone; 2: of its folders too")
    parser.add_argument("--timeout", type=float, default=120, help="a test that takes so many seconds has no end")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--missed", type=Path, help="keep those that were missed in this file, or begin with them")
    given, options = parser.parse_known_args()
    if given.missed and given.missed.exists():
        faults = [Fault(*entry) for entry in json.loads(given.missed.read_text())]
    else:
        faults = drawn(given.room or rooms, given.count, given.seed)
    outcomes: collections.Counter[tuple[str, str]] = collections.Counter()
    missed = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as pool:
        trees: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for tree in (Path(folder, str(i)) for i in range(given.jobs)):
            shutil.copytree(ROOT / PACKAGE, tree / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
            trees.put(tree)

        def tried(fault: Fault) -> tuple[str, str]:
            tree = trees.get()
            try:
                return met(fault, tree, given, options)
            finally:
                trees.put(tree)

        for fault, (outcome, test) in zip(faults, pool.map(tried, faults), strict=True):
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
