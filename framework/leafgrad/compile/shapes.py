"""What an op makes of arrays of given shapes and dtypes, found without making it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from leafgrad import backends, dtypes
from leafgrad.compile.graph import Operand, Place, Value
from leafgrad.errors import CompileError
from leafgrad.ops.op import Op

Shape = tuple[int, ...]
Rule = Callable[[Sequence[Shape], dict[str, Any]], Shape]


class Unknown(CompileError):
    """Only running the op can tell what it makes, or why it fails."""


def shape_of(operand: Operand) -> Shape:
    return operand.shape if isinstance(operand, Value) else ()


def result_shape(op: Op, inputs: Sequence[Operand], params: dict[str, Any]) -> Shape:
    """The shape of the one array that an op makes of inputs. Raises Unknown."""
    shapes = [shape_of(v) for v in inputs]
    if op.name in RULES:
        return RULES[op.name](shapes, params)
    if "elementwise" in op.traits:
        return broadcast(shapes)
    if "reduction" in op.traits:
        return reduced(shapes, params)
    raise Unknown(f"{op.name} has no rule for the shape of its result")


def results(op: Op, inputs: Sequence[Operand], params: dict[str, Any]) -> list[Value]:
    """Values like what an op makes of inputs, at least one of them a Value. Raises Unknown."""
    values = [v for v in inputs if isinstance(v, Value)]
    place = values[0].place
    if any(0 in v.shape or v.place != place for v in values):
        raise Unknown(f"{op.name} has inputs without elements, or on several devices")
    if op.name in SEVERAL:
        return [Value(s, values[0].dtype, place) for s in SEVERAL[op.name]([shape_of(v) for v in inputs], params)]
    return [Value(result_shape(op, inputs, params), result_dtype(op, inputs, params), place)]


def result_dtype(op: Op, inputs: Sequence[Operand], params: dict[str, Any]) -> str:
    """The name of the dtype of what an op makes, from a run on arrays of one element where its rule says less."""
    values = [v for v in inputs if isinstance(v, Value)]
    first = values[0].dtype
    if op.name not in RULES:
        made = op.compute(tuple([one(v.place, v.dtype, v.ndim) if isinstance(v, Value) else v for v in inputs]), params)
        if type(made) is not tuple:
            return str(made.dtype.name)
    elif isinstance(params.get("dtype"), str):
        return str(params["dtype"])
    elif dtypes.BY_NAME[first].is_floating_point and (op.mixes_dtypes or all(v.dtype == first for v in values)):
        return first
    raise Unknown(f"{op.name} has no rule for the dtype of its result")


@functools.cache
def one(place: Place, dtype: str, ndim: int) -> Any:
    """An array of one element, 1."""
    backend = backends.by_device_type(place[0])
    with backend.device_scope(place[1]):
        return backend.xp.ones((1,) * ndim, dtype=dtype)


def zeros(operand: Operand) -> Any:
    """An array such as a value stands for; a number itself."""
    if not isinstance(operand, Value):
        return operand
    kind, index = operand.place
    backend = backends.by_device_type(kind)
    with backend.device_scope(index):
        return backend.xp.zeros(operand.shape, dtype=operand.dtype)


# ---- rules --------------------------------------------------------------------------------------------------------


def broadcast(shapes: Iterable[Shape]) -> Shape:
    """The shape that shapes broadcast to."""
    found: list[int] = []
    for shape in shapes:
        found[:0] = [1] * (len(shape) - len(found))
        for i, n in enumerate(reversed(shape), 1):
            check(n == found[-i] or 1 in (n, found[-i]))
            if n != 1:
                found[-i] = n
    return tuple(found)


def check(fits: bool) -> None:
    """The op itself tells what is wrong."""
    if not fits:
        raise Unknown("shapes that do not fit")


def same(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    return shapes[0]


def given(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    return tuple(params["shape"])


def reshaped(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    check(math.prod(params["shape"]) == math.prod(shapes[0]))
    return tuple(params["shape"])


def expanded(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    check(broadcast((shapes[0], params["shape"])) == params["shape"])
    return tuple(params["shape"])


def permuted(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    return tuple(shapes[0][i] for i in params["dims"])


def reduced(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    """Of ops with ``dim``, an int, some, or None for all, and perhaps ``keepdim``."""
    (shape,) = shapes
    check("dim" in params)
    dim, keep = params["dim"], params.get("keepdim", False)
    gone = range(len(shape)) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    return tuple(1 if i in gone else n for i, n in enumerate(shape) if keep or i not in gone)


def product(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    x, y = shapes
    check(bool(x and y) and x[-1] == y[-2 if len(y) > 1 else 0])
    return (*broadcast((x[:-2], y[:-2])), *x[-2:-1], *(y[-1:] if len(y) > 1 else ()))


def joined(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    d, first = params["dim"], shapes[0]
    check(all((*s[:d], *s[d + 1 :]) == (*first[:d], *first[d + 1 :]) for s in shapes))
    return (*first[:d], sum(s[d] for s in shapes), *first[d + 1 :])


def packed(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    return (sum(math.prod(s) for s in shapes),)


def part(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    """Of a basic index."""
    left = list(shapes[0])
    found: list[int] = []
    for entry in params["at"]:
        if entry is None:
            found.append(1)
        elif isinstance(entry, tuple):
            found.append(len(range(left.pop(0))[slice(*entry)]))
        else:
            n = left.pop(0)
            check(-n <= entry < n)
    return (*found, *left)


def picked(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    (x, target), d = shapes, params["dim"]
    check(target == (*x[:d], *x[d + 1 :]))
    return target


def loss(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    picked(shapes, params)
    return ()


def slope(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    picked(shapes, params)
    return shapes[0]


def shares(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    picked(shapes, params)
    return (*shapes[0][: params["dim"]], 1, *shapes[0][params["dim"] + 1 :])


def second(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    return shapes[1]


def affine(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    """Of x, weight and perhaps bias of a linear layer."""
    x, weight, *bias = shapes
    check(len(weight) == 2 and x[-1:] == weight[1:] and all(b in ((), weight[:1]) for b in bias))
    return (*x[:-1], weight[0])


def indexed(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    (x, *at), dims = shapes, params["dims"]
    check(dims == tuple(range(dims[0], dims[0] + len(dims))))
    return (*x[: dims[0]], *broadcast(at), *x[dims[-1] + 1 :])


def windowed(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    windows = params["windows"]
    check(shapes[0][-len(windows.length) :] == windows.length)
    return (*shapes[0][: -len(windows.length)], *windows.size)


def unwindowed(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    return (*shapes[0][: -len(params["windows"].length)], *params["windows"].length)


def convolved(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    (n, channels, *length), weight = shapes[:2]
    windows = params["windows"]
    check(tuple(length) == windows.length and channels == weight[1] * params["groups"])
    return (n, weight[0], *windows.size)


def spread(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    (n, *_), weight = shapes[:2]
    return (n, weight[1] * params["groups"], *params["windows"].length)


def kernel(shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    x, y = shapes
    return (y[1], x[1] // params["groups"], *params["windows"].kernel)


def attended(shapes: Sequence[Shape], params: dict[str, Any]) -> list[Shape]:
    q, k, v = shapes[:3]
    check(q[:-2] == k[:-2] == v[:-2] and q[-1] == k[-1] and k[-2] == v[-2])
    return [(*q[:-1], v[-1]), (*q[:-1], 1)]


SEVERAL: dict[str, Callable[[Sequence[Shape], dict[str, Any]], Sequence[Shape]]] = {
    "unpack": lambda shapes, params: params["shapes"],
    "attention": attended,
    "attention_gradients": lambda shapes, params: shapes[1:4],
}

RULES: dict[str, Rule] = {
    "reshape": reshaped,
    "expand": expanded,
    "permute": permuted,
    "slice": part,
    "matmul": product,
    "cat": joined,
    "pack": packed,
    "pick": picked,
    "cross_entropy": loss,
    "cross_entropy_slope": slope,
    "gather": second,
    "overwrite": second,
    "linear": affine,
    "index": indexed,
    "convolution": convolved,
    "convolution_spread": spread,
    "convolution_weight": kernel,
    "window_max": windowed,
    "window_pick": windowed,
    "window_place": unwindowed,
    "shares": shares,
    **dict.fromkeys(("sum_to", "unslice", "pad", "place", "new_full", "index_sum", "gather_sum"), given),
    **dict.fromkeys(("to_dtype", "softmax", "log_softmax", "standardize", "flip", "roll", "tril", "triu"), same),
    **dict.fromkeys(("cumsum", "cumprod", "shift", "standardize_slope", "bernoulli", "write_view"), same),
    **dict.fromkeys(("index_put", "scatter"), same),
}
