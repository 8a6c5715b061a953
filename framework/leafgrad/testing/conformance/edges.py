"""Elementwise ops at the ends of what a dtype holds, and in arrays of many sizes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from leafgrad.autograd import grad
from leafgrad.compile import trace
from leafgrad.compile.ir import edges as ends
from leafgrad.compile.ir.edges import is_float
from leafgrad.compile.passes import optimize
from leafgrad.compile.run import executor as executors
from leafgrad.errors import CompileError
from leafgrad.ops.op import Op
from leafgrad.plugins.strangers import FILES
from leafgrad.testing.conformance.programs import OF, declines, given_to, names_of, together
from leafgrad.testing.conformance.report import Skip
from leafgrad.testing.conformance.subject import Sample, Subject, host, tensor

SIZES: tuple[tuple[int, ...], ...] = ((1,), (3,), (4, 4, 4), (65,), (1000,))
CASES = 6  # combinations of parameters


def edges(subject: Subject) -> None:
    """Every executor gives what the forward does for nan, infinities, zeros, subnormals, overflow and cancellation."""
    op = subject.op
    if not isinstance(op, Op) or not (op.c or op.ufunc or {*op.lowering} - {*FILES} or op.rewriting):
        raise Skip("executors run its forward itself")  # which may take for ever at 1e10, as a sum of so many terms
    samples = cases(subject)
    if not samples:
        raise Skip("no sample has floating-point arrays")
    with np.errstate(all="ignore"):
        run_samples(subject, samples)


def run_samples(subject: Subject, samples: list[Sample]) -> None:
    """Run all samples in one program, by each executor."""
    given = [tensor(s.args[i], "cpu") for s in samples for i in s.arrays]
    graph = optimize(trace(together(subject, samples), *given))
    arrays = given_to(graph, given)
    for name in names_of(subject):
        try:
            program = executors.load(name).compile(graph)
        except CompileError as error:
            declines(subject, name, error)
            continue
        if subject.op.c is not None and name == "native" and type(program).__module__.startswith("leafgrad."):
            subject.untried.append(f"c={subject.op.c!r}: executor {name!r} does without a compiler")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            results = iter(program(arrays))
        for warning in said:  # an executor that compares by itself tells what differs; NumPy tells of nan and inf
            if issubclass(warning.category, RuntimeWarning) and "encountered in" not in str(warning.message):
                where, remedy = f"executor {name!r}", "mend the one of both that is wrong there"
                raise subject.fault(samples[0], "the same in both", str(warning.message), remedy, where, OF)
        for sample in samples:
            for r in [next(results) for _ in subject.run(sample)][:1]:
                compare_edges(subject, sample, host(r), name)


def cases(subject: Subject) -> list[Sample]:
    """A sample of float32 and one of float64 for each choice of parameters."""
    chosen: dict[str, Sample] = {}
    for sample in subject.samples:
        if sample.floats:
            chosen.setdefault(repr(sample.params), sample)
    found = []
    for sample in list(chosen.values())[:CASES]:
        for dtype in ends.DTYPES if subject.dtypes else ():
            values = iter(ends.arguments(len(sample.floats), dtype))
            args = [next(values) if i in sample.floats else a for i, a in enumerate(sample.args)]
            size = max(args[i].size for i in sample.floats)
            filled = [
                np.resize(a, size) if isinstance(a, np.ndarray) and i not in sample.floats else a
                for i, a in enumerate(args)
            ]
            found.append(replace(sample, args=tuple(filled), made="at edge values"))
    return found


def compare_edges(subject: Subject, sample: Sample, ours: Any, name: str) -> None:
    """A Fault at the first element that is wrong."""
    op, params = subject.op, sample.params

    def compute(*arrays: Any) -> Any:
        rest = iter(arrays)
        return op.compute(
            tuple([next(rest) if isinstance(a, np.ndarray) else a for a in sample.args]), op.signature.bind(params)
        )

    args = [sample.args[i] for i in sample.arrays]
    with np.errstate(all="ignore"):
        want = compute(*args)
        at = ends.first_difference(compute, args, ours)
        if at is None:
            at = first_sign(compute, args, ours)
        if at is None:
            return
    values = ", ".join(f"{subject.argument(i)}={sample.args[i][at]!s}" for i in sample.arrays)
    remedy = "mend the one of both that is wrong there"
    raise subject.fault(sample, want[at], ours[at], remedy, f"executor {name!r}, {values}", OF)


def first_sign(compute: Callable[..., Any], args: list[Any], ours: Any) -> tuple[int, ...] | None:
    """The place of the first zero that has not the sign of the forward's, and of the numbers beside that.

    The sign of the same in higher precision is right, too: C that rounds a product and a sum once gives that.
    """
    want = compute(*args)
    if not is_float(want):
        return None
    zeros = [(a == 0) & is_float(a) for a in args]
    small = np.finfo(want.dtype).smallest_normal
    beside = compute(*[np.where(z, np.copysign(small, a), a).astype(a.dtype) for z, a in zip(zeros, args, strict=True)])
    told = np.logical_or.reduce(zeros) & (want == 0) & (beside != 0) & (np.signbit(beside) == np.signbit(want))
    told &= np.signbit(ends.in_higher_precision(compute, args, want)) == np.signbit(want)
    other = np.argwhere(told & (ours == 0) & (np.signbit(ours) != np.signbit(want)))
    return tuple(map(int, other[0])) if len(other) else None


def sizes(subject: Subject) -> None:
    """Arrays of 1, 3, 4x4x4, 65 and 1000 elements give for each, and its gradient, what it gives among few."""
    rng = np.random.default_rng(0)
    done = False
    for sample in subject.samples:
        shape = np.broadcast_shapes(*[sample.args[i].shape for i in sample.arrays])
        count = int(np.prod(shape))
        if not count:
            continue
        done = True
        flat = [np.broadcast_to(sample.args[i], shape).ravel() for i in sample.arrays]
        few = computed(subject, with_arrays(sample, [a[:, None] for a in flat], "its elements one in a row"))
        for size in SIZES:
            at = rng.integers(0, count, size)
            many = with_arrays(sample, [a[at] for a in flat], f"with {at.size} of its elements")
            for what, got, want in zip(
                ("result", *gradients(subject, sample)), computed(subject, many), few, strict=True
            ):
                low = {"float32": 1e-5, "float16": 1e-2}.get(want.dtype.name, 1e-9)
                remedy = "leave out the trait 'elementwise', or mend the forward and rules"
                subject.compare(many, got, want[:, 0][at], max(low, subject.rtol), remedy, what, "vjp,kernel")
    if not done:
        raise Skip("no sample has elements")


def with_arrays(sample: Sample, arrays: list[Any], made: str) -> Sample:
    """The sample with other arrays."""
    rest = iter(arrays)
    return replace(sample, args=tuple([next(rest) if isinstance(a, np.ndarray) else a for a in sample.args]), made=made)


def gradients(subject: Subject, sample: Sample) -> list[str]:
    """The names of the gradients that ``computed`` gives."""
    return [f"gradient for {subject.argument(i)!r}" for i in places(subject, sample)]


def places(subject: Subject, sample: Sample) -> list[int]:
    return subject.differentiable(sample) if subject.orders and "nondifferentiable" not in subject.traits else []


def computed(subject: Subject, sample: Sample) -> list[Any]:
    """The first result, and its gradients."""
    subject.samples.current = sample
    at = places(subject, sample)
    given = subject.tensors(sample, at, "cpu")
    (result, *_) = subject.run(sample, given)
    if not result.requires_grad:
        return [host(result.detach()), *(np.zeros_like(sample.args[i]) for i in at)]
    found = grad(result.sum(), [given[i] for i in at], materialize_grads=True)
    return [host(result.detach()), *map(host, found)]
