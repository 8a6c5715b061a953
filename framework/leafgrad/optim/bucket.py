"""Parameters that are updated together: their state lies in flat tensors, so that a step costs a few operations.

PyTorch's per-parameter state remains: ``optimizer.state[p]["exp_avg"]`` is the part of the flat tensor that
belongs to ``p``, in its shape, and writes go both ways. Parameters without gradient take no part in a step, so
the buckets follow who has one; who was left out keeps the old state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafgrad.dtypes import dtype, float16, float32
from leafgrad.ops.convert import new_full
from leafgrad.ops.flat import offsets, pack, unpack
from leafgrad.tensor.tensor import Tensor

State = dict[Tensor, dict[str, Any]]


def exact(kind: dtype) -> dtype:
    """The dtype in which parameters of dtype ``kind`` count their steps: float16 ends at 2048."""
    return float32 if kind is float16 else kind


class Bucket:
    """Parameters of one dtype and device that have taken the same steps.

    Attributes:
        params: the parameters, in the group's order.
        flats: name of a state -> flat tensor with the state of all parameters.
        step: how many steps they have taken, a 0-d tensor; None until it is counted.
    """

    def __init__(self, params: Sequence[Tensor], state: State) -> None:
        self.params = list(params)
        self.shapes = tuple(tuple(p.shape) for p in params)
        self.entries = [state[p] for p in params]
        self.flats: dict[str, Tensor] = {}
        self.parts: dict[str, list[Tensor]] = {}
        self.step: Tensor | None = None
        for name in list(self.entries[0]):
            if name == "step":
                self._share_step(self.entries[0]["step"].clone())
            else:
                self.keep(name, pack(*[entry[name] for entry in self.entries]))

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
        flat: Tensor = pack(*[p.grad for p in self.params])
        return flat

    def values(self) -> Tensor:
        """The parameters, flat."""
        flat: Tensor = pack(*self.params)
        return flat

    def add(self, change: Tensor) -> None:
        """Add a flat tensor to the parameters, in place."""
        for p, part in zip(self.params, unpack(change, shapes=self.shapes), strict=True):
            p.add_(part)

    def keep(self, name: str, flat: Tensor) -> Tensor:
        """Make ``flat`` the state called ``name``."""
        ends = offsets(self.shapes)
        self.flats[name] = flat
        self.parts[name] = [
            flat[a:b].view(shape).detach() for a, b, shape in zip(ends[:-1], ends[1:], self.shapes, strict=True)
        ]
        for entry, part in zip(self.entries, self.parts[name], strict=True):
            entry[name] = part
        return flat

    def zeros(self, name: str, like: Tensor) -> Tensor:
        """The state called ``name``, zeros at first."""
        found = self.flats.get(name)
        return self.keep(name, new_full(like, shape=tuple(like.shape), value=0)) if found is None else found

    def count(self, like: Tensor) -> Tensor:
        """Count a step, and return the number so far, a 0-d tensor."""
        if self.step is None:
            self._share_step(new_full(like, shape=(), value=0, dtype=exact(like.dtype).name))
        step = self.step
        assert step is not None
        return step.add_(1)

    def _share_step(self, step: Tensor) -> None:
        self.step = step
        self.parts["step"] = [step] * len(self.params)
        for entry in self.entries:
            entry["step"] = step


class Buckets:
    """The buckets of an optimizer, kept from step to step while the same parameters have gradients."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.home: dict[Tensor, Bucket] = {}
        self.last: dict[int, tuple[list[int], list[Bucket]]] = {}

    def of(self, group: dict[str, Any]) -> list[Bucket]:
        """The buckets of the group's parameters that have a gradient now."""
        active = [p for p in group["params"] if p.grad is not None]
        who = [id(p) for p in active]
        before, buckets = self.last.get(id(group), (None, []))
        if who != before or not all(b.intact(self.state) for b in buckets):
            buckets = self._arrange(active)
            self.last[id(group)] = who, buckets
        return buckets

    def _arrange(self, active: list[Tensor]) -> list[Bucket]:
        together: dict[Any, list[Tensor]] = {}
        for p in active:
            home = self.home.get(p)
            if home is not None and home.intact(self.state):
                together.setdefault(home, []).append(p)
            else:
                entry = self.state[p]
                alike = p.dtype, p.device, tuple(entry), id(entry.get("step"))
                together.setdefault(alike, []).append(p)
        buckets = []
        for key, params in together.items():
            whole = isinstance(key, Bucket) and len(key.params) == len(params)
            bucket = key if whole else Bucket(params, self.state)
            self.home.update(dict.fromkeys(params, bucket))
            buckets.append(bucket)
        return buckets
