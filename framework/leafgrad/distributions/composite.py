"""Distributions made of others: what a transform makes of samples, and mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from leafgrad.distributions.categorical import Categorical
from leafgrad.distributions.constraints import Constraint, dependent_property
from leafgrad.distributions.distribution import Distribution
from leafgrad.distributions.independent import Independent, sum_last
from leafgrad.distributions.transform import ComposeTransform, Transform, widened
from leafgrad.tensor.reductions import logsumexp
from leafgrad.tensor.tensor import Tensor

__all__ = ["MixtureSameFamily", "TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of transformed samples.

    Args:
        base_distribution: of the samples.
        transforms: one transform, or several, in the order in which they are applied.
    """

    arg_constraints: ClassVar[Any] = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        for transform in self.transforms:
            if not isinstance(transform, Transform):
                raise ValueError(f"transforms must be a Transform or a list of Transforms, but got {transforms!r}")
        whole = ComposeTransform(self.transforms)
        base, inner = base_distribution, whole.domain.event_dim
        shape = (*base.batch_shape, *base.event_shape)
        if len(shape) < inner:
            raise ValueError(f"base_distribution needs to have shape with size at least {inner}, but got {shape}.")
        out = whole.forward_shape(shape)
        needed = whole.inverse_shape(out)
        if needed != shape:
            base = base.expand(needed[: len(needed) - len(base.event_shape)])
        events = len(base.event_shape)
        self.base_dist: Any = Independent(base, inner - events) if inner > events else base
        self.has_rsample = base.has_rsample
        batch = len(out) - whole.codomain.event_dim - max(events - inner, 0)
        super().__init__(out[:batch], out[batch:], validate_args)

    @dependent_property
    def support(self) -> Any:
        """What the last transform maps to."""
        last: Constraint = self.transforms[-1].codomain if self.transforms else self.base_dist.support
        return widened(last, len(self._event_shape))

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        base = self.base_dist.expand(batch_shape)
        return self._expanded(
            batch_shape, _instance, base_dist=base, transforms=self.transforms, has_rsample=self.has_rsample
        )

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._forward(self.base_dist.sample(sample_shape)).detach()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        slopes: Any = 0.0
        y, dims = value, len(self._event_shape)
        for transform in reversed(self.transforms):
            x = transform._inv_call(y)
            inner = transform.domain.event_dim
            dims += inner - transform.codomain.event_dim
            slopes = slopes + sum_last(transform.log_abs_det_jacobian(x, y), dims - inner)
            y = x
        return sum_last(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape)) - slopes

    def cdf(self, value: Tensor) -> Tensor:
        sign: Any = 1
        for transform in reversed(self.transforms):
            value, sign = transform._inv_call(value), sign * transform.sign
        return sign * (self.base_dist.cdf(value) - 0.5) + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return self._forward(self.base_dist.icdf(sign * (value - 0.5) + 0.5))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist!r}, {self.transforms!r})"


class MixtureSameFamily(Distribution):
    """A mixture: a categorical distribution chooses which component a sample is of.

    Args:
        mixture_distribution: of a batch (...), over k components.
        component_distribution: of a batch (..., k).

    Raises:
        ValueError: no Categorical, or shapes that do not fit.
    """

    arg_constraints: ClassVar[Any] = {}

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "The Mixture distribution needs to be an instance of Categorical, got "
                f"{type(mixture_distribution).__name__}"
            )
        *batch, k = component_distribution.batch_shape or (0,)
        chosen = mixture_distribution.logits.shape
        if k != chosen[-1] or any(a != b for a, b in zip(reversed(batch), reversed(chosen[:-1]), strict=False)):
            raise ValueError(
                f"`mixture_distribution` of {chosen[-1]} components and batch {tuple(chosen[:-1])} is not compatible "
                f"with `component_distribution` of batch {tuple(component_distribution.batch_shape)}"
            )
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        super().__init__(batch, component_distribution.event_shape, validate_args)

    @property
    def support(self) -> Constraint:
        """That of the components."""
        of_components: Constraint = self.component_distribution.support
        return of_components

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        k = self.mixture_distribution.logits.shape[-1]
        return self._expanded(
            batch_shape,
            _instance,
            mixture_distribution=self.mixture_distribution.expand(batch_shape),
            component_distribution=self.component_distribution.expand((*batch_shape, k)),
        )

    def _weighted(self, x: Tensor) -> Tensor:
        """The mean over components of (..., k, *event)."""
        probs = self.mixture_distribution.probs
        events = len(self._event_shape)
        return (probs.reshape((*probs.shape, *[1] * events)) * x).sum(-1 - events)

    @property
    def mean(self) -> Tensor:
        return self._weighted(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        off = self.component_distribution.mean - self.mean.unsqueeze(-1 - len(self._event_shape))
        return self._weighted(self.component_distribution.variance + off**2)

    def cdf(self, value: Tensor) -> Tensor:
        return (self.component_distribution.cdf(value.unsqueeze(-1)) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        each = self.component_distribution.log_prob(value.unsqueeze(-1 - len(self._event_shape)))
        return logsumexp(each + self.mixture_distribution.logits.log_softmax(-1), -1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        events = len(self._event_shape)
        drawn = self.component_distribution.sample(sample_shape)
        d = drawn.ndim - events - 1
        chosen = self.mixture_distribution.expand(self._batch_shape).sample(sample_shape)
        at = chosen.reshape((*chosen.shape, *[1] * (events + 1))).expand((*chosen.shape, 1, *self._event_shape))
        return drawn.gather(d, at).squeeze(d)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n  {self.mixture_distribution!r},\n  {self.component_distribution!r})"
