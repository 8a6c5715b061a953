"""Linear algebra on batches of matrices, as ``torch.linalg``."""

from typing import TYPE_CHECKING

from leafgrad.errors import LinAlgError as LinAlgError

if TYPE_CHECKING:
    from leafgrad.tensor.functions.linalg import *
else:
    import functools

    from leafgrad.lazy import attach
    from leafgrad.tensor.public import listed, publish, seen

    __all__ = ["LinAlgError", *listed(__name__)]
    __getattr__, __dir__ = attach(__name__, listed(__name__), find=functools.partial(seen, __name__))
    publish(globals())
