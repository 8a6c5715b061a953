"""Under vmap an op gives for a batch what it gives for each sample, wherever the batch is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from leafgrad.autograd import grad
from leafgrad.batching import vmap
from leafgrad.ops import messages
from leafgrad.ops.shifted import Shifted
from leafgrad.testing.conformance.report import Skip
from leafgrad.testing.conformance.subject import Sample, Subject, host, outputs, tensor

SIZE = 3
REMEDY = "mend the batching rule, or the trait from which one follows"


def batches(subject: Subject, size: int) -> Iterator[list[Sample]]:
    """So many samples of equal shapes and parameters: those that there are, then variations of the first."""
    groups: dict[str, list[Sample]] = {}
    for sample in subject.samples:
        kinds = [messages.describe(a) if isinstance(a, np.ndarray) else repr(a) for a in sample.args]
        groups.setdefault(f"{kinds} {sample.params!r}", []).append(sample)
    for group in groups.values():
        if group[0].arrays:
            yield [*group[:size], *(varied(subject, group[0], k) for k in range(len(group), size))]


def varied(subject: Subject, sample: Sample, k: int) -> Sample:
    """A sample near another one: scaled a little; integers in another order, if the op takes them so."""
    scaled = sample.mapped(sample.floats, lambda a: (a * (1 - 0.005 * k)).astype(a.dtype))
    others = [i for i in sample.arrays if i not in sample.floats]
    if not others:
        return scaled
    rolled = scaled.mapped(others, lambda a: np.roll(a, k))
    try:
        subject.run(rolled)
    except (RuntimeError, IndexError):
        return scaled
    return rolled


def batched(subject: Subject) -> None:
    """Values and gradients of a batch are those of its samples: all arguments batched or one, at dimension 0, 1, -1."""
    for group in batches(subject, SIZE):
        places = group[0].arrays
        alone = [[i] for i in places] if len(places) > 1 else []
        for chosen in [places, *alone]:
            compare_batch(subject, group, chosen, 0)
        for dim in (1, -1):
            compare_batch(subject, group, places, dim)
    nested(subject)


def nested(subject: Subject) -> None:
    """Compare a batch of batches by a rule of the op's own: all arguments in both, or the first in the inner alone."""
    group, origin = next(batches(subject, SIZE), None), getattr(subject.op, "origins", {}).get("batched", "trait ")
    if group is None or origin.startswith("trait ") or isinstance(subject.op.batching, Shifted):
        return
    places = group[0].arrays
    for inner, outer in [(places, places), *([(places[:1], places[1:])] if len(places) > 1 else [])]:
        own = [[argument(group, inner, outer, k, n) for k in range(SIZE)] for n in range(2)]
        whole = subject.tensors(group[0])
        for i in places:
            rows = [np.stack([s.args[i] for s in row]) if i in inner else row[0].args[i] for row in own]
            whole[i] = tensor(np.stack(rows) if i in outer else rows[0], subject.device)
        dims = [tuple(0 if i in where else None for i in range(len(whole))) for where in (inner, outer)]
        found = outputs(vmap(mapped(subject, group[0], dims[0]), in_dims=dims[1])(*whole))
        each = [[subject.run(s) for s in row] for row in own]
        for k, r in enumerate(found):
            want = np.stack([np.stack([host(results[k]) for results in row]) for row in each])
            compare_batched(subject, group[0], host(r), want, f"in_dims={dims[0]} within in_dims={dims[1]}")


def argument(group: list[Sample], inner: list[int], outer: list[int], k: int, n: int) -> Sample:
    """Sample k of batch n, whose arguments in neither ``inner`` nor ``outer`` are those of the first."""
    args = [
        group[(k if i in inner else 0) - (n if i in outer else 0)].args[i] if i in inner or i in outer else a
        for i, a in enumerate(group[0].args)
    ]
    return replace(group[0], args=tuple(args))


def compare_batch(subject: Subject, group: list[Sample], chosen: list[int], dim: int) -> None:
    """Compare one way to batch."""
    own = [replace(s, args=tuple(s.args[i] if i in chosen else a for i, a in enumerate(group[0].args))) for s in group]
    ndims = [np.ndim(a) for a in group[0].args]
    dims = [min(dim, n) if i in chosen else None for i, n in enumerate(ndims)]
    whole = subject.tensors(own[0])
    for i in chosen:
        whole[i] = tensor(np.stack([s.args[i] for s in own], min(dim, ndims[i])), subject.device)
    singles = [subject.tensors(s) for s in own]
    places = subject.differentiable(own[0]) if subject.orders else []
    for i in places:
        for t in (whole[i], *(s[i] for s in singles if i in chosen)):
            t.requires_grad_()
        for s in singles if i not in chosen else ():
            s[i] = whole[i]
    what = f"in_dims={tuple(dims)}"
    found = mapped(subject, own[0], tuple(dims))(*whole)
    each = [subject.run(s, given) for s, given in zip(own, singles, strict=True)]
    for k, r in enumerate(found):
        want = np.stack([host(results[k].detach()) for results in each])
        compare_batched(subject, own[0], host(r.detach()), want, what)
    compare_gradients(subject, own[0], found, each, [(i, whole[i], [s[i] for s in singles]) for i in places], dims)


def mapped(subject: Subject, sample: Sample, dims: tuple[int | None, ...]) -> Callable[..., tuple[Any, ...]]:
    """The op under vmap, as a function of its arguments. Skip where vmap itself refuses."""

    def function(*given: Any) -> tuple[Any, ...]:
        try:
            return outputs(vmap(lambda *each: subject.run(sample, each), in_dims=dims)(*given))
        except RuntimeError as error:
            if "dynamic shape" in str(error):
                raise Skip("the shape of its result depends on values") from None
            raise

    return function


def compare_gradients(
    subject: Subject, sample: Sample, found: Any, each: Any, inputs: list[Any], dims: list[int | None]
) -> None:
    """The gradients through the batch are those of the samples, summed for what all of them share."""
    floating = [k for k, r in enumerate(found) if r.requires_grad]
    if not floating or not inputs:
        return
    seeds = [np.linspace(0.5, 1.5, found[k].numel()).reshape(found[k].shape).astype(host_dtype(found[k]))
             for k in floating]  # fmt: skip
    given = [tensor(s, subject.device) for s in seeds]
    got = grad([found[k] for k in floating], [x for _, x, _ in inputs], given, allow_unused=True)
    for j, (i, _, singles) in enumerate(inputs):
        parts = [
            grad([results[k] for k in floating], singles[n], [g[n] for g in given],
                 retain_graph=True, allow_unused=True)[0]
            for n, results in enumerate(each)
        ]  # fmt: skip
        if got[j] is None or parts[0] is None:
            if (got[j] is None) != (parts[0] is None):
                raise subject.fault(sample, parts[0], got[j], REMEDY, f"gradient for {subject.argument(i)!r}")
            continue
        arrays, dim = [host(p) for p in parts], dims[i]
        want = np.asarray(sum(arrays[1:], arrays[0])) if dim is None else np.stack(arrays, dim)
        compare_batched(
            subject, sample, host(got[j]), want, f"gradient for {subject.argument(i)!r}, in_dims={tuple(dims)}"
        )


def host_dtype(t: Any) -> str:
    return str(t.dtype.name)


def compare_batched(subject: Subject, sample: Sample, got: Any, want: Any, what: str) -> None:
    low = {"float32": 1e-5, "float16": 1e-2}.get(want.dtype.name, 0.0)
    subject.compare(sample, got, want, max(subject.rtol, 1e-9, low), REMEDY, what, "batched,summed,vjp")
