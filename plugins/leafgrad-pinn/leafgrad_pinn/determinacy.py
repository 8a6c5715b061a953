"""What a problem leaves undetermined, told from its conditions before anything is trained.

In place of the networks stand waves, to which constants and linear functions are added: what changes no residual of any
condition, no training can find.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np

import leafgrad
from leafgrad import Tensor, nn
from leafgrad_pinn.conditions import Condition, Initial, Interior, OnBoundary, Wrap
from leafgrad_pinn.field import Ansatz, Derivative
from leafgrad_pinn.orders import Changed, maker, order_of
from leafgrad_pinn.problem import Problem
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.scales import SMALLER, norm
from leafgrad_pinn.shapes import Box
from leafgrad_pinn.starts import WILD, means_of
from leafgrad_pinn.system import System, Tensors
from leafgrad_pinn.values import LAP, Request
from leafgrad_pinn.waves import SKEW, at_once, wave
from leafgrad_pinn.windows import handed

UNSEEN = 1e-9  # of the residuals: a change below is none


Look = dict[str, list[float]]  # for each field a factor of its waves, a constant, and a coefficient of each coordinate


class Probe(nn.Module):
    """In place of a network: for each output two waves, which satisfy no equation both, times a factor, and a linear
    function of coordinates, which run from -1 to 1; in several ways at once.

    Attributes:
        looks: what they are: of as many equal parts of the points, one after the other, each in turn.
    """

    def __init__(self, bounds: Array, names: Sequence[str]) -> None:
        super().__init__()
        self.bounds, self.names = bounds, names
        self.looks: Sequence[Look] = ()

    def forward(self, columns: Sequence[Tensor], *functions: Tensor) -> Tensor:
        outputs, n = [], len(columns[0]) // len(self.looks)
        for k, name in enumerate(self.names):
            numbers = np.repeat([look[name] for look in self.looks], n, axis=0).T
            factor, constant, *slopes = (leafgrad.tensor(np.ascontiguousarray(each)) for each in numbers)
            waves = wave(columns, self.bounds, k) + wave(columns, self.bounds, k, 0.8, SKEW)
            output = waves * factor + constant
            for column, (low, high), slope in zip(columns, self.bounds.tolist(), slopes, strict=True):
                output = output + (2 * (column - low) / (high - low) - 1) * slope
            outputs.append(output)
        return leafgrad.stack(outputs, 1)


def probed(problem: Problem) -> tuple[System, Look]:
    """Its system with probes in place of the networks, and how to look at these: as waves alone, or, where equations
    have no numbers for such, or immense ones, as small ones about given values."""
    system = problem.system()
    means, looks = means_of(system, problem.some()), [Look() for _ in (1, *SMALLER)]
    for surrogate in system.surrogates:
        surrogate.net = Probe(surrogate.bounds, list(surrogate.ansatz))
        for name, scale in zip(surrogate.ansatz, surrogate.scales, strict=True):
            slopes = [0.0] * len(surrogate.bounds)
            for look, factor in zip(looks, (1.0, *SMALLER), strict=True):
                look[name] = [factor, means[name] / scale if factor < 1 else 0.0, *slopes]
    for look in looks:
        (found,) = residuals(system, problem.some(), [look])
        if all(norm(values) < WILD for values in found):
            return system, look
    return system, {}


def undetermined(problem: Problem) -> list[str]:
    """What the conditions say nothing about, in words; none where nothing was found, which proves nothing."""
    if any(condition.minimised for condition in problem.conditions):  # a quotient sees no factor of its field
        return []
    (system, waves), batches = probed(problem), problem.some()
    if not waves:
        return []
    doubled = [waves | {name: [2 * factor, *rest]} for name, (factor, *rest) in waves.items()]
    before, *others = residuals(system, batches, [waves, *doubled])
    found, unseen, moved = [], set(), set()
    for name, after in zip(waves, others, strict=True):
        if same(before, after):
            unseen.add(name)
            found.append(f"{name}: no condition depends on it")
        pairs = zip(problem.names, before, after, strict=True)
        moved |= {label for label, here, there in pairs if not same([here], [there])}
    if not problem.unknowns and len(unseen) < len(problem.fields):
        found += [f"{label}: no field is in it" for label in problem.names if label not in moved]
    directions = free(system, batches, waves, before, unseen)
    if directions:
        found.append(f"at least {len(directions)} direction{'s are' * (len(directions) > 1) or ' is'} free: "
                     f"{', '.join(directions)} is as good as any other; add a condition that says which")  # fmt: skip
    return [*found, *beginnings(problem, unseen), *open_edges(problem, unseen), *loose_ends(problem)]


def homogeneous(problem: Problem) -> str:
    """That fields of zero are a solution, in words; "" where they are none."""
    if any(condition.minimised for condition in problem.conditions):
        return ""
    (system, waves), batches = probed(problem), problem.some()
    if not waves:
        return ""
    (left,) = residuals(system, batches, [{name: [0.0] * len(row) for name, row in waves.items()}])
    fields = [field for batch in batches for field in system.fields(system.points(batch).columns).values()]
    if not all(norm(values) <= UNSEEN for values in left) or any(field.detach().numpy().any() for field in fields):
        return ""
    names = ", ".join(problem.pairs or system.coordinates)
    return f"{names} = 0 satisfies every condition; if another solution is meant, add one that says how large it is"


def free(
    system: System, batches: Sequence[Tensors], waves: Look, before: Sequence[Array], unseen: set[str]
) -> list[str]:
    """Which constants and linear functions change no residual when added to a field, or to several at once."""
    places = [
        (name, 1 + j, "constant" if j == 0 else f"multiple of {surrogate.names[j - 1]}")
        for surrogate in system.surrogates
        for name in surrogate.ansatz
        for j in range(len(surrogate.names) + 1 if len(surrogate.names) <= 4 else 1)
        if name not in unseen and (j == 0 or surrogate.names[j - 1] not in system.domain.periodic)
    ]

    exact = {name for surrogate in system.surrogates for name, ansatz in surrogate.ansatz.items()
             if ansatz.side is not None or ansatz.start is not None}  # fmt: skip

    def beside(weights: Sequence[float]) -> Look:
        look = {name: list(row) for name, row in waves.items()}
        for (name, at, _), weight in zip(places, weights, strict=True):
            look[name][at] += weight * look[name][0]
        return look

    columns = []
    for after in residuals(system, batches, [beside(row) for row in np.eye(len(places)).tolist()]):
        gaps = zip(before, after, strict=True)
        columns.append(np.concatenate([((there - here) / max(1, norm(here))).ravel() for here, there in gaps]))
    if not np.isfinite(columns).all() or not columns:  # the first loss says which term has no numbers
        return []
    _, sizes, rows = np.linalg.svd(np.stack(columns, 1), full_matrices=False)
    rows, found = rows[sizes <= UNSEEN * len(columns[0]) ** 0.5], []
    for row, after in zip(rows, residuals(system, batches, [beside(row) for row in rows.tolist()]), strict=True):
        if same(before, after):  # those of nonlinear equations do not add up
            parts = [f"{name} + {words}{' times what is zero where Hard(...) holds' * (name in exact)}"
                     for (name, _, words), weight in zip(places, row, strict=True) if abs(weight) > 1e-3]  # fmt: skip
            found.append(" with ".join(parts))
    return found


def backwards(problem: Problem) -> Iterator[str]:
    """Equations of which most initial values have no solution, as heat that goes back in time, or Laplace's.

    Of the highest derivatives by time and along a coordinate, the second of order 2 q, the coefficients are looked at,
    if they do not depend on fields: times (-1)^q they have one sign, or waves grow the faster, the shorter they are.
    """
    time = problem.domain.time
    if time is None or not usual(problem):
        return
    for field in problem.fields:
        if isinstance(field, Derivative) or not handed(problem, field):
            continue
        for index, label in enumerate(problem.names):
            paths = [path for name, asked in problem.plans[index].asked if name == field.name
                     for path in ([(c, c) for c in problem.domain.space] if asked == LAP else [asked])]  # fmt: skip
            order = max([path.count(time.name) for path in paths], default=0)
            for name in problem.domain.space if order and isinstance(problem.conditions[index], Interior) else ():
                across = max([path.count(name) for path in paths], default=0)
                if not across or across % 2:
                    continue
                along, over = (coefficients(problem, index, field.name, c, k)
                               for c, k in ((time.name, order), (name, across)))  # fmt: skip
                signs = along * over * (-1) ** (across // 2)
                if ((signs < 0).any(0) & (signs <= 0).all(0)).any():
                    yield (
                        f"{label}: {field.name} goes backwards in {time.name}: waves along {name} grow the faster, the "
                        "shorter they are, so that most initial values have no solution"
                    )


def coefficients(problem: Problem, index: int, field: str, coordinate: str, order: int) -> Array:
    """Those of a derivative in a condition's equations (n, k), at some points; nan where they depend on fields."""
    batch, found = problem.some()[index], []
    few = {name: t[:8] for name, t in batch.items()}
    for seed in (0, 1):
        plain = System(problem, maker(seed))
        plain.plans = []
        changed = Changed(problem, field, coordinate, order, seed)
        found.append((changed(index, few) - plain(index, few)).detach().numpy())
    same = np.isclose(found[0], found[1], rtol=1e-6, atol=UNSEEN * np.abs(found).max())
    return np.where(same, found[0], np.nan)


def usual(problem: Problem) -> bool:
    """Whether equations, values on edges and initial ones are all there is."""
    kinds = (Interior, OnBoundary, Initial, Wrap)
    return all(isinstance(c, kinds) for c in problem.conditions) and not problem.unknowns


def beginnings(problem: Problem, unseen: set[str]) -> Iterator[str]:
    """Fields whose derivatives by time need values at the first moment, or rates, that nothing gives."""
    time = problem.domain.time
    if time is None or time.name in problem.domain.periodic or not usual(problem):
        return
    for field in problem.fields:
        if field.domain.time is None or field.name in unseen:
            continue
        order, known = order_of(problem, field, time.name), handed(problem, field)
        if known < min(order, 2):
            lacking = "values" if known == 0 else "rate"
            yield f"{field.name}: no initial {lacking}, but {order} derivative{'s' * (order > 1)} by time"


def open_edges(problem: Problem, unseen: set[str]) -> Iterator[str]:
    """Edges of boxes with fewer conditions on a field than its derivatives across need, of several coordinates.

    An ordinary equation may have all of its conditions at one end; its rank tells what they leave open.
    """
    domain, shape = problem.domain, problem.domain.shape
    whole = usual(problem) and all(c.of is None and c.own is None for c in problem.conditions)
    if not isinstance(shape, Box) or len(domain.names) < 2 or not whole:
        return
    asked = set[Request]().union(*[plan.asked for plan in problem.plans])
    said = [(spoken_of(problem, c), c.edges, len(sizes)) for c, sizes in zip(problem.conditions, problem.sizes,
            strict=True) if isinstance(c, OnBoundary)]  # fmt: skip
    for field in problem.fields:
        if isinstance(field, Derivative) or field.name in unseen:
            continue
        known: Counter[str] = Counter()
        for names, edges, count in said:
            known.update(dict.fromkeys(edges, count) if field.name in names else {})
        ansatz = Ansatz(field)
        known.update(dict.fromkeys(ansatz.edges, 1 + bool(ansatz.clamped)))
        for name in shape.names:
            order = highest(asked, field.name, name)
            both = [edge for edge in (f"{name}_min", f"{name}_max") if edge in domain.edges]
            few = [edge for edge in both if known[edge] < order // 2]
            if few and order == 2:
                yield f"{field.name}: no condition on {', '.join(few)}, but second derivatives across"
            elif few or (len(both) == 2 and sum(known[edge] for edge in both) < order > 1):
                counts = " and ".join(f"{known[edge]} on {edge}" for edge in both)
                yield f"{field.name}: {order} derivatives across need as many conditions, got {counts}"


def loose_ends(problem: Problem) -> Iterator[str]:
    """Periodic coordinates whose ends agree in fewer derivatives than equations need."""
    if not usual(problem):
        return
    agree: dict[tuple[str, str], int] = {}
    for c in problem.conditions:
        for name in problem.pairs.get(c.target, (c.target,)) if isinstance(c, Wrap) else ():
            agree[name, c.coordinate] = max(c.order, agree.get((name, c.coordinate), 0))
    asked = set[Request]().union(*[plan.asked for plan in problem.plans])
    for field in problem.fields:
        for name in set(field.domain.periodic) - field.net.rings(field.domain.periodic):
            order, known = highest(asked, field.name, name), agree[field.name, name]
            if known + 1 < order:
                yield (
                    f"{field.name}: {order} derivatives by {name} need ends that agree in {order - 1}, got {known}: "
                    f"say Wrap({name!r}, order={order - 1})"
                )


def highest(asked: Iterable[Request], field: str, coordinate: str) -> int:
    """The order of the highest derivative of a field by a coordinate of space that is asked for."""
    return max([2 if path == LAP else path.count(coordinate) for name, path in asked if name == field], default=0)


def spoken_of(problem: Problem, condition: Condition) -> set[str]:
    """The fields with networks that a condition is about, or may be."""
    fields = {field.name: field for field in problem.fields}
    names, found = [*condition.parameters, *filter(None, [getattr(condition, "target", None)])], set()
    for part in [part for name in names for part in problem.pairs.get(name, (name,))]:
        field = fields.get(part)
        while isinstance(field, Derivative):
            field = field.of
        found |= {field.name} if field is not None else set()
    return found


def residuals(system: System, batches: Sequence[Tensors], looks: Sequence[Look]) -> list[list[Array]]:
    """For each look those of each condition (n, k)."""
    each = [at_once(system, batch, looks, partial(system, index)) for index, batch in enumerate(batches)]
    return [list(found) for found in zip(*each, strict=True)]


def same(first: Sequence[Array], second: Sequence[Array]) -> bool:
    """Whether residuals are the same up to rounding."""
    return all(norm(b - a) <= UNSEEN * max(1, norm(a)) for a, b in zip(first, second, strict=True))
