"""Memory for time: parts of the forward pass that save nothing, and run again when the backward pass comes to them.

T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training deep nets with sublinear memory cost", 2016.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from leafgrad import modes
from leafgrad.autograd import engine
from leafgrad.autograd.saved import saved_tensors_hooks
from leafgrad.tensor.out import tensors
from leafgrad.tensor.random import fork_rng, rng_states, set_rng_states
from leafgrad.tensor.tensor import Tensor

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "noop_context_fn", "set_checkpoint_early_stop"]

Contexts = Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]]


class CheckpointError(RuntimeError):
    """A checkpointed function did something else when it ran again."""


class Enough(BaseException):
    """All that the backward pass needs was computed again."""


class CheckpointPlace:
    """Where a saved tensor would be, and is as long as the function runs, which may differentiate what it computes."""

    __slots__ = ("__weakref__", "number", "tensor")

    def __init__(self, number: int, tensor: Tensor) -> None:
        self.number = number
        self.tensor: Tensor | None = tensor


class Unwritten:
    """A tensor that the backward pass needs as it is now."""

    __slots__ = ("tensor", "version", "what")

    def __init__(self, tensor: Tensor, what: str) -> None:
        self.tensor, self.what = tensor.detach(), what
        self.version = version_of(self.tensor)

    def get(self) -> Tensor:
        """The tensor, or a RuntimeError if it was written since."""
        if (version := version_of(self.tensor)) != self.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"checkpoint: {self.what} of shape {list(self.tensor.shape)} is at version {version}; expected version "
                f"{self.version} instead. Use the out-of-place operation, or clone() before writing"
            )
        return self.tensor


_early_stop: bool | None = None


@modes.setting("whether checkpoints stop early")
def _stops() -> bool | None:
    return _early_stop


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """A context in which checkpoints end their recomputation early, or not, whatever they say themselves."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """No contexts."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class Recomputation:
    """One call of a checkpointed function, able to run again.

    Attributes:
        given: the tensors that it was given.
        places: for each tensor that the forward pass would have saved, in order, its CheckpointPlace as long as needed.
        kinds: their shapes, dtypes and devices.
        found: for each backward pass, those that were computed again and not used yet.
    """

    def __init__(
        self, function: Callable[[], Any], given: list[Tensor], around: Any, preserve: bool, stop: bool, check: bool
    ) -> None:
        self.given = [Unwritten(x, "an argument") for x in given]
        self.function, self.around, self.stop, self.check = function, around, stop, check
        self.states = rng_states() if preserve else None
        self.precision = modes.autocast(modes.get() & modes.AUTOCAST)
        self.places: list[weakref.ref[CheckpointPlace]] = []
        self.kinds: list[Any] = []
        self.found: weakref.WeakKeyDictionary[Any, dict[int, Unwritten]] = weakref.WeakKeyDictionary()

    def first(self) -> Any:
        """What the function gives, of whose intermediate values only the places are left."""
        try:
            with saved_tensors_hooks(self.pack, self.unpack):
                return self.function()
        finally:
            for ref in self.places:
                if (place := ref()) is not None:
                    place.tensor = None

    def pack(self, t: Tensor) -> CheckpointPlace:
        """A place for ``t``."""
        place = CheckpointPlace(len(self.places), t)
        self.places.append(weakref.ref(place))
        self.kinds.append(kind_of(t))
        return place

    def unpack(self, place: CheckpointPlace) -> Tensor:
        """What belongs there, computed again if need be."""
        if place.tensor is not None:
            return place.tensor
        found = self.found.setdefault(engine.PASS.get(None) or self, {})
        if place.number not in found:
            found.update(self.run())
        return found.pop(place.number).get()

    def run(self) -> dict[int, Unwritten]:
        """All that is still needed, by its place."""
        made: dict[int, Unwritten] = {}
        count = 0
        for x in self.given:
            x.get()

        def pack(t: Tensor) -> Tensor:
            nonlocal count
            if count < len(self.places) and self.places[count]() is not None:
                made[count] = Unwritten(t, "a tensor that the function saved")
                self.compare(count, t)
            count += 1
            if self.stop and count == len(self.places):
                raise Enough
            return t

        with contextlib.suppress(Enough), fork_rng(enabled=self.states is not None), modes.enable_grad():
            if self.states is not None:
                set_rng_states(self.states)
            with self.precision, self.around, saved_tensors_hooks(pack, lambda t: t):
                self.function()
        if count != len(self.places):
            raise CheckpointError(
                "checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.places)}\n"
                f"Number of tensors saved during recomputation: {count}\n"
                "The function must do the same when it runs again"
            )
        return made

    def compare(self, i: int, t: Tensor) -> None:
        if self.check and kind_of(t) != self.kinds[i]:
            raise CheckpointError(
                "checkpoint: Recomputed values for the following tensors have different metadata than during the "
                f"forward pass.\ntensor at position {i}:\nsaved metadata: {self.kinds[i]}\n"
                f"recomputed metadata: {kind_of(t)}\nThe function must do the same when it runs again"
            )


def version_of(t: Tensor) -> int:
    return 0 if t._writes is None else t._writes.count


def kind_of(t: Tensor) -> dict[str, Any]:
    return {"shape": tuple(t.shape), "dtype": t.dtype, "device": t.device}


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Contexts = noop_context_fn,
    determinism_check: str = "default",
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """``function(*args, **kwargs)``, whose intermediate values are not kept but computed again in the backward pass.

    The arguments are kept, so they must not be written in place before. In a compiled step, which plans its memory as a
    whole, and under ``vmap`` it is a plain call.

    Args:
        use_reentrant: there is one way here, PyTorch's ``False``, and it does what either promises.
        context_fn: gives two contexts, for the forward pass and for the recomputation.
        determinism_check: ``"default"`` compares shapes, dtypes and devices of what is computed again.
        early_stop: end the recomputation as soon as all that is needed is there.
        preserve_rng_state: draw the same random numbers again.

    Raises:
        CheckpointError: in the backward pass, if ``function`` did something else than before.
        RuntimeError: there, if an argument was written in place, or what ``function`` saved.
    """
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check: expected 'default' or 'none', got {determinism_check!r}")
    if use_reentrant and context_fn is not noop_context_fn:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    if not modes.is_grad_enabled():
        return function(*args, **kwargs)
    forward, again = context_fn()
    if modes.tracer() or modes.get() & modes.BATCH:  # where nothing is computed again
        with forward:
            return function(*args, **kwargs)
    checked = determinism_check == "default"
    stop = early_stop if _early_stop is None else _early_stop
    given = [*tensors((args, kwargs))]
    call = Recomputation(lambda: function(*args, **kwargs), given, again, preserve_rng_state, stop, checked)
    with forward:
        return call.first()


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True
) -> Any:
    """Call functions one after the other, in ``segments`` parts of which all but the last are checkpointed.

    Args:
        functions: a Sequential, or functions of one argument.
        segments: how many parts.
        input: the argument of the first one.
        use_reentrant, preserve_rng_state: as for ``checkpoint``.
    """
    steps: list[Callable[[Any], Any]] = list(functions.children() if hasattr(functions, "children") else functions)

    def part(start: int, stop: int) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for step in steps[start:stop]:
                x = step(x)
            return x

        return run

    size = len(steps) // segments
    for i in range(segments - 1):
        input = checkpoint(
            part(i * size, (i + 1) * size), input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state
        )
    return part((segments - 1) * size, len(steps))(input)
