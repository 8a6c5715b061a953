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


complex32 = chalf = AbsentDtype("complex32", complex=True)
uint16, uint32, uint64 = AbsentDtype("uint16"), AbsentDtype("uint32"), AbsentDtype("uint64")


NARROW = (
    "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2 qint8 quint8 qint32 "
    "quint4x2 quint2x4 uint1 uint2 uint3 uint4 uint5 uint6 uint7 int1 int2 int3 int4 int5 int6 int7 bits8 bits16"
).split()
DTYPES = {name: AbsentDtype(name) for name in NARROW}
for _dtype in DTYPES.values():
    _dtype.is_floating_point = _dtype.name.startswith("float")


class AbsentLayout:
    """A layout that no tensor has, to compare with."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name} (which leafgrad does not provide)"


LAYOUTS = {f"sparse_{name}": AbsentLayout(f"sparse_{name}") for name in ("coo", "csr", "csc", "bsr", "bsc")}
LAYOUTS["jagged"] = AbsentLayout("jagged")


ABSENT: list[Any] = []  # what can only be named


def refused(name: str, remedy: str) -> Callable[..., Any]:
    """A function that PyTorch has and leafgrad has not: it can be named and imported, and calling it is an error.

    Raises, when it is called:
        NotImplementedError: always; with ``remedy``.
    """

    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{name}: leafgrad, which stands in for PyTorch here, cannot do this; {remedy}")

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"Not in leafgrad: {remedy}."
    ABSENT.append(function)
    return function


def refused_class(name: str, remedy: str) -> type[Any]:
    """A class of which there are no objects: for annotations, and for ``isinstance``, which is False."""
    made = type(
        name.rpartition(".")[2], (), {"__new__": refused(name, remedy), "__doc__": f"Not in leafgrad: {remedy}."}
    )
    ABSENT.append(made)
    return made


class Operators:
    """``torch.ops``: names of PyTorch's operators, to compare with and to register things for; none can be called."""

    def __init__(self, name: str = "torch.ops") -> None:
        self._name = name
        ABSENT.append(self)

    def __getattr__(self, name: str) -> Operators:
        if name.startswith("__"):
            raise AttributeError(name)
        found = vars(self)[name] = Operators(f"{self._name}.{name}")
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return refused(self._name, "call the function or method of the same name")()

    def __repr__(self) -> str:
        return f"{self._name} (which leafgrad does not provide)"
