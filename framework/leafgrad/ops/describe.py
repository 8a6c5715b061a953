"""What ``print(op)`` shows: all that is declared of an op, where, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

LACKS = {
    "shape": "its result is known when it has run",
    "chunk": "it needs all rows of a batch at once",
    "batched": "vmap loops over the samples",
}


def description(op: Any) -> str:
    """Several lines: the call, its traits, and a line for each declaration."""
    head = f"{op.name}({op.signature})"
    first = (op.__doc__ or "").strip().partition("\n")[0]
    rows = [("traits", ", ".join(sorted(op.traits)) or "none", ""), *declarations(op)]
    wide, wider = (max(len(row[i]) for row in rows) for i in (0, 1))
    lines = [f"  {a:{wide}}  {b:{wider}}  {c}".rstrip() for a, b, c in rows]
    return "\n".join([f"{head}: {first}" if first else head, *lines])


def declarations(op: Any) -> Iterator[tuple[str, str, str]]:
    """What, whether or how it is declared, and where."""
    origin = op.origins.get
    yield "forward", "", op.forward.__module__
    for backend in op.kernels:
        yield f"kernel {backend}", "", origin(f"kernel {backend}", "")
    for argument, reads in zip(op.signature.arguments, op.uses, strict=True):
        if reads:
            kept = ", ".join(sorted(reads - {"g"}))
            yield f"vjp {argument}", f"saves {kept}" if kept else "saves nothing", origin(f"vjp {argument}", "")
        else:
            yield (
                f"vjp {argument}",
                "never needed" if not op.differentiable else "none: an error where it is needed",
                "",
            )
    for what, lack in LACKS.items():
        declared = origin(what)
        yield what, "" if declared else f"none: {lack}", declared or ""
    for what in ("jet", "summed"):
        if what in op.origins:
            yield what, "", origin(what)
    if op.transpose is not None:
        yield "transpose", op.transpose.name, ""
    if op.c is not None:
        yield "c", op.c, origin("c", "")
    if op.ufunc is not None:
        yield "ufunc", op.ufunc, ""
    for what in (f"rewrite {i + 1}" for i in range(len(op.rewriting))):
        yield what, "", origin(what, "")
    for executor in op.lowering:
        yield f"lower {executor}", "", origin(f"lower {executor}", "")
    for name in op.methods:
        yield f"method {name}", "", origin(f"method {name}", "")
