"""Jumps and kinks of what a user's own functions bring into fields and equations, which no points of training see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.callables import Named
from leafgrad_pinn.calls import warn
from leafgrad_pinn.conditions import Interior
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.field import Ansatz, Derivative, Field
from leafgrad_pinn.jumps import CELLS, MOST, Rate, Region, jump
from leafgrad_pinn.networks import Enriched, Own
from leafgrad_pinn.orders import order_of
from leafgrad_pinn.system import System
from leafgrad_pinn.waves import waves_of

if TYPE_CHECKING:
    from leafgrad_pinn.problem import Problem

JUMPS = (
    "jumps",
    *(f"has a {name} that jumps" for name in ("slope", "second derivative", "third derivative")),
)  # by the order of what jumps
SMOOTH = "take a smoother function (smooth=True makes the slope of a Table continuous)"
FEW = 512  # cells along a line through a network


class Ingredient(NamedTuple):
    """A function of the caller's own that a field is made of.

    Attributes:
        what: it is, in words.
        function: of columns.
        asked: the coordinates that it depends on.
        remedy: where it is not smooth.
        tips: whether one where the next derivative is infinite is no singular point that it is there for.
        dense: whether it is looked at all over; a network, which has many kinks or none, is along lines.
    """

    what: str
    function: Rate
    asked: Sequence[str]
    remedy: str
    tips: bool = True
    dense: bool = True


def check_smooth(problem: Problem) -> None:
    """A warning for each function of the caller's own that jumps where its field is, or has a derivative that does and
    is of a lower order than the equations': a field keeps such jumps, and no equation sees them.
    """
    for field in problem.fields:
        functions = [] if isinstance(field, Derivative) else list(ingredients(problem, field))
        if not functions:
            continue
        region = Region(Domain(field.part or field.domain.shape, field.domain.time, field.domain.parameters))
        orders = {name: order_of_all(problem, field, name) for name in field.domain.names}
        for one in functions:
            found = first_jump(region, one, orders)
            if found is not None:
                how, place = found
                warn(
                    f"Field {field.name!r}: {one.what} {how} inside, as at {told(place)}. The field keeps that for "
                    f"ever, and no equation sees it; unless the solution has it, too, {one.remedy}"
                )


def check_differentiated(problem: Problem) -> None:
    """A warning for each expression in an equation's ``d(..., x)`` that jumps inside, be the fields as smooth as waves.

    Its derivative is infinite there, and at points on both sides as if nothing were between.
    """
    for index, (condition, plan) in enumerate(zip(problem.conditions, problem.plans, strict=True)):
        beside = plan.away or problem.domain.functions or set(problem.some()[index]) != {"points"}
        if not isinstance(condition, Interior) or beside or not any(words.startswith("d(") for words in plan.beyond):
            continue
        region = Region(condition.region(problem.domain), edge=0.0)
        system = problem.system()
        system.plans = []  # as before the first run, by which equations note what they differentiate
        names = region.domain.names
        for k, (along, _) in enumerate(differentiated(problem, system, index, region.columns(region.middle[None]))):
            over = names if len(names) <= MOST else [along]
            place = jump(region, partial(expression, problem, system, index, k), along, over, poles=False)
            if place is not None:
                warn(
                    f"{problem.names[index]}: what d(..., {along}) differentiates jumps inside, as at {told(place)}. "
                    "No point sees that, so that the equation does not join what is on both sides; take a field for "
                    "each, with part=..., and a Boundary(...) that says what agrees where they meet"
                )
                break


def told(place: Mapping[str, float]) -> dict[str, float]:
    """A place as it is written."""
    return {name: round(value, 6) + 0.0 for name, value in place.items()}


def differentiated(
    problem: Problem, system: System, index: int, columns: Mapping[str, Tensor]
) -> list[tuple[str, Tensor]]:
    """What an equation differentiates of waves in place of its fields, (n,), each with the coordinate."""
    points = leafgrad.stack(list(columns.values()), 1).detach()
    return system.residuals(index, {"points": points}, partial(waves_of, problem.fields, 1.0))[1].differentiated


def expression(problem: Problem, system: System, index: int, k: int, columns: Mapping[str, Tensor]) -> Tensor:
    """The k-th that an equation differentiates."""
    return differentiated(problem, system, index, columns)[k][1]


def first_jump(region: Region, one: Ingredient, orders: Mapping[str, int]) -> tuple[str, dict[str, float]] | None:
    """How a function jumps that shall have derivatives of these orders, in words, and where."""
    over = region.names(one.asked)
    whole, cells = one.dense and len(over) <= MOST, CELLS if one.dense else FEW
    for along in one.asked:
        for order in range(orders[along]):
            varied = over if whole else [along]
            place = jump(region, one.function, along, varied, order, cells=cells, tips=one.tips)
            if place is not None:
                return JUMPS[order], place
    return None


def ingredients(problem: Problem, field: Field) -> Iterator[Ingredient]:
    """What a field is made of that is neither a number nor this package's."""
    ansatz, domain, net = Ansatz(field), field.domain, field.net
    exact = {
        "boundary=Hard(...)": (ansatz.side, "Dirichlet(...)"),
        "initial=Hard(...)": (ansatz.start, "Initial(...)"),
        "initial=Hard(..., rate=...)": (ansatz.rate, "Initial(..., rate=...)"),
    }
    for name, (call, soft) in exact.items():
        if call is not None and call.parameters and set(call.parameters) <= set(domain.names):
            yield Ingredient(name, numbers_of(call), call.parameters, f"{SMOOTH}, or a soft condition, as {soft}")
    for part in domain.shape.written if domain.shape and ansatz.side else ():
        yield Ingredient(
            "the function of its shape, by which Hard multiplies,", part.level, part.names,
            "take one that is smooth inside, such as (x*x + y*y - 1) / 2 in place of sqrt(x*x + y*y) - 1, or "
            "Dirichlet(...)",
        )  # fmt: skip
    if net.enrich is not None:
        call = Named(net.enrich, "enrich", domain.names)
        yield Ingredient("enrich", numbers_of(call), call.parameters, SMOOTH, tips=False)
    if isinstance(net, Own) or isinstance(getattr(net, "trunk", None), Own):
        remedy = "take smooth activations, such as nn.Tanh in place of nn.ReLU"
        yield Ingredient("net=Own(...)", output_of(problem, field), domain.names, remedy, dense=False)


def numbers_of(call: Named) -> Rate:
    """A function of coordinates, of their columns."""
    return lambda columns: call.numbers(columns, next(iter(columns.values())))


def output_of(problem: Problem, field: Field) -> Rate:
    """A field's network, as it begins, of columns."""
    (surrogate,) = [each for each in problem.system().surrogates if field.name in each.ansatz]
    net = surrogate.net.net if isinstance(surrogate.net, Enriched) else surrogate.net
    given = [leafgrad.tensor(function.some(1)) for function in field.domain.functions]
    index = list(surrogate.ansatz).index(field.name)
    return lambda columns: net([columns[name] for name in field.domain.names], *given)[:, index]


def order_of_all(problem: Problem, field: Field, coordinate: str) -> int:
    """The highest derivative of a field that equations ask for, of fields that are its derivatives, too."""
    derived = [f for f in problem.fields if isinstance(f, Derivative) and f.of.name == field.name]
    above = [order_of_all(problem, each, coordinate) + (each.coordinate == coordinate) for each in derived]
    return max(order_of(problem, field, coordinate), *above, 0)
