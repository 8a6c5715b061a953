"""Before an op runs on Tensors: are these values, on one device, of dtypes that go together?

Promotion is PyTorch's: tensors with dimensions decide over 0-d tensors, and these over Python numbers, unless
the lower one is of a higher category (bool < integer < float). A conversion is an op of the graph, so rules
never see mixed dtypes. Under autocast, products are taken in 16 bits, and what loses much by that in float32.
"""

from __future__ import annotations

import math
from typing import Any

from leafgrad import dtypes, modes
from leafgrad.backends.place import place
from leafgrad.ops import half, messages
from leafgrad.ops.conjugate import is_complex, refusal
from leafgrad.ops.marks import mark
from leafgrad.ops.node import SymbolBase, TensorBase
from leafgrad.ops.runtime import runtime
from leafgrad.ops.scalars import CATEGORY, as_number

modes.setting("the default dtype")(dtypes.get_default_dtype)


def prepare(op: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Check types and devices of ``args`` and bring their dtypes together, as the op's traits say."""
    args = tuple([a if isinstance(a, TensorBase) else _number(op, i, a) for i, a in enumerate(args)])
    if not op.takes_complex and any(map(is_complex, args)):
        raise refusal(op, args)
    args = _same_device(op, args)
    without_bools(op, args)
    if modes.get() & modes.AUTOCAST:
        args = autocast(op, args)
    traits = op.traits
    if "bilinear" in traits and "elementwise" not in traits:
        for i, a in enumerate(args):
            if not isinstance(a, TensorBase):
                raise messages.bad_argument(op, i, a, "a Tensor")
    if "any_dtype" in traits:
        return args
    if "elementwise" in traits or "promote" in traits:
        target = result_type(args)
        if "float" in traits and not target.is_differentiable:
            target = dtypes.get_default_dtype()
        if op.within_float16 and target is dtypes.float16:
            _expect_within(op, args)
        return tuple([_cast(a, target) for a in args])
    if "float" in traits:
        return tuple([
            _cast(a, dtypes.get_default_dtype())
            if isinstance(a, TensorBase) and not dtypes.of(a._data).is_differentiable
            else a
            for a in args
        ])  # fmt: skip
    floating = {d for a in args if isinstance(a, TensorBase) and (d := dtypes.of(a._data)).is_differentiable}
    if len(floating) > 1:
        raise messages.dtypes_differ(op, args)
    return args


def beside_number(op: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """``args`` in float32, where they would be float16 and one is a number that may be none there; None elsewhere.

    That is a number of Python's, or a second argument without dimensions.
    """
    if not any(isinstance(a, TensorBase) and dtypes.of(a._data) is dtypes.float16 for a in args):
        return None
    args = tuple([a if isinstance(a, TensorBase) else _number(op, i, a) for i, a in enumerate(args)])
    if not any(_finer(i, a) for i, a in enumerate(args)) or result_type(args) is not dtypes.float16:
        return None
    return tuple([_cast(a, dtypes.float32) for a in args])


def _finer(i: int, a: Any) -> bool:
    """Whether an argument is a number that float16 may not hold: one that a recording follows is not looked at."""
    if isinstance(a, TensorBase):
        return i == 1 and not a._data.ndim and dtypes.of(a._data) is not dtypes.float16
    return type(a) not in CATEGORY or not half.holds(a)


def _expect_within(op: Any, args: tuple[Any, ...]) -> None:
    """A RuntimeError if a number beside the first argument is finite, and beyond all of float16."""
    for a in args[1:]:
        if isinstance(a, (int, float)) and half.LARGEST < abs(a) < math.inf:  # also one that a recording follows
            raise RuntimeError(
                f"{op.name}: value cannot be converted to type {dtypes.float16} without overflow, got {a}"
            )


def to_float16(op: Any, args: tuple[Any, ...], result: Any) -> Any:
    """What an op made of arguments ``beside_number``, in float16 and shown as made of ``args``."""
    return mark(_cast(result, dtypes.float16), op.label, *args)


def without_bools(op: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """``args``; a RuntimeError if one of them is a bool, or a tensor of them, and the op takes none."""
    if op.no_bool is not None and any(
        dtypes.of(a._data).category == 0 if isinstance(a, TensorBase) else a.__class__ is bool for a in args
    ):
        raise RuntimeError(op.no_bool)
    return args


def autocast(op: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments in the dtype that autocast asks for; those in float64, or on a device without it, stay.

    Ops declare it as PyTorch lists them for the CPU.
    """
    if op.autocast is None:
        return args
    return tuple([
        _cast(a, low if op.autocast == "lower" else dtypes.float32)
        if isinstance(a, TensorBase) and (low := lowest(a)) is not None
        else a
        for a in args
    ])  # fmt: skip


def lowest(x: TensorBase) -> dtypes.dtype | None:
    """The dtype to which autocast lowers ``x``; None for float64 and all else that it leaves alone."""
    flags = modes.get()
    if dtypes.of(x._data) not in (dtypes.float16, dtypes.bfloat16, dtypes.float32):
        return None
    if _place(x._data)[0] != "cpu":
        return dtypes.float16 if flags & modes.TO_FLOAT16_ELSEWHERE else None
    both = ((modes.TO_BFLOAT16, dtypes.bfloat16), (modes.TO_FLOAT16, dtypes.float16))
    return next((kind for bit, kind in both if flags & bit), None)


def _number(op: Any, i: int, value: Any) -> Any:
    if type(value) in CATEGORY or (value is None and i >= op.signature.required):
        return value
    if (found := as_number(value)) is None:
        raise messages.bad_argument(op, i, value)
    return found


def result_type(args: tuple[Any, ...]) -> dtypes.dtype:
    """The dtype in which Tensors and Python numbers meet."""
    default = dtypes.get_default_dtype()
    numbers = dtypes.bool_, dtypes.int64, default, default.to_complex()
    best: list[dtypes.dtype | None] = [None, None, None]  # with dimensions, 0-d, Python numbers
    for a in args:
        if isinstance(a, TensorBase):
            level, d = (0 if a._data.ndim else 1), dtypes.of(a._data)
        elif a is None:
            continue
        else:
            kind = a.__class__ if a.__class__ in CATEGORY else as_number(a).__class__
            if kind not in CATEGORY:
                raise TypeError(
                    f"expected a Tensor or a number, got {type(a).__name__}; convert it with leafgrad.tensor(...)"
                )
            level, d = 2, numbers[CATEGORY[kind]]
        found = best[level]
        best[level] = d if found is None else dtypes.promote_types(found, d)
    result: dtypes.dtype | None = None
    for d2 in best:
        if d2 is not None and (result is None or d2.category > result.category):
            real = result is not None and result.category == 2 and d2.category == 3
            result = result.to_complex() if real and result is not None else d2
    assert result is not None
    return result


def _cast(a: Any, target: dtypes.dtype) -> Any:
    if not isinstance(a, TensorBase) or dtypes.of(a._data) is target:
        return a
    if is_complex(a) and not target.is_complex:
        raise RuntimeError(f"expected real numbers, got {dtypes.of(a._data)}; take .real, .imag or abs() of them")
    return runtime.to_dtype(a, dtype=target.name, source=dtypes.of(a._data).name)


def _place(data: Any) -> tuple[str, int]:
    return data.place if isinstance(data, SymbolBase) else place(data)


def _same_device(op: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    tensors = [a for a in args if isinstance(a, TensorBase)]
    places = {id(a): _place(a._data) for a in tensors}
    if len(set(places.values())) < 2:
        return args
    big = [a for a in tensors if a._data.ndim or places[id(a)][0] != "cpu"]
    targets = {places[id(a)] for a in big}
    if len(targets) == 1 and "elementwise" in op.traits:
        (target,) = targets
        return tuple([
            runtime.to_device(a, device=target, source=places[id(a)])
            if isinstance(a, TensorBase) and places[id(a)] != target
            else a
            for a in args
        ])  # fmt: skip
    names = [
        f"{kind}:{index}" if kind != "cpu" else "cpu" for kind, index in dict.fromkeys(places[id(a)] for a in tensors)
    ]
    raise messages.devices(op, names)
