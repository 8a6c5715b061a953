"""What parameters and samples of distributions may be: each constraint tells which values, or vectors, keep it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafgrad.dtypes import bool_, finfo
from leafgrad.tensor import joining
from leafgrad.tensor.decompositions import eigvalsh
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "Constraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
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
    """Depends on the other parameters: an instance of the distribution knows it, its class does not.

    Args:
        is_discrete, event_dim: what is known of it all the same.
    """

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: bool = False, event_dim: int = 0) -> Dependent:
        """One of which that is known: ``constraints.dependent(is_discrete=True)``."""
        return Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint; ask an instance of the distribution")


class DependentProperty(property, Dependent):
    """A property whose value is a constraint, and which on the class is a dependent one.

    ``@dependent_property`` decorates a method, as does ``@dependent_property(is_discrete=…, event_dim=…)``.
    """

    def __init__(self, fn: Any = None, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn: Any = None, *, is_discrete: bool = False, event_dim: int = 0) -> Any:
        return DependentProperty(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint: Constraint) -> bool:
    """Whether a constraint depends on the parameters of the distribution."""
    return isinstance(constraint, Dependent)


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


class Multinomial(Constraint):
    """Vectors of nonnegative integers whose sum is at most a number of trials."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class LowerTriangular(Constraint):
    """Square matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class LowerCholesky(LowerTriangular):
    """Lower triangular matrices with positive diagonals."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class CorrCholesky(LowerCholesky):
    """The same with rows of length 1, to the dtype's digits: factors of correlation matrices."""

    def check(self, value: Tensor) -> Tensor:
        off = (value * value).sum(-1) - 1
        return super().check(value) & (off.abs() <= finfo(value.dtype).eps * value.shape[-1] * 10).all(-1)


class Square(Constraint):
    """Matrices of as many rows as columns."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return value.new_full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=bool_)


class Symmetric(Square):
    """Symmetric matrices, to six digits."""

    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        mirrored = value.transpose(-2, -1)
        return ((value - mirrored).abs() <= 1e-6 + 1e-5 * mirrored.abs()).flatten(-2).all(-1)


class PositiveSemidefinite(Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not value.shape[-1] or value.shape[-2] != value.shape[-1]:
            return symmetric
        return symmetric & self._signs(eigvalsh(value.detach().nan_to_num())).all(-1)

    def _signs(self, eigenvalues: Tensor) -> Tensor:
        return eigenvalues >= 0


class PositiveDefinite(PositiveSemidefinite):
    """Symmetric matrices with positive eigenvalues."""

    def _signs(self, eigenvalues: Tensor) -> Tensor:
        return eigenvalues > 0


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


class SeveralConstraints(Constraint):
    """Constraints on parts of a tensor along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        self.event_dim = max(c.event_dim for c in self.cseq)

    def _each(self, parts: Sequence[Tensor]) -> list[Tensor]:
        if len(parts) != len(self.cseq):
            raise ValueError(
                f"{type(self).__name__.lower()}: expected as many parts in dimension {self.dim} as constraints, "
                f"{len(self.cseq)}, got {len(parts)}"
            )
        return [c.check(part) for c, part in zip(self.cseq, parts, strict=True)]


class Cat(SeveralConstraints):
    """Constraints on neighbouring ranges of ``dim``, of these ``lengths``, by default 1 each."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    def check(self, value: Tensor) -> Tensor:
        return joining.cat(self._each(value.split(self.lengths, self.dim)), self.dim)


class Stack(SeveralConstraints):
    """Constraints on the slices of ``dim``."""

    def check(self, value: Tensor) -> Tensor:
        return joining.stack(self._each(value.unbind(self.dim)), self.dim)


dependent, real, boolean, simplex, one_hot = Dependent(), Real(), Boolean(), Simplex(), OneHot()
positive, nonnegative, unit_interval = GreaterThan(0.0), GreaterThanEq(0.0), Interval(0.0, 1.0)
nonnegative_integer, positive_integer = IntegerGreaterThan(0), IntegerGreaterThan(1)
lower_cholesky, positive_definite = LowerCholesky(), PositiveDefinite()
greater_than, greater_than_eq, less_than, interval = GreaterThan, GreaterThanEq, LessThan, Interval
integer_interval, independent, half_open_interval = IntegerInterval, IndependentConstraint, HalfOpenInterval
corr_cholesky, lower_triangular, square, symmetric = CorrCholesky(), LowerTriangular(), Square(), Symmetric()
positive_semidefinite = PositiveSemidefinite()
dependent_property, multinomial, cat, stack = DependentProperty, Multinomial, Cat, Stack
real_vector, positive_vector = IndependentConstraint(real, 1), IndependentConstraint(positive, 1)
