"""Probability distributions: samples, also such that gradients flow through, log probabilities, divergences."""

from typing import TYPE_CHECKING

from leafgrad.distributions import constraints as constraints
from leafgrad.distributions.bernoulli import Bernoulli, Geometric
from leafgrad.distributions.categorical import Categorical, OneHotCategorical
from leafgrad.distributions.composite import MixtureSameFamily, TransformedDistribution
from leafgrad.distributions.constraint_registry import biject_to, transform_to
from leafgrad.distributions.continuous_bernoulli import ContinuousBernoulli
from leafgrad.distributions.counts import NegativeBinomial, Poisson
from leafgrad.distributions.derived import (
    InverseGamma,
    Kumaraswamy,
    LogisticNormal,
    LogNormal,
    OneHotCategoricalStraightThrough,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from leafgrad.distributions.distribution import Distribution
from leafgrad.distributions.exp_family import ExponentialFamily
from leafgrad.distributions.exponential import Exponential, Laplace
from leafgrad.distributions.gamma import Beta, Chi2, Dirichlet, Gamma, StudentT
from leafgrad.distributions.independent import Independent
from leafgrad.distributions.kl import kl_divergence, register_kl
from leafgrad.distributions.lkj_cholesky import LKJCholesky
from leafgrad.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from leafgrad.distributions.multivariate_normal import MultivariateNormal
from leafgrad.distributions.normal import Normal
from leafgrad.distributions.ratios import FisherSnedecor, GeneralizedPareto
from leafgrad.distributions.tails import Cauchy, Gumbel, HalfCauchy, HalfNormal, Pareto, Weibull
from leafgrad.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from leafgrad.distributions.trials import Binomial, Multinomial
from leafgrad.distributions.uniform import Uniform
from leafgrad.distributions.von_mises import VonMises
from leafgrad.distributions.wishart import Wishart
from leafgrad.lazy import attach
from leafgrad.tensor.public import publish as _publish

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraints",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
]

_publish(globals())

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
