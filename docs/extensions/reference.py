"""The Sphinx directive ``{api}``: entries of the reference, from signatures, docstrings and examples."""

from __future__ import annotations

import enum
import inspect
import re
import types
from collections.abc import Iterator
from functools import cache
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from entries import PACKAGES, Entry, entries, function_of, of_block, origin, pages, public, resolve
from sphinx.application import Sphinx
from sphinx.domains.python import PyClasslike, PyFunction
from sphinx.util.docutils import SphinxDirective

from leafgrad.docstrings import HEADING

SECTION = re.compile(r"^(Args|Attributes|Raises|Returns|Yields|Example|Examples|Note|Source|Warns):\s*(.*)$")
NEXT = re.compile(r"(?<=[.;]) (?=(?:[a-z_]\w*|\w+(?:Error|Warning))(?:, \w+)*: )")  # an item behind another in its line
ITEM = re.compile(r"^(\*{0,2}\w+(?:, ?\*{0,2}\w+)*): +(.*)$")
CODE = re.compile(r"(``.+?``|`[^`\n]+`)", re.DOTALL)


class Api(SphinxDirective):
    """Entries for the names of one package or class."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        package = self.arguments[0]
        made = [entry_text(entry) for entry in of_block(package, "\n".join(self.content))]
        return self.parsed("\n\n".join(made))

    def parsed(self, text: str) -> list[nodes.Node]:
        node = nodes.Element()
        node.document = self.state.document
        self.state.nested_parse(StringList(text.splitlines(), self.get_source_info()[0]), 0, node)
        return node.children


class Methods(Api):
    """The methods of a class that a function of the same name describes, one line each."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        path = self.arguments[0]
        kind = resolve(path)
        rows = []
        for name in dir(kind):
            described = function_of(name)
            if described and callable(getattr(kind, name)) and f"{path}.{name}" not in with_entry():
                how = "in place: " if name.endswith("_") else ""
                rows.append(
                    f"````{{py:method}} {path}.{name}{signature(getattr(kind, name), bound=True)}\n\n"
                    f"{how}{{py:func}}`{described}`\n````"
                )
        return self.parsed("\n\n".join(rows))


class Names:
    """What has several names, which in Markdown stand in one line."""

    arguments: list[str]

    def get_signatures(self) -> list[str]:
        return self.arguments[0].split(" ;; ")

    def needs_arglist(self) -> bool:
        return False


class Function(Names, PyFunction):
    """A function."""


class Class(Names, PyClasslike):
    """A class."""


def entry_text(entry: Entry) -> str:
    """Markdown for one entry."""
    value, path = entry.value, entry.path
    kind = "class" if isinstance(value, type) else "function"
    if inspect.isclass(resolve(entry.package)):
        kind = "method" if callable(value) else "property"
    shown = signature(value, bound=kind == "method") if kind != "property" else ""
    heads = [f"{path}{shown}", *others(path, value)]
    doc = inspect.getdoc(value.fget if isinstance(value, property) else value) or ""
    body = [markdown(doc.partition(HEADING)[0].rstrip()), f"```python\n{entry.example}```"]
    if kind == "class" and not any(other.startswith(f"{path}.") for other in with_entry()):
        body += [method_text(path, name, member) for name, member in own_methods(value)]
    return f"``````{{py:{kind}}} " + " ;; ".join(heads) + "\n\n" + "\n\n".join(body) + "\n``````"


def method_text(path: str, name: str, member: Any) -> str:
    """Markdown for one method of a class."""
    doc = markdown(inspect.getdoc(member) or "")
    kind = "property" if isinstance(member, property) else "method"
    shown = "" if kind == "property" else signature(member, bound=not isinstance(member, staticmethod))
    return f"`````{{py:{kind}}} {path}.{name}{shown}\n\n{doc}\n`````"


def own_methods(kind: type) -> list[tuple[str, Any]]:
    """Public methods and properties that a class defines itself and describes."""
    return [
        (name, member)
        for name, member in vars(kind).items()
        if not name.startswith("_") and isinstance(member, types.FunctionType | classmethod | staticmethod | property)
        if member.__doc__
    ]


@cache
def known() -> dict[Any, list[str]]:
    """The paths of each public function and class, by what it is."""
    found: dict[Any, list[str]] = {}
    for package in PACKAGES:
        for name, value in public(package).items():
            found.setdefault(id(origin(value)), []).append(f"{package}.{name}")
    return found


@cache
def with_entry() -> set[str]:
    return {entry.path for page in pages() for entry in entries(page.read_text())}


def others(path: str, value: Any) -> list[str]:
    """Other public names of the same function, and of the one that writes into its input, which have no entry."""
    names = dict.fromkeys([path, *known().get(id(origin(value)), [])])
    for package, _, name in [other.rpartition(".") for other in names]:
        if package in PACKAGES and f"{name}_" in public(package):
            names[f"{package}.{name}_"] = None
    theirs = with_entry() - {path}
    return [other for other in names if other != path and not {other, other.removesuffix("_")} & theirs]


def signature(value: Any, bound: bool = False) -> str:
    """The signature as Python code, annotations unquoted."""
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return ""  # it is not made, but has members
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return "()"
    parameters = list(found.parameters.values())[bound if parameters_have_self(found) else 0 :]
    given = inspect.Signature.empty if isinstance(value, type) else found.return_annotation
    parameters = [p.replace(default=plain(p.default)) for p in parameters]
    shown = str(found.replace(parameters=parameters, return_annotation=given))
    shown = re.sub(r"ForwardRef\('([^']*)'[^)]*\)", r"\1", shown)
    shown = re.sub(r"(: |-> )'([^']*)'", r"\1\2", shown).replace("\n", " ")
    return re.sub(r"(?<![\w.'\"])Tensor(?!\w)", "leafgrad.Tensor", shown)


def parameters_have_self(found: inspect.Signature) -> bool:
    return next(iter(found.parameters), "") in ("self", "cls", "input")


class Named:
    """A default that is shown by name."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def plain(default: Any) -> Any:
    """A default whose repr is Python code."""
    if default is inspect.Parameter.empty or not repr(default).startswith("<"):
        return default
    return Named(getattr(default, "__name__", "..."))


def markdown(doc: str) -> str:
    """A docstring, which is plain text with ``code`` in it and Google's sections, as Markdown."""
    lines: list[str] = []
    inside = False
    for line in one_item_a_line(doc):
        heading = SECTION.match(line)
        text = line.removeprefix("    ") if inside and line.startswith("    ") else line
        if heading:
            inside = True
            lines += ["", f"**{heading[1]}**" + (f": {escaped(heading[2])}" if heading[2] else ""), ""]
        elif inside and line.startswith("    ") and (item := ITEM.match(text)):
            lines.append(f"- {', '.join(f'`{n.strip()}`' for n in item[1].split(','))}: {escaped(item[2])}")
        elif inside and line and not line.startswith(" "):
            inside = False
            lines += ["", escaped(line)]
        else:
            lines.append(escaped(text))
    return "\n".join(lines)


def one_item_a_line(doc: str) -> Iterator[str]:
    """The lines of a docstring, in whose sections each item begins one."""
    items = False
    for line in doc.splitlines():
        if line and not line.startswith(" "):
            items = line in ("Args:", "Raises:", "Attributes:")
        yield from [part if i == 0 else f"    {part}" for i, part in enumerate(NEXT.split(line) if items else [line])]


def escaped(text: str) -> str:
    """Text in which nothing but ``code`` means anything to Markdown."""
    if text.startswith("    "):
        return text
    parts = CODE.split(text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<\[\]|#`{}~^])", r"\\\1", part) for part in parts)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("api", Api)
    app.add_directive("methods", Methods)
    app.add_directive_to_domain("py", "function", Function, override=True)
    app.add_directive_to_domain("py", "class", Class, override=True)
    return {"parallel_read_safe": True}
