"""Complex numbers as pairs of real ones, so that every check of an op holds for them as it stands.

Its gradients are then those by real and imaginary parts, which is what gradients by complex numbers are made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leafgrad.ops.complex import join, view_as_real
from leafgrad.ops.conjugate import is_complex
from leafgrad.ops.convert import clone
from leafgrad.testing.conformance.subject import Samples, outputs, tensor

Function = Callable[..., Any]


def of_reals(
    op: Any, samples: Samples, reference: Function | None, dtypes: tuple[str, ...]
) -> tuple[Any, Samples, Function | None, tuple[str, ...]]:
    """What ``check_op`` is given, in terms of real numbers; as it is where none are complex.

    Raises:
        ValueError: complex arrays in other places of some samples than of others.
    """
    places = {tuple([i for i in s.arrays if s.args[i].dtype.kind == "c"]) for s in samples}
    if len(places) > 1:
        raise ValueError(f"check_op: samples: expected complex arrays in the same places of all, got {sorted(places)}")
    (where,) = places or {()}
    if not where and not any(map(is_complex, first_results(op, samples))):
        return op, samples, reference, dtypes

    def parts(z: Any) -> Any:
        return clone(view_as_real(z))  # of a view, too, whose memory is not the function's

    def pairs(*args: Any, **params: Any) -> Any:
        return each(op(*[join(a[..., 0], a[..., 1]) if i in where else a for i, a in enumerate(args)], **params), parts)

    def theirs(*args: Any, **params: Any) -> Any:
        numbers = [a[..., 0] + 1j * a[..., 1] if i in where else a for i, a in enumerate(args)]
        assert reference is not None
        return each(reference(*numbers, **params), lambda z: np.stack([z.real, z.imag], -1))

    pairs.__name__ = getattr(op, "name", None) or op.__name__
    flat = Samples([s.mapped(where, lambda a: np.stack([a.real, a.imag], -1)) for s in samples])
    return pairs, flat, reference and theirs, tuple([d for d in dtypes if d != "float16"])


def first_results(op: Any, samples: Samples) -> tuple[Any, ...]:
    """The results of the first sample; none where the op fails, of which a check will tell."""
    for sample in samples:
        args = [tensor(a, "cpu") if i in sample.arrays else a for i, a in enumerate(sample.args)]
        try:
            return outputs(op(*args, **sample.params))
        except Exception:  # the op's own, of any kind
            return ()
    return ()


def each(results: Any, function: Function) -> Any:
    """``function`` of what is complex among results."""
    if isinstance(results, (tuple, list)):
        return tuple([each(r, function) for r in results])
    return function(results) if is_complex(results) else results
