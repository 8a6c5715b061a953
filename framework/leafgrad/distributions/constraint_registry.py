"""Transforms from all real numbers to what keeps a constraint, so that an optimizer may move freely.

    loc = transform_to(constraints.positive)(unconstrained)

``biject_to`` gives bijections, whose determinants are known, for samplers; ``transform_to`` may give others, which
are better for optimizers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import modes
from leafgrad.distributions import constraints
from leafgrad.distributions.constraints import Constraint
from leafgrad.distributions.elementwise_transforms import AffineTransform, ExpTransform, SigmoidTransform
from leafgrad.distributions.transform import ComposeTransform, IndependentTransform, Transform, identity_transform
from leafgrad.distributions.vector_transforms import (
    CatTransform,
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
)

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """From constraints to transforms, by the constraints' types.

    Args:
        constraint: what numbers are to fulfil, as ``constraints.positive``.
    """

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Factory] = {}
        self._registrations = 0

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Let ``factory(constraint)`` make the transforms of constraints of a type; without it, a decorator.

        Raises:
            TypeError: no constraint and no class of such.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, Constraint):
            raise TypeError(
                f"Expected constraint to be either a Constraint subclass or instance, but got {constraint!r}"
            )
        self._registry[kind] = factory
        self._registrations += 1
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """The transform from all real numbers to those that keep ``constraint``.

        Raises:
            NotImplementedError: there is none.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


@modes.setting("how many transforms of constraints were registered")
def _registered() -> tuple[int, int]:
    return biject_to._registrations, transform_to._registrations


def _both(*kinds: type[Constraint]) -> Callable[[Factory], Factory]:
    def register(factory: Factory) -> Factory:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_both(constraints.Real)
def _real(constraint: Constraint) -> Transform:
    return identity_transform


@_both(constraints.GreaterThan, constraints.GreaterThanEq)
def _above(constraint: constraints.GreaterThan) -> Transform:
    if _is(constraint.lower_bound, 0):
        return ExpTransform()
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.lower_bound, 1)])


@_both(constraints.LessThan)
def _below(constraint: constraints.LessThan) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.upper_bound, -1)])


@_both(constraints.Interval, constraints.HalfOpenInterval)
def _between(constraint: constraints.Interval) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if _is(low, 0) and _is(high, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])


def _is(bound: Any, number: int) -> bool:
    return isinstance(bound, (int, float)) and bound == number


@_both(constraints.CorrCholesky)
def _corr_cholesky(constraint: Constraint) -> Transform:
    return CorrCholeskyTransform()


@transform_to.register(constraints.simplex)
def _softmax(constraint: Constraint) -> Transform:
    return SoftmaxTransform()


@biject_to.register(constraints.simplex)
def _stick_breaking(constraint: Constraint) -> Transform:
    return StickBreakingTransform()


@transform_to.register(constraints.lower_cholesky)
def _lower_cholesky(constraint: Constraint) -> Transform:
    return LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _positive_definite(constraint: Constraint) -> Transform:
    return PositiveDefiniteTransform()


def _several(registry: ConstraintRegistry) -> None:
    """Transforms of parts are of the same registry."""

    @registry.register(constraints.IndependentConstraint)
    def independent(constraint: constraints.IndependentConstraint) -> Transform:
        base = registry(constraint.base_constraint)
        return IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    @registry.register(constraints.Cat)
    def cat(constraint: constraints.Cat) -> Transform:
        return CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)

    @registry.register(constraints.Stack)
    def stack(constraint: constraints.Stack) -> Transform:
        return StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


for _registry in (biject_to, transform_to):
    _several(_registry)
