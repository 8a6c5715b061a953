"""``leafgrad ops``: all ops and what each can do, as the registry has them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from leafgrad import plugins
from leafgrad.cli.main import load_all
from leafgrad.cli.table import columns, markdown

PARSER = argparse.ArgumentParser(prog="leafgrad ops", description="List all ops, and what each can do.")
PARSER.add_argument("plugins", metavar="PLUGIN", nargs="*", help="of these plugins alone, by name; core is one")
FORMS = PARSER.add_mutually_exclusive_group()
FORMS.add_argument("--json", action="store_true", help="print them as JSON")
FORMS.add_argument("--markdown", action="store_true", help="print them as a page in Markdown")

PAGE = """# Coverage of ops

Written by `make coverage`, from the registry: the ops of the core, and what is declared of each. `leafgrad ops` prints
this table, with the ops of the plugins that are installed; `print(op)` says where each declaration was made.

- **derivatives**: the arguments that have a rule. Rules are made of ops, so there are derivatives of all orders.
- **dtypes**: what becomes of arguments of different dtypes. *promoted*: to one, as PyTorch does; *floating*: so, and
  integers to the default floating dtype; *alike*: floating ones must be of one dtype; *any*: each is taken as it is.
- **devices**: *all* run the forward on their array library; those named have a kernel of their own.
- **vmap**: by a *rule*, or else *by sample*, in a loop.
- **compile**: in *chunks* of the batch, or on *whole* arrays; with *no shape rule* on whole arrays, too, after a run
  that tells the shape of the result; *rewritten*: as other ops, which the compiler puts in its place.
- **C**: whether C is generated for it, by an expression of its own or by the executors that are named.
"""


class Coverage(NamedTuple):
    """What one op can do.

    derivatives: the arguments that have a vjp rule.
    kernels: the backends with a kernel of their own.
    executors: those that have a rule to generate it.
    """

    op: str
    plugin: str
    derivatives: tuple[str, ...]
    differentiable: bool
    traits: tuple[str, ...]
    dtypes: str
    kernels: tuple[str, ...]
    vmap: str
    compile: str
    c: str | None
    executors: tuple[str, ...]

    def row(self) -> list[str]:
        """A line of the table."""
        return [
            self.op,
            self.plugin,
            ", ".join(self.derivatives) or ("none" if self.differentiable else "not differentiable"),
            self.dtypes,
            ", ".join(("all", *self.kernels)),
            self.vmap,
            self.compile,
            ", ".join((*(["expression"] if self.c else []), *self.executors)) or "no",
        ]


HEAD = ("op", "plugin", "derivatives", "dtypes", "devices", "vmap", "compile", "C")


def main(argv: list[str]) -> int:
    """Print them; returns the exit status."""
    options = PARSER.parse_args(argv)
    load_all()
    known = [plugin.name for plugin in plugins.status()]
    for name in options.plugins:
        if name not in known:
            print(f"leafgrad ops: unknown plugin {name!r}: known are {', '.join(sorted(known))}", file=sys.stderr)
            return 2
    found = table(options.plugins or known)
    if options.json:
        print(json.dumps([coverage._asdict() for coverage in found], indent=2))
    elif options.markdown:
        print(page(found))
    else:
        print(columns(HEAD, [coverage.row() for coverage in found]))
    return 0


def table(names: Sequence[str]) -> list[Coverage]:
    """What the ops of some plugins can do, by name of the op."""
    owners = {op: p.name for p in plugins.status() for op in p.hooks.get("leafgrad_ops", ()) if p.name in names}
    found = [coverage(op, owners[op.name]) for op in plugins.ops() if op.name in owners]
    return sorted(found, key=lambda coverage: coverage.op)


def page(found: Sequence[Coverage]) -> str:
    """The table as a page of the documentation."""
    return f"{PAGE}\n{markdown(HEAD, [coverage.row() for coverage in found])}"


def coverage(op: Any, plugin: str) -> Coverage:
    """What an op's declarations say."""
    return Coverage(
        op=op.name,
        plugin=plugin,
        derivatives=tuple([name for name in op.signature.arguments if name in op.calls]),
        differentiable=op.differentiable,
        traits=tuple(sorted(op.traits)),
        dtypes=dtypes(op.traits),
        kernels=tuple(sorted(op.kernels)),
        vmap="rule" if op.batching is not None else "by sample",
        compile=in_programs(op),
        c=op.c,
        executors=tuple(sorted(set(op.lowering) - {"pairs"})),
    )


def in_programs(op: Any) -> str:
    """How programs run an op."""
    if op.chunking is not None:
        return "chunks"
    if op.rewriting:
        return "rewritten"
    return "whole" if op.shaping is not None else "no shape rule"


def dtypes(traits: frozenset[str]) -> str:
    """What becomes of the dtypes of an op's arguments."""
    if "any_dtype" in traits:
        return "any"
    if "float" in traits:
        return "floating"
    return "promoted" if traits & {"elementwise", "promote"} else "alike"
