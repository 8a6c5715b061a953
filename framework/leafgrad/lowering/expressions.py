"""Elementwise ops as C expressions, from the bodies that ops carry (``leafgrad.op(..., c="exp(-x * x)")``)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leafgrad.compile.ir.extent import Extent
from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.ops.define import C_FUNCTIONS
from leafgrad.ops.half import nearest

C_TYPES = {
    "float32": "float", "float64": "double", "bool": "uint8_t", "uint8": "uint8_t",
    "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
}  # fmt: skip
FLOATS = ("float32", "float64")
HALVES = {"float16": "lg_f16"}  # of targets that store numbers of 16 bits, and compute with them in float32
BITS = {"bfloat16": "uint16_t"}  # of the same targets, where numbers are converted before anything is computed
STORED = {**C_TYPES, **HALVES, **BITS}
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*|(?<![\w.])\d+\.?\d*(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Body:
    """What is computed of one element.

    Attributes:
        text: a C expression of the op's arguments and parameters.
        kind: the dtype in which it is evaluated; None: as arithmetic between the arguments' dtypes is.
        arrays: whether it reads its arrays.
    """

    text: str
    kind: str | None = None
    arrays: bool = True

    @property
    def may_stop(self) -> bool:
        """Whether it may find an element that is not for C."""
        return turns(self.text) or "refused(" in self.text

    @property
    def light(self) -> bool:
        """Whether it is so little arithmetic that computing it again costs less than storing it."""
        return self.arrays and self.kind is None and re.fullmatch(r"[\w\s.+*-]+", self.text) is not None


def turns(text: str) -> bool:
    """Whether C calls sin, cos or tan, which it computes only of angles that are not too large."""
    return bool(re.search(r"\b(sin|cos|tan)\(", text))


def fits(equation: Equation, body: Body) -> bool:
    """Whether the equation can be computed element by element in C."""
    if len(equation.outputs) != 1:
        return False
    if any(v is not None and not isinstance(v, (Value, bool, int, float)) for v in equation.inputs):
        return False
    kind = held(body.kind) if body.kind else compute_type(equation)
    if kind is None:
        return False
    return kind in FLOATS or not re.search(r"[a-z]\(|/", body.text)


def held(kind: str) -> str:
    """The dtype in which numbers of a dtype are computed."""
    return "float32" if kind in HALVES else kind


HELD = {kind: {**C_TYPES, **BITS}[held(kind)] for kind in STORED}


def compute_type(equation: Equation) -> str | None:
    """The dtype in which arithmetic is done, which functions and numbers take; None: NumPy's is not C's."""
    out, kinds = held(equation.out.dtype), {held(v.dtype) for v in equation.values}
    if out in FLOATS:
        return max([out, *(kinds & set(FLOATS))])
    if out != "bool":
        return out
    floats = kinds & set(FLOATS)
    if floats:
        return max(floats) if kinds <= {*FLOATS, "bool"} else None
    numbers = [v for v in equation.inputs if isinstance(v, (int, float))]
    exact = all(isinstance(v, int) and -(1 << 63) <= v < 1 << 63 for v in numbers)
    return "int64" if exact else None  # numbers need not fit the dtype that they are compared with


def render(equation: Equation, body: Body, reads: Sequence[str | None]) -> str:
    """The body with ``reads`` for its arrays (None for a number), cast to the dtype of the output."""
    kind = held(body.kind) if body.kind else compute_type(equation)
    assert kind is not None
    names = numbers(equation, kind)
    for name, read in zip(equation.op.signature.arguments, reads, strict=False):
        if read is not None:
            names[name] = f"(({C_TYPES[kind]}){read})"
    expression = worded(body.text, names, kind)
    out = equation.out.dtype
    if out == "bool":
        return f"({expression}) != 0"
    return f"({STORED[out]})({expression})"


def numbers(equation: Equation, kind: str) -> dict[str, str]:
    """The numbers that an equation's arguments and parameters are, as C."""
    names: dict[str, str] = {}
    floats = {v.dtype for v in (*equation.values, *equation.outputs)} & {*FLOATS, *HALVES}
    if kind == "float32" and floats and floats <= HALVES.keys():
        kind = min(floats)  # numbers are of the dtype of arrays
    for name, given in zip(equation.op.signature.arguments, equation.inputs, strict=False):
        if not isinstance(given, Value):
            names[name] = literal(given, kind)
    defaults = {k: v for k, v in equation.op.signature.parameters.items() if not isinstance(v, type)}
    for parameter, value in (defaults | equation.params).items():
        if value is None or isinstance(value, (bool, int, float)):
            names.setdefault(parameter, literal(value, kind))
    return names


def statements(equation: Equation, code: str) -> str:
    """Statements of an op's author with the numbers that parameters are, and the runtime's functions."""
    kind = held(equation.values[0].dtype)
    names = numbers(equation, kind)
    suffix = {"float32": "_f32", "float64": "_f64"}.get(kind, "")

    def word(match: re.Match[str]) -> str:
        found = match[0]
        return f"lg_{found}{suffix}" if found in C_FUNCTIONS else names.get(found, found)

    return re.sub(r"(?<![\w.])[A-Za-z_]\w*", word, code)


def worded(text: str, names: dict[str, str], kind: str) -> str:
    """``text`` with these names replaced, numbers of dtype ``kind``, and functions by those of the runtime."""
    suffix = {"float32": "_f32", "float64": "_f64"}.get(kind, "")

    def word(match: re.Match[str]) -> str:
        found = match[0]
        if found[0].isdigit():
            return literal(float(found) if kind in FLOATS else int(found), kind)
        if found in names:
            return names[found]
        return f"lg_{'near_' if turns(f'{found}(') else ''}{found}{suffix}"

    return _WORD.sub(word, text)


def literal(value: Any, kind: str) -> str:
    """A number of dtype ``kind``, as NumPy converts it; None is nan, of which every comparison fails."""
    if type(value) is Extent and kind not in ("bool", *HALVES):
        return f"(({C_TYPES[kind]}){value})"
    if kind == "bool":
        return f"((uint8_t){int(bool(value))})"
    if kind not in (*FLOATS, *HALVES):
        return f"(({C_TYPES[kind]}){int(value or 0)}LL)" if abs(int(value or 0)) < 1 << 63 else "INT64_MIN"
    number = math.nan if value is None else float(value)
    if kind in HALVES:
        number, kind = nearest(number), held(kind)
    if math.isnan(number):
        return f"(({C_TYPES[kind]})NAN)"
    if math.isinf(number):
        return f"(({C_TYPES[kind]}){'-' if number < 0 else ''}INFINITY)"
    return f"(({C_TYPES[kind]}){number!r})"
