"""The device "meta": tensors that have a shape and a dtype, and no elements.

What an op makes of them has the shape that the rules of the compiler say; where there is no rule, the op runs on zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from leafgrad import backends, modes
from leafgrad.backends import Backend, Generator
from leafgrad.compile.ir import shapes
from leafgrad.compile.ir.graph import Value
from leafgrad.compile.ir.shapes import StandIn
from leafgrad.errors import TraceError
from leafgrad.ops import create, poisson, random
from leafgrad.ops.convert import to_device
from leafgrad.ops.op import Op
from leafgrad.tensor.operators import Operators

Shape = tuple[int, ...]
CPU: Final = ("cpu", 0)
NO_DATA = (
    "Cannot copy out of meta tensor; no data! ({what}) Make the tensor on another device, or use Module.to_empty() "
    "instead of Module.to() and load or initialize the parameters then"
)


class MetaArray(Operators, StandIn):
    """A shape and a dtype. A view of another one has it, or what that one is a view of, as its ``base``."""

    __slots__ = ("__weakref__", "base", "shape", "value")

    def __init__(self, shape: Sequence[int], dtype: str, base: MetaArray | None = None) -> None:
        self.value = Value(tuple(shape), dtype, CPU)
        self.shape = self.value.shape
        self.base = base

    @property
    def place(self) -> tuple[str, int]:
        return "meta", 0

    def bind(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """What ``op`` makes of it."""
        if modes.tracer():
            raise TraceError(f"{op.name}: tensors on the device meta cannot be traced or compiled")
        if op is to_device:
            raise self.withheld(f"to {params['device'][0]}")
        operands = [a.value if isinstance(a, MetaArray) else a for a in args]
        try:
            found = shapes.predict(op, operands, params)
            several = isinstance(found, tuple)
            made = list(found) if isinstance(found, tuple) else [found]
        except shapes.Unknown:
            result = op.compute(tuple(map(shapes.zeros_for, operands)), params)
            several = type(result) is tuple
            made = [Value(tuple(r.shape), r.dtype.name, CPU) for r in (result if several else (result,))]
        base = (self.base or self) if "view" in op.traits else None
        arrays = tuple([MetaArray(v.shape, v.dtype, base) for v in made])
        return arrays if several else arrays[0]

    def withheld(self, what: str) -> Exception:
        return NotImplementedError(NO_DATA.format(what=what))

    def copy(self) -> MetaArray:
        return MetaArray(self.shape, self.value.dtype)

    def __getitem__(self, key: Any) -> MetaArray:
        """The shape that a basic index leaves; a view."""
        part = backends.by_device_type("cpu").hollow(self.shape, self.value.dtype)[key]
        return MetaArray(part.shape, self.value.dtype, self.base or self)

    def __setitem__(self, key: Any, value: Any) -> None:
        """There is nothing to write."""

    def __repr__(self) -> str:
        return f"<meta {self.value.dtype} {self.shape}>"


class MetaBackend(Backend):
    """Makes MetaArrays. Functions that have no kernel here make arrays of NumPy's, of which the elements are left."""

    name = "meta"
    device_type = "meta"
    array_type = MetaArray
    has_bfloat16 = True

    def __init__(self) -> None:
        self.host = backends.by_device_type("cpu")
        self.xp = self.host.xp
        for module in (create, random, poisson):
            for op in vars(module).values():
                if isinstance(op, Op) and {"shape", "dtype"} <= op.signature.parameters.keys():
                    op.kernels["meta"] = _of_shape

    def device_count(self) -> int:
        return 1

    def device_index(self, array: Any) -> int:
        return 0

    def from_host(self, array: Any, index: int = 0) -> MetaArray:
        return MetaArray(array.shape, array.dtype.name)

    def to_host(self, array: Any) -> Any:
        raise array.withheld("to the CPU")

    def asarray(self, value: Any, dtype: str | None = None, index: int = 0) -> MetaArray:
        return value if isinstance(value, MetaArray) else self.from_host(self.host.asarray(value, dtype))

    def strided(self, array: Any, shape: Sequence[int], strides: Sequence[int]) -> MetaArray:
        return MetaArray(shape, array.value.dtype, array.base or array)

    def address(self, array: Any) -> int:
        return 0

    def wrap(self, value: Any) -> MetaArray:
        return value if isinstance(value, MetaArray) else self.from_host(value)

    def generator(self, index: int = 0) -> Generator:
        return self.host.generator()

    def synchronize(self, index: int = 0) -> None:
        """There is nothing to wait for."""

    def item(self, array: Any) -> bool | int | float | complex:
        raise array.withheld("item()")

    def device_scope(self, index: int = 0) -> AbstractContextManager[Any]:
        return nullcontext()


def _of_shape(xp: Any, *, shape: Shape, dtype: str, **others: Any) -> MetaArray:
    """The kernel of ops that make an array of a shape and a dtype."""
    return MetaArray(shape, dtype)
