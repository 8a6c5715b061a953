"""Module: a tree of parameters, buffers and child modules with a forward function."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Self

from leafgrad import devices, dtypes, modes
from leafgrad.nn import hooks, state
from leafgrad.nn.tree import Tree
from leafgrad.tensor.handle import RemovableHandle
from leafgrad.tensor.tensor import Tensor, _target

__all__ = ["Module"]


def _missing_forward(self: Module, *args: Any) -> Any:
    """Compute the output. Every subclass defines it, with arguments of its own."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module(Tree):
    """Base of every layer and every model.

    A subclass calls ``super().__init__()``, assigns parameters and child modules to attributes, which registers
    them, and defines ``forward``. Call the module itself rather than ``forward``, so that its hooks run.

    Attributes:
        training: True in training mode, False in evaluation mode; see ``train`` and ``eval``.
    """

    training: bool
    forward: Callable[..., Any] = _missing_forward
    _hooks: hooks.Hooks | None = None

    def __init__(self) -> None:
        super().__init__()
        self.training = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooks is None:
            return self.forward(*args, **kwargs)
        return hooks.call(self, self._hooks, args, kwargs)

    # ---- modes and gradients ----------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call ``fn`` on every module below this one, children first, and on this one; returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode (or, with False, evaluation mode) here and below; returns self.

        Raises:
            ValueError: ``mode`` is not a bool.
        """
        if not isinstance(mode, bool):
            raise ValueError(f"training mode is expected to be boolean, got {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode here and below; the same as ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set ``requires_grad`` of all parameters; returns self."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients of all parameters, or make them zero in place."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad.detach_().zero_()

    # ---- dtype and device -------------------------------------------------------------------------------------

    def _apply(self, convert: Callable[[Tensor], Tensor]) -> Self:
        """Convert parameters, their gradients and buffers. Parameters keep their identity, so optimizers keep them."""
        for module in self.children():
            module._apply(convert)
        with modes.no_grad():
            for parameter in self._parameters.values():
                if parameter is None or (new := convert(parameter)) is parameter:
                    continue
                grad = None if parameter.grad is None else convert(parameter.grad)
                parameter.grad = None
                parameter.data = new
                parameter.grad = grad
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = convert(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move parameters and buffers to a device, and those of a floating dtype to a dtype; returns self.

        ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)``, or keywords ``device`` and ``dtype``.

        Raises:
            TypeError: the dtype is not a floating one.
        """
        device, dtype, _ = _target(*args, **kwargs)
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"nn.Module.to only accepts floating point dtypes, but got desired dtype={dtype}")
        return self._apply(lambda t: t.to(device, dtype if t.dtype.is_floating_point else None))

    def float(self) -> Self:
        """Convert floating parameters and buffers to float32; returns self."""
        return self.to(dtypes.float32)

    def double(self) -> Self:
        """Convert floating parameters and buffers to float64; returns self."""
        return self.to(dtypes.float64)

    def half(self) -> Self:
        """Convert floating parameters and buffers to float16; returns self."""
        return self.to(dtypes.float16)

    def cpu(self) -> Self:
        """Move parameters and buffers to the CPU; returns self."""
        return self.to(devices.device("cpu"))

    def cuda(self, device: Any = None) -> Self:
        """Move parameters and buffers to a CUDA device (number, string or device); returns self."""
        return self.to(devices.device("cuda", 0) if device is None else devices.device(device))

    # ---- state ------------------------------------------------------------------------------------------------

    def state_dict(
        self, *, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Parameters and persistent buffers by dotted name. They share memory with the module.

        Args:
            destination: a dict to fill and return, instead of a new OrderedDict.
            prefix: put before each name.
            keep_vars: give the tensors themselves instead of detached ones.
        """
        destination = OrderedDict() if destination is None else destination
        for name, value in (*self._parameters.items(), *self._buffers.items()):
            if value is not None and name not in self._not_persistent:
                destination[prefix + name] = value if keep_vars else value.detach()
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return destination

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> state.IncompatibleKeys:
        """Copy values from a state dict into parameters and buffers; on any error nothing is changed.

        Args:
            state_dict: dotted names and tensors.
            strict: refuse missing and unexpected keys.
            assign: put the tensors of ``state_dict`` in place of the module's, instead of copying values. An
                optimizer must then be made afterwards.

        Returns:
            The keys that were missing and unexpected: ``missing_keys``, ``unexpected_keys``.

        Raises:
            RuntimeError: lists every missing, unexpected and mismatched key.
        """
        return state.load(self, state_dict, strict, assign)

    # ---- hooks ------------------------------------------------------------------------------------------------

    def _own_hooks(self) -> hooks.Hooks:
        if self._hooks is None:
            self._hooks = hooks.Hooks()
        return self._hooks

    def register_forward_pre_hook(
        self, hook: hooks.Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before each forward; it may return new arguments.

        With ``with_kwargs``: ``hook(module, args, kwargs)``, which may return ``(args, kwargs)``.
        """
        return hooks.register(self._own_hooks().forward_pre, hooks.forward_pre(hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: hooks.Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after each forward; it may return a new output.

        With ``with_kwargs``: ``hook(module, args, kwargs, output)``.
        """
        return hooks.register(self._own_hooks().forward, hooks.forward(hook, with_kwargs), prepend)

    def register_full_backward_pre_hook(self, hook: hooks.Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are known; it may return new ones.

        ``grad_output`` is a tuple with one entry per output, None where none arrived.
        """
        return hooks.register(self._own_hooks().backward_pre, hook, prepend)

    def register_full_backward_hook(self, hook: hooks.Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are known.

        Both are tuples with one entry per positional input and per output. The hook may return a new ``grad_input``.
        """
        return hooks.register(self._own_hooks().backward, hook, prepend)

    # ---- printing ---------------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What the repr says of this module beside its children. Subclasses define it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        own = extra.split("\n") if extra else []
        below = [f"({name}): {indent(repr(module))}" for name, module in self._modules.items()]
        return layout(type(self).__name__, own, below)


def layout(name: str, own: list[str], below: list[str]) -> str:
    """The repr of a module: one line, or one line for each item."""
    if not below and len(own) <= 1:
        return f"{name}({''.join(own)})"
    return "\n  ".join([name + "(", *own, *below]) + "\n)"


def indent(text: str) -> str:
    """``text`` with every line after the first, unless it is blank, moved in by two."""
    first, *rest = text.split("\n")
    return "\n".join([first, *("  " + line if line.strip() else "" for line in rest)])
