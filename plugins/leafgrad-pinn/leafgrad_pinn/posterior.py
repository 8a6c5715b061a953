"""How well conditions determine unknowns and fields: Laplace's approximation, a normal distribution by J^T J.

The residuals of each condition count as independent errors of one variance, which is their sum of squares over the
degrees of freedom that they leave; the weights in the loss play no part. J has a column for each weight of the networks
and each unknown: what weights can make up for, the residuals do not determine.
An equation or a value, other than a measured one, that leaves no degree of freedom counts as exact.
Source: MacKay (1992), "Bayesian interpolation", Neural Computation 4, 415.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import linalg

import leafgrad
from leafgrad import Tensor, nn
from leafgrad.func import functional_call, jacrev, vmap
from leafgrad_pinn.answers import outside
from leafgrad_pinn.field import columns_of
from leafgrad_pinn.objective import Parameters
from leafgrad_pinn.observations import Data
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.system import System, Tensors
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.values import recording

ELEMENTS = 2**23  # of a Jacobian that are in memory at once
LARGEST = 6000  # parameters whose triangular factor is made
ROUNDS = 8  # in which variances and degrees of freedom follow from each other
EXACT = 1e-4  # of the largest deviation of a condition's errors: smaller ones count as that, in the digits there are
ROUNDING = 1e-12  # of the largest singular value: what an undetermined direction is held by
LEAST = 0.5  # degrees of freedom, with fewer nothing says how large errors are


class Posterior:
    """The parameters of a trained system as normally distributed about what they are.

    Args:
        trainee: what was trained.

    Attributes:
        known: whether there is a distribution: residuals are more than they determine, and parameters not too many.
        root: of the covariance of parameters (columns, columns), each divided by `size`.
    """

    def __init__(self, trainee: Trainee) -> None:
        self.trainee, self.system = trainee, trainee.system
        self.parameters: Parameters = {name: p.detach() for name, p in self.system.named_parameters()}
        columns = sum(p.numel() for p in self.parameters.values())
        self.known = columns <= LARGEST
        if self.known:
            found = [self._factor(index, columns) for index in range(len(trainee.batches))]
            self._fit([f for f, _, _ in found], np.array([s for _, s, _ in found]), np.array([n for _, _, n in found]))

    def _factor(self, index: int, columns: int) -> tuple[Array, float, int]:
        """Of a condition the triangular factor of J, the sum of squared residuals, and how many there are."""
        factor, total, count = np.zeros((0, columns)), 0.0, 0
        for jacobian, values in blocks(self.trainee, index, self.parameters):
            factor = np.asarray(np.linalg.qr(np.concatenate([factor, jacobian]), mode="r"))
            total, count = total + float(values @ values), count + len(values)
        return factor, total, count

    def _fit(self, factors: list[Array], squares: Array, counts: Array) -> None:
        """Variances of errors, and the covariance that follows from them."""
        self.size = np.sqrt(sum(np.square(factor).sum(0) for factor in factors))
        scaled = [factor / np.where(self.size > 0, self.size, 1) for factor in factors]
        measured = np.array([isinstance(c, Data) for c in self.trainee.problem.conditions])
        exact = np.zeros(len(counts), bool)  # equations and values that are satisfied whatever the errors of others are
        variances = squares / counts
        for _ in range(ROUNDS):
            if not (np.isfinite(variances).all() and variances.max() > 0):
                self.known = False
                return
            held = np.maximum(variances, EXACT**2 * variances.max())
            self.root = root_of([factor / variance**0.5 for factor, variance in zip(scaled, held, strict=True)])
            spent = [np.square(f @ self.root).sum() / v for f, v in zip(scaled, held, strict=True)]
            left = counts - np.array(spent)
            determined = (left < LEAST) & (variances == held)
            if (determined & measured).any():
                self.known = False
                return
            exact |= determined
            variances = np.where(exact, 0, squares / np.maximum(left, LEAST))

    def unknowns(self) -> dict[str, float]:
        """The standard deviation of each unknown; inf of what no residual depends on, nan if there is none."""
        starts, begin, found = {}, 0, {}
        for name, p in self.parameters.items():
            starts[name], begin = begin, begin + p.numel()
        for i, unknown in enumerate(self.trainee.problem.unknowns):
            place = starts[f"numbers.{i}"]
            if not self.known:
                found[unknown.name] = math.nan
                continue
            raw = float(np.linalg.norm(self.root[place]) / self.size[place]) if self.size[place] > 0 else math.inf
            found[unknown.name] = raw * (abs(self.system.solved()[unknown.name]) if unknown.positive else unknown.scale)
        return found

    @recording()
    def fields(self, rows: Array) -> dict[str, Array]:
        """The standard deviation of each field at points (n, d), nan outside of its part: (n,).

        Raises:
            ValueError: there is none.
        """
        if self.trainee.problem.domain.functions:
            raise ValueError(
                "deviation: by: expected one problem, got a family; take sol(f=...).deviation(...) by seeds"
            )
        if not self.known:
            raise ValueError(
                "deviation: expected residuals that say how large errors are, and at most "
                f"{LARGEST} parameters; got fewer of them than they determine, or more parameters: take more points"
            )
        domain, trainee = self.trainee.problem.domain, self.trainee
        names = [name for surrogate in self.system.surrogates for name in surrogate.fields]
        whole, given = SystemFields(self.system), {f"system.{name}": p for name, p in self.parameters.items()}

        def values(parameters: Parameters, row: Tensors) -> Any:
            return functional_call(whole, parameters, ({name: t[None] for name, t in row.items()},))

        slopes: Any = leafgrad.compile(vmap(jacrev(values), in_dims=(None, 0)))
        deviations: dict[str, list[Array]] = {name: [] for name in names}
        step = max(1, ELEMENTS // (len(self.root) * len(names)))
        for begin in range(0, len(rows), step):
            few = columns_of(domain, rows[begin : begin + step], trainee.dtype, trainee.device)
            jacobian = slopes(given, few)
            n = len(rows[begin : begin + step])
            parts = [host(jacobian[name]).reshape(n, len(names), -1) for name in given]
            moved = np.concatenate(parts, 2) / np.where(self.size > 0, self.size, 1) @ self.root
            for k, name in enumerate(names):
                deviations[name].append(np.linalg.norm(moved[:, k], axis=1))
        found = {name: np.concatenate(several) for name, several in deviations.items()}
        for surrogate in self.system.surrogates:
            for name in surrogate.fields:
                found[name][outside(surrogate, name, domain, rows)] = np.nan
        return found


class SystemFields(nn.Module):
    """All fields of a system at points, by coordinate: (n,) each -> (fields,) of a single point."""

    def __init__(self, system: System) -> None:
        super().__init__()
        self.system = system

    def forward(self, columns: Mapping[str, Tensor]) -> Tensor:
        return leafgrad.stack([value[0] for value in self.system.fields(columns).values()])


def root_of(factors: list[Array]) -> Array:
    """A matrix whose product with its transpose is the inverse of the sum of factors^T factors."""
    triangle = np.linalg.qr(np.concatenate(sorted(factors, key=lambda f: -float(np.abs(f).max(initial=0)))), mode="r")
    _, s, vh = linalg.svd(triangle, full_matrices=True, check_finite=False)
    whole = np.zeros(len(vh))
    whole[: len(s)] = s
    return np.asarray(vh.T / np.sqrt(whole**2 + (ROUNDING * whole[0]) ** 2))


def blocks(trainee: Trainee, index: int, parameters: Parameters) -> Iterator[tuple[Array, Array]]:
    """The Jacobian of a condition's residuals, and these, some rows at once: float64 (m, columns), (m,)."""

    def residual(parameters: Parameters, row: Tensors) -> tuple[Tensor, Tensor]:
        one = {name: t[None] for name, t in row.items()}
        values = functional_call(trainee.system, parameters, (index, one))[0]
        return values, values

    rows: Any = leafgrad.compile(vmap(jacrev(residual, has_aux=True), in_dims=(None, 0)))
    batch = trainee.batches[index]
    columns = sum(p.numel() for p in parameters.values())
    step = max(1, ELEMENTS // columns)
    for begin in range(0, len(batch["points"]), step):
        jacobian, values = rows(parameters, {name: t[begin : begin + step] for name, t in batch.items()})
        n, k = values.shape
        parts = [host(jacobian[name]).reshape(n * k, -1) for name in parameters]
        yield np.concatenate(parts, 1), host(values).reshape(-1)


def host(t: Tensor) -> Array:
    found: Array = t.detach().cpu().numpy().astype(np.float64)
    return found
