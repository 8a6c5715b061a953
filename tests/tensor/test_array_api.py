"""The array API standard 2024.12: names, signatures, and values as NumPy 2 has them."""

from __future__ import annotations

import inspect
import itertools
import math
from operator import attrgetter

import numpy as np
import pytest

import leafgrad
from leafgrad.tensor import array_api as xp

TESTS = "tensor.array_* tensor.namespace"

FUNCTIONS = """
    arange(start, /, stop=None, step=1, *, dtype=None, device=None)
    asarray(obj, /, *, dtype=None, device=None, copy=None)
    empty(shape, *, dtype=None, device=None)
    empty_like(x, /, *, dtype=None, device=None)
    eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
    from_dlpack(x, /, *, device=None, copy=None)
    full(shape, fill_value, *, dtype=None, device=None)
    full_like(x, /, fill_value, *, dtype=None, device=None)
    linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
    meshgrid(*arrays, indexing='xy')
    ones(shape, *, dtype=None, device=None)
    ones_like(x, /, *, dtype=None, device=None)
    tril(x, /, *, k=0)
    triu(x, /, *, k=0)
    zeros(shape, *, dtype=None, device=None)
    zeros_like(x, /, *, dtype=None, device=None)
    astype(x, dtype, /, *, copy=True, device=None)
    broadcast_arrays(*arrays)
    broadcast_shapes(*shapes)
    isin(x1, x2, /, *, invert=False)
    broadcast_to(x, /, shape)
    can_cast(from_, to, /)
    finfo(type, /)
    iinfo(type, /)
    isdtype(dtype, kind)
    result_type(*arrays_and_dtypes)
    clip(x, /, min=None, max=None)
    take(x, indices, /, *, axis=None)
    take_along_axis(x, indices, /, *, axis=-1)
    matmul(x1, x2, /)
    matrix_transpose(x, /)
    tensordot(x1, x2, /, *, axes=2)
    vecdot(x1, x2, /, *, axis=-1)
    concat(arrays, /, *, axis=0)
    expand_dims(x, /, *, axis=0)
    flip(x, /, *, axis=None)
    moveaxis(x, source, destination, /)
    permute_dims(x, /, axes)
    repeat(x, repeats, /, *, axis=None)
    reshape(x, /, shape, *, copy=None)
    roll(x, /, shift, *, axis=None)
    squeeze(x, /, axis)
    stack(arrays, /, *, axis=0)
    tile(x, repetitions, /)
    unstack(x, /, *, axis=0)
    argmax(x, /, *, axis=None, keepdims=False)
    argmin(x, /, *, axis=None, keepdims=False)
    count_nonzero(x, /, *, axis=None, keepdims=False)
    nonzero(x, /)
    searchsorted(x1, x2, /, *, side='left', sorter=None)
    where(condition, x1, x2, /)
    unique_all(x, /)
    unique_counts(x, /)
    unique_inverse(x, /)
    unique_values(x, /)
    argsort(x, /, *, axis=-1, descending=False, stable=True)
    sort(x, /, *, axis=-1, descending=False, stable=True)
    cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
    cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
    max(x, /, *, axis=None, keepdims=False)
    mean(x, /, *, axis=None, keepdims=False)
    min(x, /, *, axis=None, keepdims=False)
    prod(x, /, *, axis=None, dtype=None, keepdims=False)
    std(x, /, *, axis=None, correction=0.0, keepdims=False)
    sum(x, /, *, axis=None, dtype=None, keepdims=False)
    var(x, /, *, axis=None, correction=0.0, keepdims=False)
    all(x, /, *, axis=None, keepdims=False)
    any(x, /, *, axis=None, keepdims=False)
    diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
    __array_namespace_info__()
    linalg.cholesky(x, /, *, upper=False)
    linalg.cross(x1, x2, /, *, axis=-1)
    linalg.det(x, /)
    linalg.diagonal(x, /, *, offset=0)
    linalg.eig(x, /)
    linalg.eigh(x, /)
    linalg.eigvals(x, /)
    linalg.eigvalsh(x, /)
    linalg.inv(x, /)
    linalg.matmul(x1, x2, /)
    linalg.matrix_norm(x, /, *, keepdims=False, ord='fro')
    linalg.matrix_power(x, n, /)
    linalg.matrix_rank(x, /, *, rtol=None)
    linalg.matrix_transpose(x, /)
    linalg.outer(x1, x2, /)
    linalg.pinv(x, /, *, rtol=None)
    linalg.qr(x, /, *, mode='reduced')
    linalg.slogdet(x, /)
    linalg.solve(x1, x2, /)
    linalg.svd(x, /, *, full_matrices=True)
    linalg.svdvals(x, /)
    linalg.tensordot(x1, x2, /, *, axes=2)
    linalg.trace(x, /, *, offset=0, dtype=None)
    linalg.vecdot(x1, x2, /, *, axis=-1)
    linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
"""
ONE = (
    "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite "
    "isinf isnan log log1p log2 log10 logical_not negative positive real reciprocal round sign signbit "
    "sin sinh square sqrt tan tanh trunc "
).split()
TWO = (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide "
    "equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or "
    "logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract "
).split()
METHODS = (
    "__abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ __eq__ "
    "__float__ __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__ __lshift__ "
    "__lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __rshift__ __setitem__ "
    "__sub__ __truediv__ __xor__ to_device __iadd__ __radd__ __isub__ __rsub__ __imul__ __rmul__ "
    "__itruediv__ __rtruediv__ __ifloordiv__ __rfloordiv__ __ipow__ __rpow__ __imod__ __rmod__ "
    "__rmatmul__ __iand__ __rand__ __ior__ __ror__ __ixor__ __rxor__ __ilshift__ __rlshift__ __irshift__ "
    "__rrshift__ dtype device mT ndim shape size T "
).split()
SIGNATURES = [
    *(line.strip() for line in FUNCTIONS.strip().splitlines()),
    *(f"{name}(x, /)" for name in ONE),
    *(f"{name}(x1, x2, /)" for name in TWO),
]
FLOATS, INTS = ["float32", "float64"], ["int8", "int16", "int32", "int64", "uint8"]
NUMERIC = FLOATS + INTS
COMPLEX = ["complex64", "complex128"]

P = inspect.Parameter
POSITIONAL = (P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD)


@pytest.mark.parametrize("signature", SIGNATURES)
def test_signatures(signature):
    name, _, arguments = signature.partition("(")
    defined = {}
    exec(f"def f({arguments}: ...", defined)
    wanted = inspect.signature(defined["f"]).parameters.values()
    found = inspect.signature(attrgetter(name)(xp)).parameters
    places = [p for p in found.values() if p.kind in POSITIONAL]
    variadic = any(p.kind is P.VAR_POSITIONAL for p in found.values())
    for i, p in enumerate(p for p in wanted if p.kind in POSITIONAL):
        assert variadic or i < len(places)
        if p.kind is P.POSITIONAL_OR_KEYWORD:
            assert places[i].name == p.name
        if p.default is not P.empty and not variadic:
            assert places[i].default == p.default
    for p in (p for p in wanted if p.kind is P.KEYWORD_ONLY):
        assert p.default is P.empty or found[p.name].default == p.default


def test_attributes_and_methods():
    constants = "e inf nan newaxis pi bool int8 int16 int32 int64 uint8 float32 float64 complex64 complex128"
    assert all(hasattr(xp, name) for name in [*constants.split(), "__array_api_version__"])
    assert [name for name in METHODS if not hasattr(leafgrad.Tensor, name)] == []
    assert complex(leafgrad.tensor(2.0)) == 2 + 0j
    assert leafgrad.ones(2).to_device("cpu").device == leafgrad.device("cpu")
    with pytest.raises(ValueError, match="stream: expected None, got 1"):
        leafgrad.ones(2).to_device("cpu", stream=1)


def test_what_is_said_of_complex_numbers():
    assert xp.isdtype(xp.complex64, ("complex floating", "bool"))
    assert xp.isdtype(xp.complex128, "numeric")
    assert not xp.isdtype(xp.complex64, "real floating")
    assert xp.finfo(xp.complex64).eps == xp.finfo(xp.float32).eps
    assert xp.result_type(xp.float32, 1j) is xp.complex64
    assert xp.can_cast(xp.float64, xp.complex128)
    assert xp.can_cast(xp.float64, xp.complex64) is False
    assert xp.__array_namespace_info__().dtypes(kind="complex floating") == {
        name: getattr(xp, name) for name in ("complex64", "complex128")
    }


# ---- values ---------------------------------------------------------------------------------------------------------

SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, 1.5, -0.5, 3.0, 1e30]
UINT8 = [f"{name} uint8" for name in ("sum", "prod", "cumulative_sum", "cumulative_prod")]  # NumPy's are uint64


def values(dtype):
    if dtype == "bool":
        return np.array([True, False, True])
    if dtype in COMPLEX:
        return np.array([0, 1, -1, 2.5j, 1 - 2j, -0.5 + 0.5j, 30 - 4j], dtype)
    if dtype.startswith("float"):
        return np.array(SPECIAL, dtype)
    return np.array([0, 1, 2, 3, 100, 200, 255] if dtype == "uint8" else [0, 1, -1, 2, -3, 5, 7, 100], dtype)


def wave(*shape, dtype="float64"):
    return (np.sin(np.arange(math.prod(shape)) * 1.7) * 4).reshape(shape).astype(dtype)


def to(array):
    return xp.asarray(array.copy())


def agree(ours, theirs):
    """Same dtypes, shapes, numbers, and signs of zeros."""
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            agree(a, b)
        return
    theirs = np.asarray(theirs)
    assert (ours.dtype.name, tuple(ours.shape)) == (theirs.dtype.name, theirs.shape)
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-6)
    if theirs.dtype.kind == "f":
        assert np.array_equal(np.signbit(ours.numpy()) & (theirs == 0), np.signbit(theirs) & (theirs == 0))


FLOAT_ONLY = (
    "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal signbit sin sinh sqrt tan "
    "tanh atan2 copysign divide hypot logaddexp nextafter"
).split()


def kinds(name):
    """The dtypes that a function takes."""
    if name in FLOAT_ONLY:
        return FLOATS if name in REAL else FLOATS + COMPLEX
    if name.startswith("logical_"):
        return ["bool"]
    if "shift" in name:
        return INTS
    if name.startswith("bitwise"):
        return [*INTS, "bool"]
    return COMPLEX if name == "imag" else NUMERIC if name in REAL else NUMERIC + COMPLEX


REAL = (
    "atan2 ceil copysign floor floor_divide greater greater_equal hypot less less_equal logaddexp maximum minimum "
    "nextafter remainder round signbit trunc"
).split()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_array(name):
    for dtype in kinds(name):
        x = values(dtype)
        agree(getattr(xp, name)(to(x)), getattr(np, name)(x))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_arrays(name):
    for first, second in itertools.product(kinds(name), repeat=2):
        if (first in INTS) != (second in INTS):
            continue
        x, y = values(first)[:, None], values(second)
        if name in ("floor_divide", "remainder") and second in INTS:
            y = y[y != 0]
        if name == "pow" and second in INTS:
            y = y[(y >= 0) & (y < 4)]
        if "shift" in name:
            y = y[(y >= 0) & (y < 7)]
        agree(getattr(xp, name)(to(x), to(y)), getattr(np, name)(x, y))
        if first != "bool":
            agree(getattr(xp, name)(to(x), 2), getattr(np, name)(x, 2))


SHAPES = [(), (4,), (2, 3), (2, 3, 4), (0,), (2, 0)]
AXES = [None, 0, -1, (0, 1), (), (0, -1)]


def axes_of(shape, name):
    for axis in AXES:
        several = isinstance(axis, tuple)
        if several and name.startswith("arg"):
            continue
        if (axis is not None and axis != () and not shape) or (several and len(axis) == 2 and len(shape) < 2):
            continue
        if 0 in shape and name in ("max", "min", "argmax", "argmin", "mean", "var", "std"):
            continue
        if not (several and len(axis) == 2 and axis[0] % len(shape) == axis[1] % len(shape)):
            yield axis


@pytest.mark.parametrize("name", "sum prod max min mean std var all any argmax argmin count_nonzero".split())
def test_reductions(name):
    takes_bool = name in ("all", "any", "count_nonzero")
    given = FLOATS if name in ("mean", "std", "var") else [*NUMERIC, "bool"] if takes_bool else NUMERIC
    for dtype in given + COMPLEX:
        if f"{name} {dtype}" in UINT8 or (
            dtype in COMPLEX and name in ("max", "min", "argmax", "argmin", "std", "var")
        ):
            continue
        for shape in SHAPES:
            x = np.abs(wave(*shape, dtype="float64")).astype(dtype) * np.array(1 + 1j if dtype in COMPLEX else 1, dtype)
            for axis, keepdims in itertools.product(axes_of(shape, name), (False, True)):
                ours = getattr(xp, name)(to(x), axis=axis, keepdims=keepdims)
                agree(ours, getattr(np, name)(x, axis=axis, keepdims=keepdims))


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_dtypes_of_sums(name):
    for source, target in itertools.product(NUMERIC, repeat=2):
        if source in FLOATS and target in INTS:
            continue
        x = np.array([1, 2, 3, 120], source)
        agree(getattr(xp, name)(to(x), dtype=getattr(xp, target)), getattr(np, name)(x, dtype=target))


def test_sums_in_a_dtype_as_pytorch(t):
    for name in ("sum", "prod"):
        for dtype in (t.int8, t.int16, t.int32, t.uint8, t.bool, t.float16):
            out = getattr(t, name)(t.tensor([3, 100, 60]), dtype=dtype)
            assert out.dtype is dtype
            assert t.cumsum(t.tensor([3, 100, 60]), 0, dtype=t.int8).tolist() == [3, 103, -93]
    assert t.sum(t.tensor([100, 100], dtype=t.uint8), dtype=t.uint8).item() == 200
    assert t.prod(t.tensor([100, 3]), dtype=t.int8).item() == 44


INDICES = xp.asarray([1, -1, 0])
CALLS = {
    "sort": (lambda x: xp.sort(x), lambda x: np.sort(x)),
    "sort descending": (lambda x: xp.sort(x, axis=0, descending=True), lambda x: np.flip(np.sort(x, axis=0), 0)),
    "argsort": (lambda x: xp.argsort(x), lambda x: np.argsort(x, stable=True)),
    "unique_all": (lambda x: xp.unique_all(x), lambda x: np.unique_all(x)),
    "unique_counts": (lambda x: xp.unique_counts(x), lambda x: np.unique_counts(x)),
    "unique_inverse": (lambda x: xp.unique_inverse(x), lambda x: np.unique_inverse(x)),
    "roll": (lambda x: xp.roll(x, (1, 2), axis=(0, 1)), lambda x: np.roll(x, (1, 2), axis=(0, 1))),
    "roll flat": (lambda x: xp.roll(x, 5), lambda x: np.roll(x, 5)),
    "tile": (lambda x: xp.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3))),
    "tile short": (lambda x: xp.tile(x, (2,)), lambda x: np.tile(x, (2,))),
    "repeat": (lambda x: xp.repeat(x, 2), lambda x: np.repeat(x, 2)),
    "repeat axis": (lambda x: xp.repeat(x, 2, axis=1), lambda x: np.repeat(x, 2, axis=1)),
    "unstack": (lambda x: xp.unstack(x, axis=1), lambda x: np.unstack(x, axis=1)),
    "nonzero": (lambda x: xp.nonzero(x), lambda x: np.nonzero(x)),
    "take": (lambda x: xp.take(x, INDICES, axis=1), lambda x: np.take(x, [1, -1, 0], axis=1)),
    "take_along_axis": (
        lambda x: xp.take_along_axis(x, xp.asarray([[0, -1]])),
        lambda x: np.take_along_axis(x, np.array([[0, -1]] * 3), axis=-1),
    ),
    "concat flat": (lambda x: xp.concat([x, x], axis=None), lambda x: np.concat([x, x], axis=None)),
    "stack": (lambda x: xp.stack([x, x], axis=-1), lambda x: np.stack([x, x], axis=-1)),
    "expand_dims": (lambda x: xp.expand_dims(x, axis=-1), lambda x: np.expand_dims(x, -1)),
    "moveaxis": (lambda x: xp.moveaxis(x, 0, 1), lambda x: np.moveaxis(x, 0, 1)),
    "flip": (lambda x: xp.flip(x), lambda x: np.flip(x)),
    "tril": (lambda x: xp.tril(x, k=-1), lambda x: np.tril(x, -1)),
    "triu": (lambda x: xp.triu(x, k=1), lambda x: np.triu(x, 1)),
    "permute_dims": (lambda x: xp.permute_dims(x, axes=(1, 0)), lambda x: np.permute_dims(x, (1, 0))),
    "broadcast_to": (lambda x: xp.broadcast_to(x, shape=(2, 3, 4)), lambda x: np.broadcast_to(x, (2, 3, 4))),
    "reshape": (lambda x: xp.reshape(x, (2, -1), copy=True), lambda x: np.reshape(x, (2, -1))),
    "diff": (lambda x: xp.diff(x, n=2, axis=0, prepend=x[:1]), lambda x: np.diff(x, n=2, axis=0, prepend=x[:1])),
    "clip": (lambda x: xp.clip(x, 1, 2), lambda x: np.clip(x, 1, 2)),
    "clip nothing": (lambda x: xp.clip(x), lambda x: np.clip(x, None, None)),
    "clip arrays": (lambda x: xp.clip(x[0], x[:1].T, None), lambda x: np.clip(x[0], x[:1].T, None)),
    "searchsorted": (
        lambda x: xp.searchsorted(x[0], x, side="right", sorter=xp.argsort(x[0])),
        lambda x: np.searchsorted(x[0], x, side="right", sorter=np.argsort(x[0])),
    ),
    "vecdot": (lambda x: xp.vecdot(x, x, axis=0), lambda x: np.vecdot(x, x, axis=0)),
    "tensordot": (lambda x: xp.tensordot(x, x, axes=((0,), (0,))), lambda x: np.tensordot(x, x, axes=((0,), (0,)))),
    "matmul": (lambda x: xp.matmul(x, x.T), lambda x: np.matmul(x, x.T)),
    "matrix_transpose": (lambda x: xp.matrix_transpose(x), lambda x: np.matrix_transpose(x)),
    "where": (lambda x: xp.where(x > 0, x, 1), lambda x: np.where(x > 0, x, x.dtype.type(1))),
    "meshgrid": (lambda x: xp.meshgrid(x[0], x[1, :2]), lambda x: np.meshgrid(x[0], x[1, :2])),
    "trace": (lambda x: xp.linalg.trace(x, offset=1, dtype=xp.float64), lambda x: np.trace(x, 1, dtype="float64")),
}


ORDERED = (
    "sort", "sort descending", "argsort", "unique_all", "unique_counts", "unique_inverse", "clip", "clip nothing",
    "clip arrays", "searchsorted", "where", "trace",
)  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", NUMERIC + COMPLEX)
def test_arrangement_order_and_choice(name, dtype):
    x = np.abs(wave(3, 4)).astype(dtype) if dtype == "uint8" else wave(3, 4, dtype=dtype)
    if dtype in COMPLEX:
        if name in ORDERED:
            pytest.skip("complex numbers have no order")
        x = x * np.array(1 + 0.5j, dtype)
    ours, theirs = CALLS[name]
    agree(ours(to(x)), theirs(x))


@pytest.mark.parametrize("arguments", [(5,), (1, 5), (5, 1, -1), (0, 1, 0.25), (1, 1), (5, 0, -2), (5, 1), (0, 3, -1)])
def test_arange(arguments):
    agree(xp.arange(*arguments, dtype=xp.float64), np.arange(*arguments, dtype="float64"))


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("arguments", [(0, 1, 5), (0, 1, 1), (0, 1, 0), (3, -2, 4)])
def test_linspace(arguments, endpoint):
    ours = xp.linspace(*arguments, dtype=xp.float64, endpoint=endpoint)
    agree(ours, np.linspace(*arguments, endpoint=endpoint))


@pytest.mark.parametrize("k", [-9, -1, 0, 2])
@pytest.mark.parametrize("sizes", [(3,), (2, 4), (4, 2), (0,), (3, 0)])
def test_eye(sizes, k):
    agree(xp.eye(*sizes, k=k, dtype=xp.int32), np.eye(*sizes, k=k, dtype="int32"))


LINALG = [
    ("cholesky", {}), ("cholesky", {"upper": True}), ("det", {}), ("diagonal", {"offset": 1}), ("eigvalsh", {}),
    ("inv", {}), ("matrix_norm", {}), ("matrix_norm", {"ord": "nuc"}), ("matrix_norm", {"ord": 1, "keepdims": True}),
    ("matrix_norm", {"ord": -2}), ("matrix_norm", {"ord": math.inf}), ("matrix_rank", {}),
    ("matrix_rank", {"rtol": 0.1}), ("pinv", {}),
    ("pinv", {"rtol": 0.1}), ("svdvals", {}), ("trace", {}), ("vector_norm", {}),
    ("qr", {}), ("qr", {"mode": "complete"}), ("slogdet", {}), ("vector_norm", {"axis": 0, "ord": 3}),
    ("vector_norm", {"ord": 0}),
    ("vector_norm", {"axis": (0, 1), "ord": math.inf, "keepdims": True}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), LINALG)
@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_linalg(name, options, dtype):
    a = wave(2, 3, 3, dtype=dtype) / 4
    if dtype in COMPLEX:
        a = a + np.array(1j, dtype) * wave(2, 3, 4, dtype=dtype)[..., 1:] / 5
    a = a @ a.swapaxes(1, 2).conj() + np.eye(3, dtype=dtype)
    theirs = getattr(np.linalg, name)(a, **options)
    agree(getattr(xp.linalg, name)(to(a), **options), tuple(theirs) if isinstance(theirs, tuple) else theirs)


def test_more_linalg():
    a = wave(2, 3, 3) + 3 * np.eye(3)
    x = to(a)
    agree(xp.linalg.solve(x, x[:, :, :2]), np.linalg.solve(a, a[:, :, :2]))
    agree(xp.linalg.solve(x[0], x[0, 0]), np.linalg.solve(a[0], a[0, 0]))
    agree(xp.linalg.cross(x, x[:, [1, 2, 0]]), np.linalg.cross(a, a[:, [1, 2, 0]]))
    agree(xp.linalg.outer(x[0, 0], x[0, 1]), np.linalg.outer(a[0, 0], a[0, 1]))
    for n in (-2, 0, 1, 3):
        agree(xp.linalg.matrix_power(x, n), np.linalg.matrix_power(a, n))
    for full in (True, False):
        u, s, vh = xp.linalg.svd(x[:, :, :2], full_matrices=full)
        agree((u[:, :, :2] * s[:, None, :]) @ vh, a[:, :, :2])
    found = xp.linalg.eigh(x + x.mT)
    agree((found.eigenvectors * found.eigenvalues[:, None, :]) @ found.eigenvectors.mT, a + a.swapaxes(1, 2))
    with pytest.raises(ValueError, match="vecdot: axis: expected the same size in both, got 3 and 1"):
        xp.vecdot(x, x[:, :, :1])
