"""Objects taken apart as pickle takes them: what makes one of its class, with which arguments, and its attributes."""

from __future__ import annotations

import copyreg
from typing import Any

from leafgrad import dtypes
from leafgrad.tensor.tensor import Tensor
from leafgrad.utils import trust

NEW: Any = vars(copyreg)["__newobj__"]


def stands_by_name(value: Any) -> bool:
    """Whether it is a class, a function or a dtype, of which a file says the name alone."""
    return isinstance(value, (type, dtypes.dtype, dtypes.memory_format, dtypes.layout)) or (
        callable(value) and hasattr(value, "__qualname__") and not hasattr(value, "__self__")
    )


def makes_itself(t: Tensor) -> bool:
    """Whether a tensor is of a class that is made of another tensor and of what else it says, as Parameter is."""
    return type(t).__reduce_ex__ is not Tensor.__reduce_ex__ and t.__reduce_ex__(2)[0] is type(t)


def reduced(obj: Any) -> list[tuple[str, Any]]:
    """The parts of an object.

    Raises:
        TypeError: it can be made by other code alone.
    """
    parts = obj.__reduce_ex__(2)
    parts = (*parts, None, None, None)[:5] if isinstance(parts, tuple) else (None, (), None, None, None)
    function, arguments, state, listed, paired = parts
    new = function is NEW
    kind = arguments[0] if new else function
    if kind is not type(obj) or kind.__module__ == "builtins":
        raise TypeError("its class and attributes do not make it")
    items = list(listed) if listed is not None else None if paired is None else dict(paired)
    pairs = [
        ("new" if new else "call", kind),
        ("arguments", tuple(arguments[new:])),
        ("state", state),
        ("items", items),
    ]
    return [(key, value) for key, value in pairs if value is not None and value != ()]


def made(parts: dict[Any, Any]) -> Any:
    """The object of which these are the parts.

    Raises:
        ValueError: they do not fit together.
    """
    kind, arguments, state = parts.get("new", parts.get("call")), parts.get("arguments", ()), parts.get("state")
    if not isinstance(kind, type) or not isinstance(arguments, tuple):
        raise ValueError(f"its structure has an object of {kind!r:.40}, which is no class")
    if not trust.is_given(kind) and issubclass(kind, Tensor) != ("call" in parts):
        raise ValueError(f"its structure has an object of {kind.__name__} that is made as none is")
    try:
        obj: Any = kind(*arguments) if "call" in parts else kind.__new__(kind, *arguments)
        items = parts.get("items", ())
        if isinstance(items, dict):
            for key, value in items.items():
                obj[key] = value
        elif items:
            obj.extend(items)
        if state is not None:
            restore(obj, state)
    except (TypeError, AttributeError, RuntimeError, LookupError, ImportError) as error:
        raise ValueError(f"its structure has no {kind.__name__}: {error}") from error
    return obj


def restore(obj: Any, state: Any) -> None:
    """Give an object the attributes that were taken from one."""
    if hasattr(obj, "__setstate__"):
        obj.__setstate__(state)
        return
    members, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if members:
        vars(obj).update(members)
    for name, value in (slots or {}).items():
        setattr(obj, name, value)
