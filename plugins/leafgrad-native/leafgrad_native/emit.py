"""A kernel as C: products in place, the others as functions, which kernels that are alike share."""

from __future__ import annotations

from leafgrad.lowering.expressions import C_TYPES
from leafgrad.lowering.kernels import (
    LOOK,
    Convolve,
    Copy,
    Draw,
    Kernel,
    Lines,
    Load,
    Lookup,
    Nest,
    Normalize,
    Product,
    Reduce,
    Scan,
    Select,
    Slide,
    Store,
    work,
)
from leafgrad_native import along, draws, lookups, multiply, scans, sliding, windows
from leafgrad_native.blocks import LONGEST, QUANTUM
from leafgrad_native.writer import CWriter

SHARED = 1 << 17  # operations of a kernel on whole arrays from which on threads share it; half of it for each at least


def write(w: CWriter, kernel: Kernel) -> None:
    """The comment, and the call of a function or the product itself."""
    for equation in kernel.equations if isinstance(kernel, Nest) else [kernel.equation]:
        w.note(equation)
    known: dict[str, tuple[str, str]] = {}  # a result may take the place of an input: one pointer, then
    for form in (*kernel.inputs, *kernel.outputs):
        address = w.address(form.root)
        known.setdefault(address, (f"x{len(known)}", C_TYPES[form.root.dtype]))
        w.names[form.root] = known[address][0]
    if isinstance(kernel, Draw):
        known[f"call->keys + {w.key(kernel.maker)}"] = "key", "uint64_t"
    known["call"] = "call", "lg_call"
    operations = work(kernel, LONGEST if w.chunk else 0)
    looks = operations > LOOK or isinstance(kernel, Product)
    w.sharing, w.rounds = not w.chunk and operations >= SHARED, None
    if isinstance(kernel, Product) and not w.sharing:
        w.open(inside=operations)
        for address, (name, t) in known.items():
            if address != name:
                w.add(f"{t} *restrict {name} = {address};")
        multiply.product(w, kernel)
        w.close()
        return
    ends = kernel.may_fail or looks
    around, w.lines, w.inside = w.lines, [], [operations]
    if w.chunk:
        w.add(f"m &= -{QUANTUM};")  # as it is; compilers that know it write no loop for what vectors leave
    body(w, kernel)
    if ends:
        w.add("return 0;")
    lines, w.lines, w.inside = w.lines, around, [0]
    kind = "int" if ends else "void"
    pointers = ", ".join(f"{t} *restrict {name}" for name, t in known.values())
    more = "lo, n, m" if w.chunk else "first, last" if w.rounds else ""
    points = "".join(f", long {name}" for name in more.split(", ") if name)
    name = w.functions.name(kind, type(kernel).__name__.lower(), pointers + points, lines)
    call = f"{name}({', '.join(known)}{', ' if more else ''}{more})"
    if w.rounds:
        w.share(call, ends, w.rounds, operations // (SHARED // 2))
    else:
        w.add(f"if ((code = {call})) return code;" if ends else f"{call};")


def body(w: CWriter, kernel: Kernel) -> None:
    """What the function of a kernel does."""
    match kernel:
        case Convolve():
            windows.write(w, kernel)
        case Product():
            w.add("int code = 0; (void)code;")
            multiply.product(w, kernel)
        case Draw():
            draws.write(w, kernel)
        case Nest():
            w.nest(kernel)
        case Load():
            w.load(kernel)
        case Store():
            w.store(kernel)
        case Copy():
            w.copy(kernel)
        case Reduce():
            along.reduce(w, kernel)
        case Normalize():
            along.normalize(w, kernel)
        case Lines():
            along.lines(w, kernel)
        case Scan():
            scans.write(w, kernel)
        case Select():
            along.select(w, kernel)
        case Slide():
            sliding.write(w, kernel)
        case Lookup():
            lookups.write(w, kernel)
