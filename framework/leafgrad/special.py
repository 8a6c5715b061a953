"""Special functions, as ``torch.special``. Those of Bessel and of gamma are in the plugin leafgrad-special."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leafgrad.tensor.functions.special import *
else:
    import functools

    from leafgrad.lazy import attach
    from leafgrad.tensor.public import listed, seen

    __all__ = [*listed(__name__)]
    __getattr__, __dir__ = attach(__name__, listed(__name__), find=functools.partial(seen, __name__))
