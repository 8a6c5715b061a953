"""Exceptions of leafgrad's own. Everything that PyTorch names keeps PyTorch's exception type."""

from __future__ import annotations


class OpDefinitionError(TypeError):
    """An op, one of its rules or one of its kernels is defined wrongly. Raised where it is defined."""


class MissingGradientError(NotImplementedError):
    """A gradient was asked for through an argument for which the op has no vjp rule."""


class PluginError(RuntimeError):
    """A plugin is broken, clashes with another one, or was made for another API version."""


class FreedGraphError(RuntimeError):
    """A backward pass came to a node that an earlier one has freed."""


class TraceError(RuntimeError):
    """A traced function asked for something that is known only when the compiled program runs."""


class CompileError(RuntimeError):
    """A pass, a schedule or an executor failed on a graph. Names the equation and its source line."""


class LinAlgError(RuntimeError):
    """A matrix is singular or not positive-definite, or an iteration did not converge. Also in ``leafgrad.linalg``."""
