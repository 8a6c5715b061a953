"""Forms of matrix products and convolutions."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.ops import attention, convolution, matmul
from leafgrad.ops.windows import Windows
from leafgrad_onnx.forms.reduce import WIDER
from leafgrad_onnx.forms.shape import converted
from leafgrad_onnx.writer import OnnxWriter


def product(w: OnnxWriter, e: Equation, x: str, y: str) -> str:
    """A matrix product of values of the dtype that ``wide`` gives."""
    return converted(w, w.emit("MatMul", x, y), wide(e.values[0]), e.out.dtype)


def wide(x: Value) -> str:
    """The dtype in which runtimes multiply what has a narrow one."""
    return WIDER.get(x.dtype, x.dtype)


@matmul.matmul.lower("onnx")
def _matmul(w: OnnxWriter, e: Equation) -> str:
    return product(w, e, *[w(v, wide(v)) for v in e.values])


@matmul.contract.lower("onnx")
def _contract(w: OnnxWriter, e: Equation) -> str:
    x, y = (w.reshape(w(v, wide(v)), (math.prod(v.shape[:-1]), v.shape[-1])) for v in e.values)
    return product(w, e, w.emit("Transpose", x, perm=[1, 0]), y)


@matmul.linear.lower("onnx")
def _linear(w: OnnxWriter, e: Equation) -> str:
    x, weight, *bias = e.values
    names = [w(v, wide(v)) for v in (x, weight, *bias)]
    if x.ndim == 2 and x.dtype in ("float32", "float64"):
        return str(w.emit("Gemm", *names, transB=1))
    y = w.emit("MatMul", names[0], w.emit("Transpose", names[1], perm=[1, 0]))
    return converted(w, w.emit("Add", y, names[2]) if bias else y, wide(x), e.out.dtype)


@matmul.cross.lower("onnx")
def _cross(w: OnnxWriter, e: Equation) -> str:
    x, y = (w(v, wide(v)) for v in e.values)
    after, before = w.ints([1, 2, 0]), w.ints([2, 0, 1])

    def turned(name: str, by: str) -> str:
        return str(w.emit("Gather", name, by, axis=e.params["dim"]))

    one = w.emit("Mul", turned(x, after), turned(y, before))
    other = w.emit("Mul", turned(x, before), turned(y, after))
    return converted(w, w.emit("Sub", one, other), wide(e.values[0]), e.out.dtype)


# ---- convolutions -------------------------------------------------------------------------------------------------


def padding(windows: Windows) -> list[int]:
    """How far windows begin before the elements, and end behind: by as much, where that gives as many windows."""
    behind = []
    for n, size, k, s, p, d in zip(
        *(windows.length, windows.size, windows.kernel, windows.stride, windows.padding, windows.dilation), strict=True
    ):
        reach = (k - 1) * d + 1
        even = n + 2 * p >= reach and (n + 2 * p - reach) // s + 1 == size
        behind.append(p if even else max((size - 1) * s + reach - p - n, 0))
    return [*windows.padding, *behind]


def geometry(windows: Windows) -> dict[str, Any]:
    """The attributes that windows are, but padding."""
    return {"kernel_shape": list(windows.kernel), "strides": list(windows.stride), "dilations": list(windows.dilation)}


@convolution.convolution.lower("onnx")
def _convolution(w: OnnxWriter, e: Equation) -> str:
    windows, kind = e.params["windows"], wide(e.values[0])
    names = [w(v, kind) for v in e.values]
    found = w.emit("Conv", *names, group=e.params["groups"], pads=padding(windows), **geometry(windows))
    return converted(w, found, kind, e.out.dtype)


@convolution.convolution_input.lower("onnx")
def _convolution_input(w: OnnxWriter, e: Equation) -> str:
    """ConvTranspose, then the elements behind all windows, which no kernel reaches, as zeros (or the bias)."""
    windows, kind = e.params["windows"], wide(e.values[0])
    y, weight, *bias = [w(v, kind) for v in e.values]
    behind, more = [], []
    for n, size, k, s, p, d in zip(
        *(windows.length, windows.size, windows.kernel, windows.stride, windows.padding, windows.dilation), strict=True
    ):
        whole = (size - 1) * s + (k - 1) * d + 1
        even = n - (whole - 2 * p)  # what is missing if as much is cut off at either end
        behind.append(p if 0 <= even <= p else max(whole - p - n, 0))
        more.append(n - (whole - p - behind[-1]))
    found = w.emit(
        "ConvTranspose", y, weight, group=e.params["groups"], pads=[*windows.padding, *behind], **geometry(windows)
    ) if not any(more) else added_behind(w, e, y, weight, more)  # fmt: skip
    if bias:
        found = w.emit("Add", found, w.reshape(bias[0], (e.values[2].shape[0], *(1,) * len(windows.size))))
    return converted(w, found, kind, e.out.dtype)


def added_behind(w: OnnxWriter, e: Equation, y: str, weight: str, more: list[int]) -> str:
    """The same without any cut, which padding and cutting follow."""
    windows = e.params["windows"]
    count = len(windows.size)
    whole = w.emit("ConvTranspose", y, weight, group=e.params["groups"], pads=[0] * (2 * count), **geometry(windows))
    pads = [0] * (2 * (count + 2))
    for i, (p, n, size, k, s, d) in enumerate(
        zip(
            windows.padding, windows.length, windows.size, windows.kernel, windows.stride, windows.dilation, strict=True
        )
    ):
        pads[count + 4 + i] = max(p + n - ((size - 1) * s + (k - 1) * d + 1), 0)
    padded = w.emit("Pad", whole, w.ints(pads))
    ends = [p + n for p, n in zip(windows.padding, windows.length, strict=True)]
    axes = list(range(2, count + 2))
    return str(w.emit("Slice", padded, w.ints(windows.padding), w.ints(ends), w.ints(axes)))


@convolution.convolution_weight.lower("onnx")
def _convolution_weight(w: OnnxWriter, e: Equation) -> str:
    """A convolution whose batch are the channels, and whose channels are the batch."""
    windows, groups, kind = e.params["windows"], e.params["groups"], wide(e.values[0])
    count = len(windows.size)
    swap = [1, 0, *range(2, count + 2)]
    x, y = (w.emit("Transpose", w(v, kind), perm=swap) for v in e.values)
    (channels, outs) = (v.shape[1] // groups for v in e.values)
    parts = []
    for g in range(groups):
        a, b = (
            name if groups == 1 else w.emit("Slice", name, w.ints([g * n]), w.ints([(g + 1) * n]), w.ints([0]))
            for name, n in ((x, channels), (y, outs))
        )
        ends = [
            (k - 1) * d + (m - 1) * s + 1 - p - n
            for n, m, k, s, p, d in zip(
                *(windows.length, windows.size, windows.kernel, windows.stride, windows.padding, windows.dilation),
                strict=True,
            )
        ]
        found = w.emit(
            "Conv", a, b, pads=[*windows.padding, *(max(n, 0) for n in ends)], strides=list(windows.dilation),
            dilations=list(windows.stride),
        )  # fmt: skip
        if any(n < 0 for n in ends):
            axes = list(range(2, count + 2))
            found = w.emit("Slice", found, w.ints([0] * count), w.ints(windows.kernel), w.ints(axes))
        parts.append(w.emit("Transpose", found, perm=swap))
    whole = parts[0] if groups == 1 else w.emit("Concat", *parts, axis=0)
    return converted(w, whole, kind, e.out.dtype)


# ---- attention ------------------------------------------------------------------------------------------------------


def scores(w: OnnxWriter, e: Equation, q: Value, k: Value, mask: Any) -> str:
    """q k^T scale + mask."""
    kind = wide(q)
    scaled = w.emit("Mul", w(q, kind), w.scalar(e.params["scale"], kind))
    found = w.emit("MatMul", scaled, turned(w, w(k, kind), k.ndim))
    if e.params["causal"]:
        later = w.filled((q.shape[-2], k.shape[-2]), -math.inf, kind)
        found = w.emit("Add", found, w.emit("Trilu", later, w.scalar(1, "int64"), upper=1))
    if isinstance(mask, Value):
        name = w(mask)
        if mask.dtype == "bool":
            name = w.emit("Where", name, w.scalar(0, kind), w.scalar(-math.inf, kind))
        found = w.emit("Add", found, name)
    return str(found)


def turned(w: OnnxWriter, name: str, ndim: int) -> str:
    """A value with its last two dimensions exchanged."""
    return str(w.emit("Transpose", name, perm=[*range(ndim - 2), ndim - 1, ndim - 2]))


@attention.attention.lower("onnx")
def _attention(w: OnnxWriter, e: Equation) -> tuple[str, str]:
    """The steps of the op, with all scores at once; where no key takes part, zeros."""
    q, k, v, *mask = e.inputs
    assert isinstance(q, Value)
    assert isinstance(k, Value)
    kind, last = wide(q), (q.ndim - 1,)
    s = scores(w, e, q, k, *(mask or [None]))
    top = w.reduce("ReduceMax", s, last, keepdim=True)
    top = w.emit("Where", w.emit("IsInf", top), w.scalar(0, kind), top)
    weights = w.emit("Exp", w.emit("Sub", s, top))
    sums = w.reduce("ReduceSum", weights, last, keepdim=True)
    zero, one = w.scalar(0, kind), w.scalar(1, kind)
    sums = w.emit("Where", w.emit("Equal", sums, zero), one, sums)
    found = w.emit("Div", w.emit("MatMul", weights, w(v, kind)), sums)
    norm = w.emit("Add", top, w.emit("Log", sums))
    return converted(w, found, kind, q.dtype), converted(w, norm, kind, q.dtype)


@attention.attention_gradients.lower("onnx")
def _attention_gradients(w: OnnxWriter, e: Equation) -> tuple[str, str, str]:
    go, q, k, v, result, norm, *mask = e.inputs
    assert isinstance(q, Value)
    assert isinstance(k, Value)
    assert isinstance(v, Value)
    kind = wide(q)
    weights = w.emit("Exp", w.emit("Sub", scores(w, e, q, k, *(mask or [None])), w(norm, kind)))
    products = w.emit("Mul", w(go, kind), w(result, kind))
    along = w.reduce("ReduceSum", products, (q.ndim - 1,), keepdim=True)
    d = w.emit("Sub", w.emit("MatMul", w(go, kind), turned(w, w(v, kind), v.ndim)), along)
    d = w.emit("Mul", w.emit("Mul", d, weights), w.scalar(e.params["scale"], kind))
    dq = w.emit("MatMul", d, w(k, kind))
    dk = w.emit("MatMul", turned(w, d, q.ndim), w(q, kind))
    dv = w.emit("MatMul", turned(w, weights, q.ndim), w(go, kind))
    return converted(w, dq, kind, q.dtype), converted(w, dk, kind, q.dtype), converted(w, dv, kind, q.dtype)
