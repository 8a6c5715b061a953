"""What PyTorch has and leafgrad has not, so that programs which only name it run: dtypes, functions and classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class AbsentDtype:
    """A dtype that no tensor has. Where a dtype is needed, it is a TypeError that shows its name."""

    is_floating_point = False

    def __init__(self, name: str, *, complex: bool = False) -> None:
        self.name, self.is_complex = name, complex

    def __repr__(self) -> str:
        return f"torch.{self.name} (which leafgrad does not provide)"


complex64 = cfloat = AbsentDtype("complex64", complex=True)
complex128 = cdouble = AbsentDtype("complex128", complex=True)
uint16, uint32, uint64 = AbsentDtype("uint16"), AbsentDtype("uint32"), AbsentDtype("uint64")


def refused(name: str, remedy: str) -> Callable[..., Any]:
    """A function that PyTorch has and leafgrad has not: it can be named and imported, and calling it is an error.

    Raises, when it is called:
        NotImplementedError: always; with ``remedy``.
    """

    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{name}: leafgrad, which stands in for PyTorch here, cannot do this; {remedy}")

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"Not in leafgrad: {remedy}."
    return function


def refused_class(name: str, remedy: str) -> type[Any]:
    """A class of which there are no objects: for annotations, and for ``isinstance``, which is False."""
    return type(
        name.rpartition(".")[2], (), {"__new__": refused(name, remedy), "__doc__": f"Not in leafgrad: {remedy}."}
    )
