"""Where the time goes: operations, backward passes, compiled calls and named parts, by time and memory."""

from typing import TYPE_CHECKING

from leafgrad.docstrings import show as _show, shown as _shown
from leafgrad.lazy import attach
from leafgrad.profiler.profiler import *

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, made=_shown(__name__))
    _show(globals(), __name__)
