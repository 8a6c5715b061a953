"""``torch.backends``: switches of libraries that PyTorch uses and leafgrad does not.

They choose among kernels that are not here, so any value of them is true of what runs; programs may set them.
"""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["__allow_nonbracketed_mutation"]


@contextmanager
def __allow_nonbracketed_mutation() -> Iterator[None]:
    """Within it switches may be set, which they may be here at any time."""
    yield
