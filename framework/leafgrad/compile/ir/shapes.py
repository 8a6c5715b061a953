"""What an op makes of arrays of given shapes and dtypes, found without making it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from leafgrad import backends, devices, dtypes
from leafgrad.compile.ir.extent import present
from leafgrad.compile.ir.graph import Operand, Place, Value
from leafgrad.compile.ir.lengths import changed
from leafgrad.errors import CompileError
from leafgrad.ops.abstract import Abstract, Shape
from leafgrad.ops.node import SymbolBase
from leafgrad.ops.op import Op
from leafgrad.ops.signature import declared


class StandIn(SymbolBase):
    """What stands for an array of the shape and dtype of a Value, and has no elements."""

    __slots__ = ()
    value: Value

    @property
    def ndim(self) -> int:
        return len(self.value.shape)

    @property
    def size(self) -> int:
        return math.prod(self.value.shape)

    @property
    def dtype(self) -> Any:
        return one(self.value.place, self.value.dtype, 0).dtype

    @property
    def nbytes(self) -> int:
        return self.size * dtypes.BY_NAME[self.value.dtype].itemsize

    @property
    def place(self) -> Place:
        return self.value.place

    @property
    def device(self) -> devices.device:
        return devices.at(*self.place)


class Unknown(CompileError):
    """Only running the op can tell what it makes, or why it fails."""


def shape_of(operand: Operand) -> Shape:
    return operand.shape if isinstance(operand, Value) else ()


def predict(op: Op, inputs: Sequence[Operand], params: dict[str, Any]) -> Value | tuple[Value, ...]:
    """A value like what an op makes of inputs, at least one of them a Value; several if it makes several.

    Raises:
        Unknown: the op has no shape rule, or its rule leaves it to the op. CompileError: the rule fails.
    """
    values = [v for v in inputs if isinstance(v, Value)]
    place = values[0].place
    if any(0 in v.shape or v.place != place for v in values):
        raise Unknown(f"{op.name} has inputs without elements, or on several devices")
    return foretell(op, inputs, params)


def foretell(op: Op, inputs: Sequence[Operand], params: dict[str, Any]) -> Value | tuple[Value, ...]:
    """The same of inputs that may be without elements."""
    values = [v for v in inputs if isinstance(v, Value)]
    place = values[0].place
    found = apply(op, inputs, params)
    if is_of_trait(op):
        made = sample(op, inputs, params)
        if type(made) is tuple:
            return tuple([Value(found, str(m.dtype.name), place) for m in made])
        return Value(found, str(made.dtype.name), place)
    if not op.mixes_dtypes and any(v.dtype != values[0].dtype for v in values):
        raise Unknown(f"{op.name} has inputs of several dtypes")
    if isinstance(found, list):
        return tuple([value(op, f, values[0], place) for f in found])
    return value(op, found, values[0], place)


def result_shape(op: Op, inputs: Sequence[Operand], params: dict[str, Any]) -> Shape:
    """The shape of the one array that an op makes of inputs. Raises Unknown."""
    found = apply(op, inputs, params)
    if isinstance(found, list):
        raise Unknown(f"{op.name} makes several arrays")
    return found.shape if isinstance(found, Abstract) else tuple(found)


# ---- rules --------------------------------------------------------------------------------------------------------


def is_of_trait(op: Op) -> bool:
    """Whether the shape rule is that of a trait, which says nothing of the dtype."""
    return op.origins.get("shape", "").startswith("trait ")


def apply(op: Op, inputs: Sequence[Operand], params: dict[str, Any]) -> Any:
    """What the shape rule of ``op`` returns: a shape, an Abstract, or a list of these."""
    rule = op.shaping
    if rule is None:
        raise Unknown(f"{op.name} has no rule for the shape of its result")
    arguments = [abstract(v) for v in inputs]
    arguments += [None] * (len(op.signature.arguments) - len(arguments))
    try:
        found = rule(*arguments, **{name: params[name] for name in wanted(rule) if name in params})
    except (ValueError, IndexError) as error:
        op.signature.bind(params)  # a misspelt parameter is named
        raise Unknown(f"{op.name}: {error}") from None
    except Exception as error:
        op.signature.bind(params)
        raise failed(op, f"{type(error).__name__}: {error}") from error
    if found is None or (has_floats(found) and has_floats([*params.values()])):  # in place of an int
        raise Unknown(f"{op.name} itself must tell what it makes")
    return found


def has_floats(found: Any) -> bool:
    """Whether a float is among shapes, or parameters."""
    if isinstance(found, Abstract):
        found = found.shape
    return any(map(has_floats, found)) if isinstance(found, (tuple, list)) else isinstance(found, float)


@functools.cache
def wanted(rule: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters that a rule takes."""
    return tuple(declared(rule)[1])


def given_shape(*, shape: Shape) -> Shape:
    """The shape of what an op of this package makes of no arrays but a shape."""
    return shape


def unknown() -> Shape:
    """Nobody knows the shape of what an op makes: it depends on no size that may change."""
    return ()


def abstract(operand: Operand) -> Abstract | None:
    if isinstance(operand, Value):
        return Abstract(operand.shape, operand.dtype)
    return None if operand is None else Abstract(())


def value(op: Op, found: Any, first: Value, place: Place) -> Value:
    """The Value that a rule's answer stands for; of the dtype of ``first`` if it names none."""
    shape, dtype = found if isinstance(found, Abstract) else (found, None)
    if not isinstance(shape, (tuple, list)) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise failed(op, f"expected a shape, x.like(shape, dtype), a list of these, or None, got {found!r}")
    if dtype is not None and dtype not in dtypes.BY_NAME:
        raise failed(op, f"expected the name of a dtype, got {dtype!r}")
    return Value(tuple(shape), dtype or first.dtype, place)


def failed(op: Op, why: str) -> CompileError:
    return CompileError(f"op {op.name!r}, shape rule from {op.origins.get('shape')}: {why}")


# ---- examples -----------------------------------------------------------------------------------------------------


def sample(op: Op, inputs: Sequence[Operand], params: dict[str, Any]) -> Any:
    """What the op makes of arrays of one element: of the dtype that it makes of others."""
    try:
        arrays = [one(v.place, v.dtype, v.ndim) if isinstance(v, Value) else present(v) for v in inputs]
        return op.compute(tuple(arrays), changed(params, present))
    except Exception as error:  # the op's own, of any kind: it may be due to the one element
        raise Unknown(f"{op.name}: {error}") from error


@functools.cache
def one(place: Place, dtype: str, ndim: int) -> Any:
    """An array of one element, 1."""
    backend = backends.by_device_type(place[0])
    with backend.device_scope(place[1]):
        return backend.wrap(backend.xp.ones((1,) * ndim, dtype=dtype))


def zeros_for(operand: Operand) -> Any:
    """An array such as a value stands for; a number itself."""
    if not isinstance(operand, Value):
        return operand
    kind, index = operand.place
    backend = backends.by_device_type(kind)
    with backend.device_scope(index):
        return backend.wrap(backend.xp.zeros(operand.shape, dtype=operand.dtype))
