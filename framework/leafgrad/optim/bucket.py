"""Parameters that are updated together: their state lies in flat tensors, so that a step costs a few operations.

PyTorch's per-parameter state remains: ``optimizer.state[p]["exp_avg"]`` is the part of the flat tensor that
belongs to ``p``, in its shape, and writes go both ways. Parameters without gradient take no part in a step, so
the buckets follow who has one; who was left out keeps the old state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leafgrad import modes
from leafgrad.dtypes import REDUCED, dtype, float32, float64, get_default_dtype
from leafgrad.ops.complex import view_as_complex, view_as_real
from leafgrad.ops.convert import new_full
from leafgrad.ops.flat import Shape, offsets, pack
from leafgrad.tensor.inplace import add_parts
from leafgrad.tensor.tensor import Tensor

State = dict[Tensor, dict[str, Any]]

SETS = 64  # of parameters whose buckets are kept


def exact(kind: dtype) -> dtype:
    """The dtype in which parameters of dtype ``kind`` count their steps: float16 ends at 2048, bfloat16 at 256."""
    return float32 if kind in REDUCED else kind.to_real()


def counting() -> dtype:
    """The dtype of other numbers in a state: single, or what the user has made the default."""
    return float64 if get_default_dtype() is float64 else float32


class Bucket:
    """Parameters of one dtype and device that have taken the same steps.

    Complex ones are updated as pairs of real numbers, by PyTorch's convention: what is flat has twice as many elements.

    Attributes:
        params: the parameters, in the group's order.
        flats: name of a state -> flat tensor with the state of all parameters.
        shared: name of a state -> the one number that all have, a 0-d tensor, such as the count of steps.
    """

    def __init__(self, params: Sequence[Tensor], state: State, numbers: tuple[str, ...]) -> None:
        self.params = list(params)
        self.complex = params[0].dtype.is_complex
        self.shapes = tuple(tuple(p.shape) for p in self.parted(self.params))
        self.entries = [state[p] for p in params]
        self.flats: dict[str, Tensor] = {}
        self.shared: dict[str, Tensor] = {}
        self.parts: dict[str, list[Tensor]] = {}
        for name, value in list(self.entries[0].items()):
            if name in numbers:
                self._share(name, value.clone())
            else:
                kept = self.parted([entry[name] for entry in self.entries])
                self.keep(name, pack(*kept), tuple(tuple(part.shape) for part in kept))

    def parted(self, tensors: Sequence[Any]) -> Sequence[Any]:
        """Tensors as they are updated, in their memory: complex ones as pairs."""
        return [view_as_real(t) for t in tensors] if self.complex else tensors

    def intact(self, state: State) -> bool:
        """Whether ``state`` still holds what was put there, and nobody has replaced it."""
        for p, entry in zip(self.params, self.entries, strict=True):
            if state.get(p) is not entry:
                return False
        for name, parts in self.parts.items():
            for entry, part in zip(self.entries, parts, strict=True):
                if entry.get(name) is not part:
                    return False
        return True

    def gradient(self) -> Tensor:
        """The gradients, flat."""
        flat: Tensor = pack(*self.parted([p.grad for p in self.params]))
        return flat

    def values(self) -> Tensor:
        """The parameters, flat."""
        flat: Tensor = pack(*self.parted(self.params))
        return flat

    def add(self, change: Tensor) -> None:
        """Add a flat tensor to the parameters, in place."""
        add_parts(self.params, view_as_complex(change.view(-1, 2)) if self.complex else change)

    def keep(self, name: str, flat: Tensor, shapes: tuple[Shape, ...] | None = None) -> Tensor:
        """Make ``flat`` the state called ``name``, its parts of the parameters' shapes or of others."""
        if self.complex and shapes not in (None, self.shapes):
            raise NotImplementedError("this optimizer keeps what has no parts, and takes no complex parameters")
        shapes = self.shapes if shapes is None else shapes
        ends = offsets(shapes)
        parts = [flat[a:b].view(shape) for a, b, shape in zip(ends[:-1], ends[1:], shapes, strict=True)]
        if self.complex:
            parts = [view_as_complex(part) for part in parts]
        self.flats[name] = flat
        self.parts[name] = parts if modes.get() & modes.GRAD else [part.detach() for part in parts]
        for entry, part in zip(self.entries, self.parts[name], strict=True):
            entry[name] = part
        return flat

    def find(self, name: str) -> Tensor | None:
        """The state called ``name``, to be changed in place; None if there is none yet."""
        flat = self.flats.get(name)
        if flat is not None and modes.get() & modes.GRAD:  # the backward pass needs what is there now
            shapes = tuple(tuple(part.shape) for part in self.parted(self.parts[name]))
            return self.keep(name, flat.clone(), shapes)
        return flat

    def full(self, name: str, like: Tensor, value: Any, shapes: tuple[Shape, ...] | None = None) -> Tensor:
        """The state called ``name``, at first ``value`` (a number) everywhere."""
        flat = self.find(name)
        if flat is not None:
            return flat
        size = (offsets(shapes or self.shapes)[-1],)
        return self.keep(name, new_full(like, shape=size, value=0).add_(value), shapes)

    def zeros(self, name: str, like: Tensor, shapes: tuple[Shape, ...] | None = None) -> Tensor:
        """The state called ``name``, zeros at first."""
        return self.full(name, like, 0, shapes)

    def number(self, name: str, like: Tensor, value: Any, kind: dtype | None = None) -> Tensor:
        """The number called ``name``, a 0-d tensor, at first ``value``."""
        if name not in self.shared:
            kind = counting() if kind is None else kind
            self._share(name, new_full(like, shape=(), value=0, dtype=kind.name).add_(value))
        return self.shared[name]

    def count(self, like: Tensor) -> Tensor:
        """Count a step, and return the number so far, a 0-d tensor."""
        return self.number("step", like, 0, exact(like.dtype)).add_(1)

    def _share(self, name: str, number: Tensor) -> None:
        self.shared[name] = number
        self.parts[name] = [number] * len(self.params)
        for entry in self.entries:
            entry[name] = number


class Buckets:
    """The buckets of an optimizer, kept from step to step for each set of parameters that had gradients."""

    def __init__(self, state: State, numbers: tuple[str, ...], shelf: Callable[[Tensor], Any]) -> None:
        self.state = state
        self.numbers = numbers
        self.shelf = shelf
        self.home: dict[Tensor, Bucket] = {}
        self.known: dict[tuple[int, ...], list[Bucket]] = {}

    def of(self, group: dict[str, Any]) -> list[Bucket]:
        """The buckets of the group's parameters that have a gradient now."""
        return self._held(group, [p for p in group["params"] if p.grad is not None])

    def restore(self, group: dict[str, Any]) -> None:
        """Make the buckets of the group's parameters that have a state: of those that had a gradient."""
        self._held(group, [p for p in group["params"] if self.state.get(p)])

    def _held(self, group: dict[str, Any], active: list[Tensor]) -> list[Bucket]:
        key = id(group), *map(id, active)
        buckets = self.known.get(key)
        if buckets is None or not all(b.intact(self.state) for b in buckets):
            if len(self.known) >= SETS:
                self.known.clear()
            buckets = self.known[key] = self._arrange(active)
        return buckets

    def _arrange(self, active: list[Tensor]) -> list[Bucket]:
        together: dict[Any, list[Tensor]] = {}
        for p in active:
            home = self.home.get(p)
            if home is not None and home.intact(self.state):
                together.setdefault(home, []).append(p)
            else:
                entry = self.state[p]
                for name in [name for name, value in entry.items() if value is None]:  # which is not made yet
                    del entry[name]
                shared = tuple([id(entry.get(name)) for name in self.numbers])
                alike = p.dtype, p.device, tuple(entry), shared, self.shelf(p)
                together.setdefault(alike, []).append(p)
        buckets = []
        for key, params in together.items():
            whole = isinstance(key, Bucket) and len(key.params) == len(params)
            bucket = key if whole else Bucket(params, self.state, self.numbers)
            self.home.update(dict.fromkeys(params, bucket))
            buckets.append(bucket)
        return buckets
