"""Replace what algebra allows by what costs less.

Rules of one op stand beside it, as ``op.rewrite``; those about several are in `rules`, a file per subject.
"""

from __future__ import annotations

from leafgrad.compile.ir.graph import Equation, Graph, Value
from leafgrad.compile.ir.shapes import Unknown
from leafgrad.compile.passes.rewrite import Rewriter, Rule, rewrite
from leafgrad.compile.passes.rules import arithmetic, choice, layout, parts, product, reduction
from leafgrad.errors import CompileError
from leafgrad.ops.op import Op

SUBJECTS = tuple(s.RULES for s in (layout, arithmetic, reduction, product, parts, choice))


def collect() -> dict[Op, tuple[Rule, ...]]:
    rules: dict[Op, tuple[Rule, ...]] = {}
    for subject in SUBJECTS:
        for op, found in subject.items():
            rules[op] = rules.get(op, ()) + found
    return rules


RULES = collect()


def simplify(graph: Graph) -> Graph:
    """The graph with fewer and cheaper equations, and the same results to a few ulp."""
    return rewrite(graph, RULES, (declared, layout.elementwise_of_expanded))


def declared(r: Rewriter, e: Equation) -> Value | tuple[Value, ...] | None:
    """What the rules that are declared of the op itself put in its place."""
    for i, rule in enumerate(e.op.rewriting, 1):
        try:
            found = rule(r, e)
        except Unknown:
            continue
        except Exception as error:
            error.add_note(f"in the rewrite rule of op {e.name!r} from {e.op.origins.get(f'rewrite {i}')}")
            raise
        values = found if isinstance(found, tuple) else (found,)
        if all(isinstance(v, Value) for v in values):
            return values
        if found is not None:
            raise CompileError(f"op {e.name!r}, rewrite rule: expected a value of the graph, or None, got {found!r}")
    return None
