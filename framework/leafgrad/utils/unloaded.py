"""What stands in place of an object that a file of ``torch.save`` has and ``load`` does not make."""

from __future__ import annotations

from typing import Any, NoReturn


class Unloaded:
    """Stands for an object of a class, or for a function, that ``load`` knows by its name alone.

    It can be kept, printed and passed on. Any other use is a TypeError that says the name.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<{self._name}, which was not loaded>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy, pickle and others ask whether there are such
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        _refused(self)

    def __reduce__(self) -> Any:
        return Unloaded, (self._name,)


def _refused(self: Unloaded, *_: Any, **__: Any) -> NoReturn:
    raise TypeError(
        f"expected an object, got {self!r}, since leafgrad has no such dtype, or making it would run code that a file "
        "names: allow it before by leafgrad.serialization.add_safe_globals([...]), or save its state_dict() in PyTorch"
    )


for _use in (
    "call setitem getitem delitem iter len contains bool int float index enter exit next add radd sub rsub mul rmul "
    "truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul neg pos abs invert and rand or ror xor rxor "
    "lshift rlshift rshift rrshift lt le gt ge await"
).split():
    setattr(Unloaded, f"__{_use}__", _refused)
