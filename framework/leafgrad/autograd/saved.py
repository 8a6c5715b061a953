"""What becomes of saved tensors between the forward and the backward pass: hooks that pack them, or move them away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import partial
from typing import Any

from leafgrad import modes
from leafgrad.ops.packing import pack_node
from leafgrad.tensor.tensor import Tensor

__all__ = ["allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]

_refused: ContextVar[str | None] = ContextVar("leafgrad_refused_hooks", default=None)


class saved_tensors_hooks:
    """Within it, each tensor that an operation saves for its backward goes through ``pack_hook``.

    The graph keeps what ``pack_hook(tensor)`` returns; the backward pass calls ``unpack_hook`` on that, and expects a
    tensor like the first. The innermost hooks count. Since nobody can tell what was packed from what was written since,
    in-place writes are not noticed.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        for name, hook in (("pack_hook", pack_hook), ("unpack_hook", unpack_hook)):
            if not callable(hook):
                raise TypeError(f"saved_tensors_hooks: {name}: expected a function, got {type(hook).__name__}")
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        self._before: list[tuple[Token[Any], int]] = []

    def __enter__(self) -> None:
        message = _refused.get()
        if message is not None:
            raise RuntimeError(message)
        if modes.get() & modes.TRACE:
            modes.TRACER.get().interrupt("saved_tensors_hooks")
        token = modes.PACKER.set(partial(pack_node, pack=self.pack_hook, unpack=self.unpack_hook))
        self._before.append((token, modes.get()))
        modes.FLAGS.set(modes.get() | modes.PACK)

    def __exit__(self, *_: object) -> None:
        token, before = self._before.pop()
        modes.FLAGS.set(modes.get() & ~modes.PACK | before & modes.PACK)
        modes.PACKER.reset(token)


class save_on_cpu(saved_tensors_hooks):
    """Within it, saved tensors wait on the CPU for the backward pass, which copies them back to their device.

    Args:
        pin_memory: accepted; the memory is not pinned.
        device_type: accepted; every tensor comes back to the device that it was on.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: (t.device, t.cpu()), lambda kept: kept[1].to(kept[0]))


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Within it, ``saved_tensors_hooks`` raises a RuntimeError with this message; so does entering it under hooks."""
    if modes.get() & modes.PACK:
        raise RuntimeError(error_message)
    token = _refused.set(error_message)
    try:
        yield
    finally:
        _refused.reset(token)


def allow_mutation_on_saved_tensors() -> Any:
    """Not provided.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "allow_mutation_on_saved_tensors: leafgrad does not copy saved tensors before they are written; clone() those "
        "that you write into"
    )
