"""``@op``: how an op is made."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from typing import Any, Final, overload

from leafgrad.ops import messages
from leafgrad.ops.declarations import Forward
from leafgrad.ops.drawing import RandomOp
from leafgrad.ops.op import Op
from leafgrad.ops.signature import Signature
from leafgrad.ops.traits import TRAITS
from leafgrad.ops.transpose import pair

C_FUNCTIONS: Final = frozenset(
    "abs acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf erfc exp exp2 expm1 floor hypot log log10 "
    "log1p log2 logaddexp maximum minimum pow round sign sin sinh sqrt tan tanh trunc".split()
)
"""What the C expression of an op may call; nan goes through all of them, as it does in NumPy."""


@overload
def op(forward: Forward, /) -> Op: ...
@overload
def op(
    *traits: str,
    name: str | None = None,
    c: str | None = None,
    ufunc: str | None = None,
    transpose_of: Op | None = None,
) -> Callable[[Forward], Op]: ...
def op(
    *arguments: Any,
    name: str | None = None,
    c: str | None = None,
    ufunc: str | None = None,
    transpose_of: Op | None = None,
) -> Any:
    """Make an op of a forward function ``f(xp, x, y, *, parameter=...)``.

    Use it bare, or with traits: ``@op("elementwise", "float")``. ``leafgrad.ops.traits.TRAITS`` explains each.
    A plugin's ops are hidden from nobody: returned by its ``leafgrad_ops`` hook they belong to the registry.

    Args:
        name: the op's name; by default the function's, without trailing underscores.
        c: what an elementwise op computes of one element, as a C expression of its arguments and parameters, for
            executors that generate code: ``c="exp(-x * x)"``. Numbers take the dtype of the result; the functions
            are those of ``leafgrad.ops.define.C_FUNCTIONS``.
        ufunc: the one ufunc of the array namespace that the forward calls, ``"tanh"`` or ``"true_divide"``, for
            executors that have it write into memory of theirs.
        transpose_of: the op whose transpose this is, both linear in their first argument: each is then the gradient of
            the other. Apart from that argument they take the same, but for a parameter ``shape``: that of the result of
            the op that has it.

    Raises:
        OpDefinitionError: the first parameter is not ``xp``, a name is taken by vjp rules, an unknown trait or two that
            exclude each other, a C expression of an op that is not elementwise or with unknown names, or a
            ``transpose_of`` whose arguments do not fit.
    """
    if len(arguments) == 1 and callable(arguments[0]):
        return _make(arguments[0], name, frozenset(), c, ufunc, transpose_of)
    if not all(isinstance(trait, str) for trait in arguments):
        raise messages.definition(name or "op", f"expected a function or names of traits, got {arguments!r}")
    traits = frozenset(arguments)
    return lambda forward: _make(forward, name, traits, c, ufunc, transpose_of)


def _make(
    forward: Forward, name: str | None, traits: frozenset[Any], c: str | None, ufunc: str | None, transpose_of: Any
) -> Op:
    if not inspect.isfunction(forward):
        raise messages.definition(str(forward), f"expected a function f(xp, ...), got {type(forward).__name__}")
    name = name or forward.__name__.rstrip("_")
    if not (name.isascii() and name.isidentifier() and name == name.lower()):
        raise messages.definition(name, "expected a lower-case identifier as its name")
    if not traits <= TRAITS.keys():
        unknown = min(map(str, traits - TRAITS.keys()))
        raise messages.definition(name, f"unknown trait {unknown!r}; known are {', '.join(TRAITS)}")
    if traits >= {"complex", "holomorphic"}:
        raise messages.definition(name, "expected one of the traits 'complex' and 'holomorphic', got both")
    if "comparison" in traits:
        traits |= {"elementwise", "nondifferentiable"}
    quiet(forward.__module__)
    signature = Signature(forward, name)
    kinds = traits & {"elementwise", "reduction", "along"}
    if len(kinds) > 1:
        both = " and ".join(map(repr, sorted(kinds)))
        raise messages.definition(name, f"expected one of the traits {both}, got both")
    kind = RandomOp if "random" in traits else Op
    made = kind(forward, name, traits, signature)
    if c is not None:
        made.c = _checked(c, made)
        made.origins["c"] = f"{forward.__code__.co_filename}:{forward.__code__.co_firstlineno}"
    made.ufunc = ufunc
    if transpose_of is not None:
        pair(made, transpose_of)
    return made


def _checked(c: Any, op: Op) -> str:
    """The C expression of an op, of which each name must be known."""
    if not isinstance(c, str):
        raise messages.definition(op.name, f"c: expected text, a C expression of one result, got {c!r}")
    if "elementwise" not in op.traits:
        raise messages.definition(op.name, "c is for ops with the trait 'elementwise'")
    known = {*op.signature.arguments, *op.signature.parameters, *C_FUNCTIONS}
    for word in re.findall(r"(?<![\w.])[A-Za-z_]\w*", c):
        if word not in known:
            raise messages.definition(
                op.name, f"c: unknown name {word!r} in {c!r}; known are {', '.join(sorted(known))}"
            )
    if (wrong := _fault_in(c)) is not None:
        raise messages.definition(op.name, f"c: expected a C expression, got {c!r}, with {wrong}")
    return c


_TOKEN = re.compile(r"\s*([\w.]+(?:(?<=\d[eE])[-+]\d+)?[fFlLuU]*|&&|\|\||[<>=!]=|<<|>>|\S)")
_OPERATORS = "( ) , ? : + - * / % < > <= >= == != ! && || & | ^ ~ << >>".split()


def _fault_in(c: str) -> str | None:
    """What is wrong with the order of operands and operators in a C expression, if anything is."""
    depth, operand, before = 0, True, "the beginning"  # whether one comes next
    for token in _TOKEN.findall(c):
        word = token[0].isalnum() or token[0] in "_."
        if not word and token not in _OPERATORS:
            return repr(token)
        if operand != (word or token in "(-+!~") and not (token in "-+(" and not operand):
            return f"{token!r} after {before}"
        depth += (token == "(") - (token == ")")
        if depth < 0:
            return "a ')' too many"
        operand, before = not word and token != ")", repr(token)
    if c.count("?") != c.count(":"):
        return "not as many ':' as '?'"
    return f"an end after {before}" if operand else "a '(' too many" if depth else None


_quieted: set[str] = set()


def quiet(module: str | None) -> None:
    """inf and nan come without a warning, as in PyTorch: silence NumPy's in modules that run ops, there alone.

    One filter serves all modules of this package, since each costs time at its import.
    """
    if module:
        modules = r"leafgrad\." if module.startswith("leafgrad.") else re.escape(module) + "$"
        if modules not in _quieted:
            _quieted.add(modules)
            warnings.filterwarnings("ignore", category=RuntimeWarning, module=modules)
