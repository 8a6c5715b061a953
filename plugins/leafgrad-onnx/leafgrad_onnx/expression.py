"""Elementwise ops as nodes of ONNX, from the C expressions that ops carry (``leafgrad.op(..., c="exp(-x * x)")``).

Arithmetic is in the dtype of the result, as in C, or for comparisons in that of the arguments; small integers are
computed as int32, in which runtimes have all operators.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from leafgrad.compile.ir.graph import Equation, Value

if TYPE_CHECKING:
    from leafgrad_onnx.writer import OnnxWriter

TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(&&|\|\||[<>=!]=|[-+*/%<>!?:(),&|^~]))")
FLOATS = ("float16", "bfloat16", "float32", "float64")
ARITHMETIC = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div"}
COMPARISONS = {"<": "Less", "<=": "LessOrEqual", ">": "Greater", ">=": "GreaterOrEqual", "==": "Equal"}
BITS = {"&": "BitwiseAnd", "|": "BitwiseOr", "^": "BitwiseXor"}
NODES = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh",
    "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor", "log": "Log",
    "round": "Round", "sign": "Sign", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/"))


class Term(NamedTuple):
    """A value of ONNX, and whether it is a truth value; or a number of Python's, without a name."""

    name: str
    truth: bool = False
    number: Any = None


def written(w: OnnxWriter, e: Equation, text: str) -> str:
    """The nodes of a C expression of an equation's arguments and parameters."""
    kind = arithmetic(e)
    if kind is None:
        raise w.refusal(f"op {e.name!r}: no arithmetic for {[getattr(v, 'dtype', v) for v in e.inputs]}", e)
    return ExpressionParser(w, e, text, kind).result()


def arithmetic(e: Equation) -> str | None:
    """The dtype in which an equation is computed; None if it has none."""
    out = e.out.dtype
    kinds = [v.dtype for v in e.values]
    floats = [k for k in (out, *kinds) if k in FLOATS]
    if floats:
        return max(floats, key=FLOATS.index)
    if out == "bool" and any(isinstance(v, float) for v in e.inputs):
        return "float64"
    if "int64" in (out, *kinds):
        return "int64"
    return "int32" if {out, *kinds} <= {"bool", "uint8", "int8", "int16", "int32"} else None


class ExpressionParser:
    """One expression, read from left to right by precedence.

    Args:
        w: what nodes go to.
        e: gives the names in ``text`` their values.
        kind: the dtype of arithmetic.
    """

    def __init__(self, w: OnnxWriter, e: Equation, text: str, kind: str) -> None:
        self.w, self.e, self.kind = w, e, kind
        self.tokens = [next(filter(None, found)) for found in TOKEN.findall(text)] + [""]
        self.at = 0
        self.names = self.bound()

    def bound(self) -> dict[str, Term]:
        """The arguments and parameters as terms."""
        e = self.e
        arguments = e.op.signature.arguments
        given: dict[str, Any] = dict.fromkeys(arguments) | dict(zip(arguments, e.inputs, strict=False))
        parameters = {k: v for k, v in e.op.signature.parameters.items() if not isinstance(v, type)}
        found = {}
        for name, value in (given | parameters | e.params).items():
            if isinstance(value, Value):
                truth = value.dtype == "bool"
                found[name] = Term(self.w(value) if truth else self.w(value, self.kind), truth)
            elif value is None or isinstance(value, (bool, int, float)):
                found[name] = Term("", number=math.nan if value is None else value)
        return found

    def result(self) -> str:
        """The name of the result, of the dtype of the equation's."""
        term, out = self.ternary(), self.e.out
        if self.tokens[self.at]:
            raise self.w.refusal(f"op {self.e.name!r}: cannot read {self.tokens[self.at]!r} in its C expression")
        if term.name and out.dtype == "bool":
            name = self.truth(term)
        else:
            name = self.w.cast(self.value(term), out.dtype) if out.dtype != self.kind else self.value(term)
        if not term.name or not self.e.values:
            return self.w.expand(name, out.shape)
        if name in [self.w.names[v] for v in self.e.values]:
            return str(self.w.emit("Identity", name))
        shaped = [len(v.shape) for v in self.e.values]
        return name if max(shaped) == out.ndim else self.w.expand(name, out.shape)

    # ---- the two kinds of terms ---------------------------------------------------------------------------------

    def value(self, term: Term) -> str:
        """The name of a term as a number in the dtype of arithmetic."""
        if not term.name:
            number = term.number
            whole = self.kind not in FLOATS and not (isinstance(number, float) and math.isnan(number))
            return self.w.scalar(int(number) if whole else float(number), self.kind)
        return self.w.cast(term.name, self.kind) if term.truth else term.name

    def truth(self, term: Term) -> str:
        """The name of a term as a truth value."""
        if not term.name:
            return self.w.scalar(bool(term.number), "bool")
        if term.truth:
            return term.name
        return str(self.w.emit("Not", self.w.emit("Equal", term.name, self.w.scalar(0, self.kind))))

    def emit(self, kind: str, *terms: Term, **attributes: Any) -> Term:
        return Term(self.w.emit(kind, *[self.value(t) for t in terms], **attributes))

    def number(self, value: float) -> Term:
        return Term("", number=value)

    # ---- by precedence ------------------------------------------------------------------------------------------

    def take(self, *expected: str) -> str:
        """The next token if it is one of these, else nothing."""
        token = self.tokens[self.at]
        if token in expected:
            self.at += 1
            return token
        return ""

    def ternary(self) -> Term:
        condition = self.level(0)
        if not self.take("?"):
            return condition
        yes = self.ternary()
        self.take(":")
        no = self.ternary()
        if not condition.name:
            return yes if condition.number else no
        if yes.truth and no.truth:  # runtimes choose between numbers alone
            name = self.truth(condition)
            one = self.w.emit("And", name, yes.name)
            return Term(self.w.emit("Or", one, self.w.emit("And", self.w.emit("Not", name), no.name)), True)
        return self.where(condition, yes, no)

    def level(self, n: int) -> Term:
        if n == len(LEVELS):
            return self.unary()
        term = self.level(n + 1)
        while token := self.take(*LEVELS[n]):
            term = self.binary(token, term, self.level(n + 1))
        return term

    def binary(self, token: str, x: Term, y: Term) -> Term:
        if not x.name and not y.name:
            return self.number(FOLDED[token](x.number, y.number))
        if token in ARITHMETIC:
            return self.emit(ARITHMETIC[token], x, y)
        if token in BITS:
            if x.truth and y.truth:
                return Term(self.w.emit(BITS[token].removeprefix("Bitwise"), x.name, y.name), True)
            return self.emit(BITS[token], x, y)
        if token in ("&&", "||"):
            return Term(self.w.emit("And" if token == "&&" else "Or", self.truth(x), self.truth(y)), True)
        if x.truth and y.truth and token in ("==", "!="):
            same = self.w.emit("Equal", x.name, y.name)
        else:
            same = self.w.emit(COMPARISONS["==" if token == "!=" else token], self.value(x), self.value(y))
        return Term(self.w.emit("Not", same) if token == "!=" else same, True)

    def unary(self) -> Term:
        if self.take("-"):
            term = self.unary()
            return self.emit("Neg", term) if term.name else self.number(-term.number)
        if self.take("!"):
            term = self.unary()
            return Term(self.w.emit("Not", self.truth(term)), True) if term.name else self.number(not term.number)
        if self.take("("):
            term = self.ternary()
            self.take(")")
            return term
        token = self.tokens[self.at]
        self.at += 1
        if token[:1].isdigit():
            return self.number(float(token) if re.search(r"[.eE]", token) else int(token))
        if self.take("("):
            terms = [self.ternary()]
            while self.take(","):
                terms.append(self.ternary())
            self.take(")")
            return self.call(token, *terms)
        if token not in self.names:
            raise self.w.refusal(f"op {self.e.name!r}: {token!r} in its C expression is no number", self.e)
        return self.names[token]

    # ---- functions ----------------------------------------------------------------------------------------------

    def call(self, function: str, *terms: Term) -> Term:
        if function in NODES:
            return self.emit(NODES[function], *terms)
        found: Term = getattr(self, f"{function}_")(*terms)
        return found

    def where(self, condition: Term, x: Term, y: Term) -> Term:
        return Term(self.w.emit("Where", self.truth(condition), self.value(x), self.value(y)))

    def maximum_(self, x: Term, y: Term) -> Term:
        return self.emit("Max", x, y)

    def minimum_(self, x: Term, y: Term) -> Term:
        return self.emit("Min", x, y)

    def pow_(self, x: Term, y: Term) -> Term:
        found = self.emit("Pow", x, y)
        if self.kind in FLOATS or (not y.name and y.number >= 0):
            return found
        undefined = self.binary("&&", self.binary("==", x, self.number(0)), self.binary("<", y, self.number(0)))
        return self.where(undefined, self.number(0), found)

    def trunc_(self, x: Term) -> Term:
        return self.emit("Mul", self.emit("Sign", x), self.emit("Floor", self.emit("Abs", x)))

    def erfc_(self, x: Term) -> Term:
        return self.emit("Sub", self.number(1), self.emit("Erf", x))

    def exp2_(self, x: Term) -> Term:
        return self.emit("Pow", self.number(2), x)

    def log2_(self, x: Term) -> Term:
        return self.emit("Mul", self.emit("Log", x), self.number(1 / math.log(2)))

    def log10_(self, x: Term) -> Term:
        return self.emit("Mul", self.emit("Log", x), self.number(1 / math.log(10)))

    def log1p_(self, x: Term) -> Term:
        """log(u) x / (u - 1) of u = 1 + x, exact where u rounds (Higham 2002, 1.14.1)."""
        u = self.emit("Add", x, self.number(1))
        near = self.binary("||", self.binary("==", u, self.number(1)), self.binary(">", u, self.number(LARGE)))
        rest = self.emit("Div", self.emit("Mul", self.emit("Log", u), x), self.emit("Sub", u, self.number(1)))
        plain = self.where(self.binary("==", u, self.number(1)), x, self.emit("Log", u))
        return self.where(near, plain, rest)

    def expm1_(self, x: Term) -> Term:
        """tanh(x / 2) (exp(x) + 1), which loses nothing near 0; far from it exp(x) - 1."""
        e = self.emit("Exp", x)
        near = self.emit(
            "Mul", self.emit("Tanh", self.emit("Mul", x, self.number(0.5))), self.emit("Add", e, self.number(1))
        )
        small = self.binary("<", self.emit("Abs", x), self.number(1))
        return self.where(small, near, self.emit("Sub", e, self.number(1)))

    def hypot_(self, x: Term, y: Term) -> Term:
        x, y = self.emit("Abs", x), self.emit("Abs", y)
        top, low = self.emit("Max", x, y), self.emit("Min", x, y)
        plain = self.binary("||", self.binary("==", top, self.number(0)), self.binary("==", low, top))
        ratio = self.where(plain, self.emit("Sign", top), self.emit("Div", low, top))
        squares = self.emit("Add", self.emit("Mul", ratio, ratio), self.number(1))
        return self.where(
            self.binary("==", top, self.number(0)), top, self.emit("Mul", top, self.emit("Sqrt", squares))
        )

    def logaddexp_(self, x: Term, y: Term) -> Term:
        top, low = self.emit("Max", x, y), self.emit("Min", x, y)
        gap = self.where(self.binary("==", top, low), self.number(0), self.emit("Sub", low, top))
        return self.emit("Add", top, self.log1p_(self.emit("Exp", gap)))

    def atan2_(self, y: Term, x: Term) -> Term:
        """By the quarter: atan(y / x), plus or minus pi where x is negative, half pi where it is 0."""
        below = self.binary(
            "||", self.binary("<", y, self.number(0)), self.binary("<", self.emit("Reciprocal", y), self.number(0))
        )
        left = self.binary(
            "||", self.binary("<", x, self.number(0)), self.binary("<", self.emit("Reciprocal", x), self.number(0))
        )
        half = self.where(below, self.number(-math.pi / 2), self.number(math.pi / 2))
        turn = self.where(left, self.emit("Mul", half, self.number(2)), self.number(0))
        slope = self.emit("Add", self.emit("Atan", self.emit("Div", y, x)), turn)
        on_axis = self.binary("==", x, self.number(0))
        flat = self.where(self.binary("==", y, self.number(0)), turn, half)
        return self.where(on_axis, flat, slope)


LARGE = 1e30  # from which on log(1 + x) is log(x)

FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": lambda x, y: x / y,
    "<": lambda x, y: x < y, "<=": lambda x, y: x <= y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y, "!=": lambda x, y: x != y, "&&": lambda x, y: bool(x and y),
    "||": lambda x, y: bool(x or y),
}  # fmt: skip
