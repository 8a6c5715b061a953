"""Solutions from files, checked against their schema before anything is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import leafgrad
from leafgrad_pinn import schema
from leafgrad_pinn.blank import BlankMaker
from leafgrad_pinn.decoding import Decoder
from leafgrad_pinn.field import Field, Surrogate
from leafgrad_pinn.references import Reference
from leafgrad_pinn.windows import Piecewise, module_of


def read(saved: dict[str, Any], size: int, device: Any, own: Mapping[str, Any] = {}) -> tuple[Any, ...]:
    """What a `Solution` is made of, from a file of so many bytes; ValueError that names what is wrong in it.

    Args:
        own: what makes modules of one's own, by name.

    Returns:
        Groups of fields; seed, networks and details of each run; reference, pairs and moments.
    """
    states = schema.items(schema.mapping(schema.tensor))
    whole = {
        "leafgrad-pinn": schema.anything, "groups": schema.items(schema.items(schema.anything)),
        "runs": schema.items(schema.anything),
        "moments": schema.items(schema.finite), "reference": schema.anything,
        "pairs": schema.mapping(schema.items(schema.text, 2)),
    }  # fmt: skip
    parts = schema.record(whole)(saved, "solution")
    run = {
        "seed": schema.kind(int, "a whole number"),
        "dtype": schema.one_of("float16", "bfloat16", "float32", "float64"),
        "windows": schema.count(0, max(0, len(parts["moments"]) - 1)),
        "states": states, "details": schema.anything,
    }  # fmt: skip
    runs = schema.items(schema.record(run))(parts["runs"], "runs")
    if not runs or not parts["groups"] or not all(parts["groups"]):
        raise schema.misfit("solution", "at least one run, and groups of fields", f"{len(runs)} runs")
    stored = [state for one in runs for state in one["states"]]
    decode = Decoder(sum(t.numel() for state in stored for t in state.values()), sum(map(len, stored)), size, own)
    groups = [
        [decode.made(Field, "a field")(field, f"groups[{i}][{k}]") for k, field in enumerate(group)]
        for i, group in enumerate(parts["groups"])
    ]
    reference = decode(parts["reference"], "reference")
    if reference is not None:
        reference = Reference(**REFERENCE(reference, "reference"))
    made = []
    for k, one in enumerate(runs):
        details = DETAILS(decode(one["details"], f"runs[{k}].details"), f"runs[{k}].details")
        made.append((one["seed"], networks_of(groups, parts["moments"], one, f"runs[{k}]", device), details))
    names = {field.name for group in groups for field in group}
    for name, pair in parts["pairs"].items():
        if not names >= set(pair):
            raise schema.misfit(f"pairs.{name}", f"names among {', '.join(sorted(names))}", pair)
    return groups, made, reference, parts["pairs"], parts["moments"]


def networks_of(
    groups: Sequence[Sequence[Field]], moments: Sequence[float], run: Mapping[str, Any], where: str, device: Any
) -> list[Surrogate | Piecewise]:
    """The networks of a run with their weights, whose shapes are compared before anything is made of such a size."""
    if len(run["states"]) != len(groups):
        raise schema.misfit(f"{where}.states", f"{len(groups)}, one for each group", len(run["states"]))
    dtype = getattr(leafgrad, run["dtype"])
    found = []
    for k, (group, state) in enumerate(zip(groups, run["states"], strict=True)):
        with schema.making(f"{where}.states[{k}]"):
            module = module_of(group, BlankMaker(dtype, device), moments, run["windows"])
        claimed = {name: (tuple(t.shape), str(t.dtype)) for name, t in module.state_dict().items()}
        there = {name: (tuple(t.shape), str(t.dtype)) for name, t in state.items()}
        for name in [*claimed, *(name for name in there if name not in claimed)]:
            if claimed.get(name) != there.get(name):
                place = f"{where}.states[{k}].{name}"
                raise schema.misfit(place, f"{claimed.get(name, 'nothing')}, as the fields say", there.get(name))
        module.load_state_dict(state, assign=True)
        found.append(module)
    return found


NUMBERS = schema.mapping(schema.number)
NOTED = schema.optional(schema.either(schema.number, schema.text))
DETAILS = schema.record(
    {
        "errors": schema.mapping(schema.record({"l2": schema.number, "max": schema.number})),
        "unknowns": NUMBERS, "deviations": NUMBERS, "relative": NUMBERS, "estimated": NUMBERS,
        "suspected": NUMBERS, "hardly": NUMBERS,
        "residuals": schema.mapping(schema.record({"points": schema.array(2), "sizes": schema.array(1)})),
        "free": schema.text, "untold": schema.text, "contradicted": schema.text, "rough": schema.text,
        "undefined": schema.mapping(schema.text),
        "scattered": schema.mapping(schema.text), "backwards": schema.items(schema.text),
        "reasons": schema.items(schema.text), "seconds": schema.number,
        "history": schema.items(schema.mapping(NOTED, stage=schema.text, step=schema.number, loss=schema.number)),
    },
    optional=(
        "relative", "undefined", "estimated", "rough", "suspected", "hardly", "free", "untold", "contradicted",
        "scattered", "backwards",
    ),
)  # fmt: skip
REFERENCE = schema.record(
    {
        "name": schema.text, "axes": schema.mapping(schema.array(1)), "fields": schema.mapping(schema.array()),
        "floor": NUMBERS, "seconds": schema.number, "grid": schema.flag, "functions": schema.mapping(schema.array(2)),
    },
    optional=("functions",),
)  # fmt: skip
