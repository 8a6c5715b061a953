"""What shape rules from outside leafgrad predict, held against what the ops give."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from leafgrad.compile.ir.graph import Equation
from leafgrad.errors import CompileError
from leafgrad.ops.op import Op

Kind = tuple[tuple[int, ...], Any]  # a shape and a dtype


def is_checked(op: Op) -> bool:
    """Whether somebody else's rule said what the op makes."""
    return op.shaping is not None and is_foreign(op)


@functools.cache
def is_foreign(op: Op) -> bool:
    return not (op.forward.__module__ or "").startswith("leafgrad.")


def expect_agreement(equation: Equation, made: Any) -> None:
    """A CompileError unless an equation made arrays of the shapes and dtypes that it says."""
    if equation.several:
        agree_all(made, equation.op, [(v.shape, v.dtype) for v in equation.outputs])
    else:
        agree(made, equation.op, equation.out.shape, equation.out.dtype)


def agree(made: Any, op: Op, shape: tuple[int, ...], dtype: Any) -> Any:
    """``made``; a CompileError unless it is an array of this shape and dtype."""
    try:
        if made.shape == shape and made.dtype == dtype:
            return made
    except AttributeError:
        pass
    raise differs(op, [(shape, dtype)], [made])


def agree_all(made: Any, op: Op, kinds: Sequence[Kind]) -> Any:
    """The same for the results of an op that has several."""
    if type(made) is not tuple or len(made) != len(kinds):
        raise differs(op, kinds, [made])
    for one, (shape, dtype) in zip(made, kinds, strict=True):
        agree(one, op, shape, dtype)
    return made


def differs(op: Op, kinds: Sequence[Kind], made: Sequence[Any]) -> CompileError:
    predicted = ", ".join(f"{dtype} {shape}" for shape, dtype in kinds)
    given = ", ".join(map(made_in_words, made))
    return CompileError(
        f"op {op.name!r}, shape rule: predicted {predicted}, the op gave {given}; mend {op.name}.shape(...), "
        f"from {op.origins.get('shape')}, or the forward"
    )


def made_in_words(made: Any) -> str:
    if type(made) is tuple:
        return f"{len(made)} arrays"
    return f"{made.dtype} {made.shape}" if hasattr(made, "dtype") else type(made).__name__
