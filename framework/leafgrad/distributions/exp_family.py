"""Exponential families: what their natural parameters and the logarithm of their normalizer say."""

from __future__ import annotations

from leafgrad.distributions.distribution import Distribution
from leafgrad.tensor.tensor import Tensor

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Distributions with densities ``exp(<t(x), theta> - F(theta) + k(x))``.

    A subclass defines ``_natural_params``, theta; ``_log_normalizer(*theta)``, F; and ``_mean_carrier_measure``, the
    mean of k(x). The entropy follows from the gradient of F.
    """

    @property
    def _mean_carrier_measure(self) -> float | Tensor:
        """The mean of k(x)"""
        return 0.0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        """theta"""
        raise NotImplementedError(f"{type(self).__name__}: define _natural_params")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        """F(theta)"""
        raise NotImplementedError(f"{type(self).__name__}: define _log_normalizer")

    def entropy(self) -> Tensor:
        theta = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*theta)
        from leafgrad.autograd import grad

        out = normalizer - self._mean_carrier_measure
        for p, slope in zip(theta, grad(normalizer.sum(), theta, create_graph=True), strict=True):
            out = out - (p * slope).reshape((*self._batch_shape, -1)).sum(-1)
        return out
