"""A problem: fields, the conditions on them, and unknown numbers in these."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.alone import EPS, check_at, check_condition, check_network, nearer
from leafgrad_pinn.callables import Named, distinct, listed
from leafgrad_pinn.complex import ComplexField
from leafgrad_pinn.conditions import Batch, Condition, Dirichlet, Initial, Wrap
from leafgrad_pinn.copies import copied
from leafgrad_pinn.domains import Domain, widest
from leafgrad_pinn.elsewhere import check
from leafgrad_pinn.field import Ansatz, Field, Surrogate, columns_of
from leafgrad_pinn.kinks import check_differentiated, check_smooth
from leafgrad_pinn.known import Known
from leafgrad_pinn.layers import Maker
from leafgrad_pinn.marks import LARGE, marks
from leafgrad_pinn.places import Part
from leafgrad_pinn.planner import MODES, DerivativePlan, Fields, plan as cheapest
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.scales import scales_of, sizes_of
from leafgrad_pinn.scene import Scene
from leafgrad_pinn.starts import means_of, wild
from leafgrad_pinn.system import System, Tensors, leaves_of, on_device
from leafgrad_pinn.unknowns import Unknown
from leafgrad_pinn.values import recording
from leafgrad_pinn.waves import waves_of

if TYPE_CHECKING:
    from leafgrad_pinn.solution import Solution
    from leafgrad_pinn.stages import Stage

LOOKS = 16  # points of each condition that are tried before training
DENSE = 4096  # points at which it is seen whether a known solution reaches so far
CHUNK = 1024  # points whose residuals are computed at once
UNITS = 128  # points of a condition by which its terms are sized
TYPED = 1e-3  # of values, how far soft ones may be apart where they meet, as by constants of a few digits
COLUMNS = ("window", "stage", "step", "seconds", "loss")  # of a history, beside the terms
AnyField = Field | ComplexField


@dataclass(frozen=True)
class Claim:
    """What a condition says of a field's values.

    Attributes:
        name: of the condition.
        edges: where; None for the first moment.
        value: what they are.
        condition: that says so; None for exact values.
    """

    name: str
    edges: Sequence[str] | None
    value: Named
    condition: Condition | None = None


class Problem:
    """Fields and what they shall satisfy. All mistakes that can be found without training are errors here.

    Args:
        fields: a field, or several, complex ones too.
        conditions: what shall hold, each at points of its own. Their mean squares, times weights, add up to the loss.
        unknowns: numbers in the conditions that are solved for too.
        derivatives: how those of fields are made: ``"reverse"``, ``"forward"`` (over reverse), ``"jet"``, or for each
            condition the cheapest, ``"auto"``. ``print(problem)`` shows which that is.
        known: a solution whose fields equations may ask for, as a flow that carries heat; they stay as they are.

    Raises:
        ValueError: a field, coordinate or edge that does not exist; points outside; boundary and initial values that
            contradict each other; a residual of the wrong shape; a periodic coordinate that nothing makes periodic.

    Warns:
        UserWarning: a function that a field is made of, its slope, or what an equation differentiates, jumps inside,
            where no point sees it.
    """

    @recording()
    def __init__(
        self,
        fields: AnyField | Sequence[AnyField],
        conditions: Condition | Sequence[Condition],
        unknowns: Unknown | Sequence[Unknown] = (),
        *,
        derivatives: str = "auto",
        known: Solution | None = None,
    ) -> None:
        given = listed("fields", fields, (Field, ComplexField), "Field(...)")
        self.fields = [
            part for field in given for part in (field.parts if isinstance(field, ComplexField) else [field])
        ]
        self.pairs = {
            field.name: (field.real.name, field.imag.name) for field in given if isinstance(field, ComplexField)
        }
        # copies: a condition may be given to several problems, and looks up other fields and edges in each
        self.conditions = [copy.copy(c) for c in listed("conditions", conditions, Condition, "Interior(...)")]
        self.unknowns = listed("unknowns", unknowns, Unknown, "Unknown(...)")
        if derivatives not in ("auto", *MODES):
            raise ValueError(f"Problem: derivatives: expected auto, {', '.join(MODES)}, got {derivatives!r}")
        self.plans: list[DerivativePlan] = []
        self.sizes: list[list[float]] = []  # for each condition those of its equations' terms, which divide residuals
        self.few: list[Tensors] = []  # points by which units are found
        self.starts: dict[str, float] = {}  # what fields begin with, where equations have no numbers elsewhere
        self.before: tuple[Surrogate, ...] = ()  # for each group what it goes on from, in a later window of time
        if not self.fields or not self.conditions:
            raise ValueError(
                f"Problem: expected fields and conditions, got {len(self.fields)} and {len(self.conditions)}"
            )
        self.domain = widest(field.domain for field in self.fields)
        self.known = None if known is None else Known(known, self.domain)
        self._check_fields()
        names = {field.name: field.domain.names for field in [*given, *self.fields]}
        on_grid = any(field.net.order is not None for field in self.fields)
        known_names = [*(self.known.names if self.known else ()), *(unknown.name for unknown in self.unknowns)]
        parts = {field.name: field.part for field in self.fields if field.part is not None}
        asked = [field.name for field in given]
        scene = Scene(self.domain, names, asked, tuple(self.pairs), on_grid, known_names, parts)
        for condition in self.conditions:
            condition.bind(scene)
        self.names = distinct([condition.name for condition in self.conditions])
        if taken := [name for name in self.names if name in COLUMNS or name.startswith("error ")]:
            raise ValueError(f"{taken[0]}: expected a condition's name other than those of the history's columns")
        self._check_periodic()
        self._check_residuals(derivatives)
        self._choose_units()
        self._check_values()
        check_smooth(self)
        check_differentiated(self)

    def __str__(self) -> str:
        """The fields, and how each condition gets its derivatives."""
        rows = [f"  {name}: {plan}" for name, plan in zip(self.names, self.plans, strict=True)]
        return "\n".join([f"Problem of {', '.join(field.name for field in self.fields)}", *rows])

    @property
    def groups(self) -> list[tuple[Field, ...]]:
        """The fields, those together that share a network."""
        groups: list[tuple[Field, ...]] = []
        for field in self.fields:
            if not any(field in group for group in groups):
                groups.append(tuple(f for f in field.shared if f in self.fields) or (field,))
        return groups

    def draw(self, rng: np.random.Generator) -> list[Batch]:
        """Points for each condition."""
        return [self.domain.given(condition.draw(self.domain, rng), rng) for condition in self.conditions]

    def some(self) -> list[Tensors]:
        """A few points for each condition, always the same."""
        if not self.few:
            few = [{key: v[:UNITS] for key, v in batch.items()} for batch in self.draw(np.random.default_rng(0))]
            self.few = on_device(few, leafgrad.float64, "cpu")
        return self.few

    def system(self, seed: int = 0, dtype: Any = leafgrad.float64, device: Any = "cpu") -> System:
        """The networks and unknowns of a seed, as a module."""
        return System(self, Maker(np.random.default_rng([seed, 1]), dtype, device))

    @recording()
    def marks(self, every: bool = False) -> list[list[float]]:
        """For each condition what tells it from others, at some of its points or all, as its functions are now."""
        system, drawn = self.system(), self.draw(np.random.default_rng(0)) if every else []
        batches, found = on_device(drawn, leafgrad.float64, "cpu") if every else self.some(), []

        def residuals(index: int, batch: Tensors, fields: Fields | None = None) -> Tensor:
            parts = [{key: t[begin : begin + CHUNK] for key, t in batch.items()}
                     for begin in range(0, len(batch["points"]), CHUNK)]  # fmt: skip
            return leafgrad.cat([system.residuals(index, part, fields)[0].detach() for part in parts])

        for index, batch in enumerate(batches):
            condition = self.conditions[index]
            with np.errstate(all="ignore"):
                large = residuals(index, batch, partial(waves_of, self.fields, LARGE))
            if every and (condition.of or condition.where):  # where points are drawn anew
                batch = batch | {"region": leafgrad.tensor(self._densely(condition))}
            found.append(marks(residuals(index, batch), large, condition.loss, batch))
        return found

    def solve(self, *stages: Stage, **options: Any) -> Solution:
        """Train: ``problem.solve(Adam(2000), LBFGS(5000), reference=..., seeds=3, out="runs/a", resume=True)``.

        See `leafgrad_pinn.solver.solve` for all options.
        """
        from leafgrad_pinn.solver import solve

        return solve(self, *stages, **options)

    def _check_fields(self) -> None:
        names = [field.name for field in self.fields] + [*self.pairs] + [unknown.name for unknown in self.unknowns]
        names += [*(self.known.names if self.known else ()), *self.domain.names]
        names += [function.name for function in self.domain.functions]
        if len(set(names)) < len(names):
            raise ValueError(f"Problem: expected different names, those of coordinates too, got {', '.join(names)}")
        for field in self.fields:
            if extra := set(field.domain.names) - set(self.domain.names):
                raise ValueError(
                    f"Field {field.name!r}: expected coordinates among {', '.join(self.domain.names)}, "
                    f"got {', '.join(sorted(extra))}"
                )
            if missing := [other.name for other in field.shared if other not in self.fields]:
                raise ValueError(
                    f"Problem: fields: {field.name} shares its network with {', '.join(missing)}: add them"
                )
            for coordinate, ends in zip(field.domain.names, field.domain.bounds, strict=True):
                expected = self.domain.bounds[self.domain.names.index(coordinate)]
                if not np.array_equal(ends, expected):
                    raise ValueError(
                        f"Field {field.name!r}: expected {coordinate} from {expected[0]} to {expected[1]}, as other "
                        f"fields have it, got {ends[0]} to {ends[1]}"
                    )
            if other := [f.name for f in field.domain.functions if f not in self.domain.functions]:
                raise ValueError(
                    f"Field {field.name!r}: expected the input functions of one domain for all fields, got another "
                    f"{other[0]}; take the same domain"
                )

    def _check_periodic(self) -> None:
        wrapped = {
            (c.coordinate, target)
            for c in self.conditions
            if isinstance(c, Wrap)
            for target in self.pairs.get(c.target, (c.target,))
        }
        for field in self.fields:
            exact = field.net.rings(field.domain.periodic)
            for name in field.domain.periodic:
                if name not in exact and (name, field.name) not in wrapped:
                    raise ValueError(
                        f"Field {field.name!r}: nothing makes it periodic in {name}: "
                        f"add embed=Periodic({name}=5) to its net, or the condition Wrap({name!r})"
                    )
            if extra := exact - set(field.domain.periodic):
                raise ValueError(
                    f"Field {field.name!r}: embed: {', '.join(sorted(extra))} is not periodic in the domain; "
                    "say periodic=True there"
                )

    def _check_values(self) -> None:
        """Values of a field, soft or hard, against each other where two are given: at corners, or on one edge."""
        for field in self.fields:
            claims = [Claim(c.name, c.edges, c.call, c) for c in self.conditions if isinstance(c, Dirichlet)
                      and c.target == field.name]  # fmt: skip
            claims += [Claim(c.name, None, c.call, c) for c in self.conditions if isinstance(c, Initial)
                       and c.target == field.name]  # fmt: skip
            soft, ansatz = len(claims), Ansatz(field)
            claims += [Claim("boundary=Hard(...)", ansatz.edges, ansatz.side)] if ansatz.side else []
            claims += [Claim("initial=Hard(...)", None, ansatz.start)] if ansatz.start else []
            for i, first in enumerate(claims[:soft]):
                for second in claims[i + 1 :]:
                    self._compare(field, first, second)

    def _compare(self, field: Field, first: Claim, second: Claim) -> None:
        soft = [claim.condition for claim in (first, second) if claim.condition is not None]
        if any(condition.of is not None or condition.own is not None for condition in soft):
            return
        columns = self._columns(first, second)
        like = columns[self.domain.names[0]]
        if not len(like) or not {*first.value.parameters, *second.value.parameters} <= set(columns):
            return
        gap = (first.value.numbers(columns, like) - second.value.numbers(columns, like)).detach().abs().numpy()
        size = max(self._size(first), self._size(second))
        if gap.max() > max(TYPED * size, 1e-6 * (field.scale or 1.0)):
            place = {name: column[int(gap.argmax())].item() for name, column in columns.items()}
            raise ValueError(
                f"conflicting corner values: {first.name} and {second.name} of {field.name} differ by "
                f"{gap.max():.2g}, of values up to {size:.2g}, where they meet, at {place}; no smooth field "
                "satisfies both: change one, or, for a solution that jumps, leave the place out of one by where=..."
            )

    def _size(self, claim: Claim) -> float:
        """The largest of a claim's values, wherever it holds."""
        columns = self._columns(claim, claim)
        values = claim.value.numbers(columns, columns[self.domain.names[0]]).abs()
        return float(values.max()) if len(values) else 0.0

    def _columns(self, first: Claim, second: Claim) -> dict[str, Tensor]:
        """Points where both claims hold, which may be one, by coordinate."""
        points = self._meeting(first.edges, second.edges)
        for condition in (first.condition, second.condition):
            region = None if condition is None else condition.region(self.domain)
            points = points[region.holds(points)] if isinstance(region, Part) and len(points) else points
        return columns_of(self.domain, points)

    def _meeting(self, first: Sequence[str] | None, second: Sequence[str] | None) -> Array:
        """Points on edges that two claims share, or where edges and the first moment meet; None is that moment."""
        rng = np.random.default_rng(0)
        if first is None and second is None:
            return self.domain.start(64, "uniform", rng)
        edges = first or second or () if first is None or second is None else [e for e in first if e in second]
        if not edges:
            return np.zeros((0, len(self.domain.names)))
        points, _ = self.domain.boundary(64, edges, "uniform", rng)
        if self.domain.time and (first is None or second is None):
            points[:, -1] = self.domain.time.start
        return points

    @np.errstate(all="ignore")  # what is no number is told
    def _check_residuals(self, derivatives: str) -> None:
        """Run each condition at a few points; what it asks for there decides how derivatives are made."""
        system, histories = self.system(), {field.name: field.history for field in self.fields}
        for surrogate, group in zip(system.surrogates, self.groups, strict=True):
            self._check_alone(surrogate, group[0].domain)
        for index, (name, batch) in enumerate(zip(self.names, self.draw(np.random.default_rng(0)), strict=True)):
            if not len(batch["points"]):
                raise ValueError(f"{name}: expected points, got none; raise n, or take another sampler")
            self.domain.check_inside(name, batch["points"])
            if self.known is not None:
                self.known.check(name, self.conditions[index].parameters, self._places(index, batch))
            every = {key: leafgrad.tensor(np.ascontiguousarray(values)) for key, values in batch.items()}
            self.few.append({key: t[:UNITS] for key, t in every.items()})
            few = {key: t[:LOOKS] for key, t in every.items()}
            residuals, points = system.residuals(index, few)
            if points.visited:
                check(name, system.residuals(index, every)[1], self.domain, histories)
            if system.orders and (beyond := [words for words in points.beyond if words.startswith("d(")]):
                raise ValueError(
                    f"{name}: {beyond[0]}: expected derivatives of fields alone, as u.x, of a network that has few; "
                    "take an Energy(...)"
                )
            away = bool(points.visited)
            self.plans.append(cheapest(points.asked, self.domain.space, derivatives, points.beyond, away))
            found = residuals.detach().numpy()
            if not np.isfinite(found).all():
                if self._begin_at_values():
                    self.plans, self.few = [], []
                    self._check_residuals(derivatives)
                    return
                wrong = batch["points"][:LOOKS][~np.isfinite(found).all(1)][0]
                place = dict(zip(self.domain.names, wrong.tolist(), strict=True))
                raise ValueError(
                    f"{name}: expected finite residuals at the start, got nan or inf at {place}; let the equation have "
                    "numbers for all values of its fields, as of u = exp(v) for a field v in place of log(u)"
                )
            again, _ = system.residuals(index, few)
            planned = again.detach().numpy()  # by the plan
            self._check_again(name, found, planned)
            self._check_leaves(name, leaves_of(residuals), leaves_of(again), system)
            check_condition(name, partial(system.residuals, index), few, planned, self.domain.bounds)
            self._check_loss(index, residuals.detach())
        if unused := [unknown.name for unknown in self.unknowns if not unknown.used]:
            raise ValueError(f"unknowns: {', '.join(unused)}: expected in some condition, found in none")

    def _check_alone(self, surrogate: Any, domain: Domain) -> None:
        """ValueError unless a network's outputs, and exact values, are those of their inputs at each point alone."""
        rows = domain.interior(LOOKS, "uniform", np.random.default_rng(0))
        some = {f.name: f.some(LOOKS) for f in domain.functions}

        def at(values: Callable[[Tensors, Tensors], Tensor], index: Any, moved: int) -> list[Array]:
            columns = columns_of(domain, nearer(rows[index], domain.bounds, moved * EPS))
            found = values(columns, {name: leafgrad.tensor(row[index]) for name, row in some.items()})
            return [*found.detach().numpy().reshape(len(columns[domain.names[0]]), -1).T]

        def outputs(columns: Tensors, functions: Tensors) -> Tensor:
            found: Tensor = surrogate.net([*columns.values()], *functions.values())
            return found

        def exact(call: Named, columns: Tensors, functions: Tensors) -> Tensor:
            given = {f.name: f.at(functions[f.name], columns) for f in domain.functions}
            return call.numbers({**columns, **given}, columns[domain.names[0]])

        check_network(f"Field {surrogate.fields[0]!r}: net", surrogate.net, partial(at, outputs), LOOKS)
        for ansatz in surrogate.ansatz.values():
            for call in (ansatz.side, ansatz.start, ansatz.rate, ansatz.history):
                if call is not None:
                    check_at(
                        f"{call.what}: expected values of the coordinates", partial(at, partial(exact, call)), LOOKS
                    )

    def _places(self, index: int, batch: Batch) -> Array:
        """Where a condition takes its fields, (n, d): at the points of its rule, or dense ones."""
        if "nodes" in batch:
            return np.concatenate([batch["points"], batch["nodes"].reshape(-1, len(self.domain.names))])
        return np.concatenate([batch["points"], self._densely(self.conditions[index])])

    def _densely(self, condition: Condition) -> Array:
        """Many points of a condition, (n, d)."""
        dense = copy.copy(condition)
        dense.n, dense.sampler = max(dense.n, DENSE), "sobol"
        return dense.draw(self.domain, np.random.default_rng(1))["points"]

    def _check_leaves(self, name: str, first: dict[int, Tensor], second: dict[int, Tensor], system: System) -> None:
        """ValueError if residuals have gradients for a tensor that no training changes.

        Those of points are made anew for each evaluation, and are not in both.
        """
        trained = {id(p) for p in system.parameters()}
        if other := [leaf for key, leaf in first.items() if key in second and key not in trained]:
            raise ValueError(
                f"{name}: expected fields, numbers and unknowns, got a tensor of shape {tuple(other[0].shape)} that "
                "requires grad, which training would leave as it is: if it is to be found, take Unknown(...) and "
                "Problem(..., unknowns=...); if it is known, its detach(), or requires_grad_(False) of its module"
            )

    def _check_loss(self, index: int, residuals: Tensor) -> None:
        """ValueError unless a condition's own loss gives a number for each residual (n, k)."""
        loss = self.conditions[index].loss
        found = None if loss is None else loss(residuals)
        if loss is not None and not (
            isinstance(found, Tensor) and found.shape == residuals.shape and bool(found.isfinite().all())
        ):
            if self.conditions[index].minimised:
                raise ValueError(
                    f"{self.names[index]}: least: expected a number that the energy cannot fall to, got one above it "
                    f"by {-float(residuals.min()):.2g} at the start: give less"
                )
            got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise ValueError(
                f"{self.names[index]}: loss: expected a finite number, to be squared, for each residual, "
                f"shape {tuple(residuals.shape)}, got {got}"
            )

    def _choose_units(self) -> None:
        """Give fields and conditions their sizes, where these are far from 1; fields become copies that have them."""
        system, batches = self.system(), self.some()
        declared = {field.name: field.scale for field in self.fields if field.scale is not None}
        scales = scales_of(system, batches, declared)
        self.sizes = sizes_of(system, batches, scales)
        if any(scale != 1 for scale in scales.values()):
            self.fields = list(copied(self.fields).values())
            for field in self.fields:
                field.scale = scales.get(field.name)
        if wild(self.system(), batches):
            self._begin_at_values()

    def _begin_at_values(self) -> bool:
        """Whether fields begin about the values that are given of them, where they did not before."""
        batches = on_device(self.draw(np.random.default_rng(0)), leafgrad.float64, "cpu")
        before, means = self.starts, means_of(self.system(), batches)
        self.starts = means if any(means.values()) else {}
        return self.starts != before

    def _check_again(self, name: str, first: Array, second: Array) -> None:
        """ValueError if residuals (n, k) are others when they are evaluated again."""
        gap = float(np.abs(first - second).max())
        if not gap <= 1e-9 * (1 + np.abs(first).max()):
            raise ValueError(
                f"{name}: expected an equation that is the same each time, got one whose residuals are others when it "
                f"is evaluated twice, as with random numbers, or state that it changes: by {gap:.2g}"
            )
