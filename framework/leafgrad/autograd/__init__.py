"""Automatic differentiation: the backward pass and what is built on it."""

from leafgrad.autograd.api import backward, grad

__all__ = ["backward", "grad"]
