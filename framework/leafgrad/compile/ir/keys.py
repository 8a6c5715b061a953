"""Keys of parts of programs: equal for parts that do the same, whatever objects stand for their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leafgrad.compile.ir.extent import Extent


class ProgramPart:
    """A part of a program, a dataclass, that is what its fields are."""

    __slots__ = ()


ATOMS = frozenset({bool, int, str, type(None)})


class Itself:
    """The key of an object that may be equal to others, or has no hash."""

    __slots__ = ("part",)

    def __init__(self, part: Any) -> None:
        self.part = part

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and self.part is other.part

    def __hash__(self) -> int:
        return id(self.part)


def key_of(part: Any, numbers: Mapping[int, int] | None = None) -> Any:
    """A hashable key of a parameter or another part: equal for equal values of one type, to the sign of zero.

    Where values cannot tell, an object is itself.

    Args:
        numbers: by the ids of some objects, what stands for these.
    """
    kind = type(part)
    if kind in ATOMS:
        return kind, part
    if kind is Extent:
        return kind, part.form
    if issubclass(kind, float):
        return kind, float.hex(part)  # nan equals itself
    if issubclass(kind, (tuple, list)):
        parts = part if kind in (tuple, list) else (tuple if issubclass(kind, tuple) else list).__iter__(part)
        return kind, tuple([key_of(p, numbers) for p in parts])
    if issubclass(kind, dict):
        return kind, tuple([(key_of(name, numbers), key_of(each, numbers)) for name, each in part.items()])
    if issubclass(kind, slice):
        return kind, key_of((part.start, part.stop, part.step), numbers)
    if issubclass(kind, ProgramPart):
        fields: Any = kind
        return kind, tuple([key_of(getattr(part, name), numbers) for name in fields.__dataclass_fields__])
    if issubclass(kind, complex):
        return kind, float.hex(part.real), float.hex(part.imag)
    if issubclass(kind, (bool, int, str, bytes)):
        return kind, part
    if numbers is not None and id(part) in numbers:
        return numbers[id(part)]
    kinds: Any = kind, object
    own, plain = [(of.__eq__, of.__hash__) for of in kinds]
    return part if own == plain else Itself(part)


def same(a: Any, b: Any) -> bool:
    """Whether two parameters or numbers are the same to an op."""
    return a is b or (type(a) is type(b) and bool(key_of(a) == key_of(b)))
