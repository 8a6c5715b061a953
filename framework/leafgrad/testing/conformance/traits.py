"""Every trait that an op claims holds: passes, vmap and forward mode rely on them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from leafgrad import dtypes
from leafgrad.autograd import grad
from leafgrad.batching import vmap
from leafgrad.ops import dispatch
from leafgrad.ops.convert import clone
from leafgrad.testing.conformance.memory import shared
from leafgrad.testing.conformance.report import Skip
from leafgrad.testing.conformance.subject import Sample, Subject, host, tensor


def results(subject: Subject, sample: Sample) -> list[Any]:
    """The results as NumPy arrays."""
    return [host(r.detach()) for r in subject.run(sample)]


def compare_traits(subject: Subject, sample: Sample, got: list[Any], want: list[Any], what: str, trait: str) -> None:
    rtol = max(subject.rtol, 1e-9)
    for g, w in zip(got, want, strict=True):
        finite = np.abs(w[np.isfinite(w)]) if w.dtype.kind == "f" else np.zeros(0)
        low = {"float32": 1e-5, "float16": 1e-2}.get(w.dtype.name, rtol)
        limit = max(rtol, low) * max(1.0, float(finite.max(initial=0.0)))
        subject.compare(sample, g, w, limit, f"leave out the trait {trait!r}, or mend the forward", what)


def elementwise(subject: Subject) -> None:
    """An element of the result depends on the same element of the arguments alone, which broadcast."""
    for sample in subject.samples:
        arrays = [sample.args[i] for i in sample.arrays]
        shape = np.broadcast_shapes(*[a.shape for a in arrays])
        whole = sample.mapped(sample.arrays, partial(broadcast_copy, shape))
        want = results(subject, sample)
        compare_traits(subject, sample, results(subject, whole), want, "arguments broadcast before", "elementwise")
        order = np.random.default_rng(0).permutation(int(np.prod(shape)))
        ways: list[tuple[str, Callable[[Any], Any]]] = [
            ("elements in another order", partial(in_order, order)),
            ("every second element", lambda a: a.ravel()[::2]),
            ("no element", lambda a: a.ravel()[:0]),
        ]
        if order.size:
            ways.append(("one element, without dimensions", lambda a: a.ravel()[-1:].reshape(())))
        for what, way in ways:
            got = results(subject, whole.mapped(whole.arrays, way))
            compare_traits(subject, sample, got, [way(w) for w in want], what, "elementwise")
    broadcast_gradients(subject)


def broadcast_gradients(subject: Subject) -> None:
    """Compare gradients where an argument broadcasts with those of one that was before, where no sample does it."""
    spread = set[int]()
    for s in subject.samples:
        shape = np.broadcast_shapes(*[s.args[i].shape for i in s.arrays])
        spread |= {i for i in s.arrays if s.args[i].shape != shape}
    if not subject.orders or "nondifferentiable" in subject.traits:
        return
    for sample in subject.samples[:1]:
        for i in sample.floats:
            a = sample.args[i]
            if i not in spread and len(sample.floats) > 1 and a.ndim and a.shape[-1] > 1:
                narrow = sample.of("float64").mapped([i], lambda a: a[..., :1])
                found = slopes(subject, narrow)
                wide = slopes(subject, narrow.mapped([i], partial(broadcast_copy, a.shape)))
                for j, g in found.items():
                    want = wide[j].sum(-1, keepdims=True) if j == i else wide[j]
                    limit = max(subject.rtol, 1e-9) * max(1.0, float(np.abs(want).max(initial=0.0)))
                    remedy = f"let the vjp rule for {subject.argument(j)!r} hold where arguments broadcast"
                    what = f"gradient for {subject.argument(j)!r} where {subject.argument(i)!r} broadcasts"
                    subject.compare(narrow, g, want, limit, remedy, what, "vjp")


def slopes(subject: Subject, sample: Sample) -> dict[int, Any]:
    """The gradients of the sum of results by each argument that has one."""
    places = subject.differentiable(sample)
    given = subject.tensors(sample, places)
    found = [r.sum() for r in subject.run(sample, given) if r.requires_grad]
    grads = grad(found, [given[i] for i in places], allow_unused=True) if found else ()
    return {i: host(g) for i, g in zip(places, grads, strict=False) if g is not None}


def broadcast_copy(shape: tuple[int, ...], a: Any) -> Any:
    return np.broadcast_to(a, shape).copy()


def in_order(order: Any, a: Any) -> Any:
    return a.ravel()[order]


def linear(subject: Subject) -> None:
    """f(a x + b y) = a f(x) + b f(y), for all floating arguments together."""
    for sample in _floating(subject):
        superposed(subject, sample, sample.floats, "linear")


def bilinear(subject: Subject) -> None:
    """Linear in each of the first two arguments, the others held fixed."""
    for sample in _floating(subject):
        for i in sample.floats[:2]:
            superposed(subject, sample, [i], "bilinear")


def _floating(subject: Subject) -> list[Sample]:
    found = [s.of("float64") for s in subject.samples if s.floats]
    if not found:
        raise Skip("no sample has floating-point arrays")
    return found


def superposed(subject: Subject, sample: Sample, places: list[int], trait: str) -> None:
    """Compare f of a sum with the sum of f."""
    rng = np.random.default_rng(1)
    other = {i: np.asarray(rng.uniform(-1.0, 1.0, sample.args[i].shape)) for i in places}

    def at(a: float, b: float) -> list[Any]:
        args = [np.asarray(a * x + b * other[i]) if i in places else x for i, x in enumerate(sample.args)]
        return results(subject, replace(sample, args=tuple(args)))

    one, two, both = at(1.0, 0.0), at(0.0, 1.0), at(0.75, -1.5)
    if any(z.dtype.kind != "f" for z in both):
        return  # a conversion to integers
    want = [np.asarray(0.75 * x - 1.5 * y).astype(z.dtype) for x, y, z in zip(one, two, both, strict=True)]
    names = ", ".join(repr(subject.argument(i)) for i in places)
    compare_traits(subject, sample, both, want, f"0.75 and -1.5 times two values of {names}", trait)


def reduction(subject: Subject) -> None:
    """An element of the result depends on what is along ``dim`` alone; ``keepdim`` keeps that, with size 1."""
    done = False
    for sample in subject.samples:
        dim = sample.params.get("dim")
        if dim is None or len(sample.arrays) != 1:
            continue
        done = True
        i, ndim = sample.arrays[0], sample.args[sample.arrays[0]].ndim
        want = results(subject, sample)
        dims = dim if isinstance(dim, tuple) else (dim,)
        gone = {d % ndim for d in dims}
        if _keeps(subject):
            kept = results(subject, changed(sample, {"keepdim": True}))
            flat = results(subject, changed(sample, {"keepdim": False}))
            expanded = [np.expand_dims(r, tuple(gone)) for r in flat]
            compare_traits(subject, sample, kept, expanded, "keepdim=True", "reduction")
        for d in sorted(set(range(ndim)) - gone):
            lost = sum(g < d for g in gone)  # dimensions before d that the result has no more
            for start in (0, 1):
                found = [halved(d if w.ndim == ndim else d - lost, start, w) for w in want]
                part = results(subject, sample.mapped([i], partial(halved, d, start)))
                compare_traits(subject, sample, part, found, f"every second of dim {d}, from {start} on", "reduction")
    if not done:
        raise Skip("no sample has a dim")


def halved(d: int, start: int, a: Any) -> Any:
    """Every second place of a dimension."""
    return np.take(a, range(start, a.shape[d], 2), d)


def _keeps(subject: Subject) -> bool:
    return "keepdim" in subject.op.signature.parameters


def changed(sample: Sample, params: dict[str, Any]) -> Sample:
    """The sample with other parameters."""
    return replace(sample, params=sample.params | params)


def comparison(subject: Subject) -> None:
    """The result is boolean."""
    for sample in subject.samples:
        for r in subject.run(sample):
            if r.dtype is not dtypes.bool_:
                raise subject.fault(sample, "a result of bool", r.dtype.name, "leave out the trait 'comparison'")


def view(subject: Subject) -> None:
    """The result shows the memory of the first argument, where that is contiguous."""
    for sample in subject.samples:
        given = subject.tensors(sample)
        for r in subject.run(sample, given):
            if r.numel() and not shared(dispatch.raw(r), dispatch.raw(given[0])):
                raise subject.fault(
                    sample, f"the memory of {subject.argument(0)!r}", "a copy", "leave out the trait 'view'"
                )
        if sample.arrays[:1] == [0] and sample.args[0].size:
            written_in_a_batch(subject, sample)


def written_in_a_batch(subject: Subject, sample: Sample) -> None:
    """Compare what a write through the view makes of a batch with what it makes of each sample."""

    def write(x: Any, *others: Any) -> Any:
        base = clone(x)
        for r in subject.run(sample, [base, *others]):
            r.zero_()
        return base

    given = subject.tensors(sample)
    both = tensor(np.stack([sample.args[0]] * 2), subject.device)
    try:
        want = host(write(*given))
    except RuntimeError:
        return  # it is not to be written
    got = vmap(write, in_dims=(0, *[None] * (len(given) - 1)))(both, *given[1:])
    remedy = "let the batching rule give a view of the batch"
    subject.compare(sample, host(got), np.stack([want] * 2), 0.0, remedy, "written under vmap", "batched")


def nondifferentiable(subject: Subject) -> None:
    """The result never requires grad."""
    for sample in subject.samples:
        for r in subject.run(sample, subject.tensors(sample, sample.floats)):
            if r.requires_grad:
                raise subject.fault(sample, "a result without history", "one that requires grad", "report this")


def default_dtype(subject: Subject) -> None:
    """Integers become the default floating-point dtype first."""
    for sample in subject.samples:
        whole = sample.mapped(sample.floats, lambda a: np.ceil(np.nan_to_num(a, posinf=1, neginf=-1)).astype("int64"))
        low = whole.mapped(sample.floats, partial(np.asarray, dtype=dtypes.get_default_dtype().name))
        try:
            want = subject.run(low)
        except RuntimeError:
            continue  # the op does not take these values
        for r, w in zip(subject.run(whole), want, strict=True):
            if r.dtype is not w.dtype:
                raise subject.fault(whole, f"dtype {w.dtype}", f"{r.dtype}", "leave out the trait 'float'")


def promote(subject: Subject) -> None:
    """Arguments of different dtypes meet in one: the result is that of arguments converted before."""
    done = False
    for sample in subject.samples:
        for i, j in itertools.permutations(sample.floats, 2):
            if not (sample.args[i].ndim and sample.args[j].ndim):
                continue
            done = True
            mixed = sample.of("float64").mapped([i], lambda a: a.astype("float32"))
            same = mixed.mapped([i], lambda a: a.astype("float64"))
            what = f"{subject.argument(i)!r} of float32 among float64"
            compare_traits(subject, mixed, results(subject, mixed), results(subject, same), what, "promote")
    if not done:
        raise Skip("no sample has two floating-point arrays with dimensions")
