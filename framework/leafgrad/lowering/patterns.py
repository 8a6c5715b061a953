"""How an op becomes generated code: what the rules of ``op.lower("native", rule)`` return.

A rule is called as ``rule(c, equation)``, where ``c`` has the functions below, with those of the target that asks, and
the equation says what goes in and comes out; it returns one of the patterns that they make, or None if this equation is
not for generated code. An elementwise op with a C expression (``leafgrad.op(..., c="exp(-x * x)")``) needs no rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.errors import CompileError
from leafgrad.lowering import expressions, lookups
from leafgrad.lowering.expressions import C_TYPES, FLOATS, held
from leafgrad.lowering.forms import Form, Root, Stride, full
from leafgrad.lowering.kernels import Copy, Draw, Lines, Normalize, Reduce, Select
from leafgrad.lowering.pattern import Pattern, one_float
from leafgrad.ops.traits import dims

if TYPE_CHECKING:
    from leafgrad.lowering.lowering import Lowering

Seen = Callable[[Form, Stride], "Form | list[Form] | None"]


@dataclass(frozen=True)
class Target:
    """Who generates code.

    Attributes:
        rules: whose rules are asked, ``op.lower(name, rule)``: the first of these names that an op has a rule for.
        devices: the types of devices that its code runs on.
        words: the module whose functions rules call; its ``__all__`` names them.
        types: by dtype, the types that its code knows.
    """

    rules: tuple[str, ...]
    devices: tuple[str, ...]
    words: Any
    types: Mapping[str, str] = field(default_factory=lambda: C_TYPES)

    def pattern(self, e: Equation) -> Pattern | None:
        """The pattern by which an equation is lowered; None if it is not for generated code."""
        values = [*e.values, *e.outputs]
        if not values or any(v.dtype not in self.types or 0 in v.shape for v in values):
            return None
        if any(v.place[0] not in self.devices for v in values):
            return None
        if goes_beyond(e):
            return None
        found = self.told(e)
        return found if found is not None and found.fits(e) else None

    def told(self, e: Equation) -> Pattern | None:
        """What the op's rule returns, which is a pattern or None; without a rule, its C expression."""
        name = next((name for name in self.rules if name in e.op.lowering), None)
        if name is None:
            return None if e.op.c is None else elementwise(e.op.c)
        wrong = partial(
            "op {!r}, lower rule for {!r} from {}: {}".format, e.name, name, e.op.origins.get(f"lower {name}")
        )
        try:
            found = e.op.lowering[name](self.words, e)
            if getattr(found, "dim", None) is not None:
                found.dim = counted(found.dim, e)
        except Exception as error:
            raise CompileError(wrong(f"{type(error).__name__}: {error}")) from error
        if found is not None and not isinstance(found, Pattern):
            known = ", ".join(f"c.{name}" for name in self.words.__all__)
            raise CompileError(wrong(f"expected what a function of c returns ({known}), or None, got {found!r}"))
        return found


def counted(dim: Any, e: Equation) -> Any:
    """A dimension, or several, of the largest array, counted from the front."""
    ndim = max(v.ndim for v in (*e.values, *e.outputs))
    for d in dims(dim, ndim):
        if not -ndim <= d < ndim:
            raise IndexError(f"dim: expected a dimension from {-ndim} to {ndim - 1}, got {d}")
    return dim % ndim if isinstance(dim, int) else tuple([d % ndim for d in dim])


def goes_beyond(e: Equation) -> bool:
    """Whether it runs along dimension 0 of an array without dimensions: what that means, the op alone knows."""
    dim = e.params.get("dim", e.params.get("dims", ()))
    return bool(e.values) and not e.values[0].ndim and dim not in ((), None)


# ---- elements -------------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Elementwise(Pattern):
    """One element from the same element of each array."""

    body: expressions.Body

    def fits(self, e: Equation) -> bool:
        return "random" not in e.op.traits and expressions.fits(e, self.body)

    def lower(self, low: Lowering, e: Equation) -> None:
        low.elementwise(e, self.body)


def elementwise(text: str, kind: str | None = None, arrays: bool = True) -> Elementwise:
    """Each element as a C expression of the arguments and parameters.

    Args:
        text: as in ``leafgrad.op(..., c=text)``.
        kind: the dtype in which it is evaluated; by default as arithmetic between these dtypes is.
        arrays: False if it reads none of its arrays.
    """
    return Elementwise(expressions.Body(text, kind, arrays))


# ---- layout ---------------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class View(Pattern):
    """The same elements, seen otherwise: no code, where strides can say it, else after a copy."""

    seen: Seen
    fixed = True

    def lower(self, low: Lowering, e: Equation) -> None:
        (x,), (value,) = low.operands(e), e.values
        low.time.update(dict.fromkeys(e.outputs, low.time.get(value, -1) + 0.5))
        axis = low.axis(e.out)
        found = self.seen(x, axis) or self.seen(low.ordered(e, x), axis)
        assert found is not None
        low.made.update(zip(e.outputs, found if isinstance(found, list) else [found], strict=True))


def view(seen: Seen) -> View:
    """What ``seen(x, axis)`` makes of the only argument by the methods of ``Form``.

    ``axis`` is the batch axis of the result in a loop over chunks, else None. It returns None where strides cannot say
    it of an array whose elements do not lie in order; several results are a list.
    """
    return View(seen)


@dataclass(eq=False, repr=False)
class Placed(Pattern):
    """An array in a part of a larger one that holds a number elsewhere."""

    at: Sequence[Any]
    number: Any
    fixed = True

    def fits(self, e: Equation) -> bool:
        return isinstance(self.number, (int, float))

    def lower(self, low: Lowering, e: Equation) -> None:
        target = low.new(e.out).part(self.at)
        assert target is not None
        low.add(Copy(e, low.operands(e), target, self.number), e.out)


def placed(at: Sequence[Any], number: float = 0) -> Placed:
    """The argument where the basic index ``at`` says, ``number`` elsewhere."""
    return Placed(at, number)


@dataclass(eq=False, repr=False)
class Join(Pattern):
    """Arrays one after the other; those that are made here are made in their place."""

    dim: int | None

    def fits(self, e: Equation) -> bool:
        return len({v.dtype for v in (*e.values, e.out)}) == 1 and all(isinstance(v, Value) for v in e.inputs)

    def lower(self, low: Lowering, e: Equation) -> None:
        low.join(e, self.dim)


def join(dim: int | None = None) -> Join:
    """The arguments one after the other along ``dim``; None: their elements, as one vector."""
    return Join(dim)


# ---- arrays out of nothing ------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Filled(Pattern):
    """One number everywhere."""

    number: Any
    fixed = True

    def lower(self, low: Lowering, e: Equation) -> None:
        low.add(Copy(e, (), low.new(e.out), self.number), e.out)


def filled(number: float) -> Filled:
    """``number`` everywhere."""
    return Filled(number)


class Constant(Pattern):
    """An array that is made once, with the program, by the op itself."""

    fixed = True

    def lower(self, low: Lowering, e: Equation) -> None:
        low.made[e.out] = full(Root(e.out.shape, e.out.dtype))


def constant() -> Constant:
    """What the op makes is the same at each call."""
    return Constant()


class Random(Pattern):
    """Random zeros and ones by a counter."""

    fixed = True

    def fits(self, e: Equation) -> bool:
        return held(e.out.dtype) in FLOATS

    def lower(self, low: Lowering, e: Equation) -> None:
        low.add(Draw(e, (), low.new(e.out)), e.out)


def draw() -> Random:
    """Ones with probability ``p``, zeros otherwise, of the op's ``generator``."""
    return Random()


# ---- along dimensions -----------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Reduction(Pattern):
    """Sums, products or extremes over dimensions."""

    kind: str
    dim: int | tuple[int, ...] | None
    mean: bool
    each: str = "x"
    then: str = "x"

    def fits(self, e: Equation) -> bool:
        return one_float(e)

    def lower(self, low: Lowering, e: Equation) -> None:
        (x,) = low.operands(e)
        over = dims(self.dim, len(x.shape))
        total = x.axis is not None and x.axis in over
        target = low.accumulator(e.out) if total else low.new(e.out)
        low.add(Reduce(e, (x,), target, over, total, self.kind, self.mean, self.each, self.then), e.out)


def reduction(kind: str, dim: int | tuple[int, ...] | None, mean: bool = False) -> Reduction:
    """The argument over ``dim``: a dimension, some, or all for None.

    Args:
        kind: ``"+"``, ``"*"``, ``"max"`` or ``"min"``.
        mean: a sum is divided by the number of its terms.
    """
    return Reduction(kind, dim, mean)


@dataclass(eq=False, repr=False)
class Softmax(Pattern):
    """Softmax and its kin."""

    kind: str
    dim: int | tuple[int, ...] | None

    def fits(self, e: Equation) -> bool:
        return one_float(e)

    def lower(self, low: Lowering, e: Equation) -> None:
        low.add(Normalize(e, low.operands(e), low.new(e.out), dims(self.dim, e.values[0].ndim), self.kind), e.out)


def normalized(kind: str, dim: int | tuple[int, ...] | None) -> Softmax:
    """``"softmax"``, ``"log_softmax"`` or ``"logsumexp"`` of the argument over ``dim``."""
    return Softmax(kind, dim)


@dataclass(eq=False, repr=False)
class Along(Pattern):
    """Code for one line along a dimension."""

    code: str
    dim: int | tuple[int, ...] | None
    mixed: bool

    def fits(self, e: Equation) -> bool:
        if not all(isinstance(v, Value) for v in e.inputs):
            return False
        one = len(dims(self.dim, e.values[0].ndim)) == 1 or (self.mixed and self.dim is None)
        return one and (self.mixed or one_float(e)) and not expressions.turns(self.code)

    def lower(self, low: Lowering, e: Equation) -> None:
        sources, out, dim = lines(low, e, self.dim)
        low.add(Lines(e, sources, out, self.code, dim), e.out)


def lines(low: Lowering, e: Equation, dim: int | tuple[int, ...] | None) -> tuple[tuple[Form, ...], Form, int]:
    """The arguments in one shape, the result, and the dimension of their lines; for None, one line of all elements."""
    shape = e.values[0].shape
    sources = tuple([x.expand(shape) for x in low.operands(e)])
    if dim is not None:
        return sources, low.new(e.out), dims(dim, len(shape))[0]
    return tuple([vector(low, e, x) for x in sources]), vector(low, e, low.new(e.out)), 0


def vector(low: Lowering, e: Equation, x: Form) -> Form:
    """All elements in order, as one vector."""
    size = (math.prod(x.shape),)
    found = x.reshape(size, None) or low.ordered(e, x).reshape(size, None)
    assert found is not None
    return found


def along(code: str, dim: int | tuple[int, ...] | None, mixed: bool = False) -> Along:
    """C statements that compute each line of the result along ``dim`` from the same line of the arguments.

    In them ``x(i)`` is element i of the argument named x, ``n`` the length of a line, ``out(i)`` an element of the
    result (``out(0)`` if ``dim`` is gone or of size 1), ``real`` the dtype; parameters that are numbers are known by
    their names, and so are the functions of C expressions, but for sin, cos and tan, which C has of small angles only.
    Where ``dim`` says several dimensions, C leaves the op alone. All arrays are of one floating dtype, or, with
    ``mixed``, of any; ``real`` is then that of the first, and None as ``dim`` makes all elements one line.
    """
    if not isinstance(code, str):
        raise TypeError(f"along: code: expected C statements as a string, got {type(code).__name__}")
    return Along(code, dim, mixed)


# ---- look-ups -------------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class OneOfMany(Pattern):
    """One class of many, read or written."""

    dim: int
    ignore: int
    reads: bool

    def fits(self, e: Equation) -> bool:
        return e.values[1].dtype == "int64" and e.values[0].dtype == e.out.dtype

    def lower(self, low: Lowering, e: Equation) -> None:
        low.add(Select(e, low.operands(e), low.new(e.out), self.dim, self.ignore, self.reads), e.out)


def pick(dim: int, ignore: int) -> OneOfMany:
    """The first argument at the class along ``dim`` that the second names; 0 where that is ``ignore``."""
    return OneOfMany(dim, ignore, reads=True)


def place(dim: int, ignore: int) -> OneOfMany:
    """Zeros with the first argument at the class along ``dim`` that the second names, but where that is ``ignore``."""
    return OneOfMany(dim, ignore, reads=False)


@dataclass(eq=False, repr=False)
class Indexed(Pattern):
    """Elements read and written by index arrays."""

    how: lookups.How

    def fits(self, e: Equation) -> bool:
        return lookups.fits(e, self.how)

    def lower(self, low: Lowering, e: Equation) -> None:
        given = {v: low.operand(e, i) for i, v in enumerate(e.inputs) if isinstance(v, Value)}
        low.add(lookups.lookup(e, self.how, given, low.new(e.out)), e.out)


def lookup(kind: str, dims: Sequence[int], at: int, along: bool = False) -> Indexed:
    """Elements of a table that index arrays name.

    Args:
        kind: ``"read"``: the first argument there. ``"add"``: zeros, with the first argument added there. ``"write"``,
            ``"max"``, ``"min"``: the first argument, with the other that is no index array put there.
        dims: the dimensions of the table that the index arrays choose, one each.
        at: which arguments are index arrays: from this one on; with ``along``, this one alone.
        along: whether an element has its own place along the other dimensions, as in ``gather``; else the index arrays
            broadcast together, and their dimensions stand where ``dims`` stood.
    """
    return Indexed(lookups.How(kind, tuple(dims), at, along))
