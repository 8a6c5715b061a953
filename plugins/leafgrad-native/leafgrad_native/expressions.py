"""Elementwise ops as C expressions, from the bodies that ops carry (``leafgrad.op(..., c="exp(-x * x)")``)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from leafgrad.compile.graph import Equation, Operand, Value

C_TYPES = {
    "float32": "float", "float64": "double", "bool": "uint8_t", "uint8": "uint8_t",
    "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
}  # fmt: skip
FLOATS = ("float32", "float64")
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*|(?<![\w.])\d+\.?\d*(?:e[+-]?\d+)?")


def body(equation: Equation) -> str | None:
    """The C expression of the equation's op; None if it has none."""
    match equation.name:
        case "clone" | "to_dtype":
            return "x"
        case "new_full":
            return "value"
        case "pow":
            return power(equation.inputs[1])
        case "clamp":
            low, high = (*equation.inputs, None, None)[1:3]
            text = "x" if low is None else "maximum(x, low)"
            return text if high is None else f"minimum({text}, high)"
    return equation.op.c


def turns(equation: Equation) -> bool:
    """Whether the body calls sin, cos or tan, which C computes only of angles that are not too large."""
    return bool(re.search(r"\b(sin|cos|tan)\(", body(equation) or ""))


def power(y: Operand) -> str:
    """Small whole powers and roots as NumPy's own shortcuts have them."""
    common = {1: "x", 2: "x * x", 3: "x * x * x", 4: "(x * x) * (x * x)", 0.5: "sqrt(x)", -1: "1 / x"}
    return common.get(y, "pow(x, y)") if isinstance(y, (int, float)) else "pow(x, y)"


def fits(equation: Equation) -> bool:
    """Whether the equation can be computed element by element in C."""
    text = body(equation)
    if text is None or len(equation.outputs) != 1 or "random" in equation.op.traits:
        return False
    if any(v.dtype not in C_TYPES for v in (*equation.values, equation.out)):
        return False
    if any(v is not None and not isinstance(v, (Value, bool, int, float)) for v in equation.inputs):
        return False
    kind = compute_type(equation)
    if kind is None:
        return False
    return kind in FLOATS or equation.name in ("to_dtype", "new_full") or not re.search(r"[a-z]\(|/", text)


def compute_type(equation: Equation) -> str | None:
    """The dtype in which the body is evaluated, which its functions and numbers take; None: NumPy's is not C's."""
    out = equation.out.dtype
    if equation.name in ("to_dtype", "clone"):
        return equation.values[0].dtype
    if out in FLOATS:
        return max([out, *(v.dtype for v in equation.values if v.dtype in FLOATS)])
    if out != "bool":
        return out
    kinds = {v.dtype for v in equation.values}
    floats = kinds & set(FLOATS)
    if floats:
        return max(floats) if kinds <= {*FLOATS, "bool"} else None
    numbers = [v for v in equation.inputs if isinstance(v, (int, float))]
    exact = all(isinstance(v, int) and -(1 << 63) <= v < 1 << 63 for v in numbers)
    return "int64" if exact else None  # numbers need not fit the dtype that they are compared with


def render(equation: Equation, reads: Sequence[str | None]) -> str:
    """The body with ``reads`` for its arrays (None for a number), cast to the dtype of the output."""
    kind = compute_type(equation)
    text = body(equation)
    assert kind is not None
    assert text is not None
    names: dict[str, str] = {}
    arguments = equation.op.signature.arguments
    for i, (given, read) in enumerate(zip(equation.inputs, reads, strict=True)):
        if read is not None:
            names[arguments[i]] = f"(({C_TYPES[kind]}){read})"
        elif not isinstance(given, Value):
            names[arguments[i]] = literal(given, kind)
    defaults = {k: v for k, v in equation.op.signature.parameters.items() if not isinstance(v, type)}
    for parameter, value in (defaults | equation.params).items():
        if value is None or isinstance(value, (bool, int, float)):
            names.setdefault(parameter, literal(value, kind))
    suffix = {"float32": "_f32", "float64": "_f64"}.get(kind, "")

    def word(match: re.Match[str]) -> str:
        found = match[0]
        if found[0].isdigit():
            return literal(float(found) if kind in FLOATS else int(found), kind)
        if found in names:
            return names[found]
        return f"lg_{'near_' if found in ('sin', 'cos', 'tan') else ''}{found}{suffix}"

    expression = _WORD.sub(word, text)
    out = equation.out.dtype
    if out == "bool":
        return f"({expression}) != 0"
    return f"({C_TYPES[out]})({expression})"


def literal(value: Any, kind: str) -> str:
    """A number of dtype ``kind``, as NumPy converts it; None is nan, of which every comparison fails."""
    if kind == "bool":
        return f"((uint8_t){int(bool(value))})"
    if kind not in FLOATS:
        return f"(({C_TYPES[kind]}){int(value or 0)}LL)" if abs(int(value or 0)) < 1 << 63 else "INT64_MIN"
    number = math.nan if value is None else float(value)
    if math.isnan(number):
        return f"(({C_TYPES[kind]})NAN)"
    if math.isinf(number):
        return f"(({C_TYPES[kind]}){'-' if number < 0 else ''}INFINITY)"
    return f"(({C_TYPES[kind]}){number!r})"
