"""What an op computes: that it gives arrays, which values, and in which dtypes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from leafgrad.ops.op import Op
from leafgrad.tensor.tensor import Tensor
from leafgrad.testing.conformance.report import Skip
from leafgrad.testing.conformance.subject import TOLERANCES, Sample, Subject, close, host, outputs, raw_of


def forward(subject: Subject) -> None:
    """It runs on every sample and gives tensors, on the device of its arguments."""
    for sample in subject.samples:
        results = subject.run(sample)
        for r in results:
            if not isinstance(r, Tensor):
                raise subject.fault(sample, "a Tensor, or a tuple of them", type(r).__name__, "return arrays")
            if r.device != subject.device:
                raise subject.fault(
                    sample, f"a result on {subject.device}", f"one on {r.device}", "compute with xp on the arguments"
                )


def arrays(subject: Subject) -> None:
    """Raw arrays give what tensors do, each time."""
    if not isinstance(subject.op, Op):
        raise Skip("it is a function, not an op")
    for sample in subject.samples:
        want = [host(r) for r in subject.run(sample)]
        raw = subject.run(sample, [raw_of(x) for x in subject.tensors(sample)])
        for array, w in zip(raw, want, strict=True):
            if host(array).dtype == w.dtype:  # numbers beside arrays promote as the library does
                subject.compare(sample, host(array), w, 0.0, "let results depend on arguments alone", "on raw arrays")


def values(subject: Subject) -> None:
    """The values, shapes and dtypes of the reference, which computes in float64."""
    if subject.reference is None:
        raise Skip("no reference was given")
    for dtype, sample in subject.each_dtype():
        want = [np.asarray(w) for w in outputs(reference_of(subject, sample))]
        compare_values(subject, dtype, sample, want, "mend the forward, or the reference")


def precision(subject: Subject) -> None:
    """Results have the precision of the arguments (no silent float64), and the values of float64 up to rounding."""
    floating = [s for s in subject.samples if s.floats]
    if not floating or not subject.dtypes:
        raise Skip("no sample has floating-point arrays, or no dtype was asked for")
    for sample in floating:
        for dtype in subject.dtypes:
            low = sample.of(dtype)
            want = [host(r) for r in subject.run(low.of("float64"))]
            if dtype == "float64" and len(low.floats) == len(low.arrays) and any(map(narrowed, want)):
                remedy = "compute in the precision of the arguments"
                raise subject.fault(low, "the precision of float64", "numbers that were rounded to float32", remedy)
            compare_values(subject, dtype, low, want, "let the forward keep the dtype of its arguments")
    integers(subject, floating[0])


def integers(subject: Subject, sample: Sample) -> None:
    """A Fault where an elementwise op that takes integers gives float64, which only an array library does."""
    if "elementwise" not in subject.traits or len(sample.floats) != len(sample.arrays):
        return
    whole = replace(sample.mapped(sample.floats, lambda a: np.ones_like(a, "int64")), made="with integers of 1")
    try:
        found = [host(r).dtype.name for r in subject.run(whole)]
    except Exception:  # the op's own: it takes none
        return
    if "float64" in found:
        raise subject.fault(whole, "the default floating dtype", "float64", "declare the trait 'float'")


def narrowed(result: Any) -> bool:
    """Whether numbers of float64 have no more digits than float32, and more than whole or rounded ones would."""
    found = result[np.isfinite(result)] if result.dtype == "float64" else np.zeros(0)
    with np.errstate(all="ignore"):
        short, shorter = found.astype("float32"), np.frexp(found)[0] * 2**20 % 1
    return len(found) > 3 and bool(np.all(short == found) and np.count_nonzero(shorter) > len(found) / 2)


def reference_of(subject: Subject, sample: Sample) -> Any:
    """What the reference gives for arguments of float64."""
    assert subject.reference is not None
    with np.errstate(all="ignore"):
        return subject.reference(*sample.of("float64").args, **sample.params)


def compare_values(subject: Subject, dtype: str, sample: Sample, want: list[Any], remedy: str) -> None:
    """A Fault unless the op gives ``want``; where that is float64, in the dtype of the arguments."""
    got = subject.run(sample)
    if len(got) != len(want):
        raise subject.fault(sample, f"{len(want)} results", f"{len(got)}", remedy)
    for k, (r, w) in enumerate(zip(got, want, strict=True)):
        what = f"result {k}" if len(got) > 1 else ""
        kind = dtype if w.dtype == "float64" and sample.floats else w.dtype.name
        found = host(r)
        if found.dtype.name != kind:
            raise subject.fault(sample, f"dtype {kind}", found.dtype.name, remedy, what)
        if w.dtype.kind == "f" and found.dtype.kind == "f":
            with np.errstate(over="ignore"):
                w = w.astype(kind)  # what is beyond its range is infinite
        rtol = TOLERANCES.get(kind, subject.rtol)
        if found.shape == w.shape and np.all(close(found.astype("float64"), w.astype("float64"), rtol)):
            continue
        subject.compare(sample, found.astype("float64"), w.astype("float64"), rtol, remedy, what)
