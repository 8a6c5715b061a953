"""Help for tests: comparing, random tensors, checks of ops, backends and executors; ``fake``: a stand-in device."""

from typing import TYPE_CHECKING

from leafgrad.docstrings import show as _show, shown as _shown
from leafgrad.lazy import attach
from leafgrad.testing.backends import check_backend
from leafgrad.testing.comparison import assert_close
from leafgrad.testing.conformance import CHECKS, ConformanceError, Report, check_op
from leafgrad.testing.executors import check_executor
from leafgrad.testing.making import make_tensor

__all__ = [
    "CHECKS",
    "ConformanceError",
    "Report",
    "assert_close",
    "check_backend",
    "check_executor",
    "check_op",
    "make_tensor",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, made=_shown(__name__))
    _show(globals(), __name__)
