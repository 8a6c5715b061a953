"""What a compiled step's Python may call without being open: callees whose result follows from their arguments.

A callee that is on none of these lists makes a step open. ``docs/compile.md`` shows the lists.
"""

from __future__ import annotations

import math
import types
from collections import OrderedDict, defaultdict, deque
from typing import Any

FUNCTIONS: dict[str, frozenset[str]] = {
    "builtins": frozenset(
        "__build_class__ abs all any ascii bin callable chr delattr dir divmod getattr hasattr hex isinstance "
        "issubclass iter len max min next oct ord pow repr round setattr sorted sum vars".split()
    ),
    "math": frozenset(vars(math)),
    "_operator": frozenset(
        "abs add and_ concat contains countOf eq floordiv ge getitem gt iadd iand ifloordiv imatmul imod imul index "
        "indexOf inv invert ior ipow is_ is_not isub itruediv le lshift lt matmul mod mul ne neg not_ or_ pos pow "
        "rshift setitem sub truediv truth xor".split()
    ),
    "_functools": frozenset(["reduce"]),
}
"""Functions in C, by module."""

METHODS: tuple[type, ...] = (
    str, bytes, int, float, complex, bool, tuple, list, dict, set, frozenset, deque, OrderedDict, defaultdict, range,
    slice, type({}.keys()), type({}.values()), type({}.items()), types.GeneratorType, type,
)  # fmt: skip
"""Types in C all of whose methods are fine: what they change is compared before and after."""

EXCEPT = frozenset({"format", "format_map"})  # read attributes by names in a string

MODULES = frozenset(
    "abc collections.abc _collections_abc contextlib enum functools importlib._bootstrap numbers operator types".split()
)
"""Modules of Python's own, written in Python, that keep nothing; one has what import statements call."""

ACTING = ("chdir.", "_RedirectStream.", "closing.", "aclosing.")
"""What in these is an effect all the same."""

ANY_NAME = frozenset("copy dataclasses typing".split())
"""The same, which may read every attribute of an object."""

TYPES = frozenset("abc array builtins collections datetime enum functools itertools types typing".split())
"""Modules whose classes in C make objects of their arguments alone."""

UNSAFE = ("utils", "cli", "compat", "testing", "threads.py")  # of this package: files, processes, settings

SAFE = tuple(
    "utils/checkpoint.py compat/torch/amp.py compat/torch/cuda/amp.py compat/torch/grad_scaler.py compat/copies.py "
    "compat/functions.py compat/torch/nn compat/torch/signal compat/torch/special.py".split()
)
"""What in there computes of its arguments alone."""

HEAP = 1 << 9
"""The flag of classes that are made at run time, whose attributes may be set."""

OF_NUMPY = ("ufunc", "_ArrayFunctionDispatcher")
"""Classes of functions that compute of their arguments alone; the second calls one in Python first, which is seen."""


def is_pure(callee: Any) -> bool:
    """Whether a function in C, as the interpreter reports its call, is on the lists."""
    owner = getattr(callee, "__self__", None)
    name = getattr(callee, "__name__", "")
    if owner is None or isinstance(owner, types.ModuleType):
        module = callee.__module__ or getattr(owner, "__name__", "")
        if not isinstance(module, str):
            return False
        return name in FUNCTIONS.get(module, ())
    if isinstance(owner, type):  # dict.fromkeys, and object.__new__ of a class
        return type(owner) is type and (owner in METHODS or owner is object or name in ("__new__", "__init_subclass__"))
    return type(owner) in METHODS and name not in EXCEPT


def callee_name(callee: Any) -> str:
    """What to call it in a message."""
    owner = getattr(callee, "__self__", None)
    where = callee.__module__ if owner is None or isinstance(owner, types.ModuleType) else type(owner).__name__
    return f"{where}.{callee.__name__}()" if where and where != "builtins" else f"{callee.__name__}()"
