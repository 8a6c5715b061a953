"""Functions of coordinates as lists of ops, as files have them."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor, plugins
from leafgrad.autograd import grad
from leafgrad.errors import TraceError
from leafgrad_pinn import schema
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.values import recording

CONSTANTS = ("zeros", "full", "constant")  # ops that make a tensor of a number
COUNTS = (16, 17)  # of points at which a function is recorded: what is the one and the other is their number
POINTS = 16  # for which a program's shapes are followed
TRIED = 37  # points at which a program is compared with its function: far more than COUNTS
ROUNDING = 1e-12  # by which its numbers may differ from the function's in float64
FAR = {"float64": 1e-5, "float32": 1e-3}  # by how much those differ that are others, and do not round to float32 alone
MOST = 256  # numbers that an operation may make of each, and of each number in the program


def box(ends: Mapping[str, tuple[float, float]], n: int = TRIED) -> dict[str, Array]:
    """Points between a low and a high end of each coordinate."""
    rng = np.random.default_rng(0)
    return {name: low + (high - low) * rng.random(n) for name, (low, high) in ends.items()}


class Program:
    """A function of coordinates as a list of ops, for any number of points: it must treat all of them alike.

    Args:
        parameters: its parameters' names.
        equations: op, inputs and parameters each. Inputs are ``["value", i]``, the i-th of parameters and earlier
            results, ``["tensor", t]``, one of its own, or ``["number", v]``, whatever else an op takes.
        result: an input like those.
        dtype: of the points at which it was recorded, which ops and tensors of this dtype have as others do.
    """

    def __init__(
        self, parameters: list[str], equations: list[dict[str, Any]], result: list[Any], dtype: str = "float64"
    ) -> None:
        self.parameters, self.equations, self.result, self.dtype = parameters, equations, result, dtype

    @staticmethod
    @recording()
    def record(function: Callable[..., Any], at: Mapping[str, Array | None] = {}) -> Program:
        """That of a function of coordinates, and of input functions at these, after it was tried at some places.

        It is recorded in the dtype of these: in another one it would not tell what is float64 on purpose.

        ValueError if it is not made of known ops, treats points differently, or differentiates input functions.
        """
        signature = inspect.signature(function).parameters.values()
        parameters = [p.name for p in signature if p.default is p.empty]
        if not parameters:
            return Program([], [], ["number", float(function())])
        dtype = next((column.dtype.name for column in at.values() if column is not None), "float64")
        try:
            traced = trace(function, len(parameters), getattr(leafgrad, dtype))
        except TraceError as error:
            raise ValueError(f"save: {function}: {error}") from error
        except (IndexError, RuntimeError, ValueError) as error:  # mostly of shapes, for how many points there are
            raise unlike(function, error=error) from error
        origins = traced.inputs.items()
        places: dict[Any, int] = {value: origin.index for value, origin in origins if hasattr(origin, "index")}
        own = {value: origin.tensor.detach() for value, origin in origins if value not in places}

        def source(value: Any) -> list[Any]:
            if value in own:
                return ["tensor", own[value]]
            return ["value", places[value]] if value in places else ["number", value]

        equations: list[dict[str, Any]] = []
        half = len(traced.equations) // 2
        first, second = traced.equations[:half], traced.equations[half:]
        if [equation.name for equation in first] != [equation.name for equation in second]:
            raise unlike(function)
        for equation, again in zip(first, second, strict=True):
            inputs = [source(value) for value in equation.inputs] or [constant(function, equation)]
            params = sized(function, equation, again)
            if not equation.inputs:
                params.pop("value", None)
            equations.append({"op": equation.name, "inputs": inputs, "params": params})
            places[equation.out] = len(parameters) + len(equations) - 1
        program = Program(parameters, equations, source(traced.results[0]), dtype)
        program.check(function, at)
        return program

    def check(self, function: Callable[..., Any], at: Mapping[str, Array | None]) -> None:
        """ValueError if it has other values or slopes than the function, or those of a point depend on others.

        It is asked at points, and for some input functions of these.
        """
        families = [name for name, column in at.items() if column is None]
        known = {name: column for name, column in at.items() if column is not None}
        points = {name: known.get(name, column) for name, column in box(dict.fromkeys(self.parameters, (0, 1))).items()}
        points = {name: column.astype(self.dtype) for name, column in points.items()}

        def numbers(asked: Callable[..., Any], part: slice) -> Array:
            """The values at points, and below them their slopes, each times how far its coordinate goes."""
            columns = {name: leafgrad.tensor(column[part], requires_grad=True) for name, column in points.items()}
            mixed = leafgrad.stack(list(columns.values())).square().sum(0)
            given = [mixed if name in families else column for name, column in columns.items()]
            values = as_tensor(asked(*given), given).to(leafgrad.float64).expand(given[0].shape)
            slopes = zip(points.values(), slopes_of(values, list(columns.values())), strict=True)
            return np.stack([values.detach().numpy(), *[np.ptp(column) * slope.numpy() for column, slope in slopes]])

        far = FAR[self.dtype]
        with np.errstate(all="ignore"):
            try:
                expected = numbers(function, slice(None))
                found = np.hstack([numbers(self, slice(1)), numbers(self, slice(1, None))])
                alone = np.hstack([numbers(function, slice(1)), expected[:, 1:]])
            except (IndexError, RuntimeError, ValueError) as error:
                raise unlike(function, families, error) from error
            values, *slopes = np.maximum(gaps(found, expected), gaps(alone, expected))
        if np.isnan(expected[0]).all():
            raise ValueError(f"save: {function}: expected numbers, got nan at each of {TRIED} points of the domain")
        if values > far:
            raise unlike(function, families)
        if values > ROUNDING and self.dtype == "float64":
            raise ValueError(
                f"save: {function}: expected a function that gives each point the same numbers whichever others there "
                f"are, got ones that differ by {values:.0e}; if it rounds to float32, make its tensors float64"
            )
        if max(slopes) > far:
            raise ValueError(
                f"save: {function}: expected a function whose derivatives are those of its operations, got others, as "
                "of detach, no_grad or an autograd.Function, which no file has"
            )

    def __call__(self, *args: Tensor) -> Any:
        values: list[Any] = list(args)
        points = args[0] if args else leafgrad.zeros(1, dtype=leafgrad.float64)

        def value(source: list[Any]) -> Any:
            kind, found = source
            return values[found] if kind == "value" else like(found, points, self.dtype) if kind == "tensor" else found

        for equation in self.equations:
            inputs, params = [value(s) for s in equation["inputs"]], at_points(equation["params"], points, self.dtype)
            if equation["op"] in CONSTANTS:
                shape, dtype = made_as(params, points)
                values.append(leafgrad.full(shape, inputs[0], dtype=dtype, device=points.device))
            else:
                values.append(plugins.op(equation["op"])(*inputs, **params))
        return value(self.result)

    def function(self) -> Callable[..., Any]:
        """It as a function whose parameters have names."""

        def call(*args: Tensor) -> Any:
            return self(*args)

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        call.__dict__["__signature__"] = inspect.Signature([inspect.Parameter(n, kind) for n in self.parameters])
        return call

    def saved(self) -> dict[str, Any]:
        """It as dicts, lists, numbers, strings and tensors."""
        found = {"parameters": self.parameters, "equations": self.equations, "result": self.result}
        return found if self.dtype == "float64" else {**found, "dtype": self.dtype}

    def tensors(self) -> list[Tensor]:
        """Those of its own."""
        return [s[1] for equation in self.equations for s in equation["inputs"] if s[0] == "tensor"]

    @staticmethod
    def read(saved: Any, where: str) -> Program:
        """What was saved, after its shapes were followed without computing anything; ValueError for what is wrong."""
        program = Program(**PROGRAM(saved, where))
        points = leafgrad.empty(POINTS, dtype=getattr(leafgrad, program.dtype), device="meta")
        values: list[Any] = [points for _ in program.parameters]

        def value(source: list[Any], where: str) -> Any:
            kind, found = source
            if kind == "value" and found >= len(values):
                raise schema.misfit(where, f"one of {len(values)} earlier values", found)
            return values[found] if kind == "value" else found.to("meta") if kind == "tensor" else found

        most = POINTS * (MOST + sum(held.numel() for held in program.tensors()))
        for k, equation in enumerate(program.equations):
            place = f"{where}.equations[{k}]"
            inputs = [value(s, f"{place}.inputs[{i}]") for i, s in enumerate(equation["inputs"])]
            with schema.making(place):
                params = at_points(equation["params"], points, program.dtype)
                if equation["op"] in CONSTANTS:
                    (number,) = inputs
                    schema.number(number, place)
                    shape, dtype = made_as(params, points)
                    values.append(leafgrad.empty(shape, dtype=dtype, device="meta"))
                else:
                    op: Any = plugins.op(equation["op"])
                    if op.ordered or "random" in op.traits:
                        raise schema.misfit(f"{place}.op", "an op without effects and random numbers", equation["op"])
                    values.append(op(*inputs, **params))
            if not isinstance(values[-1], Tensor) or values[-1].numel() > most:
                raise schema.misfit(place, f"at most {most} numbers", getattr(values[-1], "shape", values[-1]))
        value(program.result, f"{where}.result")
        return program


def source(saved: Any, where: str) -> Any:
    """An input of an equation, or a result."""
    kind, value = schema.items(schema.anything, 2)(saved, where)
    check = {"value": schema.count(0, sys.maxsize), "number": schema.constant, "tensor": schema.tensor}
    return [kind, check[schema.one_of(*check)(kind, where)](value, where)]


def parameter(saved: Any, where: str) -> Any:
    """A parameter of an op."""
    if isinstance(saved, dict):
        inner = schema.flag if "points" in saved else schema.items(parameter)
        return schema.record({"points" if "points" in saved else "tuple": inner})(saved, where)
    if not (saved is None or isinstance(saved, (bool, int, float, str))):
        raise schema.misfit(where, "a number, a string or a tuple", saved)
    return saved


EQUATION = schema.record({"op": schema.text, "inputs": schema.items(source), "params": schema.mapping(parameter)})
PROGRAM = schema.record(
    {"parameters": schema.items(schema.text), "equations": schema.items(EQUATION), "result": source,
     "dtype": schema.one_of("float64", "float32")},
    optional=("dtype",),
)  # fmt: skip


def dtypes_at(points: Tensor, recorded: str) -> dict[Any, Any]:
    """What dtypes of a recording, whose points had this one, are at these points."""
    dtype = getattr(leafgrad, recorded)
    return {dtype: points.dtype, dtype.to_complex(): points.dtype.to_complex()}


def like(tensor: Tensor, points: Tensor, recorded: str) -> Tensor:
    """A function's own tensor where the points are, and in the dtype that goes with theirs."""
    return tensor.to(points.device, dtypes_at(points, recorded).get(tensor.dtype, tensor.dtype))


def made_as(params: Mapping[str, Any], points: Tensor) -> tuple[tuple[int, ...], Any]:
    """The shape and dtype of what is made of a number; files of earlier versions say the shape alone."""
    dtype = getattr(leafgrad, params["dtype"]) if "dtype" in params else points.dtype
    return params.get("shape", ()), dtype


def trace(function: Callable[..., Any], parameters: int, dtype: Any) -> Any:
    """The ops that a function does at so many points as ``COUNTS`` says first, and after them those at the others."""
    record: Callable[..., Any] = vars(leafgrad)["trace"]  # a submodule has its name, which confuses type checkers
    few, more = ([leafgrad.zeros(n, dtype=dtype, requires_grad=True) for _ in range(parameters)] for n in COUNTS)

    def once(args: Sequence[Tensor]) -> Tensor:
        return as_tensor(function(*args), args).detach() * 1  # an op of its own, also of a parameter

    return record(lambda *args: (once(args[:parameters]), once(args[parameters:])), *few, *more)


def slopes_of(values: Tensor, columns: Sequence[Tensor]) -> Sequence[Tensor]:
    """The derivatives of values by coordinates; nan where an operation has none."""
    if not values.requires_grad:
        return [leafgrad.zeros_like(column) for column in columns]
    try:
        return grad(leafgrad.sum(values), list(columns), materialize_grads=True)
    except NotImplementedError:
        return [leafgrad.full_like(column, math.nan) for column in columns]


def gaps(found: Array, expected: Array) -> Array:
    """In each row the largest difference, by the largest number of this row or of the first; nan is as nan."""
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    sizes = np.abs(expected).max(1, keepdims=True, initial=0, where=np.isfinite(expected))
    relative = np.abs(found - expected) / np.maximum(sizes, sizes[0])
    largest: Array = np.where(same, 0, np.where(np.isnan(relative), np.inf, relative)).max(1)
    return largest


def unlike(function: Callable[..., Any], families: Sequence[str] = (), error: object = None) -> ValueError:
    """For one whose numbers at a point depend on others, or on derivatives of input functions, which no file has."""
    without = f", and no derivatives of {', '.join(families)}" if families else ""
    return ValueError(
        f"save: {function}: expected a function that treats each point alike{without}, got one whose numbers depend on "
        f"the other points, or on how many there are{f': {error}' if error else ''}"
    )


def constant(function: Callable[..., Any], equation: Any) -> list[Any]:
    """The number of which an equation without inputs makes a tensor. ValueError for one that makes something else."""
    value = equation.params.get("value", 0)
    if equation.name not in CONSTANTS or not isinstance(value, float | int):
        raise ValueError(
            f"save: {function}: expected a function of its parameters alone; it uses {equation.name}; a tensor that is "
            "the same at each call is to be made before, outside of it"
        )
    return ["number", float(value)]


def as_tensor(value: Any, like: Sequence[Tensor]) -> Tensor:
    """A number as a tensor."""
    return value if isinstance(value, Tensor) else leafgrad.full_like(like[0], value)


def sized(function: Callable[..., Any], equation: Any, again: Any) -> dict[str, Any]:
    """An op's parameters as they are saved, of two recordings: tuples, and the number of points, are marked as such.

    ValueError where something else differs between the two, or is nothing that a file has.
    """

    def marked(value: Any, other: Any) -> Any:
        if isinstance(value, tuple) and isinstance(other, tuple) and len(value) == len(other):
            return {"tuple": [marked(*parts) for parts in zip(value, other, strict=True)]}
        if not isinstance(value, bool | int | float | complex | str | None):
            raise ValueError(
                f"save: {function}: expected ops of which a file can say what they do, got {equation.name}, as of a "
                "tensor that is written in place; make another one, by where, stack or cat"
            )
        if (value, other) == COUNTS:
            return {"points": True}
        if value != other and value == value:  # nan is no other number
            raise unlike(
                function, error=f"{equation.name} takes {value} at {COUNTS[0]} points, and {other} at {COUNTS[1]}"
            )
        return value

    return {name: marked(value, again.params[name]) for name, value in equation.params.items()}


def at_points(params: dict[str, Any], points: Tensor, recorded: str) -> dict[str, Any]:
    """What ``sized`` gave, for these points: with their number, and with the dtypes that go with theirs."""
    names = {before.name: dtype.name for before, dtype in dtypes_at(points, recorded).items()}

    def whole(value: Any) -> Any:
        if not isinstance(value, dict):
            return names.get(value, value) if isinstance(value, str) else value
        return points.numel() if "points" in value else tuple(whole(part) for part in value["tuple"])

    return {name: whole(value) for name, value in params.items()}
