"""Registration of hooks: a Module's own, and those of all modules."""

from __future__ import annotations

from typing import Any

from leafgrad.nn import hooks
from leafgrad.nn.hooks import EVERY, Around, Hook, register
from leafgrad.nn.tree import REGISTRATION, Tree
from leafgrad.tensor.handle import RemovableHandle

__all__ = [
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


class Hooked(Tree):
    """A tree whose calls, and whose saving and loading, hooks can watch and change."""

    _hooks: hooks.ModuleHooks | None = None

    def _own_hooks(self) -> hooks.ModuleHooks:
        own = self.__dict__.get("_hooks")
        if own is None:
            own = self.__dict__["_hooks"] = hooks.ModuleHooks()
        return own

    @property
    def _forward_hooks(self) -> dict[int, Any]:
        """This module's forward hooks, as PyTorch's programs look at them."""
        return self._own_hooks().forward

    @property
    def _forward_pre_hooks(self) -> dict[int, Any]:
        """This module's forward pre-hooks."""
        return self._own_hooks().forward_pre

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before each forward; it may return new arguments.

        With ``with_kwargs``: ``hook(module, args, kwargs)``, which may return ``(args, kwargs)``.
        """
        return register(self._own_hooks().forward_pre, Around.of(hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after each forward; it may return a new output.

        With ``with_kwargs``: ``hook(module, args, kwargs, output)``. With ``always_call`` it is called although the
        forward failed, with None as its output.
        """
        return register(self._own_hooks().forward, Around.of(hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are known; it may return new ones.

        ``grad_output`` is a tuple with one entry per output, None where none arrived.
        """
        return register(self._own_hooks().backward_pre, hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are known.

        Both are tuples with one entry per positional input and per output. The hook may return a new ``grad_input``.
        """
        return register(self._own_hooks().backward, hook, prepend)

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict`` collects the state of this module."""
        return register(self._own_hooks().save_pre, hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after it did; changes are made in place.

        Raises:
            RuntimeError: when ``state_dict`` is called, the hook does not return None.
        """
        return register(self._own_hooks().save, WithoutResult(hook))

    def _register_state_dict_hook(self, hook: Hook) -> RemovableHandle:
        return register(self._own_hooks().save, hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call a hook before this module takes its values from a state dict, which the hook may change in place.

        ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``
        """
        return register(self._own_hooks().load_pre, hook)

    def _register_load_state_dict_pre_hook(self, hook: Hook, with_module: bool = False) -> RemovableHandle:
        return self.register_load_state_dict_pre_hook(hook if with_module else WithoutModule(hook))

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may take keys off the lists, in place."""
        return register(self._own_hooks().load, hook)


class WithoutResult:
    """A hook that changes a state dict and returns nothing."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook

    def __call__(self, *args: Any) -> None:
        if self.hook(*args) is not None:
            raise RuntimeError("state_dict post-hook must return None; change the state dict in place")


class WithoutModule:
    """A hook that is not told whose it is."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook

    def __call__(self, module: Any, *args: Any) -> Any:
        return self.hook(*args)


# ---- of all modules -------------------------------------------------------------------------------------------------


def _of_all(found: Any, hook: Hook) -> RemovableHandle:
    Hooked._hooks = EVERY  # what a module without hooks of its own finds
    return register(found, hook)


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, args)`` before each forward of every module; it may return new arguments."""
    return _of_all(EVERY.forward_pre, Around.of(hook, False))


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after each forward of every module; as ``Module.register_forward_hook``."""
    return _of_all(EVERY.forward, Around.of(hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` for every module; as ``Module.register_full_backward_pre_hook``."""
    return _of_all(EVERY.backward_pre, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` for every module; as ``Module.register_full_backward_hook``."""
    return _of_all(EVERY.backward, hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, param)`` when a module registers a parameter; it may return another."""
    return register(REGISTRATION["parameter"], hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` when a module registers a buffer; it may return another."""
    return register(REGISTRATION["buffer"], hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` when a module registers a child; it may return another."""
    return register(REGISTRATION["module"], hook)
