"""Checks of backends: each is a function of a Backend, listed by name in ``CHECKS``."""

from leafgrad.testing.backends.check import CHECKS, check_backend

__all__ = ["CHECKS", "check_backend"]
