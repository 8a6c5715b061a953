"""Checks of ops: each is a function of a Subject, listed by name in ``CHECKS``."""

from leafgrad.testing.conformance.check import CHECKS, check_op, examine
from leafgrad.testing.conformance.report import ConformanceError, Report, Result

__all__ = ["CHECKS", "ConformanceError", "Report", "Result", "check_op", "examine"]
