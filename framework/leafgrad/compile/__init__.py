"""compile: whole functions as programs, with their derivatives inside."""

from leafgrad.compile.compiled import compile, trace

__all__ = ["compile", "trace"]
