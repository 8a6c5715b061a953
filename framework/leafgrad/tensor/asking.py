"""Methods and properties of Tensor that ask ``__torch_function__`` first; see ``overrides``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Final

from leafgrad.tensor import overrides
from leafgrad.tensor.methods import Later, Listed

SKIPPED: Final = frozenset({"__iter__", "as_subclass"})
"""Methods that PyTorch does not ask about either: what the first one calls is asked, the second makes what asks."""
ASKED_AS: Final = {"__ne__": "ne", "__pos__": "positive"} | {
    f"__{name}__": f"__{name}__"
    for name in "and or xor lshift rshift iand ior ixor ilshift irshift floordiv pow ipow invert".split()
}
"""The methods as which operators are asked where that is not the function of their op: those are PyTorch's own."""


class Overridable:
    """What Tensor gives its subclasses."""

    __slots__ = ()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What a function of tensors does where an argument is of a subclass: the same, with results of that class.

        Args:
            func: the function, the method, or the ``__get__`` of a property that was called.
            types: the classes of arguments that have such a method of their own.
            args, kwargs: the arguments.
        """
        return overrides.inherited(cls, func, types, args, kwargs, as_they_are(cls))


def as_they_are(kind: Any) -> list[Any]:
    """The functions whose results stay of the class that they are of."""
    return [kind.grad.__get__, kind._base.__get__]


def let_subclasses_override(kind: Any) -> None:
    """Make ``kind`` the class of tensors, from whose subclasses on functions ask."""

    def __init_subclass__(cls: type, /, **kwargs: Any) -> None:
        super(kind, cls).__init_subclass__(**kwargs)
        if overrides.overrides(cls):
            overrides.begin()

    kind.__init_subclass__ = classmethod(__init_subclass__)
    overrides.QUIET.add(kind)
    overrides.when_begun(functools.partial(exchange, kind))


class Asking:
    """A method that asks first. It is equal to the one whose place it takes, so tables made before it have it."""

    def __init__(self, place: tuple[type, str], method: FunctionType, name: str, call: Callable[..., Any]) -> None:
        functools.update_wrapper(self, method)
        self.__name__, self.place, self.method, self.call = name, place, method, call

    def __get__(self, tensor: Any, kind: Any = None) -> Any:
        return self if tensor is None else MethodType(self, tensor)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<method {self.__name__!r} of {self.place[0].__name__!r} objects>"

    def __reduce__(self) -> Any:
        return getattr, self.place

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.method

    def __hash__(self) -> int:
        return hash(self.method)


class Coming:
    """Stands in Tensor for a method that asks, until the one that it asks for is imported."""

    __slots__ = ("kind", "name")

    def __init__(self, kind: type, name: str) -> None:
        self.kind, self.name = kind, name

    def __get__(self, tensor: Any, kind: type) -> Any:
        found = getattr(super(self.kind, self.kind), self.name)
        if vars(self.kind)[self.name] is self:
            setattr(self.kind, self.name, exchanged(self.kind, self.name, found))
        return vars(self.kind)[self.name].__get__(tensor, kind)


def exchange(kind: type) -> None:
    """Give ``kind`` its methods and properties as ones that ask, all but private ones."""
    for name in asking_names(kind):
        value = inspect.getattr_static(kind, name)
        asks = Coming(kind, name) if isinstance(value, (Later, Listed)) else exchanged(kind, name, value)
        if asks is not value:
            setattr(kind, name, asks)


def asking_names(kind: type) -> set[str]:
    """The names of what may ask: all but private ones and ``SKIPPED``."""
    return {name for name in {*dir(kind)} - SKIPPED if name[:1] != "_" or name[:2] == "__"}


def exchanged(kind: type, name: str, value: Any) -> Any:
    """A method or property of Tensor as one that asks; anything else as it is."""
    if isinstance(value, property):
        return asking_property(value)
    if not isinstance(value, FunctionType):
        return value
    shown = method_of(kind, name, value)
    return Asking((kind, name), value, shown, overrides.asking(value, functools.partial(getattr, kind, shown)))


def method_of(kind: type, name: str, function: FunctionType) -> str:
    """The method that a handler sees for one of Tensor: ``x + y`` is ``add``, ``x += y`` is ``add_``."""
    if name in ASKED_AS:
        return ASKED_AS[name]
    op = inspect.unwrap(function)
    found = op.__name__ + "_" * (op is not function)
    return found if name[:2] == "__" and found != name and hasattr(kind, found) else name


def asking_property(value: property) -> property:
    """A property, from now on one whose getter, setter and deleter ask, as ``Tensor.shape.__get__``."""

    def part(function: Any, method: str) -> Any:
        return function and overrides.asking(function, lambda: getattr(value, method))

    property.__init__(  # of the same object, by which tables know it
        value, part(value.fget, "__get__"), part(value.fset, "__set__"), part(value.fdel, "__delete__"), value.__doc__
    )
    return value
