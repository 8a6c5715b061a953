"""Fields and what they are made of, as dicts, lists, numbers and strings. `leafgrad_pinn.decoding` makes them again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as members, is_dataclass
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn import layers, networks, operators, shapes
from leafgrad_pinn.domains import Domain, Parameter, Time
from leafgrad_pinn.ellipses import Ellipse
from leafgrad_pinn.field import Derivative, Field, Hard
from leafgrad_pinn.functions import InputFunction
from leafgrad_pinn.implicit import SignedDistance
from leafgrad_pinn.polygons import Polygon
from leafgrad_pinn.recorded import TRIED, Program, box
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.sets import Combined
from leafgrad_pinn.surfaces import Surface

RECIPES = {
    recipe.__name__: recipe
    for recipe in (
        Hard,
        layers.Factorised,
        layers.Fourier,
        layers.Even,
        layers.Periodic,
        networks.MLP,
        networks.ModifiedMLP,
        networks.PirateNet,
        networks.SIREN,
        operators.DeepONet,
        operators.FNO,
    )
}


def encode(value: Any, at: Mapping[str, Array | None] = {}, dtype: str = "float64") -> Any:
    """What ``leafgrad.save`` takes. ValueError for what cannot be saved.

    Args:
        value: a field, or what one is made of.
        at: where functions are tried: coordinates of points by name, in [0, 1] where it has none, and None for each
            input function.
        dtype: of the networks of fields.
    """
    if isinstance(value, (bool, int, float, str, Tensor)) or value is None:
        return value
    if isinstance(value, np.ndarray):
        return {"array": leafgrad.tensor(np.ascontiguousarray(value))}
    if isinstance(value, (list, tuple)):
        return {"list": [encode(part, at, dtype) for part in value]}
    if isinstance(value, dict):
        return {"dict": {name: encode(part, at) for name, part in value.items()}}
    if isinstance(value, Derivative):
        return {
            "derivative": value.name,
            "of": encode(value.of, at, dtype),
            "by": value.coordinate,
            "factor": value.factor,
        }
    if isinstance(value, Field):
        at = points_of(value, dtype)
        parts = {name: encode(getattr(value, name), at) for name in ("domain", "net", "initial", "boundary")}
        more = {} if value.part is None else {"part": encode(value.part)}
        if value.history is not None:
            more["history"] = encode(value.history, before(value.domain, at))
        return {"field": value.name, "scale": value.scale, **parts, **more}
    if isinstance(value, Domain):
        ranges = {"ranges": encode(list(value.parameters))} if value.parameters else {}
        functions = {"functions": encode(list(value.functions))} if value.functions else {}
        return {"domain": encode(value.shape), "time": encode(value.time), **ranges, **functions}
    if isinstance(value, InputFunction):  # whatever it was drawn from
        return {"sensors": value.name, "axes": encode(value.axes), "mean": value.mean, "std": value.std,
                "degree": value.degree, "components": encode(value.components)}  # fmt: skip
    if isinstance(value, Parameter):
        return {"low": value.low, "high": value.high, "name": value.name}
    if isinstance(value, Time):
        return {"start": value.start, "stop": value.stop, "name": value.name}
    if isinstance(value, shapes.Shape):
        return encode_shape(value)
    if is_dataclass(value) and type(value).__name__ in RECIPES:
        parts = {m.name: encode(getattr(value, m.name), at) for m in members(value)}
        return {"recipe": type(value).__name__, **parts}
    if isinstance(value, networks.Own):
        return {"own": value.name, "embed": encode(value.embed, at), "enrich": encode(value.enrich, at)}
    if callable(value):
        recorded = Program.record(value, at).saved()
        Program.read(recorded, f"save: {value}")  # a file that cannot be read would be a solution that is lost
        return recorded
    raise ValueError(f"save: expected what fields are made of, got {type(value).__name__}")


def encode_shape(shape: shapes.Shape) -> dict[str, Any]:
    """A shape by what it was made of."""
    if isinstance(shape, shapes.Box):
        return {"shape": "box", "periodic": " ".join(shape.periodic), "sides": encode(shape.sides)}
    if isinstance(shape, shapes.Ball):
        return {"shape": "ball", "radius": shape.radius, "edge": shape.edge, "center": encode(shape.origin)}
    if isinstance(shape, Ellipse):
        return {"shape": "ellipse", "axes": encode(shape.axes.tolist()), "edge": shape.edge,
                "center": encode(shape.origin)}  # fmt: skip
    if isinstance(shape, Surface):
        return {"shape": "surface", "vertices": encode(shape.vertices), "triangles": encode(shape.faces),
                "names": " ".join(shape.names), "edge": shape.edge}  # fmt: skip
    if isinstance(shape, Polygon):
        names = " ".join(shape.names)
        return {"shape": "polygon", "vertices": encode(shape.vertices), "names": names, "edges": encode(shape.sides)}
    if isinstance(shape, Combined):
        return {"shape": "combined", "how": shape.how, "first": encode(shape.first), "second": encode(shape.second)}
    if isinstance(shape, SignedDistance):
        at = box(shape.box.sides)
        return {"shape": "signed distance", "function": encode(shape.function, at), "sides": encode(shape.box.sides)}
    raise ValueError(f"save: expected a shape of leafgrad_pinn, got {type(shape).__name__}")


def points_of(field: Field, dtype: str) -> Mapping[str, Array | None]:
    """Points of a field's domain, or of the part of it where the field is, and its input functions' names."""
    domain, part = field.domain, field.part
    of_part = {} if part is None else dict(zip(part.names, part.bounds.tolist(), strict=True))
    columns = box({**domain.ends, **of_part}, 16 * TRIED)
    best = np.argsort(~domain.inside(np.stack(list(columns.values()), 1)), kind="stable")[:TRIED]
    found = {name: column[best].astype(dtype) for name, column in columns.items()}
    return {**found, **{f.name: None for f in domain.functions}}


def before(domain: Domain, at: Mapping[str, Array | None]) -> Mapping[str, Array | None]:
    """The same before the domain's first moment, and most of them shortly before."""
    if (time := domain.time) is None:
        return at
    early, like = time.start - (time.stop - time.start) * np.linspace(0, 1, TRIED) ** 4, at[time.name]
    assert like is not None
    return {**at, time.name: early.astype(like.dtype)}
