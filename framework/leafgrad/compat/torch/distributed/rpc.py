"""``torch.distributed.rpc``: names to import; there are no remote calls."""

from __future__ import annotations

from typing import TypeVar

from leafgrad.compat.absent import refused, refused_class

T = TypeVar("T")

__all__ = [
    "RRef", "TensorPipeRpcBackendOptions", "api", "init_rpc", "is_available", "remote", "rpc_async", "rpc_sync",
    "shutdown",
]  # fmt: skip

REMEDY = "ranks exchange tensors by the collectives of torch.distributed"
RRef = refused_class("torch.distributed.rpc.RRef", REMEDY)
TensorPipeRpcBackendOptions = refused_class("torch.distributed.rpc.TensorPipeRpcBackendOptions", REMEDY)
init_rpc, remote, rpc_async, rpc_sync, shutdown = (
    refused(f"torch.distributed.rpc.{name}", REMEDY)
    for name in ("init_rpc", "remote", "rpc_async", "rpc_sync", "shutdown")
)


class api:
    """What libraries call of PyTorch's own: decorators leave functions as they are."""

    _all_gather = staticmethod(refused("torch.distributed.rpc.api._all_gather", REMEDY))

    @staticmethod
    def _require_initialized(func: T) -> T:
        """``func``."""
        return func


def is_available() -> bool:
    """False."""
    return False
