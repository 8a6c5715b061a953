"""Fields and what they are made of, as dicts, lists, numbers and strings. `leafgrad_pinn.decoding` makes them again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields as members, is_dataclass
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor, plugins
from leafgrad_pinn import layers, networks, operators, shapes
from leafgrad_pinn.domains import Domain, Parameter, Time
from leafgrad_pinn.ellipses import Ellipse
from leafgrad_pinn.field import Derivative, Field, Hard
from leafgrad_pinn.functions import InputFunction
from leafgrad_pinn.implicit import SignedDistance
from leafgrad_pinn.polygons import Polygon
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
CONSTANTS = ("zeros", "full", "constant")  # ops that make a tensor of a number


def encode(value: Any) -> Any:
    """What ``leafgrad.save`` takes. ValueError for what cannot be saved."""
    if isinstance(value, (bool, int, float, str, Tensor)) or value is None:
        return value
    if isinstance(value, np.ndarray):
        return {"array": leafgrad.tensor(np.ascontiguousarray(value))}
    if isinstance(value, (list, tuple)):
        return {"list": [encode(part) for part in value]}
    if isinstance(value, dict):
        return {"dict": {name: encode(part) for name, part in value.items()}}
    if isinstance(value, Derivative):
        return {"derivative": value.name, "of": encode(value.of), "by": value.coordinate, "factor": value.factor}
    if isinstance(value, Field):
        parts = {name: encode(getattr(value, name)) for name in ("domain", "net", "initial", "boundary")}
        more = {name: encode(getattr(value, name)) for name in ("part", "history") if getattr(value, name) is not None}
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
        return {"recipe": type(value).__name__, **{m.name: encode(getattr(value, m.name)) for m in members(value)}}
    if isinstance(value, networks.Own):
        return {"own": value.name, "embed": encode(value.embed), "enrich": encode(value.enrich)}
    if callable(value):
        return Program.record(value).saved()
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
        return {"shape": "signed distance", "function": encode(shape.function), "sides": encode(shape.box.sides)}
    raise ValueError(f"save: expected a shape of leafgrad_pinn, got {type(shape).__name__}")


class Program:
    """A function of coordinates as a list of ops, recorded at one point: it must treat all points alike.

    Args:
        parameters: its parameters' names.
        equations: op, inputs and parameters each. Inputs are ``["value", i]``, the i-th of parameters and earlier
            results, or ``["number", v]``.
        result: an input like those.
    """

    def __init__(self, parameters: list[str], equations: list[dict[str, Any]], result: list[Any]) -> None:
        self.parameters, self.equations, self.result = parameters, equations, result

    @staticmethod
    def record(function: Callable[..., Any]) -> Program:
        """That of a function of tensors. ValueError if it is not made of known ops, or treats points differently."""
        signature = inspect.signature(function).parameters.values()
        parameters = [p.name for p in signature if p.default is p.empty]
        if not parameters:
            return Program([], [], ["number", float(function())])
        record: Callable[..., Any] = vars(leafgrad)["trace"]  # a submodule has its name, which confuses type checkers
        traced = record(
            lambda *args: as_tensor(function(*args), args) * 1,  # an op of its own, also if it only returns a parameter
            *[leafgrad.zeros((), dtype=leafgrad.float64) for _ in parameters],
        )
        if not all(hasattr(origin, "index") for origin in traced.inputs.values()):  # places of arguments
            raise ValueError(f"save: {function}: expected a function of its parameters alone; it uses other tensors")
        places: dict[Any, int] = {value: origin.index for value, origin in traced.inputs.items()}

        def source(value: Any) -> list[Any]:
            return ["value", places[value]] if value in places else ["number", value]

        equations = []
        for equation in traced.equations:
            inputs, params = [source(value) for value in equation.inputs], pairs(equation.params)
            if not inputs:
                inputs, params = [constant(function, equation)], {}
            equations.append({"op": equation.name, "inputs": inputs, "params": params})
            places[equation.out] = len(parameters) + len(equations) - 1
        program = Program(parameters, equations, source(traced.results[0]))
        program.check(function)
        return program

    def check(self, function: Callable[..., Any]) -> None:
        """ValueError if it gives other numbers than the function."""
        rng = np.random.default_rng(0)
        points = [leafgrad.tensor(rng.random(16)) for _ in self.parameters]
        expected = as_tensor(function(*points), points).expand(16)
        try:
            alike = leafgrad.allclose(self(*points).expand(16), expected, rtol=1e-12, atol=1e-12, equal_nan=True)
        except RuntimeError:  # of shapes: what it does with a point depends on how many there are
            alike = False
        if not alike:
            raise ValueError(f"save: {function}: expected a function that treats each point alike")

    def __call__(self, *args: Tensor) -> Any:
        values: list[Any] = list(args)

        def value(source: list[Any]) -> Any:
            return values[source[1]] if source[0] == "value" else source[1]

        for equation in self.equations:
            inputs = [value(s) for s in equation["inputs"]]
            if equation["op"] in CONSTANTS:
                values.append(leafgrad.full((), inputs[0], dtype=args[0].dtype, device=args[0].device))
            else:
                values.append(plugins.op(equation["op"])(*inputs, **unpaired(equation["params"])))
        return value(self.result)

    def function(self) -> Callable[..., Any]:
        """It as a function whose parameters have names."""

        def call(*args: Tensor) -> Any:
            return self(*args)

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        call.__dict__["__signature__"] = inspect.Signature([inspect.Parameter(n, kind) for n in self.parameters])
        return call

    def saved(self) -> dict[str, Any]:
        """It as dicts, lists, numbers and strings."""
        return {"parameters": self.parameters, "equations": self.equations, "result": self.result}


def constant(function: Callable[..., Any], equation: Any) -> list[Any]:
    """The number that an equation without inputs makes. ValueError for one that makes something else."""
    params = equation.params
    if (
        equation.name not in CONSTANTS
        or params.get("shape", ()) != ()
        or not isinstance(params.get("value", 0), float | int)
    ):
        raise ValueError(f"save: {function}: expected a function of its parameters alone; it uses {equation.name}")
    return ["number", float(params.get("value", 0))]


def as_tensor(value: Any, like: Sequence[Tensor]) -> Tensor:
    """A number as a tensor."""
    return value if isinstance(value, Tensor) else leafgrad.full_like(like[0], value)


def pairs(params: Any) -> dict[str, Any]:
    """An op's parameters, tuples marked as such."""
    return {name: {"tuple": list(v)} if isinstance(v, tuple) else v for name, v in params.items()}


def unpaired(params: dict[str, Any]) -> dict[str, Any]:
    """What ``pairs`` was given."""
    return {name: tuple(v["tuple"]) if isinstance(v, dict) else v for name, v in params.items()}
