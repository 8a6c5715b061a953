"""``torch._dynamo.config``: switches of a compiler that is not here; programs may set them."""

from __future__ import annotations

__all__ = ["cache_size_limit", "recompile_limit", "suppress_errors", "verbose"]

suppress_errors = verbose = False
cache_size_limit = recompile_limit = 8
