"""Data types, under PyTorch's names, and the default floating type."""

from __future__ import annotations

from _thread import get_ident  # importing threading takes longer
from collections.abc import Callable
from typing import Any, Final

namespace = "leafgrad"  # what names of types start with; leafgrad.compat prints PyTorch's


class dtype:
    """An element type such as ``leafgrad.float32``.

    Attributes:
        name: the spelling array libraries understand, e.g. ``"float32"``.
        itemsize: bytes of one element.
        is_floating_point: True for float16, bfloat16, float32 and float64.
        is_signed: True for those that have negative numbers.
        is_complex: True for complex64 and complex128.
        is_differentiable: True for floating and complex dtypes, whose tensors may require grad.
        rank: position in the promotion order; the category is ``rank // 10`` (bool, integer, float, complex).
    """

    __slots__ = ("is_complex", "is_differentiable", "is_floating_point", "is_signed", "itemsize", "name", "rank")

    def __init__(self, name: str, itemsize: int, rank: int) -> None:
        self.name = name
        self.itemsize: Final = itemsize
        self.rank: Final = rank
        self.is_floating_point: Final = 20 <= rank < 30
        self.is_complex: Final = rank >= 30
        self.is_differentiable: Final = rank >= 20
        self.is_signed: Final = rank > 10

    @property
    def category(self) -> int:
        """0 for bool, 1 for integers, 2 for floating types, 3 for complex ones."""
        return self.rank // 10

    def to_real(self) -> dtype:
        """The dtype of the real part: itself unless it is complex."""
        return self if self.rank < 30 else float64 if self is complex128 else float32

    def to_complex(self) -> dtype:
        """The complex dtype that holds its numbers: complex128 for float64, else complex64, or itself."""
        return complex128 if self is float64 or self is complex128 else complex64

    def __repr__(self) -> str:
        return f"{namespace}.{self.name}"

    def __reduce__(self) -> str:
        return self.name if self.name != "bool" else "bool_"


class Stored(dtype):
    """A dtype that array libraries have only once ``load()`` was called, which is when its name is first read."""

    __slots__ = ("known_as", "load")

    def __init__(self, name: str, itemsize: int, rank: int) -> None:
        super().__init__(name, itemsize, rank)
        self.known_as: Final = name
        self.load: Callable[[], None] = lambda: None
        del self.name

    def __getattr__(self, attribute: str) -> str:
        if attribute != "name":
            raise AttributeError(f"dtype has no attribute {attribute!r}", name=attribute, obj=self)
        self.load()
        self.name = self.known_as
        return self.known_as


bool_ = dtype("bool", 1, 0)
uint8 = dtype("uint8", 1, 10)
int8 = dtype("int8", 1, 11)
int16 = dtype("int16", 2, 12)
int32 = dtype("int32", 4, 13)
int64 = dtype("int64", 8, 14)
float16 = dtype("float16", 2, 20)
bfloat16 = Stored("bfloat16", 2, 20)
float32 = dtype("float32", 4, 21)
float64 = dtype("float64", 8, 22)
complex64 = dtype("complex64", 8, 31)
complex128 = dtype("complex128", 16, 32)
cfloat, cdouble = complex64, complex128
half, float_, double = float16, float32, float64
short, int_, long = int16, int32, int64

ALL: Final = (bool_, uint8, int8, int16, int32, int64, float16, float32, float64, complex64, complex128)
BY_NAME: Final = {d.name: d for d in ALL} | {bfloat16.known_as: bfloat16}
REDUCED: Final = (float16, bfloat16)  # PyTorch's reduced floating types: stored in 16 bits, computed in float32
BY_ARRAY_DTYPE: dict[object, dtype] = {}
FLOATING: Final[set[object]] = set()  # dtypes of raw arrays and Symbols that are floating ones, as far as met
DIFFERENTIABLE: Final[set[object]] = set()  # the same of floating and complex ones
_default = float32
_setter = get_ident()


def of(array: Any) -> dtype:
    """The dtype of a raw array or a Symbol."""
    native = array.dtype
    found = BY_ARRAY_DTYPE.get(native)
    return found if found is not None else named(native)


def named(native: object) -> dtype:
    """The same by the dtype that a raw array or a Symbol has."""
    name = getattr(native, "name", str(native))
    if name not in BY_NAME:
        raise TypeError(
            f"leafgrad has no dtype {name!r}; expected one of {', '.join(BY_NAME)}. "
            "Convert the array first, e.g. array.astype('float32')"
        )
    found = BY_ARRAY_DTYPE[native] = BY_NAME[name]
    if found.is_differentiable:
        DIFFERENTIABLE.add(native)
        if found.is_floating_point:
            FLOATING.add(native)
    return found


def check(value: object, argument: str = "dtype") -> dtype:
    """``value`` if it is a dtype, else a TypeError that says what to write instead."""
    if isinstance(value, dtype):
        return value
    known = {
        float: float64,
        int: int64,
        bool: bool_,
        complex: complex128,
    }  # as Python's floats are, whatever the default dtype
    for python, ours in known.items():
        if value is python:
            return ours
    raise TypeError(f"{argument}: expected a leafgrad dtype such as leafgrad.float32, got {value!r}")


def get_default_dtype() -> dtype:
    """The floating dtype that new tensors get when none is asked for (float32 at the start)."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Make ``d`` (a floating dtype) the default of new floating tensors, for the whole process.

    Args:
        d: float16, float32, float64 or bfloat16.
    """
    global _default, _setter
    if not check(d, "d").is_floating_point:
        raise TypeError(f"set_default_dtype: expected a floating dtype, got {d}")
    _default, _setter = d, get_ident()


def default_set_here() -> bool:
    """Whether it was this thread that set the default dtype last."""
    return _setter == get_ident()


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that both can be converted to without changing category downwards.

    Args:
        type1, type2: dtypes.
    """
    if type1 is type2:
        return type1
    low, high = sorted((check(type1, "type1"), check(type2, "type2")), key=lambda d: d.rank)
    if high is int8 and low is uint8:
        return int16
    if high is complex64 and low is float64:
        return complex128
    return float32 if low.rank == high.rank else high  # float16 and bfloat16 hold none of each other


class layout:
    """How the elements of a tensor lie in memory: ``leafgrad.strided`` is the only one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{namespace}.strided"

    def __reduce__(self) -> str:
        return "strided"


class memory_format:
    """An order of the dimensions in memory, such as ``leafgrad.channels_last``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{namespace}.{self.name}"

    def __reduce__(self) -> str:
        return self.name


strided = layout()
contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")


# Bits of the fraction, the largest exponent, decimal digits.
_FORMATS: Final = {float16: (10, 15, 3), bfloat16: (7, 127, 2), float32: (23, 127, 6), float64: (52, 1023, 15)}


class finfo:
    """The limits of a floating dtype, by default the default one.

    Attributes:
        bits: of one number.
        eps: the distance from 1 to the next larger number.
        max, min: the largest number, and its negative.
        tiny, smallest_normal: the smallest positive number of full precision.
        resolution: ten to minus the number of decimal digits that are kept.
    """

    def __init__(self, type: dtype | None = None) -> None:
        kind = _default if type is None else check(type, "type").to_real()
        if not kind.is_floating_point:
            raise TypeError(f"finfo: type: expected a floating dtype, got {kind}; use iinfo for integers")
        fraction, top, digits = _FORMATS[kind]
        self.dtype, self.bits = kind.name, 8 * kind.itemsize
        self.eps = 2.0**-fraction
        self.max = (2 - self.eps) * 2.0**top
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - top)
        self.resolution = float(f"1e-{digits}")

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype: ``bits`` of one number, ``min`` and ``max``."""

    def __init__(self, type: dtype) -> None:
        kind = check(type, "type")
        if kind.category != 1:
            raise TypeError(f"iinfo: type: expected an integer dtype, got {kind}; use finfo for floating ones")
        self.dtype, self.bits = kind.name, 8 * kind.itemsize
        signed = kind is not uint8
        self.min = -(2 ** (self.bits - 1)) if signed else 0
        self.max = 2 ** (self.bits - signed) - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
