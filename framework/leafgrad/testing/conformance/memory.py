"""Memory: an op leaves its inputs alone, gives memory of its own, and takes arrays however they lie."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from leafgrad import backends, devices
from leafgrad.autograd import grad
from leafgrad.ops import dispatch
from leafgrad.tensor.tensor import Tensor
from leafgrad.testing.conformance.report import Skip
from leafgrad.testing.conformance.subject import Sample, Subject, host, tensor

COPY = "compute into new arrays, or a copy"


def inputs(subject: Subject) -> None:
    """Neither the forward nor a rule changes what it is given; on the CPU, arrays may be read-only."""
    for sample in subject.samples:
        try:
            untouched(subject, sample)
        except (RuntimeError, ValueError) as error:
            if "read-only" not in str(error):
                raise
            raise subject.fault(sample, "a forward and rules that only read", str(error), COPY) from error


def untouched(subject: Subject, sample: Sample) -> None:
    """Run one sample forward and backward, and compare what it was given before and after."""
    given = [sealed(t) if isinstance(t, Tensor) else t for t in subject.tensors(sample)]
    for i in subject.differentiable(sample):
        given[i].requires_grad_()
    results = subject.run(sample, given)
    compare_memory(subject, sample, given, "after the forward")
    found = [r for r in results if r.requires_grad]
    if not found:
        return
    before = [host(r.detach()).copy() for r in found]
    wanted = [given[i] for i in subject.differentiable(sample)]
    for recorded in (False, True):
        ones = [np.ones(r.shape, r.dtype.name) for r in found]
        seeds = [sealed(tensor(a, subject.device)) for a in ones]
        grad(found, wanted, seeds, create_graph=recorded, retain_graph=True, allow_unused=True)
        compare_memory(subject, sample, given, "after the backward pass")
        for what, arrays, tensors in (("gradient", ones, seeds), ("result", before, found)):
            for a, t in zip(arrays, tensors, strict=True):
                subject.compare(sample, host(t.detach()), a, 0.0, COPY, f"{what} after the backward pass")


def compare_memory(subject: Subject, sample: Sample, given: list[Any], when: str) -> None:
    for i in sample.arrays:
        what = f"argument {subject.argument(i)!r} {when}"
        subject.compare(sample, host(given[i].detach()), sample.args[i], 0.0, COPY, what)


def sealed(t: Tensor) -> Tensor:
    """The tensor, whose memory cannot be written where the array library knows such."""
    data = dispatch.raw(t)
    if hasattr(data.flags, "writeable"):
        data.flags.writeable = False
    return t


def aliases(subject: Subject) -> None:
    """Each result has memory of its own, shared with no argument or other result, unless it is a view."""
    if "view" in subject.traits:
        raise Skip("the op is a view")
    remedy = "return a copy, or declare the trait 'view'"
    for sample in subject.samples:
        given = subject.tensors(sample)
        results = subject.forward(sample, given)
        for k, r in enumerate(results):
            seen = [(f"argument {subject.argument(i)!r}", given[i]) for i in sample.arrays]
            seen += [(f"result {j}", results[j]) for j in range(k)]
            for what, other in seen:
                if r.numel() and shared(dispatch.raw(r), dispatch.raw(other)):
                    raise subject.fault(sample, "memory of its own", f"that of {what}", remedy)
            if r.numel() and any(n > 1 and not step for n, step in zip(r.shape, r.stride(), strict=True)):
                raise subject.fault(sample, "a place for each element", f"strides {r.stride()}", "return a copy")


def shared(x: Any, y: Any) -> bool:
    """Whether two raw arrays show memory that one array owns."""
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return bool(np.shares_memory(x, y))
    return dispatch.memory_of(x) is dispatch.memory_of(y)


def layouts(subject: Subject) -> None:
    """Transposed, stepped, reversed, broadcast and read-only arrays give what contiguous ones do."""
    for sample in subject.samples:
        for i in sample.arrays:
            for what, array in arranged(subject, sample, i):
                plain = subject.tensors(sample)
                plain[i] = tensor(np.array(host(array), order="C"), subject.device)
                try:
                    want = [host(r) for r in subject.run(sample, plain)]
                except RuntimeError:
                    continue  # values that it does not take, however they lie
                odd = subject.tensors(sample)
                odd[i] = dispatch.alias(array)
                for k, r in enumerate(subject.run(sample, odd)):
                    found = f"argument {subject.argument(i)!r} {what}"
                    rtol = max(subject.rtol, 1e-9) * max(1.0, largest(want[k]))
                    subject.compare(sample, host(r), want[k], rtol, "assume no order of memory", found)


def largest(array: Any) -> float:
    """The largest finite element, by size."""
    finite = np.abs(array[np.isfinite(array)]) if array.dtype.kind == "f" else np.zeros(0)
    return float(finite.max(initial=0.0))


def arranged(subject: Subject, sample: Sample, i: int) -> Iterator[tuple[str, Any]]:
    """The i-th argument in various orders of memory, as raw arrays on the device."""
    place = devices.device(subject.device)
    backend, index = backends.by_device_type(place.type), place.index or 0
    array = sample.args[i]
    if not array.ndim:
        return
    with backend.device_scope(index):
        yield "transposed", backend.from_host(np.ascontiguousarray(array.T), index).T
        yield "with steps", backend.from_host(np.repeat(array, 2, axis=-1), index)[..., ::2]
        yield "reversed", backend.from_host(np.ascontiguousarray(array[::-1]), index)[::-1]
        if array.dtype.kind == "f" and len(array):
            first = backend.from_host(np.ascontiguousarray(array[:1]), index)
            yield "broadcast", backend.xp.broadcast_to(first, array.shape)
        whole = backend.from_host(array, index)
        if hasattr(whole.flags, "writeable"):
            whole.flags.writeable = False
            yield "read-only", whole
