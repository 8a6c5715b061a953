"""The types of values that the walk knows, and what their objects are made of."""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import make_dataclass
from datetime import date, time, timedelta, timezone
from typing import Any, ParamSpec, TypeVar

from leafgrad import devices, dtypes
from leafgrad.backends import Generator
from leafgrad.compile.record import pure

# Known by identity: what is inside cannot change, or cannot matter.
OPAQUE = (Generator, dtypes.dtype, devices.device, inspect.Signature)
IMMUTABLE = (range, slice, date, time, timedelta, timezone, types.EllipsisType, types.NotImplementedType)
DICTS = (dict, OrderedDict, defaultdict, Counter)
LISTS = (list, deque)
COMPARED = 2**20  # bytes of an array that each call may compare
FIELD = type(vars(namedtuple("Pair", "a"))["a"])
DOC = type(vars(make_dataclass("Pair", "a"))["__doc__"])  # from Python 3.15 on it is made when it is asked for
CODE = (
    types.BuiltinFunctionType, types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType,
    types.GetSetDescriptorType, types.MemberDescriptorType, types.CodeType, types.GenericAlias, types.UnionType, FIELD,
    ParamSpec, TypeVar,
)  # fmt: skip
SLOTS = (types.GetSetDescriptorType, types.MemberDescriptorType)
# What leads to all names of a module, or of a frame, or to frames, or to classes that nothing else leads to.
NAMESPACES = frozenset(
    "__globals__ __builtins__ __subclasses__ tb_frame f_back f_builtins f_globals f_locals ag_frame cr_frame "
    "gi_frame".split()
)
FIELDS = {  # of functions and of classes; the dict of either is looked at by itself
    kind: frozenset(name for name, held in vars(kind).items() if isinstance(held, SLOTS)) - {"__dict__", *NAMESPACES}
    for kind in (types.FunctionType, type)
}
# What type annotations leave in a class: objects of typing's, of which no program depends by accident.
ANNOTATIONS = frozenset(
    "__annotations__ __annotate__ __annotate_func__ __annotations_cache__ __parameters__ __orig_bases__ "
    "__type_params__ __dataclass_fields__ __dataclass_params__".split()
)
UNREAD = NAMESPACES | ANNOTATIONS  # by code that computes names, unless a string outside spells one
# What a class statement leaves in a class beside what it says: who asks for these asks by name.
OF_CLASSES = ANNOTATIONS | frozenset(
    "__doc__ __dict__ __weakref__ __qualname__ __abstractmethods__ __slots__ __firstlineno__ "
    "__static_attributes__".split()
)
DESCRIPTORS = (property, staticmethod, classmethod, functools.cached_property, DOC)
TABLES = frozenset({"_parameters", "_buffers", "_modules"})  # left out of paths: "net.0.weight"
CACHE = type(functools.lru_cache(len))
IN_C = (types.WrapperDescriptorType, types.MethodDescriptorType)


def file_of(kind: type | types.ModuleType) -> str:
    """The source file of a module or a class; without one it is Python's own if that says so, else the user's.

    A module that was made, such as those that stand in for PyTorch's, belongs where its class does.
    """
    if isinstance(kind, type) and is_made(kind):
        return "<stdin>"
    if isinstance(kind, type) and kind.__module__ == "builtins" and vars(builtins).get(kind.__name__) is not kind:
        return "<frozen >"
    module = kind if isinstance(kind, types.ModuleType) else sys.modules.get(kind.__module__)
    of_its_own = module is not None and type(module) is not types.ModuleType and not hasattr(module, "__file__")
    if of_its_own and sys.modules.get(type(module).__module__) is not module:  # it may take that one's place
        return file_of(type(module))
    origin = getattr(getattr(module, "__spec__", None), "origin", None)
    file = getattr(module, "__file__", None)  # which a module may answer with anything
    return file if isinstance(file, str) else "<frozen >" if origin in ("built-in", "frozen") else "<stdin>"


def is_made(kind: type) -> bool:
    """Whether a class is not the one that its module has by its name, if that is Python's: it was made at run time.

    By ``exec`` in a namespace without a name, say, or by ``types.new_class``.
    """
    module: Any = kind.__module__  # of classes in C perhaps no string
    if not isinstance(module, str) or module.partition(".")[0] not in sys.stdlib_module_names or not is_plain(kind):
        return False
    found: Any = sys.modules.get(module)
    for name in kind.__qualname__.split("."):
        found = getattr(found, "__dict__", {}).get(name)
    return found is not kind


def is_plain(kind: type) -> bool:
    """Whether a class was made by a class statement, so that its objects are their attributes."""
    if not kind.__flags__ & pure.HEAP:
        return False
    held = vars(kind)
    return not any(isinstance(v, IN_C) for v in held.values()) and not isinstance(held.get("__new__"), CODE)


def function_in(held: Any) -> Any:
    """The function inside a method, a property or their like."""
    if type(held) is types.FunctionType and not held.__dict__:  # most are, and have none of these
        return held
    for name in ("__func__", "fget", "func"):
        held = getattr(held, name, None) or held
    return held


def dict_of(value: functools.partial[Any]) -> dict[str, Any] | None:
    """What a partial function has been given as attributes, None if nothing ever."""
    state: Any = value.__reduce__()[2]
    found: dict[str, Any] | None = state[3]
    return found
