"""The networks and unknowns of a problem as one module, and its points as tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

import leafgrad
from leafgrad import Tensor, nn
from leafgrad_pinn.complex import ComplexValue, parts_of
from leafgrad_pinn.conditions import Batch
from leafgrad_pinn.elsewhere import anywhere
from leafgrad_pinn.field import Surrogate
from leafgrad_pinn.layers import Maker
from leafgrad_pinn.planner import DerivativePlan, Fields, plan as cheapest
from leafgrad_pinn.starts import start_at
from leafgrad_pinn.unknowns import bound
from leafgrad_pinn.values import Points, noted

if TYPE_CHECKING:
    from leafgrad_pinn.problem import Problem

Tensors = dict[str, Tensor]


class System(nn.Module):
    """The networks and unknowns of a problem, which gives residuals."""

    def __init__(self, problem: Problem, make: Maker) -> None:
        super().__init__()
        self.domain, self.conditions, self.labels = problem.domain, problem.conditions, problem.names
        self.plans = problem.plans
        for index, sizes in enumerate(problem.sizes):  # buffers: windows of time share programs, which are given them
            self.register_buffer(f"share{index}", make.tensor(1 / np.array(sizes)), persistent=False)
        before = problem.before or [None] * len(problem.groups)
        self.surrogates = nn.ModuleList(
            [Surrogate(group, make, last) for group, last in zip(problem.groups, before, strict=True)]
        )
        self.coordinates = {field.name: field.domain.names for field in problem.fields}
        self.orders = {field.name: field.net.order for field in problem.fields if field.net.order is not None}
        self.pairs, self.known = problem.pairs, problem.known and problem.known.to(make.dtype, make.device)
        self.unknowns = problem.unknowns
        self.wrong: Fields | None = None  # gives what is added to the fields before the first moment
        self.numbers = nn.ParameterList([make.parameter(np.array(u.raw)) for u in problem.unknowns])
        start_at(self, problem.starts)

    def fields(self, columns: Mapping[str, Tensor]) -> Tensors:
        """Each field at points, n numbers for each coordinate -> n for each field."""
        return {name: value for surrogate in self.surrogates for name, value in surrogate(columns).items()}

    def past(self, columns: Mapping[str, Tensor]) -> Tensors:
        """The same before the first moment."""
        found = {name: value for surrogate in self.surrogates for name, value in surrogate.past(columns).items()}
        return {name: found[name] + wrong for name, wrong in self.wrong(dict(columns)).items()} if self.wrong else found

    def forward(self, index: int, batch: Tensors) -> Tensor:
        """What is squared of a condition, by its index, at a batch of its points: (n, k) for k equations.

        That is its residuals, what its own loss makes of them, and times the roots of its points' weights. A batch
        may have what they are multiplied by, ``"share"`` (n, k), where it is that of several conditions.

        Raises:
            ValueError: the equation's result is not one number for each point, or a tuple of such.
        """
        found, _ = self.residuals(index, batch)
        loss = self.conditions[index].loss
        if loss is not None:
            share = self.share(index, batch)
            found = loss(found) if share is None else loss(found / share) * share
        return found * batch["weights"].sqrt()[:, None] if "weights" in batch else found

    def residuals(
        self, index: int, batch: Tensors, fields: Fields | None = None, plan: DerivativePlan | None = None
    ) -> tuple[Tensor, Points]:
        """The residuals (n, k), of other fields or by another plan if given, and points that know what was asked."""
        condition, label = self.conditions[index], self.labels[index]
        *elsewhere, points = map(self.points, self.taken_at(batch).values())
        chosen = plan or (self.plans[index] if index < len(self.plans) else cheapest((), self.domain.space))
        with bound(self.unknowns, list(self.numbers)):
            *others, own = [self.values(each, chosen, fields) for each in (*elsewhere, points)]
            extra = {**batch, **dict(zip(self.taken_at(batch), others, strict=False))}
            with noted([points, *elsewhere]) if index >= len(self.plans) else nullcontext():
                result = condition.residual(own, points, extra)
        parts = parts_of(result)
        if not parts:
            raise ValueError(f"{label}: expected one number for each point, or a tuple of such, got ()")
        n = len(batch["points"])
        for part in parts:
            if isinstance(part, Tensor) and part.dtype.is_complex:
                raise TypeError(
                    f"{label}: expected a real number for each point, got complex ones without a complex field: take a "
                    "ComplexField, or .real and .imag"
                )
            if not isinstance(part, Tensor) or tuple(part.shape) != (n,) or not part.is_floating_point():
                got = f"{part.dtype}, shape {tuple(part.shape)}" if isinstance(part, Tensor) else type(part).__name__
                raise ValueError(f"{label}: expected one number for each of {n} points, shape ({n},), got {got}")
        for each in [place for root in (points, *elsewhere) for place in root.places]:
            points.asked |= each.asked
            points.beyond |= each.beyond
            each.forget()
        points.visited += [visit for root in elsewhere for visit in root.visited]
        found, share = leafgrad.stack(parts, 1), self.share(index, batch)
        return found if share is None else found * share, points

    def share(self, index: int, batch: Tensors) -> Tensor | None:
        """What the residuals of a condition are multiplied by, in this batch, if by anything."""
        return batch.get("share", dict(self.named_buffers(recurse=False)).get(f"share{index}"))

    def taken_at(self, batch: Tensors) -> dict[str, Tensors]:
        """Where a condition takes its fields, as it calls these: at ends opposite to its points, at those of a rule, q
        for each of its own, (n, q, d), if it has such; and at its own, which come last."""
        named, found = {"points": "nodes", "normals": "sides"}, {}
        if "opposite" in batch:
            found["opposite"] = {**batch, "points": batch["opposite"]}
        if rule := {name: batch[key].flatten(0, 1) for name, key in named.items() if key in batch}:
            found["inner"] = rule | {f.key: batch[f.key] for f in self.domain.functions}
        return found | {"own": batch}

    def points(self, batch: Tensors) -> Points:
        """A batch's points (n, d), normals (n, k), and input functions (n, m), by name."""
        rows, normals = batch["points"], batch.get("normals")
        columns = {name: rows[:, i].detach() for i, name in enumerate(self.domain.names)}
        for column in columns.values():
            column.requires_grad = True  # requires_grad_() is not for functions that are transformed
        sides = None if normals is None else {name: normals[:, i] for i, name in enumerate(self.domain.space)}
        columns |= {function.name: batch[function.key] for function in self.domain.functions}
        return Points(columns, self.domain.space, sides, self.domain.functions, self.orders)

    def values(self, points: Points, plan: DerivativePlan, given: Fields | None = None) -> dict[str, Any]:
        """Fields, or those that are given, and coordinates by name."""
        inside: Fields = given or self.fields
        fields = plan.values(inside, points, self.coordinates)
        points.away = lambda there: plan.values(anywhere(inside, self.past, self.domain), there, self.coordinates)
        pairs = {name: ComplexValue(fields[real], fields[imag]) for name, (real, imag) in self.pairs.items()}
        known = self.known(points) if self.known else {}
        return {**{u.name: u for u in self.unknowns}, **points.columns, **points.inputs(), **known, **fields, **pairs}

    def solved(self) -> dict[str, float]:
        """The unknowns by name."""
        return {u.name: float(u.number(p.detach())) for u, p in zip(self.unknowns, self.numbers, strict=True)}


def leaves_of(result: Tensor) -> dict[int, Tensor]:
    """The tensors that it has gradients for, by id."""
    todo, seen, found = [result.grad_fn], set[Any](), {}
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(leaf := getattr(node, "variable", None), Tensor):
            found[id(leaf)] = leaf
        todo += [after for after, _ in node.next_functions]
    return found


def on_device(batches: Sequence[Batch], dtype: Any, device: Any) -> list[Tensors]:
    """Batches as tensors."""
    return [
        {key: leafgrad.tensor(np.ascontiguousarray(v), dtype=dtype, device=device) for key, v in batch.items()}
        for batch in batches
    ]
