"""The gradients of holomorphic ops: their rules, conjugated once, here.

Gradients by complex numbers are those of PyTorch: of a real loss L and z = x + iy, dL/dx + i dL/dy, so that a step
against them lowers L. For an op with the Jacobian J they are J^H g, where a rule that was written for real numbers
gives J^T g. Of a holomorphic op J is complex linear and the rule itself holds for complex numbers, so that
J^H g = conj(J^T conj(g)), and the rule stays as it is. An op with the trait "complex" has rules that hold as they are.
"""

from __future__ import annotations

from typing import Any

from leafgrad import dtypes
from leafgrad.ops.node import GraphNode, Node, SymbolBase, TensorBase
from leafgrad.ops.runtime import runtime


def is_complex(value: Any) -> bool:
    """Whether something is a raw array, a Symbol, a Tensor or a Python number that is complex."""
    if isinstance(value, TensorBase):
        value = value._data
    if isinstance(value, SymbolBase) or hasattr(value, "dtype"):
        return getattr(value.dtype, "kind", "") == "c"
    return isinstance(value, complex)


def conjugated(value: Any) -> Any:
    """The conjugate of a gradient, or of each of several; of None and of what is real itself."""
    if type(value) is tuple:
        return tuple(map(conjugated, value))
    return runtime.conj(value) if value is not None and is_complex(value) else value


def real_part(value: Any) -> Any:
    """The real part of what may be complex."""
    if isinstance(value, complex):
        return value.real
    return runtime.real(value) if is_complex(value) else value


def refusal(op: Any, args: tuple[Any, ...]) -> NotImplementedError:
    """What is said of complex numbers where an op takes none."""
    kind = next((a for a in args if is_complex(a)), None)
    name = "a complex number" if isinstance(kind, complex) else str(dtypes.of(getattr(kind, "_data", kind)))
    return NotImplementedError(
        f"{op.name}: not implemented for {name}; it takes real numbers alone. Compute with its parts, as "
        "leafgrad.view_as_real(), .real and .imag give them, or with abs()"
    )


class Conjugating:
    """What stands in a node for a holomorphic op that was given complex numbers: the op, with its rules conjugated."""

    __slots__ = ("unconjugated",)

    def __init__(self, op: Any) -> None:
        self.unconjugated = op

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unconjugated, name)

    def __call__(self, *args: Any, **params: Any) -> Any:
        return self.unconjugated(*args, **params)

    def pull(self, node: Node, g: Any, needed: set[GraphNode] | None) -> Any:
        """As ``Op.pull``."""
        return [(edge, conjugated(x)) for edge, x in self.unconjugated.pull(node, conjugated(g), needed)]

    def pull_recorded(self, node: Node, g: Any, needed: set[GraphNode] | None) -> Any:
        """As ``Op.pull_recorded``."""
        return [(edge, conjugated(x)) for edge, x in self.unconjugated.pull_recorded(node, conjugated(g), needed)]
