"""Whom ``load`` trusts: the classes and functions that stand in files by name, and of which objects are made again.

A file never holds code. It says of what class an object is, what its class makes it of, and what its attributes are;
``load`` makes it only of classes that the caller has named here, and of leafgrad's own layers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from leafgrad import devices, dtypes
from leafgrad.ops.op import Op
from leafgrad.tensor.tensor import Tensor

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals"]

Global = Callable[..., Any] | tuple[Callable[..., Any], str]
OWN = ("leafgrad", "leafgrad.nn", "leafgrad.nn.functional")
_given: list[Global] = []


class UntrustedError(RuntimeError):
    """A file names something that nobody allowed it to name."""


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let ``load`` make objects of these classes, and refer to these functions, from now on.

    Args:
        safe_globals: classes and functions, each by itself or in a pair with the name that it has in files, such as
            ``(Net, "__main__.Net")``, by default its own. Making an object calls the class's ``__new__`` and, if it has
            one, ``__setstate__``, with what stands in the file.

    Raises:
        TypeError: one of them is neither.
    """
    for one in safe_globals:
        pair = isinstance(one, tuple) and len(one) == 2 and callable(one[0]) and isinstance(one[1], str)
        if not pair and not (callable(one) and hasattr(one, "__qualname__")):
            raise TypeError(f"safe_globals: expected classes, functions or pairs (class, name), got {one!r:.80}")
    _given.extend(one for one in safe_globals if one not in _given)


def clear_safe_globals() -> None:
    """Trust no other classes than leafgrad's own."""
    _given.clear()


def get_safe_globals() -> list[Any]:
    """What ``add_safe_globals`` was given."""
    return list(_given)


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """Let ``load`` make objects of these classes within a ``with`` block; see ``add_safe_globals``."""
    before = get_safe_globals()
    try:
        add_safe_globals(safe_globals)
        yield
    finally:
        _given[:] = before


def is_given(obj: Any) -> bool:
    """Whether the caller trusts it, rather than it being leafgrad's own."""
    return any(obj is (known[0] if isinstance(known, tuple) else known) for known in _given)


def trusted_as(name: str) -> Any:
    """What the caller trusts under a name, or None."""
    for known in _given:
        obj, own = known if isinstance(known, tuple) else (known, f"{known.__module__}.{known.__qualname__}")
        if name == own:
            return obj
    return None


def name_of(obj: Any) -> str:
    """The name by which a class, function or dtype can be imported.

    Raises:
        TypeError: it has none, such as a lambda, or one that is another's.
    """
    home, name = str(getattr(obj, "__module__", None)), getattr(obj, "__qualname__", None) or str(obj.__reduce__())
    for module in OWN if home.startswith("leafgrad.") else ():
        if _own(f"{module}.{name}") is obj:
            return f"{module}.{name}"
    if _imported(f"{home}.{name}") is not obj:
        raise TypeError(f"expected a class or function that can be imported, got {home}.{name}, which cannot be")
    return f"{home}.{name}"


def found(names: Iterable[str], any_module: bool = False) -> dict[str, Any]:
    """The classes, functions and dtypes that a file calls so.

    Args:
        names: each with its module's name before it.
        any_module: whether classes of Modules are trusted wherever they are, if their module has been imported.

    Raises:
        UntrustedError: some of them nobody has allowed.
    """
    made = {name: trusted_as(name) or _own(name) for name in names}
    for name, obj in made.items():
        if obj is None and any_module and _is_module(_imported(name)):
            made[name] = _imported(name)
    refused = sorted(name for name, obj in made.items() if obj is None)
    if refused:
        raise UntrustedError(
            f"it has {', '.join(refused)[:300]} in it, which load takes only from you: import each, and call "
            f"leafgrad.serialization.add_safe_globals([{', '.join(map(_pair, refused))[:500]}]) first; of Modules, "
            "weights_only=False takes those whose classes have been imported from there"
        )
    return made


def _pair(name: str) -> str:
    return f"({name.rpartition('.')[2]}, {name!r})"


def _imported(name: str) -> Any:
    """What modules that were imported before have under a dotted name, or None; nothing is imported for it."""
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:count]))
        if found is not None:
            for part in parts[count:]:
                found = vars(found).get(part) if isinstance(found, (type, ModuleType)) else None
            return found
    return None


def _is_module(obj: Any) -> bool:
    return isinstance(obj, type) and issubclass(obj, import_module("leafgrad.nn").Module)


def _own(name: str) -> Any:
    """One of leafgrad's layers, kinds of parameters, dtypes or functions of tensors, or None."""
    module, _, short = name.rpartition(".")
    value = getattr(import_module(module), short, None) if module in OWN and not short.startswith("_") else None
    if value is None and name.startswith("leafgrad.nn."):  # a layer within others
        value = _imported(name) if _is_module(_imported(name)) else None
    if value is None and name.startswith("leafgrad."):  # what functions return, as those of linalg
        value = found if isinstance(found := _imported(name), type) and issubclass(found, tuple) else None
    if isinstance(value, type):
        parameters = issubclass(value, Tensor) and value is not Tensor
        plain = value is devices.device or issubclass(value, tuple)
        return value if parameters or plain or _is_module(value) else None
    function = module == "leafgrad.nn.functional" and callable(value)
    ops = isinstance(getattr(value, "__wrapped__", None), Op)  # what is in front of one
    return value if function or ops or isinstance(value, (dtypes.dtype, dtypes.memory_format, dtypes.layout)) else None
