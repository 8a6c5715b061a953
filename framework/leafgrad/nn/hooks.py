"""Hooks of a module: functions called around its forward, its backward, and the saving and loading of its state."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from leafgrad import modes
from leafgrad.autograd.function import Function
from leafgrad.ops import messages
from leafgrad.tensor.handle import RemovableHandle
from leafgrad.tensor.tensor import Tensor

Hook = Callable[..., Any]
Gradients = tuple[Tensor | None, ...]


class ModuleHooks:
    """The hooks of one module, each kind in the order in which it is called.

    ``every`` are those of all modules, called before each one's own; here, where a compiled function looks for changes.
    """

    every: ClassVar[ModuleHooks]

    def __init__(self) -> None:
        self.forward_pre: OrderedDict[int, Around] = OrderedDict()
        self.forward: OrderedDict[int, Around] = OrderedDict()
        self.backward_pre: OrderedDict[int, Hook] = OrderedDict()
        self.backward: OrderedDict[int, Hook] = OrderedDict()
        self.save_pre: OrderedDict[int, Hook] = OrderedDict()
        self.save: OrderedDict[int, Hook] = OrderedDict()
        self.load_pre: OrderedDict[int, Hook] = OrderedDict()
        self.load: OrderedDict[int, Hook] = OrderedDict()


EVERY = ModuleHooks.every = ModuleHooks()


def with_own(hooks: ModuleHooks, kind: str) -> list[Any]:
    """The hooks of one kind, in the order of their calls: those of all modules, then those of this one."""
    own = list(getattr(hooks, kind).values())
    return own if hooks is hooks.every else [*getattr(hooks.every, kind).values(), *own]


def register(hooks: OrderedDict[int, Any], hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Add a hook at the end, or at the beginning."""
    if not callable(hook):
        raise TypeError(f"hook: expected a function, got {type(hook).__name__}")
    handle = RemovableHandle(hooks, hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class Around(NamedTuple):
    """A hook before or after a forward.

    Attributes:
        with_kwargs: whether it is told of keyword arguments.
        always: whether it is called although the forward failed.
    """

    hook: Hook
    with_kwargs: bool
    always: bool = False

    @classmethod
    def of(cls, hook: Hook, with_kwargs: bool, always: bool = False) -> Any:
        """The hook so described; what is no function is left for ``register`` to refuse."""
        return cls(hook, with_kwargs, always) if callable(hook) else hook

    def __call__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *output: Any) -> Any:
        return self.hook(module, args, kwargs, *output) if self.with_kwargs else self.hook(module, args, *output)


def before(module: Any, hooks: ModuleHooks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The arguments of a call as its pre-hooks leave them."""
    for hook in with_own(hooks, "forward_pre"):
        new = hook(module, args, kwargs)
        if new is None:
            continue
        if not hook.with_kwargs:
            args = new if isinstance(new, tuple) else (new,)
        elif isinstance(new, tuple) and len(new) == 2:
            args, kwargs = new
        else:
            raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), got {new}")
    return args, kwargs


def call(module: Any, hooks: ModuleHooks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``module.forward(*args, **kwargs)`` with all hooks."""
    waiting = with_own(hooks, "forward")
    result = None
    try:
        args, kwargs = before(module, hooks, args, kwargs)
        gate = BackwardGate.of(module, hooks)
        if gate is not None:
            args = gate.enter(args)
        result = module.forward(*args, **kwargs)
        while waiting:
            new = waiting.pop(0)(module, args, kwargs, result)
            result = result if new is None else new
    except Exception:
        for hook in [h for h in waiting if h.always]:
            in_spite_of_error(hook, module, args, kwargs, result)
        raise
    return result if gate is None else gate.leave(result)


def in_spite_of_error(hook: Around, *arguments: Any) -> None:
    """Call a hook after a forward that failed; an error of its own is only told."""
    try:
        hook(*arguments)
    except Exception as error:
        warnings.warn(
            "module forward hook with ``always_call=True`` raised an exception that was silenced as another error was "
            f"raised in forward: {error}",
            stacklevel=4,
        )


class BackwardHookFunction(Function):
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

    def __init__(self, module: Any, backward: list[Hook], backward_pre: list[Hook]) -> None:
        self.module = module
        self.backward = backward
        self.backward_pre = backward_pre
        self.inputs = 0
        self.watches_inputs = False
        self.grad_output: Gradients | None = None

    @classmethod
    def of(cls, module: Any, hooks: ModuleHooks) -> BackwardGate | None:
        """A gate for one call, if there is a hook for it to call."""
        backward, backward_pre = with_own(hooks, "backward"), with_own(hooks, "backward_pre")
        return cls(module, backward, backward_pre) if backward or backward_pre else None

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
            gradients = replaced_by_hook(hook(self.module, gradients), gradients, "Backward pre hook", "grad_output")
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
            gradients = replaced_by_hook(new, gradients, "Backward hook", "grad_input")
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
    for i, t in zip(where, BackwardHookFunction.apply(spread, fill, *[values[i] for i in where]), strict=True):
        watched[i] = t
    return tuple(watched)


def rebuild(like: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
    """``values`` as a tuple, or as the named tuple that ``like`` is."""
    return type(like)(*values) if hasattr(like, "_fields") else values


def replaced_by_hook(new: Any, before: Gradients, what: str, argument: str) -> Gradients:
    """What a hook returned in place of ``before``: nothing, or as many gradients."""
    if new is None:
        return before
    new = new if isinstance(new, tuple) else (new,)
    if len(new) != len(before):
        raise RuntimeError(
            f"{what} returned an invalid number of {argument}, got {len(new)}, but expected {len(before)}"
        )
    return tuple(new)
