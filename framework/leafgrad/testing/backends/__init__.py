"""Checks of backends: each is a function of a Backend, listed by name in ``CHECKS``."""

from leafgrad.testing.backends.check import CHECKS, check_backend
from leafgrad.testing.backends.library import NAMESPACE

__all__ = ["CHECKS", "NAMESPACE", "check_backend"]
