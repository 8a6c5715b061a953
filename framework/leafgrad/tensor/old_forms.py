"""Calls in other forms than a function declares: names that NumPy and PyTorch have too, and older orders."""

from __future__ import annotations

import inspect
import types
from typing import Any, Final

from leafgrad import dtypes
from leafgrad.ops.node import TensorBase

Arguments = tuple[Any, ...]
Bound = tuple[Arguments, dict[str, Any]]
PLACES: Final = "indices_or_sections"

OTHER_NAMES = {
    "axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other", "from": "from_",
    "self": "input", "element": "elements", "test_element": "test_elements", "tensor_indices_or_sections": PLACES,
    "indices": PLACES, "sections": PLACES,
}  # fmt: skip
# The order in which PyTorch takes numbers and tensors too, with a warning; of methods, the tensor comes first.
OLD_FORMS = {
    **dict.fromkeys(("add", "sub", "subtract"), ("input alpha other",)),
    **dict.fromkeys(("addcmul", "addcdiv"), ("input value tensor1 tensor2",)),
    **{
        name: (f"beta input alpha {pair}", f"beta input {pair}")
        for names, pair in (("addmm", "mat1 mat2"), ("addmv", "mat vec"), ("addr", "vec1 vec2"),
                            ("addbmm baddbmm", "batch1 batch2"))
        for name in names.split()
    },
}  # fmt: skip


def meant_by(function: types.FunctionType, args: Arguments, kwargs: dict[str, Any]) -> Bound | None:
    """A call that ``function`` does not take as one that it does, or None: other names that PyTorch takes too.

    These are NumPy's, ``from``, which Python keeps to itself, and that of ``*size``, which may be given as one keyword:
    ``zeros(size=(2, 3))``. Layouts and memory formats that all tensors have are taken everywhere.
    """
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    known = code.co_varnames[:count]
    asked = {name: value for name, value in kwargs.items() if name in known or not _is_so(name, value)}
    renamed = {name if name in known else OTHER_NAMES.get(name, name): value for name, value in asked.items()}
    changed = renamed.keys() - kwargs.keys()
    if not changed <= set(known) or len(renamed) != len(asked):
        return None
    star = code.co_varnames[count] if code.co_flags & inspect.CO_VARARGS else None
    if star in renamed and len(args) <= code.co_argcount:
        return (*args, renamed.pop(star)), renamed
    return (args, renamed) if changed or len(asked) < len(kwargs) else None


def old_form(function: types.FunctionType, args: Arguments, kwargs: dict[str, Any], bound: bool) -> Bound | None:
    """A call in one of OLD_FORMS as ``function`` takes it, or None."""
    for form in OLD_FORMS.get(function.__name__, ()):
        names = form.split()
        if bound:
            names.sort(key=lambda name: name != "input")
        given = dict(zip(names, args, strict=False))
        numeric = [name for name in names if name in ("alpha", "beta", "value")]
        right = len(args) == len(names) and not kwargs.keys() & given.keys()
        if right and all(isinstance(given[n], TensorBase) is not (n in numeric) for n in names):
            from leafgrad.ops.messages import warn

            warn(
                f"This overload of {function.__name__} is deprecated; pass {', '.join(numeric)} by keyword, at the end"
            )
            numbers_given = {name: given.pop(name) for name in numeric}
            return tuple(given[name] for name in sorted(given, key=lambda n: n != "input")), {**kwargs, **numbers_given}
    return None


def _is_so(name: str, value: Any) -> bool:
    """Whether an argument asks for what is so anyway."""
    match name:
        case "layout":
            return value is None or value is dtypes.strided
        case "memory_format":
            return value in (None, dtypes.contiguous_format, dtypes.preserve_format)
        case "pin_memory":
            return value in (None, False)
    return False
