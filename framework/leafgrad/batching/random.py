"""Random numbers under vmap: an error, the same for all samples, or different ones, as ``randomness`` says."""

from __future__ import annotations

from typing import Any

from leafgrad import modes
from leafgrad.batching.batched import Batched, for_all_samples, has
from leafgrad.ops import dispatch
from leafgrad.ops.shape import stack


def differing_batches(op: Any) -> list[Any]:
    """The running batches whose samples differ, outermost first; an error if one allows no random numbers."""
    running = modes.BATCHES.get()
    if any(b.randomness == "error" for b in running):
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
            f"randomness flags on vmap or perform the randomness operation out of vmap ({op.name})"
        )
    return [b for b in running if b.randomness == "different"]


def draw(op: Any, place: tuple[str, int], params: dict[str, Any]) -> Any:
    """The raw result of a random op without array arguments."""
    batches = differing_batches(op)
    drawn = _drawn(op, place, params, [b.size for b in batches])
    for batch in batches:
        drawn = Batched(drawn, batch)
    return drawn


def _drawn(op: Any, place: tuple[str, int], params: dict[str, Any], sizes: list[int]) -> Any:
    """Independent draws with the dimensions ``sizes`` in front."""
    if "shape" in params:
        return dispatch.created(op, place, params | {"shape": (*sizes, *params["shape"])})
    if not sizes:
        return dispatch.created(op, place, params)
    return stack(*[_drawn(op, place, params, sizes[1:]) for _ in range(sizes[0])], dim=0)


def independent(op: Any, raw: tuple[Any, ...]) -> tuple[Any, ...]:
    """The raw arguments of a random op, the first one with every batch whose samples differ."""
    batches = differing_batches(op)
    first = raw[0]
    for batch in modes.BATCHES.get():
        if batch.randomness == "same" and has(first, batch):
            raise RuntimeError(
                "Vmap does not currently support same randomness with a batched tensor input; use "
                f"randomness='different', or draw outside of vmap ({op.name})"
            )
    for batch in batches:
        first = first if has(first, batch) else for_all_samples(first, batch)
    return (first, *raw[1:])
