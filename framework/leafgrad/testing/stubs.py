"""Writes what follows from declarations of public functions and methods: where to import them from, and their stubs.

python -m leafgrad.testing.stubs
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import textwrap
import types
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final, get_overloads

from leafgrad.tensor import methods, public
from leafgrad.tensor.methods import Methods

FOLDER: Final = Path(methods.__file__).parent
PATH: Final = FOLDER / "methods.pyi"
WIDTH: Final = 120
GENERATED: Final = '"""{} Written by `python -m leafgrad.testing.stubs`; do not edit."""\n'
REST: Final = """
CLAIMS: dict[str, dict[str, tuple[str, Any]]]
DECLARED: dict[str, Callable[..., Any]]

def claim(owner: str, name: str, module: str) -> None: ...
def declare(name: str, function: Callable[..., Any]) -> None: ...
def attach(
    name: str, function: Callable[..., Any] | property, *, checked: bool = False, module: str = "", shows: str = ""
) -> None: ...
def expect(names: Iterable[str]) -> None: ...

class Later:
    module: str
    name: str

    def __init__(self, module: str, name: str) -> None: ...

class Listed:
    name: str

    def __init__(self, name: str) -> None: ...

class Methods:
"""
LISTED: Final = FOLDER / "listed.py"
ROOMS: Final = {"": "functions/__init__.pyi", "linalg": "functions/linalg.pyi", "special": "functions/special.pyi"}
Imports = defaultdict[str, set[str]]


def declare_all() -> None:
    """Import all modules that declare public functions or methods."""
    import_module("leafgrad.autograd")
    for file in sorted(FOLDER.glob("*.py")):
        import_module(f"leafgrad.tensor.{file.stem}")


def written() -> dict[Path, str]:
    """The files, and what they should hold."""
    declare_all()
    texts = {PATH: stub(), LISTED: lists()}
    return texts | {FOLDER / file: room_stub(room) for room, file in ROOMS.items()}


def lists() -> str:
    """The text that `listed.py` should have."""
    text = GENERATED.format("Where public functions and methods are declared.") + "\nfrom typing import Final\n\n"
    for table, owner in (("FUNCTIONS", "leafgrad"), ("METHODS", "Tensor")):
        names = {name: module for name, (module, _) in methods.CLAIMS[owner].items()}
        text += f"{table}: Final = {{\n"
        for module in sorted(set(names.values())):
            words = " ".join(sorted(name for name in names if names[name] == module))
            lines = textwrap.fill(words, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)
            text += f'    "{module}": """\n{lines}\n    """,\n'
        text += "}\n"
    return text


def room_stub(room: str) -> str:
    """The text of the stub that imports the functions of `leafgrad` or of one of its rooms."""
    split = {(*full.rpartition(".")[::2], found) for full, found in public.FUNCTIONS.items()}
    names = {name: (found.module, variable(found)) for prefix, name, found in split if prefix == room}
    imports: Imports = defaultdict(set)
    for module, own in names.values():
        imports[module].add(f"{own} as {own}" if own in names else own)
    lines = [import_line(module, sorted(found, key=natural)) for module, found in sorted(imports.items())]
    lines += ["", *[f"{name} = {own}" for name, (_, own) in sorted(names.items()) if name != own]]
    return "\n".join([GENERATED.format(f"The functions of `leafgrad{'.' if room else ''}{room}`."), *lines, ""])


def natural(name: str) -> tuple[bool, list[tuple[int, str]]]:
    """The order in which ruff sorts what is imported: classes first, and numbers by what they are worth."""
    parts = re.findall(r"\d+|\D+", name.partition(" ")[0].lower())
    return name[0].islower(), [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def variable(found: public.Public) -> str:
    """What a function is called in the module that declares it; an op's own name may be another."""
    return next(n for n, value in vars(import_module(found.module)).items() if value is found.function)


def stub(added: bool = False) -> str:
    """The text that `methods.pyi` should have. ``added``: with what plugins add, as far as they are loaded."""
    declare_all()
    imports: Imports = defaultdict(set, {"collections.abc": {"Callable", "Iterable"}, "typing": {"Any"}})
    blocks = []
    attached = {n: v for n, v in vars(Methods).items() if added or n not in methods.DECLARED}
    for name, value in sorted(attached.items()):
        if isinstance(value, property):
            getter: Any = value.fget
            blocks.append(f"@property\n{definition(name, getter, imports)}")
        elif isinstance(value, types.FunctionType):
            versions = get_overloads(value) or [value]
            if len(versions) > 1:
                imports["typing"].add("overload")
            mark = "@overload\n" if len(versions) > 1 else ""
            doc = inspect.getdoc(value)
            blocks += [mark + definition(name, version, imports, doc) for version in versions]
    body = "\n".join(textwrap.indent(block, "    ") for block in blocks)
    return f"{GENERATED.format('What functions give to Tensor.')}\n{import_lines(imports)}{REST}{body}\n"


def import_lines(imports: Imports) -> str:
    """Import statements in isort's order: the standard library, then leafgrad."""
    ours = {module: names for module, names in imports.items() if module.startswith("leafgrad")}
    standard = {module: names for module, names in imports.items() if module not in ours}
    groups = []
    for group, plain in ((standard, ["import builtins"]), (ours, [])):
        lines = [
            import_line(module, sorted(names, key=lambda n: (n[0].islower(), n.lower())))
            for module, names in sorted(group.items())
        ]
        groups.append("\n".join(plain + lines) + "\n")
    return "\n".join(groups)


def import_line(module: str, names: list[str]) -> str:
    """In one line, or one for each name where that is too long."""
    line = f"from {module} import {', '.join(names)}"
    return line if len(line) <= 120 else f"from {module} import (\n" + "".join(f"    {n},\n" for n in names) + ")"


UNTYPED = ("leafgrad.ops.call", "leafgrad.tensor.operators")
INPLACE = {f"__i{name}__" for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split()}


def definition(name: str, function: Callable[..., Any], imports: Imports, doc: str | None = None) -> str:
    """`def name(self, ...) -> ...:` with the first line of the docstring."""
    shown = shown_as(name, function)
    signature = inspect.signature(shown)
    first, *others = signature.parameters.values()
    declared = name in methods.DECLARED
    bare = shown.__module__ in UNTYPED  # an op itself, or an operator made of one
    if name in ("__eq__", "__ne__"):  # what object has gives a bool
        result = "Any"
    elif name in INPLACE:
        imports["typing"].add("Self")
        result = "Self"
    elif bare or declared or shown is not function:
        imports["leafgrad.tensor.tensor"].add("Tensor")
        result = "Tensor"
    else:
        result = annotation(signature.return_annotation, function, imports)
    if name in INPLACE:
        written = ["other: Any"]
    elif bare:
        written = [f"other: Any{default(p)}" for p in others]
    else:
        written = list(parameters([first, *others] if first.kind is first.VAR_POSITIONAL else others, shown, imports))
    head = layout(name, ["self", *written], result)
    summary = shorten((doc or inspect.getdoc(function) or "").partition("\n")[0])
    return f'{head}\n    """{summary}"""' if summary else f"{head} ..."


def functions() -> str:
    """Definitions of the functions of `leafgrad` that plugins add, with the imports that they need."""
    imports: Imports = defaultdict(set, {"typing": {"Any"}})
    blocks = []
    for name, function in sorted(methods.DECLARED.items()):
        first, *_ = inspect.signature(function).parameters.values()
        block = definition(name, function, imports)
        blocks.append(block.replace("(self", f"({first}: Any" if first.kind is not first.VAR_POSITIONAL else "(", 1))
    return "\n".join([import_lines(imports), *blocks, ""])


def shown_as(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose parameters to show: an in-place method that passes on anything has those of the plain one."""
    plain: Callable[..., Any] | None = vars(Methods).get(name.removesuffix("_"))
    passes_on = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())
    return plain if passes_on and plain is not None else function


def parameters(found: list[inspect.Parameter], function: Callable[..., Any], imports: Imports) -> Iterator[str]:
    """Each as it is written, with a bare star where the keyword-only ones begin."""
    star = False
    for p in found:
        if p.kind is p.KEYWORD_ONLY and not star:
            yield "*"
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        prefix = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        yield f"{prefix}{p.name}: {annotation(p.annotation, function, imports)}{default(p)}"


def default(parameter: inspect.Parameter) -> str:
    """` = 1` for what is a literal, ` = ...` for an object."""
    value = parameter.default
    if value is parameter.empty:
        return ""
    if isinstance(value, str):
        return f' = "{value}"'
    return f" = {value!r}" if value is None or isinstance(value, bool | int | float | tuple) else " = ..."


def shorten(summary: str) -> str:
    return textwrap.shorten(summary, WIDTH - 14, placeholder=" ...")


def annotation(text: Any, function: Callable[..., Any], imports: Imports) -> str:
    """An annotation in names that the stub imports."""
    if text is inspect.Parameter.empty:
        return "Any"
    source = text if isinstance(text, str) else inspect.formatannotation(text)
    return stub_source(source, inspect.unwrap(function).__globals__, imports)


def stub_source(source: str, known: dict[str, Any], imports: Imports) -> str:
    return ast.unparse(Spelling(known, imports).visit(ast.parse(source, mode="eval")))


class Spelling(ast.NodeTransformer):
    """Imports what an annotation names, writes aliases out, and calls `int` builtins.int, since a method hides it."""

    def __init__(self, known: dict[str, Any], imports: Imports) -> None:
        self.known, self.imports = known, imports

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        path = ast.unparse(node)
        root = self.known.get(path.partition(".")[0])
        module, _, name = path.rpartition(".")
        if isinstance(root, types.ModuleType) and root.__name__ == "leafgrad.return_types":  # named as methods are
            self.imports["leafgrad"].add("return_types")
            return ast.parse(f"return_types.{name}", mode="eval").body
        if name == "Tensor":  # its own module is called leafgrad
            module = "leafgrad.tensor.tensor"
        self.imports[root.__name__ if isinstance(root, types.ModuleType) else module].add(name)
        return ast.Name(name)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.known.get(node.id)
        if value is None or value is getattr(builtins, node.id, None):
            return ast.Name(f"builtins.{node.id}" if hasattr(builtins, node.id) else node.id)
        if getattr(value, "__name__", None) != node.id:  # an alias such as `Dim = int | None`
            return ast.parse(stub_source(str(value), {}, self.imports), mode="eval").body
        self.imports["leafgrad.tensor.tensor" if node.id == "Tensor" else value.__module__].add(node.id)
        return node


def layout(name: str, written: list[str], result: str) -> str:
    """The head of a function as the formatter breaks it: on one line, on three, or a line for each parameter."""
    room = WIDTH - 4
    inner = ", ".join(written)
    if len(one := f"def {name}({inner}) -> {result}:") <= room:
        return one
    if len(inner) + 4 > room:
        inner = ",\n    ".join(written) + ","
    return f"def {name}(\n    {inner}\n) -> {result}:"


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
