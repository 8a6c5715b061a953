"""The loss, its gradient and its Jacobian as compiled functions of flat parameters, points and weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import leafgrad
from leafgrad import Tensor
from leafgrad.func import functional_call, grad, jvp, vjp, vmap
from leafgrad_pinn.conditions import Condition
from leafgrad_pinn.ranks import Ranks
from leafgrad_pinn.system import System, Tensors

Parameters = dict[str, Tensor]
Program = Callable[..., Any]


class Rows(NamedTuple):
    """Points of all conditions, those of conditions with the same equation in one batch.

    Attributes:
        batches: for each such equation its points, (n, d), and what else belongs to them.
        factors: for each what the square at each point counts in the loss, (n,).
        sizes: for each, how many points each of its conditions has.
        counts: how many points each condition has, in all processes together.
    """

    batches: list[Tensors]
    factors: list[Tensor]
    sizes: list[list[int]]
    counts: list[int]


@dataclass(frozen=True)
class Equations:
    """The residuals of a system as functions of flat parameters, and what follows from them.

    Attributes:
        system: the networks and unknowns.
        scales: for each condition what its mean square counts.
        alike: the indices of conditions, together those with the same equation.
        shapes: of the parameters that the vector has, by name.
        held: buffers, and the parameters that stay as they are.
    """

    system: System
    scales: tuple[float, ...]
    alike: list[list[int]]
    shapes: dict[str, tuple[int, ...]]
    held: Parameters
    ranks: Ranks

    def holding(self, held: Parameters) -> Equations:
        """The same that hold these."""
        return Equations(self.system, self.scales, self.alike, self.shapes, held, self.ranks)

    @property
    def sizes(self) -> list[int]:
        """How many numbers each parameter has."""
        return [math.prod(shape) for shape in self.shapes.values()]

    def split(self, flat: Tensor) -> Parameters:
        """A vector (p,) as the parameters by name."""
        parts = flat.split(self.sizes)
        return {name: part.reshape(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def residuals(self, index: int, batch: Tensors, flat: Tensor) -> Tensor:
        """Those of a condition at a batch of points: (n, k)."""
        found: Tensor = functional_call(self.system, {**self.held, **self.split(flat)}, (index, batch))
        return found

    def joined(self, batches: Sequence[Tensors], weights: Sequence[Tensor]) -> Rows:
        """This process's points and their weights, those of conditions with the same equation together.

        They are joined outside of programs, whose loops run over all of a batch.
        """
        counts, (batches, weights) = counted(batches), self.ranks.part((list(batches), list(weights)))
        found = Rows([], [], [], counts)
        for indices in self.alike:
            factors = [self.scales[i] * weights[i] / counts[i] for i in indices]
            found.sizes.append([len(factor) for factor in factors])
            if len(indices) == 1:
                found.batches.append(batches[indices[0]])
                found.factors.append(factors[0])
                continue
            batch = {name: leafgrad.cat([batches[i][name] for i in indices]) for name in batches[indices[0]]}
            shares = [self.held.get(f"share{i}") for i in indices]
            if all(share is not None for share in shares):
                rows = zip(shares, factors, strict=True)
                batch["share"] = leafgrad.cat([share.expand(len(f), -1) for share, f in rows if share is not None])
            found.batches.append(batch)
            found.factors.append(leafgrad.cat(factors))
        return found

    def _parted(self, given: Rows, found: Sequence[Tensor]) -> list[Tensor]:
        """What there is for all rows, for each condition."""
        parts: dict[int, Tensor] = {}
        for indices, sizes, rows in zip(self.alike, given.sizes, found, strict=True):
            parts |= zip(indices, rows.split(sizes) if len(sizes) > 1 else [rows], strict=True)
        return [parts[index] for index in range(len(parts))]

    def _each(self, flat: Tensor, given: Rows) -> list[Tensor]:
        """The residuals of each equation: (n, k)."""
        return [
            self.residuals(indices[0], batch, flat) for indices, batch in zip(self.alike, given.batches, strict=True)
        ]

    def _squares(self, flat: Tensor, given: Rows) -> list[Tensor]:
        return [values.square().sum(1) for values in self._each(flat, given)]

    def _told(self, given: Rows, squares: Sequence[Tensor]) -> list[Tensor]:
        """The loss's terms (conditions,), and for each condition its squares (n,), of this process's points."""
        weighed = [factors * square for factors, square in zip(given.factors, squares, strict=True)]
        terms = leafgrad.stack([part.sum() for part in self._parted(given, weighed)])
        parts = zip(self._parted(given, squares), given.counts, strict=True)
        return [terms, *[self.ranks.whole(part, n) for part, n in parts]]

    def terms(self, flat: Tensor, given: Rows) -> tuple[Tensor, list[Tensor]]:
        """The loss's terms (conditions,), and for each condition squared residuals without weights (n,)."""
        terms, *squares = self.ranks.sum(self._told(given, self._squares(flat, given)))
        return terms, squares

    def gradient(self, flat: Tensor, given: Rows) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The gradient (p,), and what ``terms`` gives."""

        def loss(flat: Tensor) -> tuple[Tensor, list[Tensor]]:
            squares = self._squares(flat, given)
            parts = [(factors * square).sum() for factors, square in zip(given.factors, squares, strict=True)]
            return leafgrad.stack(parts).sum(), squares

        gradient, squares = grad(loss, has_aux=True)(flat)
        gradient, terms, *squares = self.ranks.sum([gradient, *self._told(given, squares)])
        return gradient, terms, squares

    def _blocks(self, flat: Tensor, given: Rows) -> list[Tensor]:
        """For each equation the Jacobian of its residuals, and these as the last column: (n, k, p + 1)."""
        blocks = []
        for indices, batch, values in zip(self.alike, given.batches, self._each(flat, given), strict=True):

            def residual(parameters: Parameters, row: Tensors, equation: int, index: int = indices[0]) -> Tensor:
                one = {name: t[None] for name, t in row.items()}
                found: Tensor = functional_call(self.system, {**self.held, **parameters}, (index, one))[0, equation]
                return found

            sides = []
            for equation in range(values.shape[1]):
                jacobian = vmap(grad(residual), in_dims=(None, 0, None))(self.split(flat), batch, equation)
                columns = [jacobian[name].reshape(len(values), math.prod(s)) for name, s in self.shapes.items()]
                sides.append(leafgrad.cat([*columns, values[:, equation, None]], 1))
            blocks.append(leafgrad.stack(sides, 1))
        return blocks

    def rows(self, flat: Tensor, given: Rows) -> Tensor:
        """The Jacobian of all weighted residuals, and these as the last column: (rows, p + 1).

        The sum of the squares of the last column is the loss. With several processes rows of the same inner products.
        """
        found = []
        for factors, block in zip(given.factors, self._blocks(flat, given), strict=True):
            found.append((block * factors.sqrt()[:, None, None]).reshape(-1, block.shape[2]))
        return self.ranks.triangles(leafgrad.cat(found))

    def _columns(self, flat: Tensor, given: Rows) -> list[Tensor]:
        """For each equation its weighted residuals: (n, k)."""
        found = zip(self._each(flat, given), given.factors, strict=True)
        return [values * factors.sqrt()[:, None] for values, factors in found]

    def _column(self, flat: Tensor, given: Rows) -> Tensor:
        """All weighted residuals: (rows,)."""
        return leafgrad.cat([part.reshape(-1) for part in self._columns(flat, given)])

    def product(self, flat: Tensor, given: Rows, direction: Tensor) -> Tensor:
        """J^T J times a direction, J the Jacobian of all weighted residuals: (p,)."""
        _, change = jvp(lambda flat: self._column(flat, given), (flat,), (direction,))
        (result,) = self.ranks.sum(vjp(lambda flat: self._column(flat, given), flat)[1](change))
        return result

    def pulled(self, flat: Tensor, given: Rows, rows: Sequence[Tensor]) -> Tensor:
        """J^T times a number for each row, given for each condition as (n, k): (p,)."""
        rows = self.ranks.part(rows)

        def weighed(flat: Tensor) -> Tensor:
            columns = self._parted(given, self._columns(flat, given))
            return leafgrad.stack([(column * row).sum() for column, row in zip(columns, rows, strict=True)]).sum()

        (result,) = self.ranks.sum([grad(weighed)(flat)])
        return result

    def bend(self, flat: Tensor, given: Rows, direction: Tensor) -> Tensor:
        """J^T times the second derivative of all weighted residuals along a direction: (p,)."""

        def change(flat: Tensor) -> Tensor:
            found: Tensor = jvp(lambda flat: self._column(flat, given), (flat,), (direction,))[1]
            return found

        _, second = jvp(change, (flat,), (direction,))
        (result,) = self.ranks.sum(vjp(lambda flat: self._column(flat, given), flat)[1](second))
        return result

    def norms(self, flat: Tensor, given: Rows) -> Tensor:
        """The norm of each term's gradient, without its scale: (conditions,)."""
        found = []
        for number in range(len(given.counts)):

            def term(flat: Tensor, number: int = number) -> Tensor:
                squares = self._parted(given, self._squares(flat, given))[number]
                return (self._parted(given, given.factors)[number] * squares).sum()

            found.append(grad(term)(flat) / self.scales[number])
        (gradients,) = self.ranks.sum([leafgrad.stack(found)])
        return gradients.square().sum(1).sqrt()

    def traces(self, flat: Tensor, given: Rows) -> Tensor:
        """For each condition the mean over points of the squared Jacobian of its residuals: (conditions,)."""
        squares = [block[:, :, :-1].square().sum((1, 2)) for block in self._blocks(flat, given)]
        parts = zip(self._parted(given, squares), given.counts, strict=True)
        (found,) = self.ranks.sum([leafgrad.stack([part.sum() / n for part, n in parts])])
        return found


class Objective:
    """What stages ask for. Parameters come as one vector (p,), points and weights as in a `Trainee`.

    Each function is a program of its arguments from the first call on, or never is, so that a resumed run rounds as any
    other: the same arguments give the same bits. Conditions with the same equation are one batch in it. The gradient
    and the residuals are those of

        loss = sum over conditions of scale * mean over points of weight * squared residual.

    Where several processes train, each computes with its part of the points; all get the results of all points.

    Args:
        system: the networks and unknowns.
        scales: for each condition what its mean square counts.
        free: which parameters the vector has, by name; the others stay as they are. None for all.
        like: an objective of the same equations and networks, whose programs serve this one too; None for new ones.
        compiles: whether they are compiled, or run as they are.

    Attributes:
        parameters: that the vector has, by name.
        equations: what the functions are made of.
        programs: them, of what the equations hold besides: parameters, points and weights.
    """

    def __init__(
        self,
        system: System,
        scales: Sequence[float],
        free: Callable[[str], bool] | None = None,
        like: Objective | None = None,
        compiles: bool = True,
    ) -> None:
        self.parameters = {name: p for name, p in system.named_parameters() if free is None or free(name)}
        given = [*system.named_parameters(), *system.named_buffers()]
        self.equations = Equations(
            system,
            tuple(scales),
            together(system.conditions),
            {name: tuple(p.shape) for name, p in self.parameters.items()},
            {name: tensor.detach() for name, tensor in given if name not in self.parameters},
            Ranks(),
        )
        self.last: tuple[list[tuple[int, int]], list[Tensor], Rows] | None = None  # as tensors were, with these
        names = ("gradient", "terms", "rows", "product", "pulled", "bend", "norms", "traces")
        functions = {name: method(self.equations, getattr(Equations, name)) for name in names}
        made = {name: program(function, compiles) for name, function in functions.items()}
        self.programs: dict[str, Program] = like.programs if like else made
        found = [partial(self._run, self.programs[name]) for name in names]
        self.gradient, self.terms, self.rows, self.product, self.pulled, self.bend, self.norms, self.traces = found

    @property
    def sizes(self) -> list[int]:
        """How many numbers each parameter has."""
        return self.equations.sizes

    @property
    def size(self) -> int:
        """How many numbers the vector has."""
        return sum(self.sizes)

    def _run(self, made: Program, flat: Tensor, batches: Any, weights: Any, *more: Any) -> Any:
        """A program at parameters (p,), of points and weights as in a `Trainee`."""
        tensors = [*(t for batch in batches for t in batch.values()), *weights]
        state = [(id(t), t._version) for t in tensors]
        if self.last is None or self.last[0] != state:
            self.last = state, tensors, self.equations.joined(batches, weights)
        return made(self.equations.held, flat, self.last[2], *more)

    @property
    def flat(self) -> Tensor:
        """The parameters as one vector (p,), a copy."""
        return leafgrad.cat([p.detach().reshape(-1) for p in self.parameters.values()])

    def put(self, flat: Tensor) -> None:
        """Write the parameters."""
        with leafgrad.no_grad():
            for p, part in zip(self.parameters.values(), flat.split(self.sizes), strict=True):
                p.copy_(part.reshape(p.shape))


def counted(batches: Sequence[Tensors]) -> list[int]:
    """How many points each condition has, in all processes together."""
    return [len(batch["points"]) for batch in batches]


def together(conditions: Sequence[Condition]) -> list[list[int]]:
    """Their indices, together those of conditions with the same equation."""
    groups: dict[Hashable, list[int]] = {}
    for index, condition in enumerate(conditions):
        key = condition.equation_key
        groups.setdefault(index if key is None else key, []).append(index)
    return list(groups.values())


def method(equations: Equations, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of equations as one of what these hold, and of its arguments."""

    def call(held: Parameters, *arguments: Any) -> Any:
        return function(equations.holding(held), *arguments)

    return call


def program(function: Callable[..., Any], compiles: bool = True) -> Program:
    """A function of tensors alone: compiled from its first call on, or as it is."""

    def called(*arguments: Any) -> Any:
        return detached(function(*arguments))

    return leafgrad.compile(called) if compiles else called


def detached(found: Any) -> Any:
    """Tensors, in tuples and lists, without the graph that points have begun."""
    return found.detach() if isinstance(found, Tensor) else type(found)(detached(part) for part in found)
