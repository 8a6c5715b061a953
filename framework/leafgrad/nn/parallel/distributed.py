"""One model in several processes, each of which trains with its part of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from leafgrad import modes
from leafgrad.autograd.node_hooks import register_settled_hook
from leafgrad.distributed.collectives import broadcast_parameters, by_kind, unpacked
from leafgrad.distributed.functional import all_reduce
from leafgrad.distributed.process_group import world
from leafgrad.distributed.reduce_op import ReduceOp
from leafgrad.nn.module import Module
from leafgrad.nn.parameter import Parameter
from leafgrad.ops.flat import pack
from leafgrad.tensor.creation import zeros_like
from leafgrad.tensor.tensor import Tensor

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A module under the name ``module``, whose gradients are the mean over all processes.

    All processes start from the parameters and buffers of rank 0. After each backward pass that reaches parameters,
    gradients travel in one message for each dtype, in compiled steps too. A loss that is the mean over equal parts of a
    batch then has the gradient of the mean over the whole batch. Parameters that come later, or require a gradient
    later, join at the next forward pass.

    Args:
        module: the module, the same in all processes.
        broadcast_buffers: take the buffers of rank 0 before each forward pass in training mode.
        find_unused_parameters: let backward passes leave out parameters; one that every process leaves out keeps its
            ``.grad``, and where only some do, theirs counts as zero.

    Raises:
        TypeError: ``module`` is none. ValueError: there is no process group.
        RuntimeError: the processes have different modules, or no parameter requires grad. In backward: a pass left
            out a parameter; the processes came to different collectives.
    """

    def __init__(self, module: Module, *, broadcast_buffers: bool = True, find_unused_parameters: bool = False) -> None:
        super().__init__()
        if not isinstance(module, Module):
            raise TypeError(f"DistributedDataParallel: module: expected a Module, got {type(module).__name__}; "
                            "compile what calls the DistributedDataParallel rather than the module in it")  # fmt: skip
        world()
        self.module, self.broadcast_buffers = module, broadcast_buffers
        self.find_unused_parameters, self.require_backward_grad_sync = find_unused_parameters, True
        self._watched: list[Tensor] = []
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError("DistributedDataParallel: module: expected parameters that require a gradient, got none")
        world().agree(f"DistributedDataParallel({contents(module)})")
        broadcast_parameters([*module.parameters(), *module.buffers()])
        self._watch()

    def __getstate__(self) -> dict[str, Any]:
        """Without hooks, which copies of parameters do not have: a copy of this module makes its own."""
        return self.__dict__ | {"_watched": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._watch()

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """``module(*inputs, **kwargs)``."""
        if modes.is_grad_enabled():
            broadcast_parameters(self._watch())
            if self.broadcast_buffers and self.training and self.require_backward_grad_sync:
                broadcast_parameters(self.module.buffers())
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Leave gradients as they are in each process, until a backward pass outside: to accumulate them."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def _watch(self) -> list[Tensor]:
        """Average the gradients of parameters that require one and did not before, and return these.

        What `functional_call` puts in their place is no ``Parameter``, and stays as it is.
        """
        known = set(map(id, self._watched))
        new: list[Tensor] = []
        for p in self.module.parameters():
            if p.requires_grad and id(p) not in known and isinstance(p, Parameter):
                register_settled_hook(p, self._average)
                new.append(p)
        self._watched += new
        return new

    def _average(self) -> None:
        """Replace the gradients of all parameters by their means, which have a history where the gradients have."""
        if not self.require_backward_grad_sync:
            return
        for kind in by_kind(p for p in self.module.parameters() if p.requires_grad):
            missing = [p.grad is None for p in kind]
            if any(missing) and not self.find_unused_parameters:
                raise RuntimeError(f"DistributedDataParallel: {self._unused(kind)} got no gradient in this pass; "
                                   "use them in the loss, or say find_unused_parameters=True")  # fmt: skip
            grads = [zeros_like(p) if p.grad is None else p.grad for p in kind]
            used = [kind[0].new_tensor([not m for m in missing])] if self.find_unused_parameters else []
            means = unpacked(all_reduce(pack(*grads, *used), ReduceOp.AVG), [*grads, *used])
            someone = (means[-1] > 0).tolist() if any(missing) else [True] * len(kind)
            for p, mean, is_used in zip(kind, means, someone, strict=False):
                if p.grad is not None and not mean.requires_grad:
                    p.grad.copy_(mean)
                elif is_used:
                    p.grad = mean

    def _unused(self, kind: list[Tensor]) -> str:
        names = {id(p): name for name, p in self.module.named_parameters()}
        return ", ".join(names[id(p)] for p in kind if p.grad is None)


def contents(module: Module) -> str:
    """What is to be the same in all processes: names, dtypes and shapes, and which parameters are trained."""
    named = [*module.named_parameters(), *module.named_buffers()]
    return ", ".join([f"{name}: {t.dtype.name} {tuple(t.shape)}{' trained' * t.requires_grad}" for name, t in named])
