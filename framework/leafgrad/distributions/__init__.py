"""Probability distributions: samples, also such that gradients flow through, log probabilities, divergences."""

from typing import TYPE_CHECKING

from leafgrad.distributions import constraints as constraints
from leafgrad.distributions.bernoulli import Bernoulli, Geometric
from leafgrad.distributions.categorical import Categorical, OneHotCategorical
from leafgrad.distributions.composite import MixtureSameFamily, TransformedDistribution
from leafgrad.distributions.counts import NegativeBinomial, Poisson
from leafgrad.distributions.distribution import Distribution
from leafgrad.distributions.exponential import Exponential, Laplace
from leafgrad.distributions.gamma import Beta, Chi2, Dirichlet, Gamma, StudentT
from leafgrad.distributions.independent import Independent
from leafgrad.distributions.kl import kl_divergence, register_kl
from leafgrad.distributions.multivariate_normal import MultivariateNormal
from leafgrad.distributions.normal import LogNormal, Normal
from leafgrad.distributions.tails import Cauchy, Gumbel, HalfCauchy, HalfNormal, Pareto, Weibull
from leafgrad.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from leafgrad.distributions.uniform import Uniform
from leafgrad.lazy import attach
from leafgrad.tensor.public import publish as _publish

__all__ = [
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "Laplace",
    "LogNormal",
    "MixtureSameFamily",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "Pareto",
    "Poisson",
    "PowerTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "Weibull",
    "constraints",
    "identity_transform",
    "kl_divergence",
    "register_kl",
]

_publish(globals())

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
