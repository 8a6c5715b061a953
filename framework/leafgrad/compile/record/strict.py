"""The recorder of ``leafgrad.trace``, which shows a program and runs none: what it cannot show is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad.compile.record.forwards import keeps_state
from leafgrad.compile.record.recorder import Recorder
from leafgrad.errors import TraceError
from leafgrad.ops import messages
from leafgrad.tensor.tensor import Tensor


class StrictRecorder(Recorder):
    """Refuses, with the line, what only a run of the program could tell."""

    def goes_outside(self, what: str) -> None:
        """A TraceError: no program finds the array again, and it would be right for that one graph alone."""
        raise TraceError(
            f"{what}: an array that the program does not know, at {messages.user_line()}. backward() reached a graph "
            "that was recorded outside of the traced function: detach() what comes from there, or move its computation "
            "inside"
        )

    def unfit(self, op: Any) -> str | None:
        """Why a program cannot run an op; None if it can."""
        return keeps_state(op)

    def at_once(self, op: Any, args: tuple[Any, ...], params: dict[str, Any], why: str) -> Any:
        """A TraceError: programs run the forwards of ops as often as they like."""
        raise TraceError(
            f"op {op.name!r}, at {messages.user_line()}: its forward has state, {why}; a program may run it more "
            "than once, in parts. Make it a function of its arguments"
        )

    def reveal(self, tensor: Tensor, what: str) -> Any:
        """A TraceError: here are no values."""
        raise TraceError(
            f"{what} needs a value, but inside a traced function values are known only when the compiled program "
            f"runs, at {messages.user_line()}. Return the tensor and read it outside, branch with leafgrad.where, "
            "or compute with the tensor itself"
        )

    def import_array(self, what: str) -> None:
        """A TraceError: the array would become a part of the program."""
        raise TraceError(
            f"{what} inside a traced function would bake the array into the program, at {messages.user_line()}. "
            "Make the tensor outside and pass it in"
        )

    def interrupt(self, what: str) -> None:
        """A TraceError: no program can do that."""
        raise TraceError(f"{what}: not possible in a traced function, at {messages.user_line()}; do it outside of it")

    def set_data(self, tensor: Tensor, value: Tensor) -> Any:
        """A TraceError: a trace changes no tensor."""
        self.interrupt("t.data = ...")

    def reshaped(self, tensor: Tensor, what: str, change: Callable[[], Any]) -> None:
        """A TraceError: no program can do that."""
        self.interrupt(what)
