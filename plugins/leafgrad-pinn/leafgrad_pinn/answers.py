"""What a solution is asked: its fields at points, expressions of them and their derivatives, and integrals of such."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.alone import check_alone, check_among, nearer
from leafgrad_pinn.callables import Function, Named, check_number, names_of
from leafgrad_pinn.calls import warn
from leafgrad_pinn.complex import ComplexValue
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.elsewhere import anywhere, check
from leafgrad_pinn.families import Given
from leafgrad_pinn.field import Surrogate, columns_of
from leafgrad_pinn.quadrature import Rule, inside, on_edges
from leafgrad_pinn.remembered import Remembered
from leafgrad_pinn.sampling import Array, reals
from leafgrad_pinn.shapes import Shape
from leafgrad_pinn.unknowns import found as found_numbers
from leafgrad_pinn.values import Points, Value, noted, recording, unnoted
from leafgrad_pinn.windows import Piecewise

if TYPE_CHECKING:
    from leafgrad_pinn.solution import Solution

ROWS = 2**13  # points that are evaluated at once
COARSE = 1e-3  # of an integral's size, how much one more point may change it: a step moves by half a weight or so
SOME = 64  # points at which it is seen that an expression is of each point alone
DIGITS = 0.5  # of those of a dtype, how many expressions of derivatives have: 1e-8 in float64, 3e-4 in float32
remembered = Remembered()


@recording()
def evaluate(
    modules: Sequence[Surrogate | Piecewise | Given], domain: Domain, columns: Sequence[Array], check: bool = True
) -> dict[str, Array]:
    """Each field at points, given as an array for each coordinate of one shape: of that shape, and its own dtype."""
    check_one("Solution", domain)
    parameter = next(iter(modules[0].parameters()))
    shape, size = columns[0].shape, columns[0].size
    values: dict[str, Array] = {}
    for begin in range(0, max(1, size), ROWS):
        rows = np.stack([column.flat[begin : begin + ROWS] for column in columns], 1)
        if check:
            domain.check_inside("Solution", rows)
        tensors = columns_of(domain, rows, parameter.dtype, parameter.device)
        found = fields_at(modules, domain, rows, tensors, alone=True)
        for name, value in found.items():
            if name not in values:
                values[name] = np.empty(size, dtype=value.dtype.name)
            values[name][begin : begin + ROWS] = value.detach().cpu().numpy()
    return {name: value.reshape(shape) for name, value in values.items()}


def check_one(what: str, domain: Domain) -> None:
    """TypeError for a family of problems, of which one has to be chosen."""
    if domain.functions:
        given = ", ".join(f"{function.name}=..." for function in domain.functions)
        raise TypeError(f"{what}: expected one problem of the family, as sol({given}) gives it, got the family")


def fields_at(
    modules: Sequence[Surrogate | Piecewise | Given],
    domain: Domain,
    rows: Array,
    columns: Mapping[str, Tensor],
    alone: bool = False,
) -> dict[str, Tensor]:
    """Each field at points (n, d), also given by coordinate; nan, with all its derivatives, outside of its part.

    If values ``alone`` are wanted, they need not have derivatives.
    """
    found = {}
    for module in modules:
        for name, value in module(columns, alone).items():
            beyond = outside(module, name, domain, rows)
            if beyond.any():
                factor = np.where(beyond, np.nan, 1.0)
                value = value * leafgrad.tensor(factor, dtype=value.dtype, device=value.device)
            found[name] = value
    return found


def outside(module: Any, name: str, domain: Domain, rows: Array) -> Array:
    """Which points (n, d) a field of a `Surrogate` or `Piecewise` says nothing of, lying outside its part: (n,)"""
    part = module.parts.get(name)
    return np.zeros(len(rows), bool) if part is None else ~domain.covered(part, rows)


class Tied(Exception):
    """A function cannot be asked at other points."""


class FieldFunction:
    """A function of a solution's fields, coordinates and unknowns by name, evaluated at points.

    Args:
        solution: whose fields.
        function: such as ``lambda u, x: u.xx + x * u``; or a number.
        what: how errors call it.
    """

    def __init__(self, solution: Solution, function: Function | float, what: str) -> None:
        check_one(what, solution.domain)
        self.solution, self.domain, self.run = solution, solution.domain, solution.run
        self.coordinates = {field.name: field.domain.names for field in solution.fields}
        numbers = [name for name in self.run.unknowns if name.isidentifier()]
        known = [*self.coordinates, *solution.pairs, *self.domain.names, *solution.functions, *numbers]
        self.call = Named(function, what, dict.fromkeys(known))
        self.eps = float(leafgrad.finfo(next(iter(self.run.modules[0].parameters())).dtype).eps)
        self.checked = remembered.has(solution, function)  # as of a lambda in a loop, which is made anew

    def __call__(self, rows: Array, normals: Array | None = None) -> list[Array]:
        """What it gives at points (n, d), with outward normals (n, k) on edges: an array (n,) for each result."""
        parts = [self.some(rows[begin : begin + ROWS], None if normals is None else normals[begin : begin + ROWS])
                 for begin in range(0, max(1, len(rows)), ROWS)]  # fmt: skip
        found = [np.concatenate(part) for part in zip(*parts, strict=True)]
        if len(rows) and not self.checked:
            self.check(rows, normals, found)
            self.checked = True
        return found

    @np.errstate(all="ignore")  # of infinities it has been said
    def check(self, rows: Array, normals: Array | None, found: list[Array]) -> None:
        """ValueError if results at some of the points are others where other points are, or another number of them.

        A function with an array of a number for each point has results at all of them alone.
        """
        what, digits = f"{self.call.what}: expected an expression of the fields", self.eps**DIGITS

        def at(index: Any, moved: int) -> list[Array]:
            places = nearer(rows[index], self.domain.bounds, moved * self.eps)
            try:
                return self.some(places, None if normals is None else normals[index])
            except (TypeError, ValueError, RuntimeError, IndexError) as error:
                raise Tied from error

        given, known = rows, found
        try:
            if len(rows) < SOME and normals is None:
                rows = np.concatenate(
                    [rows, self.domain.interior(SOME - len(rows), "uniform", np.random.default_rng(0))]
                )
                known = at(np.arange(len(rows)), 0)
            chosen = spread(known, len(rows))
            check_among(what, at, chosen, [part[chosen] for part in known], len(rows), digits)
        except Tied:
            rows, chosen = given, np.arange(len(given))
            check_alone(what, at, chosen, chosen, found, digits)
        if len(chosen) >= SOME:
            remembered.add(self.solution, self.call.function)

    @recording()
    def some(self, rows: Array, normals: Array | None) -> list[Array]:
        parameter = next(iter(self.run.modules[0].parameters()))
        columns = columns_of(self.domain, rows, parameter.dtype, parameter.device)
        sides = None if normals is None else {
            name: leafgrad.tensor(np.ascontiguousarray(normals[:, i]), dtype=parameter.dtype, device=parameter.device)
            for i, name in enumerate(self.domain.space)
        }  # fmt: skip
        functions = [function for function, _ in self.solution.functions.values()]
        rows_at = {name: leafgrad.tensor(row, dtype=parameter.dtype, device=parameter.device)
                   for name, (_, row) in self.solution.functions.items()}  # fmt: skip
        orders = {f.name: f.net.order for f in self.solution.fields if f.net.order is not None}
        points = Points({**columns, **rows_at}, self.domain.space, sides, functions, orders)
        points.away = self.away
        with noted([points]), found_numbers(self.run.unknowns):
            with unnoted():
                found = fields_at(self.run.modules, self.domain, rows, columns)
            unknowns = {n: leafgrad.tensor(v, dtype=leafgrad.float64) for n, v in self.run.unknowns.items()}
            values: dict[str, Any] = {**unknowns, **columns, **points.inputs()}
            values |= {name: points.value(value, self.coordinates[name], name) for name, value in found.items()}
            for name, (real, imag) in self.solution.pairs.items():
                values[name] = ComplexValue(values[real], values[imag])
            result = self.call(values)
            results = result if isinstance(result, tuple) else (result,)
            arrays = [self.array(part, len(rows)) for part in results]
        check(self.call.what, points, self.domain, {field.name: field.history for field in self.solution.fields})
        for place in points.places:
            place.forget()
        return arrays

    def away(self, there: Points) -> dict[str, Value]:
        """The fields at other points than those that are asked for."""
        rows = np.stack([there.columns[name].detach().cpu().numpy() for name in self.domain.names], 1)

        def fields(columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return fields_at(self.run.modules, self.domain, rows, columns)

        def past(columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return {name: value for module in self.run.modules for name, value in module.past(columns).items()}

        found = anywhere(fields, past, self.domain)(there.columns)
        return {name: there.value(value, self.coordinates[name], name) for name, value in found.items()}

    def elsewhere(self, rows: Array) -> str:
        """A field that the function takes at points (n, d) outside of its part; "" if there is none."""
        parts = {field.name: field.part for field in self.solution.fields if field.name in self.call.parameters}
        gone = [name for name, part in parts.items() if part and not self.domain.covered(part, rows).all()]
        return gone[0] if gone else ""

    def array(self, result: Any, count: int) -> Array:
        """A result at points, as an array (n,)."""
        if isinstance(result, ComplexValue):
            return self.array(result.real, count) + 1j * self.array(result.imag, count)
        if isinstance(result, Tensor):
            found: Array = result.detach().as_subclass(Tensor).cpu().numpy()
        else:
            found = np.asarray(result)
        if found.dtype.kind not in "biufc":
            raise TypeError(
                f"{self.call.what}: expected a number for each point, or a tuple of such, got {type(result).__name__}"
            )
        if found.shape not in ((), (count,)):
            raise ValueError(f"{self.call.what}: expected one number for each of {count} points, got {found.shape}")
        return np.broadcast_to(found, (count,)).copy()


def spread(values: Sequence[Array], n: int) -> Any:
    """Some of n points, all over them: the first and last, those of the largest and least values, and others."""
    if n <= SOME:
        return np.arange(n)
    size = [np.nan_to_num(part.real).astype(float) for part in values]
    ends = [0, n - 1, *(int(at) for part in size for at in (part.argmax(), part.argmin()))]
    each = np.linspace(0, n, SOME + 1).astype(int)
    return np.unique([*ends, *np.random.default_rng(0).integers(each[:-1], each[1:])])


def evaluate_at(solution: Solution, function: Function, columns: Sequence[Array]) -> Any:
    """What `Solution.evaluate` gives at points, given as an array for each coordinate of one shape."""
    if not callable(function):
        raise TypeError(f"evaluate: expected a function, as lambda u: u.xx, got {function!r}")
    expression = FieldFunction(solution, function, "evaluate")
    rows = np.stack([column.ravel() for column in columns], 1)
    solution.domain.check_inside("evaluate", rows)
    return as_given(expression, [part.reshape(columns[0].shape) for part in expression(rows)])


def as_given(expression: FieldFunction, parts: list[Any]) -> Any:
    """The only one of an expression's results, or a tuple of them."""
    return parts[0] if len(parts) == 1 else tuple(parts)


def integrate(
    solution: Solution,
    function: Function | float,
    on: str | None,
    of: Shape | None,
    order: int,
    fixed: Mapping[str, Any],
) -> Any:
    """What `Solution.integral` gives."""
    domain, expression = within(solution.domain, of), FieldFunction(solution, function, "integral")
    check_number("integral: order", order, 1, whole=True)
    if unknown := [name for name in fixed if name not in domain.names]:
        raise TypeError(f"integral: expected coordinates among {', '.join(domain.names)}, got {unknown[0]}")
    over = [name for name in domain.names if name not in fixed]
    if free := [p.name for p in domain.parameters if p.name in over]:
        raise ValueError(f"integral: expected a value of the parameter {free[0]}, as {free[0]}=..., got none")
    if on is None and not over:
        raise ValueError("integral: expected a coordinate to integrate over, got values of all of them")
    if on is not None and (wrong := [name for name in fixed if name in domain.space]):
        raise ValueError(f"integral: on: expected no coordinate of space, which edges say, got {wrong[0]}")
    edges = None if on is None else domain.check_edges(names_of("integral: on", on))
    rules = [inside(domain, over, n) if edges is None else on_edges(domain, edges, over, n) for n in (order, order + 1)]
    places = np.broadcast_arrays(*[reals(f"integral: {name}", value) for name, value in fixed.items()])
    shape = places[0].shape if places else ()
    totals: list[list[Any]] = []
    for index in np.ndindex(*shape):
        at = {name: float(place[index]) for name, place in zip(fixed, places, strict=True)}
        (found, sizes), (finer, _) = (summed(expression, rule, at) for rule in rules)
        check_order(np.array(found), np.array(finer), np.array(sizes) + expression.eps**0.5 * rules[0][1].sum(), order)
        totals.append(found)
    parts = [np.array(values).reshape(shape) if shape else values[0] for values in zip(*totals, strict=True)]
    return as_given(expression, parts)


def within(domain: Domain, of: Shape | None) -> Domain:
    """A domain, or what of it is in a shape."""
    if of is None:
        return domain
    if not isinstance(of, Shape) or of.names != domain.space:
        raise ValueError(
            f"integral: of: expected a shape of {', '.join(domain.space) or 'space'}, in this order, got {of!r}"
        )
    return Domain(of, domain.time, domain.parameters)


def summed(expression: FieldFunction, rule: Rule, at: Mapping[str, float]) -> tuple[list[Any], list[float]]:
    """The integrals of an expression's results by a rule, with these values of other coordinates, and of their sizes.

    ValueError for fields that are asked for outside of their parts.
    """
    (nodes, weights, normals), domain = rule, expression.domain
    rows = nodes.copy()
    for name, value in at.items():
        rows[:, domain.names.index(name)] = value
    domain.check_inside("integral", rows)
    found = expression(rows, normals)
    if any(np.isnan(part).any() for part in found) and (name := expression.elsewhere(rows)):
        raise ValueError(
            f"integral: expected fields of all that is integrated over, got {name}, which is nan outside of its part: "
            "say of=..., with that part"
        )
    return [(part @ weights).item() for part in found], [float(np.abs(part) @ weights) for part in found]


def check_order(found: Array, finer: Array, sizes: Array, order: int) -> None:
    """A warning if integrals are others with one more point along each coordinate, by a part of their sizes."""
    gap = float(np.max(np.abs(found - finer) / sizes))
    if gap > COARSE:
        warn(
            f"integral: expected an expression that is smooth between points, got one whose integral is another by "
            f"{gap:.1%} of its size with order={order + 1}: give a higher order than {order}, or where it jumps take "
            "integrals over parts, as of=Interval('x', 0, 0.4)"
        )
