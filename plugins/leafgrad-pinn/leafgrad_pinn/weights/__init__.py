"""Schemes of weights: what counts how much, decided while a stage runs."""

from leafgrad_pinn.weights.attention import RBA, SelfAdaptive
from leafgrad_pinn.weights.balance import NTK, GradNorm
from leafgrad_pinn.weights.causal import Causal
from leafgrad_pinn.weights.scheme import Scheme

__all__ = ["NTK", "RBA", "Causal", "GradNorm", "Scheme", "SelfAdaptive"]
