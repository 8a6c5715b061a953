"""``torch._tensor_str``: how tensors print, for libraries that print parts of them."""

from __future__ import annotations

from typing import Any

from leafgrad.tensor.printing import get_printoptions, set_printoptions
from leafgrad.tensor.tensor import Tensor

__all__ = ["PRINT_OPTS", "_tensor_str", "get_printoptions", "set_printoptions"]


class Options:
    """What ``set_printoptions`` says now."""

    def __getattr__(self, name: str) -> Any:
        return getattr(get_printoptions(), name)


PRINT_OPTS = Options()


def _tensor_str(self: Tensor, indent: int) -> str:
    """The elements, in brackets."""
    text = repr(self.detach().cpu())
    body = text[len("tensor(") : -1]
    return body.partition("], dtype=")[0] + "]" if "], dtype=" in body else body.partition(", dtype=")[0]
