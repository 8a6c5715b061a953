"""Kullback-Leibler divergences, by the types of the two distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from leafgrad import modes
from leafgrad.distributions.bernoulli import Bernoulli, Geometric, softplus
from leafgrad.distributions.categorical import Categorical, OneHotCategorical
from leafgrad.distributions.composite import TransformedDistribution
from leafgrad.distributions.continuous_bernoulli import ContinuousBernoulli
from leafgrad.distributions.counts import Poisson
from leafgrad.distributions.distribution import Distribution
from leafgrad.distributions.exponential import Exponential, Laplace
from leafgrad.distributions.gamma import Beta, Dirichlet, Gamma, log_beta
from leafgrad.distributions.independent import Independent, sum_last
from leafgrad.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal, low_rank_mahalanobis
from leafgrad.distributions.multivariate_normal import MultivariateNormal, mahalanobis
from leafgrad.distributions.normal import Normal
from leafgrad.distributions.tails import EULER, Cauchy, Gumbel, HalfCauchy, HalfNormal, Pareto
from leafgrad.distributions.trials import Binomial
from leafgrad.distributions.uniform import Uniform
from leafgrad.distributions.wishart import Wishart
from leafgrad.ops.exponential import xlogy
from leafgrad.ops.gamma import log_gamma, psi
from leafgrad.tensor.creation import full
from leafgrad.tensor.linalg import solve_triangular
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.shapes import broadcast_shapes
from leafgrad.tensor.tensor import Tensor

__all__ = ["kl_divergence", "register_kl"]

Formula = TypeVar("Formula", bound=Callable[[Any, Any], Tensor])
_formulas: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}
_registrations = 0


def register_kl(type_p: type[Distribution], type_q: type[Distribution]) -> Callable[[Formula], Formula]:
    """Decorate a function of p and q that gives KL(p || q) for distributions of these types.

    Args:
        type_p, type_q: classes of distributions.

    Raises:
        TypeError: one of them is no class.
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def register(formula: Formula) -> Formula:
        global _registrations
        _formulas[type_p, type_q] = formula
        _registrations += 1
        return formula

    return register


@modes.setting("how many formulas of kl_divergence were registered")
def _registered() -> int:
    return _registrations


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q), the mean of ``p.log_prob(x) - q.log_prob(x)`` over x from p. -> batch_shape

    Raises:
        NotImplementedError: no formula is registered for these types.
    """
    fitting = [(a, b) for a, b in _formulas if isinstance(p, a) and isinstance(q, b)]
    if not fitting:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}; give one with "
            "@register_kl"
        )
    nearest = min(fitting, key=lambda pair: (type(p).__mro__.index(pair[0]), type(q).__mro__.index(pair[1])))
    return _formulas[nearest](p, q)


@register_kl(Normal, Normal)
def _normal_normal(p: Normal, q: Normal) -> Tensor:
    ratio, shift = (p.scale / q.scale) ** 2, ((p.loc - q.loc) / q.scale) ** 2
    return (ratio + shift - 1 - ratio.log()) * 0.5


@register_kl(Uniform, Uniform)
def _uniform_uniform(p: Uniform, q: Uniform) -> Tensor:
    out = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), math.inf, out)


@register_kl(Exponential, Exponential)
def _exponential_exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Laplace, Laplace)
def _laplace_laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale + ratio * (-distance / p.scale).exp() - ratio.log() - 1


@register_kl(Bernoulli, Bernoulli)
def _bernoulli_bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    one = where(q.probs == 0, math.inf, p.probs * (softplus(-q.logits) - softplus(-p.logits)))
    zero = where(q.probs == 1, math.inf, (1 - p.probs) * (softplus(q.logits) - softplus(p.logits)))
    return where(p.probs == 0, 0.0, one) + where(p.probs == 1, 0.0, zero)


@register_kl(Geometric, Geometric)
def _geometric_geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Categorical, Categorical)
def _categorical_categorical(p: Categorical, q: Categorical) -> Tensor:
    parts = p.probs * (p.logits - q.logits)
    parts = where(q.probs == 0, math.inf, parts)
    return where(p.probs == 0, 0.0, parts).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical_categorical(p._categorical, q._categorical)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed, got "
            f"{p.event_shape} and {q.event_shape}"
        )
    moved = solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    spread = (moved * moved).sum((-2, -1)) + mahalanobis(q.scale_tril, q.loc - p.loc)
    return q._half_log_det() - p._half_log_det() + (spread - p.event_shape[0]) * 0.5


@register_kl(Independent, Independent)
def _independent_independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "KL of two Independents needs the same reinterpreted_batch_ndims, got "
            f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# ---- of the gamma function, of tails and of counts ----------------------------------------------------------------


@register_kl(Gamma, Gamma)
def _gamma_gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    out = (a - b) * psi(a) - log_gamma(a) + log_gamma(b) + b * (p.rate / q.rate).log()
    return out + a * (q.rate / p.rate - 1)


@register_kl(Beta, Beta)
def _beta_beta(p: Beta, q: Beta) -> Tensor:
    one, zero = p.concentration1, p.concentration0
    more, rest = one - q.concentration1, zero - q.concentration0
    out = more * psi(one) + rest * psi(zero) - (more + rest) * psi(one + zero)
    return out + log_beta(q.concentration1, q.concentration0) - log_beta(one, zero)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet_dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1, keepdim=True)
    out = (log_gamma(b) - log_gamma(a) + (a - b) * (psi(a) - psi(total))).sum(-1)
    return out + log_gamma(total.squeeze(-1)) - log_gamma(b.sum(-1))


@register_kl(Poisson, Poisson)
def _poisson_poisson(p: Poisson, q: Poisson) -> Tensor:
    return xlogy(p.rate, p.rate) - xlogy(p.rate, q.rate) - p.rate + q.rate


@register_kl(Cauchy, Cauchy)
def _cauchy_cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    return ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2).log() - (4 * p.scale * q.scale).log()


@register_kl(HalfCauchy, HalfCauchy)
@register_kl(HalfNormal, HalfNormal)
def _half_half(p: Any, q: Any) -> Tensor:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Gumbel, Gumbel)
def _gumbel_gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, moved = p.scale / q.scale, (p.loc - q.loc) / q.scale
    out = (log_gamma(1 + ratio) - moved).exp()
    return out - ratio.log() + moved + ratio * EULER - (1 + EULER)


@register_kl(Pareto, Pareto)
def _pareto_pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    finite = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where(p.scale < q.scale, math.inf, finite)


@register_kl(Binomial, Binomial)
def _binomial_binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any().item():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    one = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return where(p.total_count > q.total_count, math.inf, p.total_count * one)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    norms = q._log_normalizer(q.logits) - p._log_normalizer(p.logits)
    return p.mean * (p.logits - q.logits) + norms


# ---- of vectors and matrices --------------------------------------------------------------------------------------


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed, got "
            f"{p.event_shape} and {q.event_shape}"
        )
    shift = q.loc - p.loc
    if isinstance(q, LowRankMultivariateNormal):
        distance = low_rank_mahalanobis(q.cov_factor, q.cov_diag, shift, q._capacitance_tril)
    else:
        distance = mahalanobis(q.scale_tril, shift)
    trace = (q.precision_matrix * p.covariance_matrix).sum((-2, -1))
    return q._half_log_det() - p._half_log_det() + (trace + distance - p.event_shape[0]) * 0.5


@register_kl(Wishart, Wishart)
def _wishart_wishart(p: Wishart, q: Wishart) -> Tensor:
    inner = solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    trace = (inner * inner).sum((-2, -1))
    moved = 0.5 * (p.df - q.df) * p._mean_log_det()
    return q._log_norm() - p._log_norm() + moved + 0.5 * p.df * (trace - p.event_shape[0])


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL of two TransformedDistributions needs the same transforms")
    return sum_last(kl_divergence(p.base_dist, q.base_dist), len(p.event_shape) - len(p.base_dist.event_shape))


# ---- of two kinds ---------------------------------------------------------------------------------------------------
# KL(p || q) = -entropy of p - mean of log q over p, and infinite where p can be outside of q's support.

LINE = (Gumbel, Laplace, Normal)
BOUNDS: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    Beta: lambda d: (0.0, 1.0),
    ContinuousBernoulli: lambda d: (0.0, 1.0),
    Exponential: lambda d: (0.0, math.inf),
    Gamma: lambda d: (0.0, math.inf),
    Pareto: lambda d: (d.scale, math.inf),
    Uniform: lambda d: (d.low, d.high),
    **dict.fromkeys(LINE, lambda d: (-math.inf, math.inf)),
}
"""Type -> where its support begins and ends."""


def mean_log_between(low: Any, high: Any) -> Any:
    """The mean of log x over x uniform in [low, high), which is not negative."""
    return (xlogy(high, high) - xlogy(low, low)) / (high - low) - 1


MEAN_LOG: dict[type, Callable[[Any], Any]] = {
    Beta: lambda p: psi(p.concentration1) - psi(p.concentration1 + p.concentration0),
    Exponential: lambda p: -EULER - p.rate.log(),
    Gamma: lambda p: psi(p.concentration) - p.rate.log(),
    Pareto: lambda p: p.scale.log() + 1 / p.alpha,
    Uniform: lambda p: mean_log_between(p.low, p.high),
}
"""Type -> the mean of log x."""

MEAN_EXP: dict[type, Callable[[Any, Any], Any]] = {
    Exponential: lambda p, t: p.rate / (p.rate + t),
    Gamma: lambda p, t: (1 + t / p.rate) ** -p.concentration,
    Normal: lambda p, t: ((p.scale * t) ** 2 / 2 - p.loc * t).exp(),
    Uniform: lambda p, t: ((-p.low * t).exp() - (-p.high * t).exp()) / (p.high - p.low) / t,
}
"""Type -> the mean of exp(-t x)."""


def _under_normal(p: Any, q: Normal) -> Any:
    spread = (p.variance + (p.mean - q.loc) ** 2) / q.scale**2
    return -(spread + math.log(2 * math.pi)) * 0.5 - q.scale.log()


def _under_gamma(p: Any, q: Gamma) -> Any:
    a, r = q.concentration, q.rate
    return a * r.log() - log_gamma(a) + (a - 1) * MEAN_LOG[type_in_tables(p)](p) - r * p.mean


def _under_beta(p: Uniform, q: Beta) -> Any:
    one, zero = q.concentration1, q.concentration0
    logs = (one - 1) * mean_log_between(p.low, p.high) + (zero - 1) * mean_log_between(1 - p.high, 1 - p.low)
    return logs - log_beta(one, zero)


def _under_pareto(p: Uniform, q: Pareto) -> Any:
    return q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * MEAN_LOG[Uniform](p)


def _under_gumbel(p: Any, q: Gumbel) -> Any:
    t = 1 / q.scale
    return (q.loc - p.mean) * t - (q.loc * t).exp() * MEAN_EXP[type_in_tables(p)](p, t) - q.scale.log()


def _under_laplace(p: Normal, q: Laplace) -> Any:
    d = (p.loc - q.loc) / p.scale
    distance = p.scale * (math.sqrt(2 / math.pi) * (-d * d / 2).exp() + d * (d * math.sqrt(0.5)).erf())
    return -distance / q.scale - (2 * q.scale).log()


def type_in_tables(p: Distribution) -> type:
    """The type with a row in the tables that ``p`` is of."""
    return next(kind for kind in type(p).__mro__ if kind in BOUNDS)


POSITIVE, UNIT = (Exponential, Gamma), (Beta, ContinuousBernoulli)
MEAN_LOG_DENSITY: dict[type, tuple[Callable[[Any, Any], Any], Sequence[type]]] = {
    Normal: (_under_normal, (*UNIT, *POSITIVE, Gumbel, Laplace, Pareto, Uniform)),
    Exponential: (lambda p, q: q.rate.log() - q.rate * p.mean, (*UNIT, Gamma, Pareto, Uniform)),
    Gamma: (_under_gamma, (Beta, Exponential, Pareto, Uniform)),
    Beta: (_under_beta, (Uniform,)),
    ContinuousBernoulli: (
        lambda p, q: p.mean * q.logits - q._log_normalizer(q.logits), (Beta, Uniform),
    ),
    Uniform: (lambda p, q: -(q.high - q.low).log(), UNIT),
    Pareto: (_under_pareto, (Uniform,)),
    Gumbel: (_under_gumbel, tuple(MEAN_EXP)),
    Laplace: (_under_laplace, (Normal,)),
}  # fmt: skip
"""Type of q -> the mean of its log density over p, and the types of p for which there is one."""


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    return full(broadcast_shapes(p.batch_shape, q.batch_shape), math.inf, dtype=p.mean.dtype, device=p.mean.device)


def _mixed(p: Any, q: Any) -> Tensor:
    (low, high), (least, most) = BOUNDS[type_in_tables(p)](p), BOUNDS[type_in_tables(q)](q)
    outside = (low < least) | (high > most)
    out: Tensor = -p.entropy() - MEAN_LOG_DENSITY[type_in_tables(q)][0](p, q)
    return where(outside, math.inf, out) if isinstance(outside, Tensor) else out


for _q, (_, _ps) in MEAN_LOG_DENSITY.items():
    for _p in _ps:
        register_kl(_p, _q)(_mixed)
for _q, _ps in {
    Beta: (*POSITIVE, *LINE, Pareto),
    ContinuousBernoulli: (*POSITIVE, *LINE, Pareto),
    Exponential: LINE,
    Gamma: LINE,
    Pareto: (*UNIT, *POSITIVE, *LINE),
    Uniform: (*POSITIVE, *LINE, Pareto),
    Bernoulli: (Poisson,),
    Binomial: (Poisson,),
}.items():
    for _p in _ps:
        register_kl(_p, _q)(_infinite)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - xlogy(p.probs, q.rate) + q.rate
