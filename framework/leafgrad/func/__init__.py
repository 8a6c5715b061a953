"""Derivatives and batches as functions of functions, which nest in any order."""

from typing import TYPE_CHECKING

from leafgrad.batching import BatchedCall, vmap
from leafgrad.func.derivatives import grad, grad_and_value, jvp, linearize, vjp
from leafgrad.func.jacobians import hessian, jacfwd, jacrev
from leafgrad.func.jets import jet
from leafgrad.func.modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from leafgrad.lazy import attach
from leafgrad.tensor.public import publish

__all__ = [
    "BatchedCall",
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jet",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]

publish(globals())

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
