"""What becomes of saved tensors between the forward and the backward pass: hooks that pack them, or move them away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import partial
from typing import Any
from weakref import WeakSet

from leafgrad import modes
from leafgrad.ops import dispatch
from leafgrad.ops.packing import pack_node
from leafgrad.tensor.tensor import Tensor

__all__ = ["allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]

_copying: ContextVar[bool] = ContextVar("leafgrad_copying", default=False)
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
        dispatch.interrupt("saved_tensors_hooks")
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


class Copy:
    """A copy of a saved tensor, which keeps what others write into the tensor's memory away from the backward pass."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor: Tensor | None = tensor.clone()


class SavedCopies:
    """The copies that one ``allow_mutation_on_saved_tensors`` has made; the graph keeps them alive."""

    def __init__(self) -> None:
        self._made: WeakSet[Copy] = WeakSet()

    def pack(self, tensor: Tensor) -> Copy:
        """A copy of ``tensor``."""
        copy = Copy(tensor)
        self._made.add(copy)
        return copy

    def unpack(self, copy: Copy) -> Tensor:
        """The copy's values.

        Raises:
            AssertionError: the context has ended, or ``clear()`` was called.
        """
        if copy.tensor is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        return copy.tensor

    def clear(self) -> None:
        """Let go of all copies; the graphs that need them can no longer go backward."""
        for copy in self._made:
            copy.tensor = None


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[SavedCopies]:
    """Within it, tensors that operations save for the backward pass may be written in place.

    Each is copied when it is saved, which takes as much memory again. The backward pass belongs inside, too.

    Raises:
        RuntimeError: one such context is open already.
    """
    if _copying.get():
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    copies = SavedCopies()
    token = _copying.set(True)
    try:
        with saved_tensors_hooks(copies.pack, copies.unpack):
            yield copies
    finally:
        _copying.reset(token)
        copies.clear()
