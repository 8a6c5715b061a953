"""Hooks of optimizers: functions called around a step, and around the saving and loading of the state."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from leafgrad import modes
from leafgrad.tensor.handle import RemovableHandle

__all__ = ["register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

Hook = Callable[..., Any]


class OptimizerHooks:
    """The hooks of one optimizer, each kind in the order in which it is called; and those of all, ``every``."""

    def __init__(self, every: OptimizerHooks | None = None) -> None:
        self.step_pre: OrderedDict[int, Hook] = OrderedDict()
        self.step_post: OrderedDict[int, Hook] = OrderedDict()
        self.save_pre: OrderedDict[int, Hook] = OrderedDict()
        self.save_post: OrderedDict[int, Hook] = OrderedDict()
        self.load_pre: OrderedDict[int, Hook] = OrderedDict()
        self.load_post: OrderedDict[int, Hook] = OrderedDict()
        self.every = self if every is None else every


EVERY = OptimizerHooks()


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer, and before its own hooks."""
    return register(EVERY.step_pre, hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer, and after its own hooks."""
    return register(EVERY.step_post, hook)


def register(hooks: OrderedDict[int, Hook], hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Add a hook at the end, or at the beginning."""
    if not callable(hook):
        raise TypeError(f"hook: expected a function, got {type(hook).__name__}")
    handle = RemovableHandle(hooks, hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """A ``step`` that calls the optimizer's hooks, and counts."""

    @functools.wraps(step)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        hooks = vars(self).get("_hooks")
        if hooks is None:  # an optimizer that wraps another one, and is none itself
            return step(self, *args, **kwargs)
        if tracer := modes.tracer():
            for numbers in (vars(self), *self.param_groups):  # the count of steps, rates, momenta
                tracer.changing(numbers)
            tracer.unless_run(to_state_of(self))
        for hook in [*hooks.every.step_pre.values(), *hooks.step_pre.values()]:
            result = hook(self, args, kwargs)
            if result is None:
                continue
            if not isinstance(result, tuple) or len(result) != 2:
                raise RuntimeError(f"step pre hook: expected None or a tuple (args, kwargs), got {result!r}")
            args, kwargs = result
        out = step(self, *args, **kwargs)
        self._steps += 1
        for hook in [*hooks.step_post.values(), *hooks.every.step_post.values()]:
            hook(self, args, kwargs)
        return out

    vars(wrapper)["as_given"] = True
    return wrapper


def to_state_of(optimizer: Any) -> Callable[[], None]:
    """What gives an optimizer back the state that it has now; buckets follow their entries.

    What only says that it is a number stands for one, which is put back by who put that there.
    """
    dicts = [vars(optimizer), *optimizer.param_groups]
    numbers = [{name: value for name, value in d.items() if type(value) in (int, float)} for d in dicts]
    entries = [
        (p, entry, {*entry}, {name: value for name, value in entry.items() if type(value) is value.__class__})
        for p, entry in optimizer.state.items()
    ]

    def restore() -> None:
        for d, before in zip(dicts, numbers, strict=True):
            d.update(before)
        optimizer.state.clear()
        for p, entry, names, before in entries:
            for name in entry.keys() - names:
                del entry[name]
            entry.update(before)
            optimizer.state[p] = entry

    return restore
