"""Operators that run graphs within them."""

from __future__ import annotations

from typing import Any

import leafgrad
from leafgrad_onnx.errors import OnnxLoadError
from leafgrad_onnx.operators.registry import number, operator, room

MOST_STEPS = 1_000_000


@operator("If", host=(0,))
def if_(condition: Any, *, then_branch: Any, else_branch: Any) -> Any:
    return (then_branch if number(condition) else else_branch)()


def keep(rows: list[list[Any]], values: list[Any]) -> None:
    """Add what one step gives to the rows that become results, if they do not become too large."""
    for row, value in zip(rows, values, strict=True):
        room((len(row) + 1, *value.shape), 8)
        row.append(value)


@operator("Loop", host=(0, 1))
def loop(trip: Any, condition: Any, *states: Any, body: Any) -> Any:
    most = number(trip, MOST_STEPS)
    going, values, i = bool(number(condition, True)), list(states), 0
    count = len(states)
    rows: list[list[Any]] = [[] for _ in range(len(body.outputs) - 1 - count)]
    while going and i < most:
        if i >= MOST_STEPS:
            raise OnnxLoadError(f"a loop of more than {MOST_STEPS:,} steps")
        found = body(body.host(i), body.host(True), *values)
        going = bool(body.number(found[0]))
        values = list(found[1 : 1 + count])
        keep(rows, [body.tensor(value) for value in found[1 + count :]])
        i += 1
    empty = [leafgrad.stack(row) if row else leafgrad.zeros(0) for row in rows]
    return (*values, *empty)


@operator("Scan")
def scan(
    *given: Any,
    body: Any,
    num_scan_inputs: int,
    scan_input_axes: list[int] | None = None,
    scan_input_directions: list[int] | None = None,
    scan_output_axes: list[int] | None = None,
    scan_output_directions: list[int] | None = None,
    directions: list[int] | None = None,
    opset: int,
) -> Any:
    if opset < 9:
        raise OnnxLoadError("Scan of opset 8, which has batches of its own")
    count = len(given) - num_scan_inputs
    states, sequences = list(given[:count]), given[count:]
    axes = scan_input_axes or [0] * num_scan_inputs
    turned = scan_input_directions or [0] * num_scan_inputs
    lengths = {s.shape[a] for s, a in zip(sequences, axes, strict=True)}
    if len(lengths) != 1:
        raise OnnxLoadError(f"Scan over sequences of different lengths: {sorted(lengths)}")
    (steps,) = lengths
    rows: list[list[Any]] = [[] for _ in range(len(body.outputs) - count)]
    for i in range(steps):
        now = [s.select(a, steps - 1 - i if t else i) for s, a, t in zip(sequences, axes, turned, strict=True)]
        found = body(*states, *now)
        states = list(found[:count])
        keep(rows, [body.tensor(value) for value in found[count:]])
    out_axes = scan_output_axes or [0] * len(rows)
    backwards = scan_output_directions or [0] * len(rows)
    results = [
        leafgrad.stack(row[::-1] if b else row, a) if row else leafgrad.zeros(0)
        for row, a, b in zip(rows, out_axes, backwards, strict=True)
    ]
    return (*states, *results)
