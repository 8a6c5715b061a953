"""Hooks of a module: functions called around its forward and its backward."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from leafgrad import modes
from leafgrad.autograd.function import Function
from leafgrad.ops import messages
from leafgrad.tensor.handle import RemovableHandle
from leafgrad.tensor.tensor import Tensor

Hook = Callable[..., Any]
Gradients = tuple[Tensor | None, ...]


class Hooks:
    """The hooks of one module, each kind in the order in which it is called."""

    __slots__ = ("backward", "backward_pre", "forward", "forward_pre")

    def __init__(self) -> None:
        self.forward_pre: OrderedDict[int, Hook] = OrderedDict()
        self.forward: OrderedDict[int, Hook] = OrderedDict()
        self.backward_pre: OrderedDict[int, Hook] = OrderedDict()
        self.backward: OrderedDict[int, Hook] = OrderedDict()


def register(hooks: OrderedDict[int, Hook], hook: Hook, prepend: bool) -> RemovableHandle:
    """Add a hook at the end, or at the beginning."""
    if not callable(hook):
        raise TypeError(f"hook: expected a function, got {type(hook).__name__}")
    handle = RemovableHandle(hooks, hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def forward_pre(hook: Hook, with_kwargs: bool) -> Hook:
    """``hook`` as a function of (module, args, kwargs) that returns new args and kwargs."""

    def plain(module: Any, args: Any, kwargs: Any) -> Any:
        new = hook(module, args)
        if new is not None and not isinstance(new, tuple):
            new = (new,)
        return args if new is None else new, kwargs

    def keywords(module: Any, args: Any, kwargs: Any) -> Any:
        new = hook(module, args, kwargs)
        if new is None:
            return args, kwargs
        if not isinstance(new, tuple) or len(new) != 2:
            raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), got {new}")
        return new

    return keywords if with_kwargs else plain


def forward(hook: Hook, with_kwargs: bool) -> Hook:
    """``hook`` as a function of (module, args, kwargs, output)."""
    return hook if with_kwargs else lambda module, args, kwargs, output: hook(module, args, output)


def call(module: Any, hooks: Hooks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``module.forward(*args, **kwargs)`` with all hooks."""
    for hook in list(hooks.forward_pre.values()):
        args, kwargs = hook(module, args, kwargs)
    gate = None
    if hooks.backward or hooks.backward_pre:
        gate = BackwardGate(module, hooks)
        args = gate.enter(args)
    result = module.forward(*args, **kwargs)
    for hook in list(hooks.forward.values()):
        new = hook(module, args, kwargs, result)
        result = result if new is None else new
    return result if gate is None else gate.leave(result)


class Watch(Function):
    """Passes tensors on; on their way back, their gradients go through a function."""

    @staticmethod
    def forward(ctx: Any, change: Any, fill: bool, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.change = change
        ctx.set_materialize_grads(fill)
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        return None, None, *ctx.change(gradients)


class BackwardGate:
    """Stands at the inputs and outputs of one call of a module, and shows their gradients to its hooks."""

    def __init__(self, module: Any, hooks: Hooks) -> None:
        self.module = module
        self.backward = list(hooks.backward.values())
        self.backward_pre = list(hooks.backward_pre.values())
        self.inputs = 0
        self.watches_inputs = False
        self.grad_output: Gradients | None = None

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of the call, watched."""
        self.inputs = len(args)
        watched = watch(args, self.on_grad_input, fill=True)
        self.watches_inputs = watched is not None
        return args if watched is None else watched

    def leave(self, result: Any) -> Any:
        """The result of the call, watched."""
        if not isinstance(result, (Tensor, tuple)):
            messages.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}"
            )
            return result
        several = result if isinstance(result, tuple) else (result,)
        watched = watch(several, self.on_grad_output, fill=False)
        if watched is None:
            return result
        return rebuild(result, watched) if isinstance(result, tuple) else watched[0]

    def on_grad_output(self, gradients: Gradients) -> Gradients:
        for hook in self.backward_pre:
            gradients = replaced(hook(self.module, gradients), gradients, "Backward pre hook", "grad_output")
        if self.watches_inputs:
            self.grad_output = gradients
            return gradients
        messages.warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
            "require gradients."
        )
        nothing: Gradients = (None,) * self.inputs
        for hook in self.backward:
            new = hook(self.module, nothing, gradients)
            if new is not None and any(g is not None for g in new):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )
        return gradients

    def on_grad_input(self, gradients: Gradients) -> Gradients:
        if self.grad_output is None:  # the gradient went around the outputs, as a second derivative may
            return gradients
        for hook in self.backward:
            new = hook(self.module, gradients, self.grad_output)
            gradients = replaced(new, gradients, "Backward hook", "grad_input")
        self.grad_output = None
        return gradients


def watch(values: tuple[Any, ...], change: Callable[[Gradients], Gradients], fill: bool) -> tuple[Any, ...] | None:
    """``values`` with the tensors among them watched; None if no gradient will come.

    Args:
        change: gets the gradients of ``values``, and returns those to pass on.
        fill: show zeros for tensors that no gradient reached, instead of None.
    """
    where = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
    if not modes.is_grad_enabled() or not any(values[i].requires_grad for i in where):
        return None

    def spread(gradients: Sequence[Tensor | None]) -> Gradients:
        full: list[Tensor | None] = [None] * len(values)
        for i, g in zip(where, gradients, strict=True):
            full[i] = g
        full = list(change(tuple(full)))
        return tuple([full[i] for i in where])

    watched = list(values)
    for i, t in zip(where, Watch.apply(spread, fill, *[values[i] for i in where]), strict=True):
        watched[i] = t
    return tuple(watched)


def rebuild(like: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
    """``values`` as a tuple, or as the named tuple that ``like`` is."""
    return type(like)(*values) if hasattr(like, "_fields") else values


def replaced(new: Any, before: Gradients, what: str, argument: str) -> Gradients:
    """What a hook returned in place of ``before``: nothing, or as many gradients."""
    if new is None:
        return before
    new = new if isinstance(new, tuple) else (new,)
    if len(new) != len(before):
        raise RuntimeError(
            f"{what} returned an invalid number of {argument}, got {len(new)}, but expected {len(before)}"
        )
    return tuple(new)
