"""Module: a tree of parameters, buffers and child modules with a forward function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from leafgrad import devices, dtypes, modes
from leafgrad.nn import hooks, notebook, state
from leafgrad.nn.hooked import (
    Hooked,
    register_module_buffer_registration_hook as register_module_buffer_registration_hook,
    register_module_forward_hook as register_module_forward_hook,
    register_module_forward_pre_hook as register_module_forward_pre_hook,
    register_module_full_backward_hook as register_module_full_backward_hook,
    register_module_full_backward_pre_hook as register_module_full_backward_pre_hook,
    register_module_module_registration_hook as register_module_module_registration_hook,
    register_module_parameter_registration_hook as register_module_parameter_registration_hook,
)
from leafgrad.nn.parameter import UninitializedTensor
from leafgrad.nn.place import name_layer
from leafgrad.ops.tracebacks import shorten
from leafgrad.tensor.arguments import destination
from leafgrad.tensor.creation import empty_like
from leafgrad.tensor.tensor import Tensor

__all__ = ["Module"]


def _missing_forward(self: Module, *args: Any) -> Any:
    """Compute the output. Every subclass defines it, with arguments of its own."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module(Hooked):
    """Base of every layer and every model.

    A subclass calls ``super().__init__()``, assigns parameters and child modules to attributes, which registers
    them, and defines ``forward``. Call the module itself rather than ``forward``, so that its hooks run.

    Attributes:
        training: True in training mode, False in evaluation mode; see ``train`` and ``eval``.
    """

    training: bool
    forward: Callable[..., Any] = _missing_forward
    _version: int = 1

    def __init__(self) -> None:
        super().__init__()
        self.training = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if self._hooks is None:
                return self.forward(*args, **kwargs)
            return hooks.call(self, self._hooks, args, kwargs)
        except Exception as error:
            name_layer(error, self, args, kwargs)
            shorten(error)
            raise

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

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

    def _apply(self, convert: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Convert parameters, their gradients and buffers. Parameters keep their identity, so optimizers keep them."""
        for module in self.children() if recurse else ():
            module._apply(convert)
        with modes.no_grad():
            for parameter in self._parameters.values():
                if isinstance(parameter, UninitializedTensor):
                    parameter.convert(convert)
                    continue
                if parameter is None or (new := convert(parameter)) is parameter:
                    continue
                grad = None if parameter.grad is None else convert(parameter.grad)
                parameter.grad = None
                parameter.data = new
                parameter.grad = grad
            for name, buffer in self._buffers.items():
                if isinstance(buffer, UninitializedTensor):
                    buffer.convert(convert)
                elif buffer is not None:
                    self._buffers[name] = convert(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move parameters and buffers to a device, and those of a floating or complex dtype to a dtype; returns self.

        ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)``, or keywords ``device`` and ``dtype``;
        ``memory_format=`` lays out those of four or five dimensions.

        Raises:
            TypeError: the dtype is neither a floating nor a complex one.
        """
        layout = kwargs.pop("memory_format", None)
        device, dtype, _ = destination(*args, **kwargs)
        if dtype is not None and not dtype.is_differentiable:
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        def convert(t: Tensor) -> Tensor:
            kind = dtype if t.dtype.is_differentiable else None
            return t.to(device, kind, memory_format=layout if t.ndim in (4, 5) else None)

        return self._apply(convert)

    def float(self) -> Self:
        """Convert floating parameters and buffers to float32; returns self."""
        return self._floats_to(dtypes.float32)

    def double(self) -> Self:
        """Convert floating parameters and buffers to float64; returns self."""
        return self._floats_to(dtypes.float64)

    def half(self) -> Self:
        """Convert floating parameters and buffers to float16; returns self."""
        return self._floats_to(dtypes.float16)

    def bfloat16(self) -> Self:
        """Convert floating parameters and buffers to bfloat16; returns self."""
        return self._floats_to(dtypes.bfloat16)

    def _floats_to(self, dtype: dtypes.dtype) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.dtype.is_floating_point else t)

    def cpu(self) -> Self:
        """Move parameters and buffers to the CPU; returns self."""
        return self.to(devices.device("cpu"))

    def cuda(self, device: Any = None) -> Self:
        """Move parameters and buffers to a CUDA device (number, string or device); returns self."""
        return self.to(devices.device("cuda", 0) if device is None else devices.device(device))

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to a dtype; returns self."""
        return self._apply(lambda t: t.to(dtypes.check(dst_type)))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move parameters and buffers to a device without their values; returns self."""
        return self._apply(lambda t: empty_like(t, device=device), recurse)

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
        return state.save(self, destination, prefix, keep_vars)

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

    def get_extra_state(self) -> Any:
        """What ``state_dict`` shall hold of this module beside its tensors. Subclasses define it."""
        raise RuntimeError("get_extra_state: expected a subclass to define what it returns")

    def set_extra_state(self, state: Any) -> None:
        """Take back what ``get_extra_state`` gave. Subclasses define it."""
        raise RuntimeError("set_extra_state: expected a subclass to define what it does with the state")

    def _has_extra_state(self, which: str) -> bool:
        """Whether ``get_extra_state`` (``set_extra_state``) is defined."""
        name = f"{which}_extra_state"
        return getattr(type(self), name) is not getattr(Module, name)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        state.save_own(self, destination, prefix, keep_vars)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: Mapping[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        keys = missing_keys, unexpected_keys, error_msgs
        state.load_own(self, state_dict, prefix, local_metadata, strict, *keys)

    # ---- printing ---------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What the repr says of this module beside its children. Subclasses define it."""
        return ""

    def summary(self) -> str:
        """A table of the modules below this one: for each its class, parameters and their bytes; and what sums up."""
        return notebook.summary(self)

    def _repr_html_(self) -> str:
        return notebook.tree(self)

    def __repr__(self) -> str:
        extra = self.extra_repr()
        own = extra.split("\n") if extra else []
        below = [f"({name}): {indent(repr(module))}" for name, module in self._modules.items()]
        return layout(self._get_name(), own, below)


def layout(name: str, own: list[str], below: list[str]) -> str:
    """The repr of a module: one line, or one line for each item."""
    if not below and len(own) <= 1:
        return f"{name}({''.join(own)})"
    return "\n  ".join([name + "(", *own, *below]) + "\n)"


def indent(text: str) -> str:
    """``text`` with every line after the first, unless it is blank, moved in by two."""
    first, *rest = text.split("\n")
    return "\n".join([first, *("  " + line if line.strip() else "" for line in rest)])
