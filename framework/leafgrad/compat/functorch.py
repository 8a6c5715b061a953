"""``functorch``: the older name of ``torch.func``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from leafgrad.compat.absent import refused
from leafgrad.compat.torch.func import functionalize
from leafgrad.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap
from leafgrad.tensor.joining import stack
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "make_fx",
    "vjp",
    "vmap",
]

make_fx = refused("functorch.make_fx", "leafgrad.trace shows a function as a program")
State = tuple[Tensor, ...]


def make_functional(model: Any, disable_autograd_tracking: bool = False) -> tuple[Callable[..., Any], State]:
    """A function of parameters and arguments that does what ``model`` does, and copies of its parameters."""
    function, params, buffers = make_functional_with_buffers(model, disable_autograd_tracking)
    return (lambda params, *args, **kwargs: function(params, buffers, *args, **kwargs)), params


def make_functional_with_buffers(
    model: Any, disable_autograd_tracking: bool = False
) -> tuple[Callable[..., Any], State, State]:
    """A function of parameters, buffers and arguments that does what ``model`` does, and copies of both."""
    inner = copy.deepcopy(model)
    params, buffers = dict(inner.named_parameters()), dict(inner.named_buffers())
    taken = tuple(p.detach() if disable_autograd_tracking else p for p in params.values())

    def function(given: State, state: State, *args: Any, **kwargs: Any) -> Any:
        named = dict(zip((*params, *buffers), (*given, *state), strict=True))
        return functional_call(inner, named, args, kwargs)

    return function, taken, tuple(buffers.values())


def combine_state_for_ensemble(models: Sequence[Any]) -> tuple[Callable[..., Any], State, State]:
    """A function of parameters, buffers and arguments, and those of all ``models``, stacked, for ``vmap``."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    functions, params, buffers = zip(*[make_functional_with_buffers(model) for model in models], strict=True)
    stacked = tuple(stack(each).detach().requires_grad_() for each in zip(*params, strict=True))
    return functions[0], stacked, tuple(stack(each) for each in zip(*buffers, strict=True))
