"""What a backend's namespace computes with, its devices and generators, and leafgrad's own ops on them."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

from leafgrad import backends
from leafgrad.ops.convert import nearest_bfloat16
from leafgrad.plugins import builtin
from leafgrad.testing.backends.expect import equal, expect, raises
from leafgrad.testing.conformance.elsewhere import run_on
from leafgrad.testing.conformance.report import Fault, Skip
from leafgrad.testing.conformance.samples import drawn
from leafgrad.testing.conformance.subject import Sample, Samples, Subject, difference

NAMESPACE = (
    "abs arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere array asarray "
    "ascontiguousarray atleast_2d broadcast_to ceil concatenate copysign cos cosh cross cumprod cumsum divide einsum "
    "empty empty_like exp exp2 expand_dims expm1 eye flatnonzero flip floor fmax fmin fmod full hypot iinfo isclose "
    "isfinite isinf isnan log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul maximum "
    "minimum moveaxis multiply nan_to_num nextafter nonzero ones ones_like roll round searchsorted signbit sin sinh "
    "sqrt stack subtract take take_along_axis tan tanh tri tril triu trunc unique unravel_index where zeros zeros_like "
    "add.at maximum.at minimum.at linalg.cholesky linalg.det linalg.eigh linalg.inv linalg.qr linalg.slogdet "
    "linalg.solve linalg.svd"
).split()
"""Functions of NumPy that the forwards of leafgrad's ops call."""


def namespace(backend: Any) -> None:
    """``xp`` has the functions of NumPy that ops call; those that make arrays make them of the backend."""
    missing = []
    for name in NAMESPACE:
        try:
            operator.attrgetter(name)(backend.xp)
        except AttributeError:
            missing.append(name)
    expect(not missing, "backend.xp", "the functions of NumPy that ops call", f"none of {', '.join(missing)}")
    xp = backend.xp
    with backend.device_scope(0):
        equal(backend, "xp.zeros((2, 3), dtype='float32')", xp.zeros((2, 3), dtype="float32"), np.zeros((2, 3), "f4"))
        equal(backend, "xp.arange(3, dtype='int64')", xp.arange(3, dtype="int64"), np.arange(3))
        equal(
            backend, "xp.full((2,), 1.5, dtype='float16')", xp.full((2,), 1.5, dtype="float16"), np.full(2, 1.5, "f2")
        )
        x = xp.ones((2,), dtype="float32")
        equal(backend, "xp.where(x > 0, x, 0.0)", xp.where(x > 0, x, 0.0), np.ones(2, "f4"))
        equal(backend, "xp.concatenate((x, x))", xp.concatenate((x, x)), np.ones(4, "f4"))
        xp.add.at(x, backend.asarray([0, 0]), 1.0)
        equal(backend, "x after xp.add.at(x, [0, 0], 1.0)", x, np.asarray([3, 1], "f4"))
    hollow = backend.hollow((2, 3), "float32")
    expect((hollow.shape, hollow.dtype.name) == ((2, 3), "float32"), "hollow((2, 3), 'float32')", "that", hollow.shape)


def devices(backend: Any) -> None:
    """``device_scope`` decides where new arrays are; a device that is not there is an error."""
    count = backend.device_count()
    for index in range(count):
        with backend.device_scope(index):
            made = backend.xp.ones((2,), dtype="float32")
            backend.synchronize(index)
        where = backend.device_index(made)
        expect(where == index, f"xp.ones in device_scope({index})", f"an array on device {index}", where)
    if count > 1:
        raises(f"from_host(array, {count})", RuntimeError, lambda: backend.from_host(np.zeros(1), count))


def generators(backend: Any) -> None:
    """Generators give equal numbers for equal seeds and states, in the precision and range asked for."""
    for index in range(backend.device_count()):
        one, two = backend.generator(index), backend.generator(index)
        expect(one.initial_seed() == one.DEFAULT_SEED, "seed of a new generator", one.DEFAULT_SEED, one.initial_seed())
        one.manual_seed(-1)
        two.set_state(one.get_state())
        expect(one.initial_seed() == 2**64 - 1, "initial_seed() after manual_seed(-1)", 2**64 - 1, one.initial_seed())
        for what in ("uniform", "normal"):
            for dtype in ("float16", "float32", "float64"):
                first, second = (getattr(g, what)((50, 2), dtype) for g in (one, two))
                expect(first.dtype.name == dtype, f"{what} of {dtype}", dtype, first.dtype.name)
                equal(backend, f"{what} of equal states", first, backend.to_host(second))
                expect(backend.device_index(first) == index, f"{what}: device", index, backend.device_index(first))
        drawn = backend.to_host(one.integers(-2, 3, (200,), "int32"))
        expect(set(drawn.tolist()) == {-2, -1, 0, 1, 2}, "integers(-2, 3)", "all of -2, ..., 2", set(drawn.tolist()))
        order = sorted(backend.to_host(one.permutation(9)).tolist())
        expect(order == list(range(9)), "permutation(9)", "0, ..., 8", order)
        part = float(backend.to_host(one.bernoulli(0.25, (4000,), "float32")).mean())
        expect(0.2 < part < 0.3, "mean of bernoulli(0.25)", "about 0.25", part)
        state = one.get_state()
        kind = (type(state), getattr(state, "ndim", None), str(getattr(state, "dtype", None)))
        expect(kind == (np.ndarray, 1, "uint8"), "get_state()", "a one-dimensional uint8 NumPy array", kind)
        raises("integers(3, 3)", RuntimeError, partial(one.integers, 3, 3, (2,), "int64"))
        raises("manual_seed(2**64)", RuntimeError, partial(one.manual_seed, 2**64))
        raises("set_state of another kind", RuntimeError, partial(one.set_state, np.zeros(3, "uint8")))


def ops(backend: Any) -> None:
    """leafgrad's elementwise ops and reductions give on the backend what they give on the CPU, gradients too."""
    if not any(registered is backend for registered in backends.BACKENDS.values()):
        raise Skip("the backend is not the one that a plugin has registered; pass that one")
    wrong: list[str] = []
    for op in builtin.leafgrad_ops():
        if op is nearest_bfloat16 and not backend.has_bfloat16:
            continue
        try:
            samples = drawn(op)
        except ValueError:
            continue  # what it takes cannot be told
        for dtype in ("float64", "float32"):
            subject = Subject(op, Samples([s.of(dtype) for s in samples]), None, 1, "cpu", (), 1e-6)
            wrong += filter(None, (apart(subject, s, f"{backend.device_type}:0") for s in subject.samples))
    if wrong:
        raise Fault(f"{len(wrong)} calls differ from the CPU's: " + "; ".join(wrong[:5]))


def apart(subject: Subject, sample: Sample, device: str) -> str:
    """What a call of an op gives differently on a device; "" if nothing, or if it does not run on the CPU either."""
    try:
        here = run_on(subject, sample, "cpu")
    except (TypeError, RuntimeError):
        return ""
    try:
        there = run_on(subject, sample, device)
    except Exception as error:
        return f"{subject.call(sample)}: {type(error).__name__}: {error}"
    for got, want in [pair for k in (0, 1) for pair in zip(there[k], here[k], strict=True)]:
        found = difference(got, want, 1e-9 if want.dtype == "float64" else 1e-4)
        if found is not None:
            return f"{subject.call(sample)}: expected {found[0]}, got {found[1]}"
    return ""
