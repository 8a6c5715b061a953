"""The classes of constraints under their names in ``torch.distributions.constraints``, which derived ones name."""

from leafgrad.distributions import constraints as _constraints

_CLASSES = (
    "Boolean Cat CorrCholesky Dependent DependentProperty GreaterThan GreaterThanEq HalfOpenInterval "
    "IndependentConstraint IntegerGreaterThan IntegerInterval Interval LessThan LowerCholesky LowerTriangular "
    "Multinomial OneHot PositiveDefinite PositiveSemidefinite Real Simplex Square Stack Symmetric"
).split()
globals().update({f"_{name}": getattr(_constraints, name) for name in _CLASSES})

__all__ = [f"_{name}" for name in _CLASSES]
