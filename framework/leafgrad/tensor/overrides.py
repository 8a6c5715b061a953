"""``__torch_function__``: classes and modes that say what functions of tensors do.

Nobody pays for it before there is one: the first such subclass of Tensor, or the first mode, begins it. From then on
public functions of tensors and methods of Tensor are others, which ask first. Objects that are no Tensors are asked
where a function has failed, too, so that they need no beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, Self

from leafgrad import modes
from leafgrad.ops import dispatch
from leafgrad.ops.node import TensorBase


class Asked(NamedTuple):
    """Who is asked now in this thread: modes, the innermost last, and whether classes are."""

    modes: tuple[Any, ...] = ()
    classes: bool = True


ALL: Final = Asked()
STATE: Final[ContextVar[Asked]] = ContextVar("leafgrad_overrides", default=ALL)
QUIET: Final[set[type]] = {bool, float, int, str, type(None)}
"""Classes of most arguments, that are known to be asked nothing. Tensor adds itself."""

modes.setting("torch_function")(STATE.get)


def unwrapped(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The ``__torch_function__`` of classes that change nothing."""
    return func(*args, **(kwargs or {}))


def overrides(kind: type) -> bool:
    """Whether a class has a ``__torch_function__`` that may change something."""
    own = getattr(kind, "__torch_function__", None)
    return own is not None and kind not in QUIET and getattr(own, "__func__", own) is not unwrapped


def overriding(values: Iterable[Any]) -> list[Any]:
    """Those among arguments, and in lists and tuples of them, whose classes are to be asked, one of each class.

    In the order of PyTorch: as they stand, but one of a subclass before one of its base.
    """
    found: list[Any] = []
    for value in values if STATE.get().classes else ():
        for item in value if isinstance(value, (list, tuple)) else (value,):
            kind = type(item)
            if kind.__module__ == "builtins" or not overrides(kind):
                continue
            if not any(type(other) is kind for other in found):
                place = (i for i, other in enumerate(found) if issubclass(kind, type(other)))
                found.insert(next(place, len(found)), item)
    return found


def ask(function: Callable[..., Any], others: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the mode, or else the first of ``others`` that knows ``function``, gives for a call of it.

    Raises:
        TypeError: none of them does.
    """
    kinds, asked = tuple(type(other) for other in others), STATE.get()
    dispatch.interrupt("__torch_function__")
    if asked.modes:
        with within(asked._replace(modes=asked.modes[:-1])):
            result = asked.modes[-1].__torch_function__(function, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    for other in others:
        result = other.__torch_function__(function, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    names = ", ".join(type(other).__name__ for other in (*asked.modes[-1:], *others))
    raise TypeError(
        f"{function.__name__}: expected a Tensor, got {names}, whose __torch_function__ returned NotImplemented"
    )


def inherited(cls: type, func: Any, types: Any, args: Any, kwargs: Any, unchanged: Iterable[Any]) -> Any:
    """What Tensor's own ``__torch_function__`` does for a subclass: the function itself, with results of that class."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with within(STATE.get()._replace(classes=False)):
        result = func(*args, **(kwargs or {}))
        return result if func in unchanged else converted(result, cls)


def converted(result: Any, cls: Any) -> Any:
    """A result whose tensors, in tuples and lists too, are of a class."""
    if isinstance(result, TensorBase):
        return result if isinstance(result, cls) else alias(result, cls)
    if not isinstance(result, (tuple, list)) or not any(isinstance(r, (TensorBase, tuple, list)) for r in result):
        return result
    parts = [converted(r, cls) for r in result]
    return result._make(parts) if hasattr(result, "_make") else type(result)(parts)


def alias(tensor: Any, cls: Any) -> Any:
    """The memory and history of a tensor as an object of another class."""
    with within(Asked(classes=False)):
        shared = tensor.view(tensor.shape) if tensor.requires_grad else tensor.detach()
    out = dispatch.alias(shared._data, shared._history, cls)
    out._writes, out._view, out._epoch = shared._writes, shared._view, shared._epoch
    return out


class within:
    """Within it others are asked: a context of ``STATE``."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def __enter__(self) -> None:
        self.token = STATE.set(self.asked)

    def __exit__(self, *_: object) -> None:
        STATE.reset(self.token)


class DisableTorchFunctionSubclass(within):
    """Within it no class is asked; modes are."""

    def __init__(self) -> None:
        super().__init__(STATE.get()._replace(classes=False))


class DisableTorchFunction(within):
    """Within it neither classes nor modes are asked."""

    def __init__(self) -> None:
        super().__init__(Asked(classes=False))


class TorchFunctionMode:
    """Within it, ``__torch_function__`` of the mode is asked about each call of a function of tensors.

    Subclasses define it, ``(self, func, types, args=(), kwargs=None)``; in there the mode itself is off, so that it can
    call ``func(*args, **kwargs)``. By default it does just that.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))

    def __enter__(self) -> Self:
        begin()
        asked = STATE.get()
        STATE.set(asked._replace(modes=(*asked.modes, self)))
        return self

    def __exit__(self, *_: object) -> None:
        asked = STATE.get()
        STATE.set(asked._replace(modes=asked.modes[:-1]))


# ---- beginning ----------------------------------------------------------------------------------------------------

_waiting: list[Callable[[], None]] | None = []


def when_begun(action: Callable[[], None]) -> None:
    """Do something once anything can be asked: now, or later."""
    if _waiting is None:
        action()
    else:
        _waiting.append(action)


def begin() -> None:
    """From now on public functions ask."""
    global _waiting
    actions, _waiting = _waiting or (), None
    for action in actions:
        action()


def asking(
    inner: Callable[..., Any],
    front: Callable[[], Any] | None = None,
    form: Callable[[Any], tuple[Any, ...]] = lambda args: args,
) -> Callable[..., Any]:
    """``inner``, which asks first: about what ``front()`` gives, by which its callers know it, or itself.

    Args:
        form: gives the arguments as others are to see them, where there are several ways to give them.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        asked = STATE.get()
        if asked.classes:
            for value in (*args, *kwargs.values()) if kwargs else args:
                if type(value) not in QUIET:
                    others = overriding((*args, *kwargs.values()))
                    if others:
                        return ask(front() if front else call, others, form(args), kwargs)
        if asked.modes:
            return ask(front() if front else call, [], form(args), kwargs)
        return inner(*args, **kwargs)

    return call
