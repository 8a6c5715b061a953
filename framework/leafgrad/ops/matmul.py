"""Matrix products. Every one comes down to ``matmul``, and so do its gradients.

Dimensions follow PyTorch's rules: vectors are rows on the left and columns on the right, and the result loses
that dimension; leading dimensions are a batch and broadcast.
"""

from __future__ import annotations

import math
from typing import Any

from leafgrad.ops import forms
from leafgrad.ops.abstract import broadcast_shape
from leafgrad.ops.define import op
from leafgrad.ops.elementwise import add, mul
from leafgrad.ops.shape import permute, reshape
from leafgrad.ops.shifted import behind

_permute, _reshape = permute.function, reshape.function
_NOT_FOR_BOOL = "not for bool; convert with .to(dtype), e.g. .float()"


def swap(x: Any) -> Any:
    """x with its last two dimensions exchanged. (..., n, m) -> (..., m, n)"""
    k = len(x.shape)
    return _permute(x, dims=(1, 0) if k == 2 else (*range(k - 2), k - 1, k - 2))


@op("bilinear", "holomorphic")
def matmul(xp: Any, x: Any, y: Any) -> Any:
    """Matrix product. (..., n, k), (..., k, m) -> (..., n, m); also of vectors, (k)."""
    try:
        same = x.dtype == y.dtype
        fold = x.ndim > 2 and y.ndim == 2 and x.shape[-1] == y.shape[0]
    except AttributeError:
        raise RuntimeError("expected two tensors, got a number") from None
    if not same:
        raise RuntimeError(_unlike(x, y))
    if x.dtype.kind == "b":
        raise NotImplementedError(_NOT_FOR_BOOL)
    try:
        if fold:  # one large product, not many small ones
            return (x.reshape(math.prod(x.shape[:-1]), x.shape[-1]) @ y).reshape(*x.shape[:-1], y.shape[1])
        return x @ y
    except ValueError:
        raise RuntimeError(mismatch(x.shape, y.shape)) from None


def _unlike(x: Any, y: Any) -> str:
    return f"expected m1 and m2 to have the same dtype, but got: {x.dtype} != {y.dtype}; convert one with .to(dtype)"


def mismatch(x: tuple[int, ...], y: tuple[int, ...]) -> str:
    """Why matrices of shapes ``x`` and ``y`` have no product."""
    if not x or not y:
        return f"both arguments to matmul need to be at least 1D, but they are {len(x)}D and {len(y)}D"
    sizes = "x".join(map(str, x[-2:])), "x".join(map(str, y[-2:]))
    if x[-1] != y[-2 if len(y) > 1 else 0]:
        return (
            f"mat1 and mat2 shapes cannot be multiplied ({sizes[0]} and {sizes[1]}): expected as many columns in the "
            "first as rows in the second; transpose one with .mT or reshape it"
        )
    return f"expected batch dimensions that broadcast, got {list(x[:-2])} and {list(y[:-2])}"


def _matrix(g: Any, x: tuple[int, ...], y: tuple[int, ...]) -> Any:
    """The gradient of a product with the dimensions that vectors lost put back, as 1."""
    shape = tuple(g.shape)
    if len(y) == 1:
        shape = (*shape, 1)
    if len(x) == 1:
        shape = (*shape[:-1], 1, shape[-1])
    return reshape(g, shape=shape)


def _left(g: Any, y: Any, x_shape: tuple[int, ...]) -> Any:
    if len(x_shape) == 2 == len(y.shape):
        return g @ swap(y)
    if len(x_shape) == 2 < len(y.shape):
        return contract(swap(g), swap(y))
    if len(x_shape) > 1 and len(y.shape) > 1:
        return matmul(g, swap(y))
    row = reshape(y, shape=(1, *y.shape)) if len(y.shape) == 1 else swap(y)
    return matmul(_matrix(g, x_shape, y.shape), row)


def _right(g: Any, x: Any, y_shape: tuple[int, ...]) -> Any:
    if len(x.shape) == 2 == len(y_shape):
        return swap(x) @ g
    if len(y_shape) == 2:
        return contract(x, g)
    if len(y_shape) == 1:
        return reshape(contract(x, reshape(g, shape=(*g.shape, 1))), shape=y_shape)
    column = reshape(x, shape=(*x.shape, 1)) if len(x.shape) == 1 else swap(x)
    return matmul(column, _matrix(g, x.shape, y_shape))


matmul.vjp(x=_left, y=_right)
matmul.lower("native", lambda c, e: c.product())
matmul.lower("numpy", lambda writer, equation: writer.product(equation))


@matmul.shape
def _product_shape(x: Any, y: Any) -> Any:
    a, b = x.shape, y.shape
    if not x.floating or not (a and b) or a[-1] != b[-2 if len(b) > 1 else 0]:
        return None
    return (*broadcast_shape((a[:-2], b[:-2])), *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


@matmul.chunk
def _product_rows(call: Any) -> Any:
    (a, b), (i, j), ndim = call.inputs, call.axes, call.out.ndim
    if a.ndim < 2 or b.ndim < 2:
        return None
    if i == a.ndim - 1 or j == b.ndim - 2:  # the batch is contracted
        return call.summed(1, 0) if a.ndim == b.ndim == 2 else None
    if i == a.ndim - 2 and j is None:
        return call.on(ndim - 2, i)
    if j == b.ndim - 1 and i is None:
        return call.on(ndim - 1, None, j)
    return call.aligned(whole=(-2, -1))


@matmul.batched
def _matmul_batched(call: Any) -> Any:
    x, y = call.args
    left, right = call.ndim(0), call.ndim(1)
    if not left or not right:
        raise RuntimeError(mismatch(call.shape(0), call.shape(1)))
    if call.inside[0] and not call.inside[1] and (right == 1 or right == 2):
        return matmul(x, y)
    if not call.inside[0] and right == 1 and left <= 2:
        return matmul(y, swap(x) if left == 2 else x)
    return _pairwise(call, left, right)


@matmul.summed
def _contracted(call: Any) -> Any:
    """One product, whose contraction goes over the samples, too."""
    if not all(call.inside):
        return None
    a, b = call.shape(0), call.shape(1)
    ndim = len(a)
    if ndim < 2 or ndim != len(b) or a[:-2] != b[:-2] or a[-1] != b[-2]:
        return None
    x, y = call.args
    if ndim == 2:
        return (a[0], b[1]), lambda: contract(swap(x), y)
    return (*a[:-1], b[-1]), lambda: matmul(call.merged(x, ndim - 1), call.merged(y, ndim - 2))


def _pairwise(call: Any, left: int, right: int) -> Any:
    """A product for each sample. Vectors are made matrices, and the dimension is taken off the result."""
    ndim = max(left, right, 2)
    x = _matrices(call, 0, ndim, row=True)
    y = _matrices(call, 1, ndim, row=False)
    out = mul(x, y) if x.shape[-1] == 1 == y.shape[-2] else matmul(x, y)
    shape = tuple(out.shape)
    if right == 1:
        shape = shape[:-1]
    if left == 1:
        shape = (*shape[:-2], shape[-1]) if right > 1 else shape[:-1]
    return reshape(out, shape=shape)


def _matrices(call: Any, i: int, ndim: int, row: bool) -> Any:
    x, shape = call.args[i], call.shape(i)
    if len(shape) == 1:
        shape = (1, *shape) if row else (*shape, 1)
    if call.inside[i]:
        return reshape(x, shape=(call.size, *(1,) * (ndim - len(shape)), *shape))
    return reshape(x, shape=shape)


# ---- with all leading dimensions contracted -------------------------------------------------------------------------


def rows(x: Any) -> Any:
    """x as one matrix of all its last-dimension rows. (..., n) -> (m, n)"""
    shape = x.shape
    return x if len(shape) == 2 else _reshape(x, shape=(math.prod(shape[:-1]), shape[-1]))


@op("bilinear", "holomorphic")
def contract(xp: Any, x: Any, y: Any) -> Any:
    """The sum of the outer products of rows: x^T y, all leading dimensions as one. (..., n), (..., m) -> (n, m)"""
    if x.shape[:-1] != y.shape[:-1]:
        raise RuntimeError(f"expected the same leading dimensions, got {list(x.shape[:-1])} and {list(y.shape[:-1])}")
    count = math.prod(x.shape[:-1])
    return matmul.forward(xp, x.reshape(count, x.shape[-1]).T, y.reshape(count, y.shape[-1]))


contract.vjp(x=lambda g, y: matmul(y, swap(g)), y=lambda g, x: matmul(x, g))
contract.lower("native", lambda c, e: c.contraction())
contract.lower("numpy", lambda writer, equation: writer.contraction(equation))


@contract.shape
def _contracted_shape(x: Any, y: Any) -> Any:
    return (x.shape[-1], y.shape[-1]) if x.floating and x.ndim and x.shape[:-1] == y.shape[:-1] else None


@contract.chunk
def _contracted_rows(call: Any) -> Any:
    (x, y), (i, j) = call.inputs, call.axes
    if i == x.ndim - 1:
        return call.on(0, i)
    if j == y.ndim - 1:
        return call.on(1, None, j)
    lead = j if i is None else i
    return call.summed(lead, lead)


@contract.rewrite
def _contracted_in_steps(graph: Any, equation: Any) -> Any:
    """x^T y of matrices, where the rows lie along one dimension."""
    x, y = equation.inputs
    if sum(n != 1 for n in x.shape[:-1]) > 1:
        return None
    a, b = (graph.emit(reshape, v, shape=(math.prod(v.shape[:-1]), v.shape[-1])) for v in (x, y))
    return graph.emit(matmul, graph.emit(permute, a, dims=(1, 0)), b)


@contract.batched
def _contract_batched(call: Any) -> Any:
    x, y = [
        reshape(call.args[i], shape=(*(call.size,) * call.inside[i], math.prod(lead), n))
        for i, (*lead, n) in enumerate((call.shape(0), call.shape(1)))
    ]
    return matmul(swap(x), y)


@contract.summed
def _contracted_samples(call: Any) -> Any:
    """The samples are one more leading dimension."""
    shape = (call.shape(0)[-1], call.shape(1)[-1])
    return (shape, lambda: contract(*call.args)) if all(call.inside) else None


@op("holomorphic")
def linear(xp: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    """x weight^T + bias, an affine layer. (..., n), (m, n), (m,) -> (..., m)"""
    if weight.ndim != 2:
        raise RuntimeError(f"expected weight to be a matrix (out_features, in_features), got {weight.shape}")
    try:
        y = matmul.forward(xp, x, weight.T)
    except RuntimeError:
        if x.shape[-1:] == weight.shape[1:]:  # then it is not about shapes
            raise
        raise RuntimeError(misfit(x.shape, weight.shape)) from None
    if bias is None:
        return y
    if bias.dtype != y.dtype:
        raise RuntimeError(f"expected bias to be {y.dtype} like x, got {bias.dtype}; convert it with .to(dtype)")
    try:
        y += bias
    except ValueError:
        raise RuntimeError(f"expected bias of size ({weight.shape[0]},), got {bias.shape}") from None
    return y


def misfit(x: tuple[int, ...], weight: tuple[int, ...]) -> str:
    """Why an input of shape ``x`` does not go through ``linear``."""
    features = weight[1]
    sizes = f"{'x'.join(map(str, x[-2:]))} and {features}x{weight[0]}"
    remedy = "give the layer as many in_features"
    if math.prod(x[1:]) == features:
        remedy = "flatten it first, with nn.Flatten() or x.flatten(1)"
    elif features in x[-2:-1]:
        remedy = "transpose it with .mT"
    return (
        f"mat1 and mat2 shapes cannot be multiplied ({sizes}): expected a last dimension of {features}, the "
        f"in_features of weight {weight}, got {x}; {remedy}"
    )


linear.vjp(
    x=lambda g, weight: g @ weight if len(g.shape) == 2 else matmul.function(g, weight),
    weight=lambda g, x: swap(g) @ x if len(g.shape) == 2 else contract.function(g, x),
    bias=lambda g: g,
)


@linear.shape
def _linear_shape(x: Any, weight: Any, bias: Any) -> Any:
    fits = (
        weight.ndim == 2 and x.shape[-1:] == weight.shape[1:] and (bias is None or bias.shape in ((), weight.shape[:1]))
    )
    return (*x.shape[:-1], weight.shape[0]) if fits and x.floating else None


@linear.chunk
def _linear_rows(call: Any) -> Any:
    return None if call.axes[0] == call.inputs[0].ndim - 1 else call.kept()


@linear.rewrite
def _linear_in_steps(graph: Any, equation: Any) -> Any:
    """x w^T + b."""
    x, weight, *bias = equation.inputs
    product = graph.emit(matmul, x, graph.emit(permute, weight, dims=(1, 0)))
    return graph.emit(add, product, bias[0]) if bias and bias[0] is not None else product


@linear.batched
def _linear_batched(call: Any) -> Any:
    x, weight = call.args[:2]
    bias = call.args[2] if len(call.args) > 2 else None
    if not any(call.inside[1:]):
        return linear(x, weight, bias)
    if call.ndim(1) != 2:
        raise RuntimeError(f"expected weight to be a matrix (out_features, in_features), got {call.shape(1)}")
    lead, features = call.shape(0)[:-1], call.shape(0)[-1:]
    if call.inside[1]:
        rows = (math.prod(lead), *features)
        x = reshape(x, shape=(call.size, *rows) if call.inside[0] else rows)
        y = matmul(x, swap(weight))
        y = reshape(y, shape=(call.size, *lead, y.shape[-1]))
    else:
        y = linear(x, weight)
    return y if bias is None else y + call.aligned(2, len(lead) + 1)


@op("bilinear", "holomorphic")
def cross(xp: Any, x: Any, y: Any, *, dim: int) -> Any:
    """Cross product along a dimension of size 3. (..., 3, ...), (..., 3, ...) -> (..., 3, ...)"""
    if x.dtype.kind == "b":
        raise NotImplementedError(_NOT_FOR_BOOL)
    if x.dtype != y.dtype:
        raise RuntimeError(_unlike(x, y))
    if not x.shape[dim] == y.shape[dim] == 3:
        raise RuntimeError(f"expected a size of 3 along dimension {dim}, got {x.shape[dim]} and {y.shape[dim]}")
    at = [((slice(None),) * (dim % x.ndim) + (i,)) for i in range(3)]
    (x0, x1, x2), (y0, y1, y2) = [[a[k] for k in at] for a in (x, y)]
    out = xp.empty(broadcast_shape((x.shape, y.shape)), dtype=x.dtype)
    out[at[0]], out[at[1]], out[at[2]] = x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0
    return out


cross.label = "LinalgCrossBackward0"
cross.vjp(x=lambda g, y, *, dim: cross(y, g, dim=dim), y=lambda g, x, *, dim: cross(g, x, dim=dim))


@cross.batched
def _cross_batched(call: Any) -> Any:
    ndim = call.widest()
    return call.again(call.front(0, ndim), call.front(1, ndim), dim=behind(call.params["dim"]))


matmul.label = contract.label = "MmBackward0"  # as PyTorch names their nodes
linear.label = "AddmmBackward0"
matmul.form, linear.form = forms.matmul_form, forms.linear_form
matmul.autocast = linear.autocast = "lower"
