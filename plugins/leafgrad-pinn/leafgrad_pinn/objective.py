"""The loss, its gradient and its Jacobian as compiled functions of flat parameters, points and weights."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import leafgrad
from leafgrad import Tensor
from leafgrad.func import functional_call, grad, jvp, vjp, vmap
from leafgrad_pinn.problem import System, Tensors
from leafgrad_pinn.ranks import Ranks

Parameters = dict[str, Tensor]
Program = Callable[..., Any]


class Objective:
    """What stages ask for. Parameters come as one vector (p,), points and weights as in a `Trainee`.

    Each function is a program of its arguments from the first call on, so that a resumed run rounds as any other:
    the same arguments give the same bits. The gradient and the residuals are those of

        loss = sum over conditions of scale * mean over points of weight * squared residual.

    Where several processes train, each computes with its part of the points; all get the results of all points.

    Args:
        system: the networks and unknowns.
        scales: for each condition what its mean square counts.
        free: which parameters the vector has, by name; the others stay as they are. None for all.
        like: an objective of the same equations and networks, whose programs serve this one too; None for new ones.

    Attributes:
        held: what programs are given besides: buffers, and the parameters that stay as they are.
    """

    programs: list[Callable[..., Any]]

    def __init__(
        self,
        system: System,
        scales: Sequence[float],
        free: Callable[[str], bool] | None = None,
        like: Objective | None = None,
    ) -> None:
        self.system, self.scales, self.ranks = system, tuple(scales), Ranks()
        self.parameters = {name: p for name, p in system.named_parameters() if free is None or free(name)}
        self.shapes = {name: tuple(p.shape) for name, p in self.parameters.items()}
        self.sizes = [p.numel() for p in self.parameters.values()]
        self.size = sum(self.sizes)
        given = [*system.named_parameters(), *system.named_buffers()]
        self.held = {name: tensor.detach() for name, tensor in given if name not in self.parameters}
        functions = (
            Objective._gradient,
            Objective._terms,
            Objective._rows,
            Objective._product,
            Objective._pulled,
            Objective._bend,
            Objective._norms,
            Objective._traces,
        )
        self.programs: list[Program] = [self._program(f) for f in functions] if like is None else like.programs
        found = [partial(made, self.held) for made in self.programs]
        self.gradient, self.terms, self.rows, self.product, self.pulled, self.bend, self.norms, self.traces = found

    def _program(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A method as a program of what is held, and of its arguments."""

        def call(held: Parameters, *arguments: Any) -> Any:
            other = copy.copy(self)
            other.held = held
            return function(other, *arguments)

        return program(call)

    @property
    def flat(self) -> Tensor:
        """The parameters as one vector (p,), a copy."""
        return leafgrad.cat([p.detach().reshape(-1) for p in self.parameters.values()])

    def put(self, flat: Tensor) -> None:
        """Write the parameters."""
        with leafgrad.no_grad():
            for p, part in zip(self.parameters.values(), flat.split(self.sizes), strict=True):
                p.copy_(part.reshape(p.shape))

    def split(self, flat: Tensor) -> Parameters:
        """A vector (p,) as the parameters by name."""
        parts = flat.split(self.sizes)
        return {name: part.reshape(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def residuals(self, index: int, batch: Tensors, flat: Tensor) -> Tensor:
        """Those of a condition at a batch of points: (n, k)."""
        found: Tensor = functional_call(self.system, {**self.held, **self.split(flat)}, (index, batch))
        return found

    def _squares(self, flat: Tensor, batches: Sequence[Tensors]) -> list[Tensor]:
        return [self.residuals(index, batch, flat).square().sum(1) for index, batch in enumerate(batches)]

    def _weighed(self, squares: Sequence[Tensor], weights: Sequence[Tensor], counts: Sequence[int]) -> Tensor:
        parts = zip(self.scales, squares, weights, counts, strict=True)
        return leafgrad.stack([scale * ((weight * square).sum() / n) for scale, square, weight, n in parts])

    def _whole(self, squares: Sequence[Tensor], counts: Sequence[int]) -> list[Tensor]:
        return [self.ranks.whole(square, n) for square, n in zip(squares, counts, strict=True)]

    def _terms(self, flat: Tensor, batches: Any, weights: Any) -> tuple[Tensor, list[Tensor]]:
        """The loss's terms (conditions,), and for each condition squared residuals without weights (n,)."""
        counts, (batches, weights) = counted(batches), self.ranks.part((batches, weights))
        squares = self._squares(flat, batches)
        terms, *squares = self.ranks.sum([self._weighed(squares, weights, counts), *self._whole(squares, counts)])
        return terms, squares

    def _gradient(self, flat: Tensor, batches: Any, weights: Any) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The gradient (p,), and what ``terms`` gives."""
        counts, (batches, weights) = counted(batches), self.ranks.part((batches, weights))

        def loss(flat: Tensor) -> tuple[Tensor, tuple[Tensor, list[Tensor]]]:
            squares = self._squares(flat, batches)
            terms = self._weighed(squares, weights, counts)
            return terms.sum(), (terms, squares)

        gradient, (terms, squares) = grad(loss, has_aux=True)(flat)
        gradient, terms, *squares = self.ranks.sum([gradient, terms, *self._whole(squares, counts)])
        return gradient, terms, squares

    def _blocks(self, flat: Tensor, batches: Any) -> list[Tensor]:
        """For each condition the Jacobian of its residuals, and these as the last column: (n, k, p + 1)."""
        blocks = []
        for index, batch in enumerate(batches):
            values = self.residuals(index, batch, flat)

            def residual(parameters: Parameters, row: Tensors, equation: int, index: int = index) -> Tensor:
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

    def _rows(self, flat: Tensor, batches: Any, weights: Any) -> Tensor:
        """The Jacobian of all weighted residuals, and these as the last column: (rows, p + 1).

        The sum of the squares of the last column is the loss. With several processes rows of the same inner products.
        """
        counts, (batches, weights) = counted(batches), self.ranks.part((batches, weights))
        found = []
        for scale, weight, block, n in zip(self.scales, weights, self._blocks(flat, batches), counts, strict=True):
            found.append((block * (scale * weight / n).sqrt()[:, None, None]).reshape(-1, block.shape[2]))
        return self.ranks.triangles(leafgrad.cat(found))

    def _columns(self, flat: Tensor, batches: Any, weights: Any, counts: Sequence[int]) -> list[Tensor]:
        """For each condition its weighted residuals: (n, k)."""
        found = []
        for index, (batch, weight, n) in enumerate(zip(batches, weights, counts, strict=True)):
            found.append(self.residuals(index, batch, flat) * (self.scales[index] * weight / n).sqrt()[:, None])
        return found

    def _product(self, flat: Tensor, direction: Tensor, batches: Any, weights: Any) -> Tensor:
        """J^T J times a direction, J the Jacobian of all weighted residuals: (p,)."""
        counts, (batches, weights) = counted(batches), self.ranks.part((batches, weights))

        def column(flat: Tensor) -> Tensor:
            return leafgrad.cat([part.reshape(-1) for part in self._columns(flat, batches, weights, counts)])

        _, change = jvp(column, (flat,), (direction,))
        (result,) = self.ranks.sum(vjp(column, flat)[1](change))
        return result

    def _pulled(self, flat: Tensor, batches: Any, weights: Any, rows: Sequence[Tensor]) -> Tensor:
        """J^T times a number for each row, given for each condition as (n, k): (p,)."""
        counts, (batches, weights, rows) = counted(batches), self.ranks.part((batches, weights, rows))

        def weighed(flat: Tensor) -> Tensor:
            columns = self._columns(flat, batches, weights, counts)
            return leafgrad.stack([(column * row).sum() for column, row in zip(columns, rows, strict=True)]).sum()

        (result,) = self.ranks.sum([grad(weighed)(flat)])
        return result

    def _bend(self, flat: Tensor, direction: Tensor, batches: Any, weights: Any) -> Tensor:
        """J^T times the second derivative of all weighted residuals along a direction: (p,)."""
        counts, (batches, weights) = counted(batches), self.ranks.part((batches, weights))

        def column(flat: Tensor) -> Tensor:
            return leafgrad.cat([part.reshape(-1) for part in self._columns(flat, batches, weights, counts)])

        def change(flat: Tensor) -> Tensor:
            found: Tensor = jvp(column, (flat,), (direction,))[1]
            return found

        _, second = jvp(change, (flat,), (direction,))
        (result,) = self.ranks.sum(vjp(column, flat)[1](second))
        return result

    def _norms(self, flat: Tensor, batches: Any, weights: Any) -> Tensor:
        """The norm of each term's gradient, without its scale: (conditions,)."""
        counts, (batches, weights) = counted(batches), self.ranks.part((batches, weights))
        found = []
        for index, (batch, weight, n) in enumerate(zip(batches, weights, counts, strict=True)):

            def term(flat: Tensor, index: int = index, batch: Any = batch, weight: Any = weight, n: int = n) -> Tensor:
                return (weight * self.residuals(index, batch, flat).square().sum(1)).sum() / n

            found.append(grad(term)(flat))
        (gradients,) = self.ranks.sum([leafgrad.stack(found)])
        return gradients.square().sum(1).sqrt()

    def _traces(self, flat: Tensor, batches: Any) -> Tensor:
        """For each condition the mean over points of the squared Jacobian of its residuals: (conditions,)."""
        counts, blocks = counted(batches), self._blocks(flat, self.ranks.part(batches))
        squares = [block[:, :, :-1].square().sum() / n for block, n in zip(blocks, counts, strict=True)]
        (found,) = self.ranks.sum([leafgrad.stack(squares)])
        return found


def counted(batches: Sequence[Tensors]) -> list[int]:
    """How many points each condition has, in all processes together."""
    return [len(batch["points"]) for batch in batches]


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled function, from its first call on."""

    @leafgrad.compile
    def compiled(*arguments: Any) -> Any:
        return detached(function(*arguments))

    return compiled


def detached(found: Any) -> Any:
    """Tensors, in tuples and lists, without the graph that points have begun."""
    return found.detach() if isinstance(found, Tensor) else type(found)(detached(part) for part in found)
