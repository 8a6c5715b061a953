"""Where the time goes: operations, backward passes, compiled calls and named parts, by time and memory."""

from leafgrad.profiler.profiler import *
