"""Distributions over a number of classes: as numbers, and as one-hot vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from leafgrad import modes
from leafgrad.distributions.bernoulli import clamp_probs, over_batch
from leafgrad.distributions.constraints import IntegerInterval, dependent, one_hot, real_vector, simplex
from leafgrad.distributions.distribution import Distribution, lazy_property
from leafgrad.dtypes import finfo, int64
from leafgrad.tensor.creation import arange, eye, full
from leafgrad.tensor.sampling import multinomial
from leafgrad.tensor.shapes import broadcast_tensors
from leafgrad.tensor.tensor import Tensor

__all__ = ["Categorical", "OneHotCategorical"]


class Categorical(Distribution):
    """Numbers of classes, 0 to n - 1.

    Args:
        probs: the probabilities of the classes along the last dimension, or nonnegative numbers in proportion to them.
        logits: their logarithms, plus any number; one of the two is given.
    """

    arg_constraints: ClassVar[Any] = {"probs": simplex, "logits": real_vector}
    support: Any = dependent
    has_enumerate_support = True

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = logits if probs is None else probs
        assert given is not None
        if given.ndim < 1:
            name = "logits" if probs is None else "probs"
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = given - given.logsumexp(-1, keepdim=True)
        super().__init__(given.shape[:-1], validate_args=validate_args)
        self.support = IntegerInterval(0, given.shape[-1] - 1)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities of the classes."""
        return self.logits.softmax(-1)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return clamp_probs(self.probs).log()

    @property
    def _name(self) -> str:
        return "probs" if "probs" in self._given else "logits"

    @property
    def _param(self) -> Tensor:
        param: Tensor = vars(self)[self._name]
        return param

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.shape

    @property
    def mean(self) -> Tensor:
        """nan: classes are no quantities."""
        return full(self._batch_shape, math.nan, dtype=self._param.dtype, device=self._param.device)

    @property
    def mode(self) -> Tensor:
        return self._param.argmax(-1)

    @property
    def variance(self) -> Tensor:
        """nan: classes are no quantities."""
        return self.mean

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        param = self._param.expand(*batch_shape, self._param.shape[-1])
        return self._expanded(batch_shape, _instance, support=self.support, **{self._name: param})

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with modes.no_grad():
            rows = self.probs.reshape(-1, self.probs.shape[-1])
            drawn = multinomial(rows, math.prod(sample_shape), replacement=True)
            return drawn.t().reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        index, logits = broadcast_tensors(value.to(int64).unsqueeze(-1), self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self._param.shape[-1], dtype=int64, device=self._param.device)
        return over_batch(values, self._batch_shape, expand)


class OneHotCategorical(Distribution):
    """Vectors with a 1 at the place of a class, and zeros.

    Args:
        probs: the probabilities of the classes along the last dimension, or nonnegative numbers in proportion to them.
        logits: their logarithms, plus any number; one of the two is given.
    """

    arg_constraints: ClassVar[Any] = {"probs": simplex, "logits": real_vector}
    support = one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    @property
    def probs(self) -> Tensor:
        """The probabilities of the classes."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._hot(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        return self._expanded(batch_shape, _instance, _categorical=self._categorical.expand(batch_shape))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._hot(self._categorical.sample(sample_shape))

    def _hot(self, index: Tensor) -> Tensor:
        classes = arange(self._event_shape[0], dtype=int64, device=index.device)
        return (index.unsqueeze(-1) == classes).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = eye(n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.reshape(n, *(1,) * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values

    def __repr__(self) -> str:
        return repr(self._categorical).replace("Categorical", "OneHotCategorical", 1)
