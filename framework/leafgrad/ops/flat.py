"""Many arrays as one vector, and back: what optimizers work on."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.ops.define import op
from leafgrad.ops.shape import cat, part, reshape

Shape = tuple[int, ...]


@op("linear", "complex")
def pack(xp: Any, *xs: Any) -> Any:
    """The elements of all arrays, one array after the other. (...), (...), ... -> (n)"""
    return xp.concatenate([x.reshape(-1) for x in xs])


@op("linear", "complex")
def unpack(xp: Any, x: Any, *, shapes: tuple[Shape, ...]) -> Any:
    """Copies of the parts of a vector, in ``shapes``; the inverse of pack. (n) -> (...), (...), ..."""
    ends = offsets(shapes)
    return tuple([x[a:b].copy().reshape(shape) for a, b, shape in zip(ends[:-1], ends[1:], shapes, strict=True)])


def offsets(shapes: tuple[Shape, ...]) -> list[int]:
    """Where the part of each shape begins in the vector, and where the last one ends."""
    ends = [0]
    for shape in shapes:
        ends.append(ends[-1] + math.prod(shape))
    return ends


pack.vjp(xs=lambda g, xs_shape, index: unpack(g, shapes=tuple(map(tuple, xs_shape)))[index])
unpack.vjp(x=lambda g: pack(*g))
pack.lower("numpy", lambda writer, equation: writer.joined(equation, flat=True))
unpack.lower("numpy", lambda writer, equation: writer.divided(equation, equation.params["shapes"]))
pack.lower("native", lambda c, e: c.join())
unpack.lower("native", lambda c, e: c.view(lambda x, axis: x.divided(e.params["shapes"])))
pack.shape(lambda *xs: (sum(math.prod(x.shape) for x in xs),))
unpack.shape(lambda x, *, shapes: list(shapes))


@pack.batched
def _pack_batched(call: Any) -> Any:
    return cat(*[call.rows(i) for i in range(len(call.args))], dim=1)


@unpack.batched
def _unpack_batched(call: Any) -> Any:
    shapes, all_samples = call.params["shapes"], (0, call.size, 1)
    ends = offsets(shapes)
    return tuple([
        reshape(part(call.args[0], at=(all_samples, (a, b, 1))), shape=(call.size, *s))
        for a, b, s in zip(ends[:-1], ends[1:], shapes, strict=True)
    ])  # fmt: skip
