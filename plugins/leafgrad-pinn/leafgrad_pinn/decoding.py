"""What ``leafgrad_pinn.codec.encode`` gave, made again, after it was compared with what it has to be.

A file is from anywhere: whatever is not right in it is one ValueError that names the place, and nothing that it claims
costs more than what it has.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields as members
from types import FunctionType
from typing import Any

import numpy as np

from leafgrad_pinn import layers, networks, schema, shapes
from leafgrad_pinn.codec import RECIPES
from leafgrad_pinn.domains import Domain, Parameter, Time
from leafgrad_pinn.ellipses import Ellipse
from leafgrad_pinn.field import Derivative, Field, Hard
from leafgrad_pinn.functions import InputFunction
from leafgrad_pinn.implicit import SignedDistance
from leafgrad_pinn.polygons import Polygon
from leafgrad_pinn.recorded import Program
from leafgrad_pinn.sets import Combined
from leafgrad_pinn.surfaces import Surface


class Decoder:
    """Makes what ``encode`` was given, after it has compared what is there with what has to be.

    Args:
        widest, deepest: the largest width and number of layers for which there are weights.
        steps: how many values there may be; a file can name one in many places.
        own: what makes modules of one's own, by name.
    """

    def __init__(
        self,
        widest: int = sys.maxsize,
        deepest: int = sys.maxsize,
        steps: int = sys.maxsize,
        own: Mapping[str, Callable[..., Any]] = {},
    ) -> None:
        self.steps, self.own = steps, own
        wide, deep = schema.count(1, widest), schema.count(1, deepest)
        function = self.made(FunctionType, "a function")
        value = schema.either(schema.finite, function)
        shape, coordinates = self.made(shapes.Shape, "a shape"), self.mapping(schema.items(schema.finite, 2))
        embedding = self.made((layers.Periodic, layers.Fourier), "Periodic, Even or Fourier")
        network = self.made(networks.Network, "a network")
        hard = schema.optional(self.made(Hard, "Hard(...)"))
        self.recipes: dict[str, schema.Check] = {
            "width": wide, "depth": deep, "features": wide, "harmonics": self.mapping(wide),
            "activation": schema.one_of(*layers.ACTIVATIONS), "scale": schema.finite,
            "embed": schema.optional(schema.either(embedding, self.items(embedding))),
            "factorised": schema.optional(self.made(layers.Factorised, "Factorised(...)")),
            "mean": schema.finite, "std": schema.finite, "enrich": schema.optional(function),
            "frequency": schema.either(schema.finite, self.mapping(schema.finite)),
            "modes": wide, "padding": schema.finite,
            "branch": schema.optional(network), "trunk": schema.optional(network),
            "value": value, "rate": schema.optional(value), "on": schema.optional(schema.text), "clamped": schema.flag,
        }  # fmt: skip
        named = {"domain": self.made(Domain, "a domain"), "net": network, "initial": hard, "boundary": hard}
        scale = schema.optional(schema.finite)
        self.kinds: dict[str, tuple[dict[str, schema.Check], Callable[..., Any]]] = {
            "own": (
                {"own": self.owned, "embed": self.recipes["embed"], "enrich": self.recipes["enrich"]},
                lambda own, embed, enrich: networks.Own(own, embed=embed, enrich=enrich),
            ),
            "array": ({"array": schema.tensor}, lambda array: array.detach().cpu().numpy()),
            "list": ({"list": schema.items(self)}, lambda **saved: tuple(saved["list"])),
            "dict": ({"dict": schema.mapping(self)}, lambda **saved: saved["dict"]),
            "derivative": (
                {"derivative": schema.text, "of": self.made(Field, "a field"), "by": schema.text,
                 "factor": schema.finite},
                lambda derivative, of, by, factor: Derivative(derivative, of, by, factor),
            ),
            "field": (
                {"field": schema.text, "scale": scale, "part": shape, "history": value, **named},
                lambda field, domain, net, **given: Field(field, domain, net, **given),
            ),
            "domain": (
                {"domain": schema.optional(shape), "time": schema.optional(self.made(Time, "a time")),
                 "ranges": self.items(self.made(Parameter, "a parameter")),
                 "functions": self.items(self.made(InputFunction, "an input function"))},
                lambda domain, time, ranges=(), functions=(): Domain(domain, time, ranges, functions),
            ),
            "sensors": (
                {"sensors": schema.text, "axes": self.mapping(schema.array(1)), "mean": schema.finite,
                 "std": schema.finite, "degree": schema.count(1, 5),
                 "components": schema.optional(self.made(np.ndarray, "an array"))},
                lambda sensors, **given: InputFunction(sensors, **given),
            ),
            "start": ({"start": schema.finite, "stop": schema.finite, "name": schema.text}, Time),
            "low": ({"low": schema.finite, "high": schema.finite, "name": schema.text}, Parameter),
            "box": (
                {"shape": schema.text, "periodic": schema.text, "sides": coordinates},
                lambda shape, periodic, sides: shapes.Box(periodic, **sides),
            ),
            "ball": (
                {"shape": schema.text, "radius": schema.finite, "edge": schema.text,
                 "center": self.mapping(schema.finite)},
                lambda shape, radius, edge, center: shapes.Ball(radius, edge, **center),
            ),
            "ellipse": (
                {"shape": schema.text, "axes": self.items(schema.finite), "edge": schema.text,
                 "center": self.mapping(schema.finite)},
                lambda shape, axes, edge, center: Ellipse(axes, edge, **center),
            ),
            "surface": (
                {"shape": schema.text, "vertices": self.made(np.ndarray, "an array"),
                 "triangles": self.made(np.ndarray, "an array"), "names": schema.text, "edge": schema.text},
                lambda shape, vertices, triangles, names, edge: Surface(vertices, triangles, names, edge),
            ),
            "polygon": (
                {"shape": schema.text, "vertices": self.made(np.ndarray, "an array"), "names": schema.text,
                 "edges": self.items(schema.text)},
                lambda shape, vertices, names, edges: Polygon(vertices, names, edges),
            ),
            "signed distance": (
                {"shape": schema.text, "function": function, "sides": coordinates},
                lambda shape, function, sides: SignedDistance(function, **sides),
            ),
            "combined": (
                {"shape": schema.text, "how": schema.one_of("union", "difference", "intersection"), "first": shape,
                 "second": shape},
                lambda shape, how, first, second: Combined(how, first, second),
            ),
        }  # fmt: skip

    def __call__(self, saved: Any, where: str) -> Any:
        """What was encoded; ValueError that names its place."""
        self.steps -= 1
        if self.steps < 0:
            raise schema.Misfit(where, "expected no more values than the file has bytes")
        if not isinstance(saved, dict):
            return saved
        if "recipe" in saved:
            return self.recipe(saved, where)
        if "parameters" in saved:
            with schema.making(where):
                return Program.read(saved, where).function()
        found = saved.get("shape") if "shape" in saved else next((name for name in self.kinds if name in saved), None)
        if not isinstance(found, str) or found not in self.kinds:
            raise schema.misfit(where, f"one of {', '.join(self.kinds)}, or a recipe", ", ".join(map(str, saved)))
        checks, make = self.kinds[found]
        parts = schema.record(checks, optional=("scale", "ranges", "functions", "part", "history"))(
            saved, where
        )  # which older files do not have
        with schema.making(where):
            return make(**parts)

    def recipe(self, saved: dict[str, Any], where: str) -> Any:
        """A network, or what one is made of."""
        name = schema.one_of(*RECIPES)(saved["recipe"], f"{where}.recipe")
        wanted = [member.name for member in members(RECIPES[name])]
        checks = {"recipe": schema.text, **{part: self.recipes[part] for part in wanted}}
        parts = schema.record(checks)(saved, where)
        with schema.making(where):
            return RECIPES[name](**{part: parts[part] for part in wanted})

    def owned(self, saved: Any, where: str) -> Callable[..., Any]:
        """What makes a module of this name, given by who loads the file."""
        name = schema.text(saved, where)
        if name not in self.own:
            given = ", ".join(self.own) or "none"
            expected = f"the network is {name!r}, a module of one's own: expected it as own={name}"
            raise schema.Misfit(where, f"{expected}, got {given}")
        return self.own[name]

    def made(self, kinds: Any, words: str) -> schema.Check:
        """Something encoded of these classes."""
        check = schema.kind(kinds, words)
        return lambda saved, where: check(self(saved, where), where)

    def items(self, check: schema.Check) -> schema.Check:
        """An encoded list."""
        whole = schema.items(check)
        return lambda saved, where: whole(self(saved, where), where)

    def mapping(self, check: schema.Check) -> schema.Check:
        """An encoded dict."""
        whole = schema.mapping(check)
        return lambda saved, where: whole(self(saved, where), where)
