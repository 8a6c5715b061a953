"""Where the time goes: operations, backward passes, compiled calls and named parts, by time and memory."""

from typing import TYPE_CHECKING

from leafgrad.lazy import attach
from leafgrad.profiler.profiler import *

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
