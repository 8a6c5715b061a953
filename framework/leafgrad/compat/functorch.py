"""``functorch``: the older name of ``torch.func``."""

from __future__ import annotations

from leafgrad.compat.absent import refused
from leafgrad.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap

__all__ = [
    "combine_state_for_ensemble",
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

REMEDY = "torch.func.functional_call(module, parameters, args) calls a module with other parameters"

make_functional = refused("functorch.make_functional", REMEDY)
make_functional_with_buffers = refused("functorch.make_functional_with_buffers", REMEDY)
combine_state_for_ensemble = refused("functorch.combine_state_for_ensemble", "use torch.func.stack_module_state")
make_fx = refused("functorch.make_fx", "leafgrad.trace shows a function as a program")
