"""Symbols: what Tensors hold while a function is traced."""

from __future__ import annotations

import math
from typing import Any

from leafgrad import devices, dtypes, modes
from leafgrad.compile import shapes
from leafgrad.compile.graph import Value
from leafgrad.errors import TraceError
from leafgrad.ops import messages
from leafgrad.ops.node import SymbolBase
from leafgrad.tensor.operators import Operators


class Symbol(Operators, SymbolBase):
    """A value of the program being recorded.

    ``array``, what it is in this run of the function, is computed when something asks for it: ops of which only a run
    tells what they make. The program never sees it. ``weak`` symbols stand for Python numbers and give way to tensors
    in type promotion.
    """

    __slots__ = ("__weakref__", "tracer", "value", "weak")

    def __init__(self, tracer: Any, value: Value, weak: bool = False) -> None:
        self.tracer = tracer
        self.value = value
        self.weak = weak

    @property
    def array(self) -> Any:
        return self.tracer.array(self.value)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def dtype(self) -> Any:
        return shapes.one(self.value.place, self.value.dtype, 0).dtype

    @property
    def size(self) -> int:
        return math.prod(self.value.shape)

    @property
    def nbytes(self) -> int:
        return self.size * dtypes.BY_NAME[self.value.dtype].itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        found: tuple[int, ...] = self.array.strides
        return found

    @property
    def device(self) -> devices.device:
        return devices.at(*self.value.place)

    def bind(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not modes.get() & modes.TRACE or modes.TRACER.get() is not self.tracer:
            raise TraceError(
                f"{op.name}: a tensor that was made while tracing was kept and is used outside, at "
                f"{messages.user_line()}; return it from the traced function instead of storing it"
            )
        return self.tracer.bind(op, args, params)

    @property
    def place(self) -> tuple[str, int]:
        return self.value.place

    def withheld(self, what: str) -> Exception:
        return TraceError(
            f"{what} needs a value, but inside a traced function values are known only when the compiled program "
            f"runs, at {messages.user_line()}. Return the tensor and read it outside, branch with leafgrad.where, "
            "or compute with the tensor itself"
        )

    def __bool__(self) -> bool:
        raise TraceError(
            f"the truth of a traced value is not known while tracing, at {messages.user_line()}; branch on shapes, "
            "or use leafgrad.where"
        )

    def __repr__(self) -> str:
        return f"<symbol {self.value.dtype} {self.value.shape}>"
