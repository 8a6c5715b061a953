"""Who may know whom, as tables, held against the source. A violation names its file, line and rule."""

from __future__ import annotations

import ast
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import mirror
import pytest
from mirror import nodes, parsed

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 450
MAX_LINES_OF_COMPILE = 350

EVERYWHERE = "lazy", "docstrings"  # rooms that all may import
# A room is a module or package right under leafgrad; beside it, the other rooms that it may import.
ROOMS = {
    "lazy": "",
    "docstrings": "",
    "forks": "",
    "errors": "",
    "dtypes": "",
    "modes": "",
    "threads": "",
    "signals": "",
    "plugins": "forks errors",
    "blas": "forks",
    "backends": "forks blas errors dtypes modes plugins",
    "devices": "errors dtypes modes plugins backends",
    "ops": "errors dtypes modes signals plugins backends devices",
    "tensor": "errors dtypes modes plugins backends devices ops return_types",
    "batching": "errors dtypes modes backends devices ops tensor",
    "autograd": "errors dtypes modes plugins backends devices ops tensor batching",
    "func": "errors dtypes modes ops tensor batching autograd",
    "linalg": "errors tensor",
    "return_types": "dtypes",
    "rules": "backends ops",
    "special": "ops tensor",
    "random": "tensor",
    "distributions": "forks errors dtypes modes devices ops tensor autograd",
    "distributed": "errors dtypes modes backends devices ops tensor autograd",
    "nn": "errors dtypes modes devices ops tensor autograd distributed",
    "optim": "errors dtypes modes devices ops tensor autograd nn",
    "utils": "errors dtypes modes plugins devices ops tensor autograd distributed",
    "profiler": "modes ops",
    "pictures": "ops tensor autograd compile",
    "compile": "forks blas errors dtypes modes threads signals plugins backends devices ops tensor batching autograd",
    "lowering": "forks errors ops compile",
}
# The same within compile, in the order of its phases. What stands in no room of it is its front.
COMPILE = {
    "ir": "",
    "record": "ir",
    "guard": "ir record",
    "passes": "ir",
    "schedule": "ir",
    "numpy": "ir passes schedule",
    "run": "ir record guard passes schedule numpy",
}
# These and leafgrad/__init__.py stand on top: they may import anything, and no room may import them.
TOP = "leafgrad.__main__ leafgrad.plugins.builtin leafgrad.testing leafgrad.compat leafgrad.cli"

# Beside the standard library, the only foreign packages, and the modules that may import them.
FOREIGN = {
    "numpy": "leafgrad.backends leafgrad.testing",
    "ml_dtypes": "leafgrad.backends.bfloat16",
    "cupy": "leafgrad.backends.cupy",
    "cupyx": "leafgrad.backends.cupy",
    "pluggy": "leafgrad.plugins",
    "threadpoolctl": "leafgrad.blas",
    "tqdm": "leafgrad",
    "safetensors": "leafgrad",
    "graphviz": "leafgrad",
    "matplotlib": "leafgrad",
    "mpi4py": "leafgrad",
    "einops": "leafgrad.compat.einops",
    "pytest": "leafgrad.testing.pytest_plugin",
}

# Where no op is known by its name: what is to be known of one is declared beside it.
WITHOUT_TABLES = (
    "framework/leafgrad/batching",
    "framework/leafgrad/compile",
    "framework/leafgrad/lowering",
    "framework/leafgrad/ops",
    "plugins/leafgrad-native/leafgrad_native",
    "plugins/leafgrad-cuda/leafgrad_cuda",
)

# Plugins that bring ops, and beside `import leafgrad` all that they may import of it. Executors and backends need more.
OPS_PLUGINS = "leafgrad-fft leafgrad-sparse leafgrad-special"
ROOMS_FOR_OPS = "autograd errors compile.schedule.axes func nn ops optim plugins random rules special testing utils"
PUBLIC = " ".join(f"leafgrad.{room}" for room in ROOMS_FOR_OPS.split())

# A tensor's insides: private names that a plugin would reach through an object rather than by import.
INSIDES = {"_data", "_leaf", "_node"}

# Rooms that use leafgrad as plugins do, by public names alone. PyTorch's own private modules stand in for themselves.
OUTSIDERS = "testing compat distributed"
OUR_PRIVATE = ("leafgrad.compat.torch.",)
DOCUMENTED = {"_fields", "_replace", "_asdict"}  # of named tuples

SUPPRESSION = re.compile(r"#\s*(type:\s*ignore|noqa|TODO|FIXME|pragma:\s*no cover)", re.IGNORECASE)


class Import(NamedTuple):
    """One import that runs, wherever it stands: `source` and `target` are dotted module names."""

    where: str
    source: str
    target: str


def python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if not {".venv", "build"} & set(path.parts))


def modules(root: Path) -> dict[str, Path]:
    """Dotted name -> file, for every module of the framework."""
    found = {}
    for path in python_files(root / "framework" / "leafgrad"):
        parts = path.relative_to(root / "framework").with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


NOT_RUN = ("TYPE_CHECKING", "typing.TYPE_CHECKING", "_typing.TYPE_CHECKING")


def imported(path: Path) -> list[tuple[int, str, str]]:
    """(line, module, name or "") of each import in a file that runs: not those under `if TYPE_CHECKING`."""
    return imported_by(path.read_text(encoding="utf-8"))


@cache
def imported_by(text: str) -> list[tuple[int, str, str]]:
    found, todo = [], [parsed(text)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) in NOT_RUN:
            todo += node.orelse
            continue
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found += [(node.lineno, module, alias.name) for alias in node.names]
        elif not isinstance(node, ast.expr):  # within which nothing is imported
            todo += ast.iter_child_nodes(node)
    return found


def framework_imports(root: Path) -> list[Import]:
    """`from leafgrad.ops import op` imports the module leafgrad.ops.op where there is one."""
    known = modules(root)
    found = []
    for source, path in known.items():
        for line, module, name in imported(path):
            target = f"{module}.{name}" if f"{module}.{name}" in known else module
            found.append(Import(f"{path.relative_to(root)}:{line}", source, target))
    return found


def within(module: str, packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages.split())


def on_top(module: str) -> bool:
    return module == "leafgrad" or within(module, TOP)


def room_violations(root: Path) -> Iterator[str]:
    for name, path in modules(root).items():
        if not on_top(name) and name.split(".")[1] not in ROOMS:
            yield f"{path.relative_to(root)}:1: {name} is in no room: give it a line in ROOMS"
    for where, source, target in framework_imports(root):
        if target.startswith("."):
            yield f"{where}: relative import: write the module's full name"
        elif not on_top(source) and within(target, "leafgrad"):
            room = source.split(".")[1]
            allowed = ROOMS.get(room, "").split()
            if on_top(target):
                yield f"{where}: {room} may not import {target}, which stands on top of the rooms"
            elif target.split(".")[1] not in (room, *EVERYWHERE, *allowed):
                yield f"{where}: {room} may not import {target}: only {', '.join(allowed) or 'nothing'}"
            elif room == "compile" and within(target, "leafgrad.compile") and (phase := source.split(".")[2:3]):
                known = COMPILE.get(phase[0], "").split()
                if target.split(".")[2:3] not in (phase, *([name] for name in known)):
                    yield f"{where}: compile.{phase[0]} may not import {target}: only {', '.join(known) or 'nothing'}"


def foreign_violations(root: Path) -> Iterator[str]:
    for where, source, target in framework_imports(root):
        package = target.split(".")[0]
        if package not in FOREIGN:
            if package and package != "leafgrad" and package not in sys.stdlib_module_names:
                yield f"{where}: {source} may not import {target}: leafgrad does not depend on {package}"
        elif not within(source, FOREIGN[package]):
            yield f"{where}: {source} may not import {target}: only for {FOREIGN[package]}"


def cycle_violations(root: Path) -> Iterator[str]:
    """At most one: the first cycle found."""
    known = modules(root)
    imports = [i for i in framework_imports(root) if i.target in known]
    graph: dict[str, set[str]] = {name: set() for name in known}
    for _, source, target in imports:
        graph[source].add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = error.args[1][::-1]  # now each module imports the next
        where = next(i.where for i in imports if (i.source, i.target) == (cycle[0], cycle[1]))
        yield f"{where}: import cycle: {' -> '.join(cycle)}"


def length_violations(root: Path) -> Iterator[str]:
    for path in [*python_files(root / "framework"), *python_files(root / "plugins")]:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        most = MAX_LINES_OF_COMPILE if "leafgrad/compile" in path.as_posix() else MAX_LINES
        if lines > most:
            yield f"{path.relative_to(root)}:{lines}: more than {most} lines: a file has one subject"


def lock_violations(root: Path) -> Iterator[str]:
    """Before Python 3.12 a cached_property has one lock for all objects, which no child of a fork can open."""
    for folder in ("framework", "plugins"):
        for path in python_files(root / folder):
            for line, module, name in imported(path):
                if (module, name) == ("functools", "cached_property") and path.name != "forks.py":
                    yield f"{path.relative_to(root)}:{line}: {name} has a lock: take that of leafgrad.forks"


def given_violations(root: Path) -> Iterator[str]:
    """Functions of ops by which others set a global of theirs."""
    for path in python_files(root / "framework/leafgrad/ops"):
        for node in nodes(path.read_text(encoding="utf-8")):
            if isinstance(node, ast.FunctionDef):
                ours = {name for n in ast.walk(node) if isinstance(n, ast.Global) for name in n.names}
                given = {a.arg for a in node.args.args}
                for n in ast.walk(node):
                    if isinstance(n, ast.Assign) and {t.id for t in names_in(n.targets)} & ours:
                        value = n.value.elts if isinstance(n.value, ast.Tuple) else [n.value]
                        if all(isinstance(v, ast.Name) and v.id in given for v in value):
                            where = f"{path.relative_to(root)}:{n.lineno}"
                            yield f"{where}: {node.name} lets others set a global: give it a place in ops/runtime.py"


def names_in(targets: Iterable[ast.AST]) -> list[ast.Name]:
    return [n for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]


def suppression_violations(root: Path) -> Iterator[str]:
    for folder in ("framework", "plugins", "examples", "tests"):
        for path in python_files(root / folder):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if match := SUPPRESSION.search(line):
                    yield f"{path.relative_to(root)}:{number}: {match[0]!r}: mend the cause instead"


def is_private(dotted: str) -> bool:
    return any(part.startswith("_") and not part.endswith("__") for part in dotted.split("."))


def plugin_violations(root: Path) -> Iterator[str]:
    """Private names of leafgrad in the distributions under plugins/, imported or reached through a module."""
    for path in python_files(root / "plugins"):
        where = path.relative_to(root)
        for line, module, name in imported(path):
            dotted = f"{module}.{name}"
            if within(module, "leafgrad") and is_private(dotted):
                yield f"{where}:{line}: {dotted.rstrip('.')} is private: plugins use public names only"
        found = nodes(path.read_text(encoding="utf-8"))
        ours = {
            alias.asname or alias.name.split(".")[0]
            for node in found
            if isinstance(node, ast.Import)
            or (isinstance(node, ast.ImportFrom) and within(node.module or "", "leafgrad"))
            for alias in node.names
            if isinstance(node, ast.ImportFrom) or within(alias.name, "leafgrad")
        }
        for node in found:
            if isinstance(node, ast.Attribute) and is_private(node.attr):
                dotted = ast.unparse(node)
                if node.attr in INSIDES or dotted.split(".")[0] in ours:
                    yield f"{where}:{node.lineno}: {dotted} is private: plugins use public names only"


def private_names_of(file: Iterable[ast.AST]) -> Iterator[str]:
    """The private names that a file gives: to functions, classes, variables, attributes and slots."""
    for node in file:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__":
            yield from strings(node.value)


def reached_by_name(node: ast.AST) -> set[str]:
    """What ``getattr`` or ``hasattr`` asks for."""
    called = isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr")
    return strings(node.args[1]) if isinstance(node, ast.Call) and called else set()


def outsider_violations(root: Path) -> Iterator[str]:
    """Private names of the rest of leafgrad in rooms that use it as plugins do."""
    for room in OUTSIDERS.split():
        files = {p: nodes(p.read_text(encoding="utf-8")) for p in python_files(root / "framework/leafgrad" / room)}
        own = {name for file in files.values() for name in private_names_of(file)}
        for path, file in files.items():
            where = path.relative_to(root)
            for line, module, name in imported(path):
                dotted = f"{module}.{name}"
                if within(module, "leafgrad") and is_private(dotted) and not dotted.startswith(OUR_PRIVATE):
                    yield f"{where}:{line}: {dotted.rstrip('.')} is private: {room} uses public names only"
            for node in file:
                found = {node.attr} if isinstance(node, ast.Attribute) else reached_by_name(node)
                for name in sorted(n for n in found - own - DOCUMENTED if is_private(n)):
                    if ast.unparse(node).split(".")[0] not in sys.stdlib_module_names:
                        yield f"{where}:{node.lineno}: {name} is private: {room} uses public names only"


def op_names(root: Path) -> set[str]:
    """The names of the core's ops: of functions that ``@op`` decorates, or what its ``name=`` says."""
    found = set()
    for path in python_files(root / "framework" / "leafgrad"):
        text = path.read_text(encoding="utf-8")
        for node in nodes(text) if "@op" in text else ():
            for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                call = decorator if isinstance(decorator, ast.Call) else None
                if ast.unparse(call.func if call else decorator) == "op":
                    named = [k.value.value for k in call.keywords if k.arg == "name"] if call else []
                    found.add(named[0] if named else node.name.rstrip("_"))
    return found


def strings(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "name"


def literals(node: ast.AST) -> set[str]:
    """What a display of strings holds: the keys of a dict, the members of others, the words of ``"a b".split()``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
        text = node.func.value
        return set(text.value.split()) if isinstance(text, ast.Constant) and isinstance(text.value, str) else set()
    members = [*node.keys] if isinstance(node, ast.Dict) else getattr(node, "elts", [])
    plain = all(isinstance(m, ast.Constant) and isinstance(m.value, str) for m in members)
    return {m.value for m in members} if plain else set()


def table_violations(root: Path) -> Iterator[str]:
    """What is to be known of an op stands beside it: no names of ops in comparisons, and no tables of them."""
    names = op_names(root)
    for path in [p for folder in WITHOUT_TABLES for p in python_files(root / folder)]:
        for node in nodes(path.read_text(encoding="utf-8")):
            found: set[str] = set()
            if isinstance(node, ast.Compare) and any(map(is_name, [node.left, *node.comparators])):
                found = strings(node) & names
            elif isinstance(node, ast.Match) and is_name(node.subject):
                found = {s for case in node.cases for s in strings(case.pattern)} & names
            elif (members := literals(node)) and members <= names and len(members) > 1:
                found = members
            for name in sorted(found)[:1]:
                yield f"{path.relative_to(root)}:{node.lineno}: {name!r} is the name of an op: declare it beside the op"


def public_violations(root: Path) -> Iterator[str]:
    """What plugins of ops import of the rooms that have no public names."""
    known = modules(root)
    for plugin in OPS_PLUGINS.split():
        for path in python_files(root / "plugins" / plugin):
            for line, module, name in imported(path):
                target = f"{module}.{name}" if f"{module}.{name}" in known else module
                if within(target, "leafgrad") and target != "leafgrad" and not within(target, PUBLIC):
                    yield f"{path.relative_to(root)}:{line}: {target} is not for plugins of ops: only {PUBLIC}"


# Where words are not ours to choose, PyTorch's and hooks', and those of rules (``c.view``) and of writers' kernels.
OWN_WORDS = "leafgrad.compat leafgrad.plugins.builtin leafgrad.lowering"
# One word, one meaning: how many modules may define a public class or function of one name; compat repeats PyTorch's.
HOMONYMS = {ast.ClassDef: 1, ast.FunctionDef: 3}
PACKAGES = 2  # of leafgrad, lowering and plugins so many may define one class, if each does so once
# Those that more of them define, and how many: a list to shorten. ``main`` is what each subcommand is called.
MANY = dict.fromkeys("Generator Identity Multinomial Node Op".split(), 2)
MANY |= dict.fromkeys("cholesky det load pack qr register slogdet svd zeros".split(), 4)
MANY |= {"main": 9}


def homonyms(root: Path, kind: type[ast.ClassDef | ast.FunctionDef]) -> dict[str, list[str]]:
    """Where leafgrad defines public classes or functions, by name: file and line, one in each module."""
    return defined(root, kind, [path for module, path in modules(root).items() if not within(module, OWN_WORDS)])


def defined(root: Path, kind: type[ast.ClassDef | ast.FunctionDef], files: Iterable[Path]) -> dict[str, list[str]]:
    found: dict[str, dict[Path, str]] = {}
    for path in files:
        for node in parsed(path.read_text(encoding="utf-8")).body:
            if isinstance(node, kind) and not node.name.startswith("_"):
                found.setdefault(node.name, {}).setdefault(path, f"{path.relative_to(root)}:{node.lineno}")
    return {name: list(places.values()) for name, places in found.items()}


def homonym_violations(root: Path) -> Iterator[str]:
    """Words that have come to mean more than they did."""
    for kind, most in HOMONYMS.items():
        for name, (*others, last) in homonyms(root, kind).items():
            if len(others) >= MANY.get(name, most):
                yield meant(name, last, others)
    everywhere = {name: places[:1] for name, places in homonyms(root, ast.ClassDef).items()}
    for folder in [root / "framework/leafgrad/lowering", *sorted((root / "plugins").glob("*/leafgrad_*"))]:
        for name, (*others, last) in defined(root, ast.ClassDef, python_files(folder)).items():
            places = everywhere.setdefault(name, [])
            if others or len(places) >= PACKAGES:
                yield meant(name, last, [*places, *others])
            places.append(last)


def meant(name: str, last: str, others: Sequence[str]) -> str:
    return f"{last}: {name!r} is defined in {', '.join(others)}, too: say in the name what it is of"


def mirror_violations(root: Path) -> Iterator[str]:
    """Modules that no test file is for, and test files that say they are for a module that is not, or has its own."""
    found = mirror.modules(root)
    for module in found:
        if not mirror.files_for(module, root):
            yield f"{module}:1: no tests: write {mirror.mirrored(module)}, or name {mirror.name_of(module)} in a TESTS"
    shared = [mirror.name_of(module) for module in found if not (root / mirror.mirrored(module)).exists()]
    for path, patterns in mirror.claims(root).items():
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in shared):
                yield f"{path}:1: TESTS names {pattern}, which is no module without a test file of its own"


RULES = [
    homonym_violations,
    mirror_violations,
    table_violations,
    room_violations,
    foreign_violations,
    cycle_violations,
    length_violations,
    lock_violations,
    given_violations,
    suppression_violations,
    plugin_violations,
    public_violations,
    outsider_violations,
]


@pytest.mark.parametrize("rule", RULES)
def test_the_source_keeps(rule):
    violations = list(rule(ROOT))
    assert not violations, "\n" + "\n".join(violations)


def test_the_list_of_homonyms_is_no_longer_than_it_must_be():
    found = [homonyms(ROOT, kind) for kind in HOMONYMS]
    assert {name: max(len(places.get(name, ())) for places in found) for name in MANY} == MANY


def test_the_plugins_of_ops_are_found():
    assert all((ROOT / "plugins" / plugin / "pyproject.toml").exists() for plugin in OPS_PLUGINS.split())
    where = {plugin: list(python_files(ROOT / "plugins" / plugin)) for plugin in OPS_PLUGINS.split()}
    assert all(any(within(m, PUBLIC) for path in paths for _, m, _ in imported(path)) for paths in where.values())


def test_the_source_is_found():
    assert {"leafgrad.modes", "leafgrad.plugins", "leafgrad.ops.op"} <= modules(ROOT).keys()
    sources = {(i.source, i.target) for i in framework_imports(ROOT)}
    assert ("leafgrad.ops.op", "leafgrad.modes") in sources
    assert ("leafgrad.plugins.builtin", "leafgrad.ops") in sources  # inside a function


NN = "framework/leafgrad/nn/linear.py"
BUILTIN = "framework/leafgrad/plugins/builtin.py"
CUPY = "framework/leafgrad/backends/cupy.py"
NUMPY = "framework/leafgrad/backends/numpy.py"
PLUGIN = "plugins/leafgrad-x/leafgrad_x.py"
PASS = "framework/leafgrad/compile/pass.py"
OP = "framework/leafgrad/ops/a.py"
COMPILED = "framework/leafgrad/compile/run/a.py"
OPS = {
    "framework/leafgrad/nn/a.py": "\nclass Tensor: ...",
    "framework/leafgrad/ops/some.py": "@op\ndef tanh(): ...\n@op('float', name='where')\ndef choose(): ...",
}


FFT = "plugins/leafgrad-fft/leafgrad_fft.py"
KIT = "framework/leafgrad/testing/kit.py"


NUMBERS = itertools.count()


@pytest.fixture
def tree(tmp_path):
    """Writes files into an otherwise empty project, and returns its root."""

    root = tmp_path / str(next(NUMBERS))  # of which nothing is known yet

    def write(files):
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return root

    return write


@pytest.mark.parametrize(
    ("rule", "file", "text", "expected"),
    [
        (room_violations, NN, "import leafgrad.backends", ":1: nn may not import leafgrad.backends"),
        (room_violations, NN, "def f():\n    import leafgrad.compile", ":2: nn may not import leafgrad.compile"),
        (room_violations, NN, "import leafgrad", ":1: nn may not import leafgrad, which stands on top"),
        (room_violations, NN, "from . import x", ":1: relative import"),
        (room_violations, "framework/leafgrad/extra.py", "", ":1: leafgrad.extra is in no room"),
        (foreign_violations, NN, "\nimport numpy as np", ":2: leafgrad.nn.linear may not import numpy"),
        (foreign_violations, NN, "from scipy.linalg import expm", ":1: leafgrad.nn.linear may not import scipy"),
        (foreign_violations, NUMPY, "import cupy", ":1: leafgrad.backends.numpy may not import cupy"),
        (cycle_violations, NN, "from leafgrad.nn import linear", ":1: import cycle: leafgrad.nn.linear -> "),
        (length_violations, NN, "x = 1\n" * 451, ":451: more than 450 lines"),
        (length_violations, COMPILED, "x = 1\n" * 351, ":351: more than 350 lines"),
        (homonym_violations, NN, "\n\nclass Tensor: ...", ":3: 'Tensor' is defined in framework/leafgrad/nn/a.py:2"),
        (lock_violations, NN, "\nfrom functools import cached_property", ":2: cached_property has a lock"),
        (given_violations, OP, "def adopt(a, b):\n    global A, B\n    A, B = a, b", ":3: adopt lets others set a"),
        (suppression_violations, NN, "x = 1  #" + " noqa: E501", ":1: '# "),
        (suppression_violations, NN, "\nx = 1  #" + " type: ignore[x]", ":2: '# "),
        (table_violations, PASS, 'def f(e):\n    return e.name == "tanh"', ":2: 'tanh' is the name of an op"),
        (table_violations, PASS, 'def f(e):\n    return e.op.name in ("where", "x")', ":2: 'where' is the name"),
        (table_violations, PASS, 'match e.name:\n    case "tanh" | "y":\n        pass', ":1: 'tanh' is the name"),
        (table_violations, PASS, 'RULES = {"tanh": f, "where": g}', ":1: 'tanh' is the name"),
        (table_violations, PASS, 'LIGHT = set("where tanh".split())', ":1: 'tanh' is the name"),
        (plugin_violations, PLUGIN, "from leafgrad.ops import _x", ":1: leafgrad.ops._x is private"),
        (plugin_violations, PLUGIN, "import leafgrad._x.y", ":1: leafgrad._x.y is private"),
        (plugin_violations, PLUGIN, "import leafgrad as lg\nlg.ops._x", ":2: lg.ops._x is private"),
        (plugin_violations, PLUGIN, "def f(t):\n    return t._data", ":2: t._data is private"),
        (outsider_violations, KIT, "from leafgrad.ops.op import _x", ":1: leafgrad.ops.op._x is private: testing uses"),
        (outsider_violations, KIT, "\ndef f(step):\n    return step._runner()", ":3: _runner is private"),
        (outsider_violations, KIT, 'def f(t):\n    return getattr(t, "_data", t)', ":2: _data is private"),
        (public_violations, FFT, "from leafgrad.backends import by_name", ":1: leafgrad.backends is not for plugins"),
        (public_violations, FFT, "\nimport leafgrad.tensor.tensor", ":2: leafgrad.tensor.tensor is not for plugins"),
    ],
)
def test_a_violation_is_reported(tree, rule, file, text, expected):
    violations = list(rule(tree({file: text, **OPS})))
    assert len(violations) == 1, violations
    assert violations[0].startswith(file + expected)


def test_a_word_that_plugins_use_again_is_reported(tree):
    two = {f"framework/leafgrad/{room}/a.py": "class Plan: ..." for room in ("nn", "lowering")}
    assert list(homonym_violations(tree(two))) == []
    third = "plugins/leafgrad-a/leafgrad_a/x.py"
    (found,) = homonym_violations(tree({third: "class Plan: ..."}))
    assert found.startswith(f"{third}:1: 'Plan' is defined in {', '.join(f'{place}:1' for place in two)}, too")


def test_a_word_that_a_plugin_has_twice_is_reported(tree):
    folder = "plugins/leafgrad-a/leafgrad_a"
    (found,) = homonym_violations(tree({f"{folder}/{name}.py": "class Plan: ..." for name in "xy"}))
    assert found.startswith(f"{folder}/y.py:1: 'Plan' is defined in {folder}/x.py:1, too")


def test_a_cycle_through_a_function_is_reported(tree):
    root = tree(
        {"framework/leafgrad/a.py": "import leafgrad.b", "framework/leafgrad/b.py": "def f():\n    import leafgrad.a"}
    )
    (violation,) = cycle_violations(root)
    assert "import cycle: leafgrad." in violation
    assert "leafgrad.a -> leafgrad.b" in violation


@pytest.mark.parametrize(
    ("rule", "file", "text"),
    [
        (room_violations, NN, "from leafgrad.ops import op\nfrom leafgrad.nn import init\nimport math"),
        (room_violations, NN, "if TYPE_CHECKING:\n    import leafgrad.compile"),
        (room_violations, BUILTIN, "import leafgrad.compile"),
        (foreign_violations, CUPY, "import cupy, numpy, functools"),
        (table_violations, PASS, 'def f(e):\n    return e.kind == "tanh", e.op is tanh, e.name == "mine", ("tanh", 3)'),
        (public_violations, FFT, "from leafgrad import Tensor, nn, op\nfrom leafgrad.ops.select import where"),
        (plugin_violations, PLUGIN, "def f(self, t):\n    return self._x, t.__class__, t._version"),
        (outsider_violations, KIT, "class A:\n    def f(self, b):\n        self._x = b._x, b.__class__, os._exit"),
    ],
)
def test_what_is_allowed_passes(tree, rule, file, text):
    assert list(rule(tree({file: text, **OPS}))) == []


TESTED = "tests/nn/test_all.py"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, f"{NN}:1: no tests: write tests/nn/test_linear.py, or name nn.linear in a TESTS"),
        ({TESTED: "import pytest"}, f"{NN}:1: no tests: write tests/nn/test_linear.py, or name nn.linear in a TESTS"),
        ({"tests/nn/test_linear.py": ""}, ""),
        ({TESTED: 'TESTS = "nn.linear"'}, ""),
        ({TESTED: 'TESTS = "nn.*"'}, ""),
        ({NN: "@op(name='linear')\ndef affine(): ..."}, ""),
        ({NN: "from leafgrad.nn.affine import Linear\n__all__ = ['Linear']"}, ""),
        ({TESTED: 'TESTS = "nn.linear nn.gone"'}, f"{TESTED}:1: TESTS names nn.gone, which is no module"),
        (
            {"tests/nn/test_linear.py": "", TESTED: 'TESTS = "nn.*"'},
            f"{TESTED}:1: TESTS names nn.*, which is no module",
        ),
    ],
)
def test_a_module_is_tested_by_its_mirror_or_by_what_says_so(tree, files, expected):
    violations = list(mirror_violations(tree({NN: "class Linear: ..."} | files)))
    assert len(violations) == (expected != "")
    assert "".join(violations).startswith(expected)
