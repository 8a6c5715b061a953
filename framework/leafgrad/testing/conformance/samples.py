"""Samples: those that are given, and those that can be drawn for an op from its signature and traits."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from leafgrad import plugins
from leafgrad.ops import messages
from leafgrad.ops.op import Op
from leafgrad.ops.signature import REQUIRED
from leafgrad.tensor.tensor import Tensor
from leafgrad.testing.conformance.subject import Sample, Samples, outputs

UNARY = [((3, 4),), ((),), ((0, 2),)]
BINARY = [((2, 3), (2, 3)), ((2, 1), (3,)), ((2,), ()), ((0, 2), (2,))]
DIMS: tuple[Any, ...] = (0, 2, (1,), (0, 2), (0, 1, 2))
KEPT: tuple[Any, ...] = (2, (0, 2))
LOW, HIGH = 0.1, 0.9  # where nearly all functions are defined
FAR = 2.5  # where rules that hold for positive numbers alone, or small ones, are found out


def given(samples: Iterable[Any]) -> Samples:
    """Samples from ``(args, params)``; lists among the arguments become arrays.

    Raises:
        ValueError: there are none, or one is not of this form, or has a Tensor.
    """
    found = []
    for number, pair in enumerate(samples):
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], dict)):
            raise ValueError(f"check_op: samples[{number}]: expected (args, params), a tuple and a dict, got {pair!r}")
        args = pair[0] if isinstance(pair[0], tuple | list) else (pair[0],)
        arrays = [np.asarray(a) if isinstance(a, list | np.generic) else a for a in args]
        if any(isinstance(a, Tensor) for a in arrays):
            raise ValueError(f"check_op: samples[{number}]: expected NumPy arrays, got a Tensor; pass x.numpy()")
        found.append(Sample(number, tuple(arrays), dict(pair[1])))
    if not found:
        raise ValueError("check_op: expected at least one sample, got none")
    return Samples(found)


def departing(op: Any, samples: Samples, reference: Any) -> tuple[Samples, list[str]]:
    """The samples, and for each parameter that has one value in all of them one with another, if the op takes it.

    Returns:
        The samples, and in words which parameters none of them varies.
    """
    found, left = list(samples), []
    if "random" in getattr(op, "traits", ()):  # each device has its own, which the kit seeds
        found = [replace(s, params={k: v for k, v in s.params.items() if k != "generator"}) for s in found]
    for name, default in op.signature.parameters.items() if isinstance(op, Op) else ():
        usual = default if default is not REQUIRED else found[0].params.get(name)
        if any(name in s.params and not _same(s.params[name], usual) for s in samples):
            continue
        tied = default is REQUIRED and not isinstance(usual, float)  # a size or dimension goes with the shapes
        for value in () if tied else _others(usual):
            made = replace(_largest(samples), made=f"with {name}={value!r}")
            made = replace(made, params=made.params | {name: value})
            if _gives(op, made) and (reference is None or _runs(reference, made)):
                found.append(made)
                break
        else:
            left.append(f"{name!r} away from " + ("its default" if usual is default else messages.describe(usual)))
    return Samples([*found, *_apart(op, found)]), left


def _apart(op: Any, samples: list[Sample]) -> list[Sample]:
    """One more sample where two arguments are equal in each, so that rules for one and the other may be swapped."""
    for i, j in itertools.combinations(samples[0].floats, 2):
        if all(len(s.args) > j and np.array_equal(s.args[i], s.args[j]) for s in samples):
            made = replace(samples[0].mapped([j], lambda a: a * 0.9), made=f"with argument {j} times 0.9")
            return [made] if _gives(op, made) else []
    return []


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(np.all(a == b))


def _others(default: Any) -> tuple[Any, ...]:
    """Values that a parameter may take beside its default."""
    if isinstance(default, bool):
        return (not default,)
    if isinstance(default, float):
        return (1.7 * default + 0.3, 0.6 * default + 0.1, -default)
    return (default + 1, default - 1) if isinstance(default, int) else ()


def _largest(samples: Samples) -> Sample:
    return max(samples, key=lambda s: sum(s.args[i].size for i in s.arrays))


def _gives(op: Any, sample: Sample) -> bool:
    """Whether an op takes a sample, and gives numbers."""
    try:
        results = outputs(op(*sample.args, **sample.params))
        return all(np.all(np.isfinite(r)) for r in results)
    except Exception:  # the op's own, of any kind: it is only tried
        return False


def _runs(reference: Any, sample: Sample) -> bool:
    """Whether the reference knows the parameter."""
    try:
        reference(*sample.args, **sample.params)
    except Exception:
        return False
    return True


def drawn(op: Any) -> Samples:
    """Samples of an elementwise op, a reduction, or an op along a dimension: float64 in [0.1, 0.9), of several shapes.

    Of an elementwise op there is one more of numbers from -2.5 to 2.5, of those for which it gives some.

    Raises:
        ValueError: what the op takes cannot be told.
    """
    if not isinstance(op, Op):
        name = getattr(op, "__name__", "")
        known = f" (leafgrad.plugins.op({name!r}) is an op)" if name in {found.name for found in plugins.ops()} else ""
        raise _needed(op, f"what a function takes cannot be told{known}")
    rng = np.random.default_rng(0)
    needed = [p for p, default in op.signature.parameters.items() if default is REQUIRED]
    if "random" in op.traits:
        needed = [p for p in needed if p != "generator"]  # each device has one
    count = op.signature.required
    if op.signature.variadic or not count:
        raise _needed(op, "it takes any number of arrays" if op.signature.variadic else "it takes no arrays")
    if "elementwise" in op.traits and not needed:
        shapes: list[Any] = UNARY if count == 1 else [s + (s[0],) * (count - 2) for s in BINARY]
        usual = [tuple(rng.uniform(LOW, HIGH, s) for s in case) for case in shapes]
        return given((args, {}) for args in (*usual, *_elsewhere(op, count)))
    if (
        op.traits & {"reduction", "along"}
        and count == 1
        and needed in (["dim"], [])
        and "dim" in op.signature.parameters
    ):
        x = rng.uniform(LOW, HIGH, (2, 3, 4))
        keeps = ({"dim": d, "keepdim": True} for d in KEPT if "keepdim" in op.signature.parameters)
        choices = (*({"dim": d} for d in DIMS), *keeps)
        runs = [((x,), params) for params in choices if _takes(op, x, params)]
        if runs:
            return given(runs)
        raise _needed(op, "it runs with no dim of an array of three dimensions")
    if needed:
        raise _needed(op, f"it has parameters without a default: {', '.join(needed)}")
    raise _needed(op, "its traits do not tell the shapes of what it takes")


def _elsewhere(op: Op, count: int) -> list[tuple[Any, ...]]:
    """Arguments of either sign, some above 1, where an elementwise op gives numbers; none if it does so nowhere."""
    args = np.random.default_rng(1).uniform(-FAR, FAR, (count, 12))
    with np.errstate(all="ignore"):
        try:
            results = outputs(op(*args))
        except Exception:  # the op's own, of any kind: it is only tried
            return []
    good = np.logical_and.reduce([np.isfinite(r) for r in results])
    return [tuple(args[:, good][:, :4])] if good.shape == args.shape[1:] and good.any() else []


def _takes(op: Op, x: Any, params: dict[str, Any]) -> bool:
    """Whether the op takes such a dim: some take an int alone."""
    try:
        op(x, **params)
    except (TypeError, RuntimeError):
        return False
    return True


def _needed(op: Any, reason: str) -> ValueError:
    name = getattr(op, "name", None) or getattr(op, "__name__", repr(op))
    return ValueError(
        f"check_op: {name!r} needs samples, since {reason}; pass samples=[((array, ...), {{'parameter': value}}), ...]"
    )
