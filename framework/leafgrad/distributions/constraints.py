"""What parameters and samples of distributions may be: each constraint tells which values, or vectors, keep it."""

from __future__ import annotations

from typing import Any

from leafgrad.tensor.factorizations import eigvalsh
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "Constraint",
    "boolean",
    "dependent",
    "greater_than",
    "greater_than_eq",
    "independent",
    "integer_interval",
    "interval",
    "less_than",
    "lower_cholesky",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "real",
    "real_vector",
    "simplex",
    "unit_interval",
]


class Constraint:
    """A region over which a value may vary.

    Attributes:
        is_discrete: whether it has no volume.
        event_dim: how many of the last dimensions it looks at together.
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Whether each event in ``value`` keeps it: bool, without the last ``event_dim`` dimensions."""
        raise NotImplementedError(f"{type(self).__name__}: define check(value)")

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={_brief(value)}" for name, value in vars(self).items())
        return f"{type(self).__name__}({bounds})"


def _brief(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value.item() if value.numel() == 1 else f"a tensor of shape {tuple(value.shape)}"


class Dependent(Constraint):
    """Depends on the other parameters: an instance of the distribution knows it, its class does not."""

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint; ask an instance of the distribution")


class Real(Constraint):
    """All numbers but nan."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class GreaterThan(Constraint):
    """Above a bound."""

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class GreaterThanEq(GreaterThan):
    """Not below a bound."""

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class LessThan(Constraint):
    """Below a bound."""

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class Interval(Constraint):
    """Between two bounds, or at one of them."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class HalfOpenInterval(Interval):
    """Between two bounds, or at the lower one."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class IntegerInterval(Interval):
    """Integers from one bound to the other."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class IntegerGreaterThan(GreaterThanEq):
    """Integers not below a bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class Simplex(Constraint):
    """Vectors of nonnegative numbers whose sum is 1, to six digits."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class OneHot(Constraint):
    """Vectors of one 1 and zeros."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class LowerCholesky(Constraint):
    """Lower triangular matrices with positive diagonals."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        triangular = (value.tril() == value).flatten(-2).all(-1)
        return triangular & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class PositiveDefinite(Constraint):
    """Symmetric matrices with positive eigenvalues."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        mirrored = value.transpose(-2, -1)
        symmetric = ((value - mirrored).abs() <= 1e-6 + 1e-5 * mirrored.abs()).flatten(-2).all(-1)
        return symmetric & (eigvalsh(value.detach().nan_to_num()) > 0).all(-1)


class IndependentConstraint(Constraint):
    """A constraint on each element of an event of more dimensions."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        kept = self.base_constraint.check(value)
        if kept.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        return kept.flatten(kept.ndim - self.reinterpreted_batch_ndims).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


dependent, real, boolean, simplex, one_hot = Dependent(), Real(), Boolean(), Simplex(), OneHot()
positive, nonnegative, unit_interval = GreaterThan(0.0), GreaterThanEq(0.0), Interval(0.0, 1.0)
nonnegative_integer, positive_integer = IntegerGreaterThan(0), IntegerGreaterThan(1)
lower_cholesky, positive_definite = LowerCholesky(), PositiveDefinite()
greater_than, greater_than_eq, less_than, interval = GreaterThan, GreaterThanEq, LessThan, Interval
integer_interval, independent, half_open_interval = IntegerInterval, IndependentConstraint, HalfOpenInterval
real_vector, positive_vector = IndependentConstraint(real, 1), IndependentConstraint(positive, 1)
