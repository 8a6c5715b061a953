"""Complex numbers as pairs of real ones, so that checks of an op hold for them as they stand.

Its gradients are then those by real and imaginary parts, which is what gradients by complex numbers are made of.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from leafgrad.ops.complex import join, view_as_real
from leafgrad.ops.conjugate import is_complex
from leafgrad.ops.convert import clone
from leafgrad.ops.op import Op
from leafgrad.ops.pairs import Pair, rule_of
from leafgrad.ops.traits import normalized
from leafgrad.testing.conformance.subject import Sample, Samples, Subject, outputs, tensor

Function = Callable[..., Any]

ANGLE = 0.6  # the largest by which the kit turns real numbers, so that powers and roots stay away from branch cuts


def complex_places(sample: Sample) -> tuple[int, ...]:
    """Which arguments are complex arrays."""
    return tuple([i for i in sample.arrays if sample.args[i].dtype.kind == "c"])


def arranged(subject: Subject) -> Subject:
    """What is checked, in terms of real numbers alone: an op of complex ones as a function of their parts.

    Samples with complex arrays in other places are a subject of their own each. An op that takes complex numbers is
    given some even where no sample has any.
    """
    op, groups = subject.op, dict[tuple[int, ...], list[Sample]]()
    real = isinstance(op, Op) and op.takes_complex and not any(map(complex_places, subject.samples))
    for sample in [*subject.samples, *(turned(op, subject.samples) if real else ())]:
        groups.setdefault(complex_places(sample), []).append(sample)
    main, *others = (of_reals(subject, Samples(groups[where]), where) for where in sorted(groups))
    return replace(main, complex=tuple(others))


def turned(op: Op, samples: Samples) -> list[Sample]:
    """Samples turned in the complex plane: all arguments, else the first; none of an op that makes complex of real."""
    floating = [] if gives_complex(op, samples) else [s for s in samples if s.floats]
    for most in (None, 1):
        made = [
            replace(s.mapped(s.floats[:most], functools.partial(turn, np.random.default_rng(s.number))), made="turned")
            for s in floating
        ]
        if all(takes(op, s) for s in made):
            return made
    return []


def turn(rng: Any, a: Any) -> Any:
    angles = rng.uniform(-ANGLE, ANGLE, a.shape)
    return np.asarray(a * np.exp(1j * angles), "complex64" if a.dtype.itemsize < 8 else "complex128")


def takes(op: Op, sample: Sample) -> bool:
    """Whether the op runs, and gives what can be differentiated."""
    try:
        with np.errstate(all="ignore"):
            return all(r.dtype.kind in "fc" for r in outputs(op(*sample.args, **sample.params)))
    except Exception:  # the op's own, of any kind: it is only tried
        return False


def of_reals(subject: Subject, samples: Samples, where: tuple[int, ...]) -> Subject:
    """What is checked at these samples, of which the arrays at some places are complex, in terms of real numbers."""
    op, reference = subject.op, subject.reference
    if not where and not gives_complex(op, samples):
        return replace(subject, samples=samples)

    def parts(z: Any) -> Any:
        return clone(view_as_real(z))  # of a view, too, whose memory is not the function's

    def numbers(args: Iterable[Any], join: Function) -> list[Any]:
        return [join(a[..., 0], a[..., 1]) if i in where else a for i, a in enumerate(args)]

    @functools.wraps(op, updated=())
    def pairs(*args: Any, **params: Any) -> Any:
        return each(op(*numbers(args, join), **params), parts)

    def theirs(*args: Any, **params: Any) -> Any:
        assert reference is not None
        return each(reference(*numbers(args, whole), **params), lambda z: np.stack([z.real, z.imag], -1))

    flat = Samples([s.mapped(where, lambda a: np.stack([a.real, a.imag], -1)) for s in samples])
    kinds = tuple([d for d in subject.dtypes if d != "float16"])
    return replace(
        subject,
        op=pairs,
        samples=flat,
        reference=reference and theirs,
        dtypes=kinds,
        paired=lambda args: numbers(args, whole),
    )


def whole(real: Any, imaginary: Any) -> Any:
    """Complex numbers of their parts."""
    return real + 1j * imaginary


def gives_complex(op: Any, samples: Samples) -> bool:
    """Whether the first sample gives complex numbers; not where the op fails, of which a check will tell."""
    for sample in samples:
        args = [tensor(a, "cpu") if i in sample.arrays else a for i, a in enumerate(sample.args)]
        try:
            return any(map(is_complex, outputs(op(*args, **sample.params))))
        except Exception:  # the op's own, of any kind
            return False
    return False


def each(results: Any, function: Function) -> Any:
    """``function`` of what is complex among results."""
    if isinstance(results, (tuple, list)):
        return tuple([each(r, function) for r in results])
    return function(results) if is_complex(results) else results


def follow_rule(subject: Subject, parts: Subject) -> None:
    """A Fault unless the op's rule for pairs, where it has one, computes what the op does."""
    op = subject.op
    rule = rule_of(op) if isinstance(op, Op) else None
    for sample in parts.samples if rule is not None else ():
        args = tuple(parts.paired(sample.args))
        params = op.signature.bind(sample.params)
        if op.dims is not None:
            params = normalized(op, args, params)
        want = outputs(op(*args, **params))
        assert rule is not None
        by, remedy = "by its rule for pairs", 'mend the rule of lower("pairs", ...), or the forward'
        try:
            found = rule(*map(as_pairs, args), **params)
        except Exception as error:  # the rule's own, of any kind
            got = f"{type(error).__name__}: {error}"
            raise subject.fault(sample, "what the op gives", got, remedy, by) from error
        for got, right in zip(found if isinstance(found, tuple) else (found,), want, strict=True):
            if got is None:
                continue  # the rule leaves these arguments to the op
            made, wanted = (np.stack([z.real, z.imag], -1) for z in (as_numbers(got, right), right))
            limit = max(subject.rtol, 1e-9) * max(1.0, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)))
            subject.compare(sample, made, wanted, limit, remedy, by)


def as_pairs(value: Any) -> Any:
    return Pair(value.real, value.imag) if is_complex(value) else value


def as_numbers(made: Any, like: Any) -> Any:
    """An array like another, of what a rule made: parts that are numbers, or None for zero, fill it."""
    out = np.zeros_like(like)
    if not isinstance(made, Pair):
        out[...] = made
        return out
    out.real[...], out.imag[...] = made.re, made.im or 0 if not hasattr(made.im, "dtype") else made.im
    return out
