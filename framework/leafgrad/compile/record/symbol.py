"""Symbols: what Tensors hold while a function is traced."""

from __future__ import annotations

from typing import Any

from leafgrad import modes
from leafgrad.compile.ir.graph import Value
from leafgrad.compile.ir.shapes import StandIn
from leafgrad.errors import TraceError
from leafgrad.ops import messages
from leafgrad.tensor.operators import SymbolOperators


class Symbol(SymbolOperators, StandIn):
    """A value of the program being recorded, by the recorder ``tracer``."""

    __slots__ = ("__weakref__", "shape", "tracer", "value")

    def __init__(self, tracer: Any, value: Value) -> None:
        self.tracer = tracer
        self.value = value
        self.shape = value.shape

    def bind(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        here = modes.tracer() is self.tracer
        if not here:
            raise self.lost(op.name) or TraceError(
                f"{op.name}: a tensor that was made while tracing is used in another thread, or was kept and is used "
                f"outside, at {messages.user_line()}; return it from the traced function instead of storing it"
            )
        return self.tracer.bind(op, args, params)

    def withheld(self, what: str) -> Exception:
        return self.lost(what) or TraceError(
            f"{what} needs a value, but this tensor was made in a traced function whose program has not run, at "
            f"{messages.user_line()}: in another thread, or kept from leafgrad.trace. Return it from the function, and "
            "read it then"
        )

    def stale(self) -> Exception:
        """The error of using it in another recording."""
        return self.lost("a compiled step") or TraceError(
            f"a tensor from an earlier trace, or of a trace in another thread, is used at {messages.user_line()}; "
            "return it from the traced function instead of storing it"
        )

    def lost(self, user: str) -> Exception | None:
        """The error of using what was never computed."""
        if not self.tracer.failed:
            return None
        return TraceError(
            f"{user} needs a value, at {messages.user_line()}, but the compiled call that made this tensor failed "
            f"before it was computed: {self.tracer.failed}. Make the tensor anew"
        )

    def __bool__(self) -> bool:
        raise TraceError(
            f"the truth of a traced value is not known while tracing, at {messages.user_line()}; branch on shapes, "
            "or use leafgrad.where"
        )

    def __repr__(self) -> str:
        return f"<symbol {self.value.dtype} {self.value.shape}>"
