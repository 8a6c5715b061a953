"""leafgrad under the name ``torch``, so that programs written for PyTorch run as they are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from leafgrad import dtypes
from leafgrad.compat.stand_in import Finder, StandIn
from leafgrad.tensor.tensor import Tensor

_finder = Finder()


def install_as_torch() -> None:
    """Make ``import torch`` give leafgrad in this process, with the submodules that leafgrad has.

    What leafgrad lacks is an AttributeError or ModuleNotFoundError that says so. dtypes then print as PyTorch's do.
    Doing it twice does no harm.

    Raises:
        RuntimeError: PyTorch itself is imported already.
    """
    present = sys.modules.get("torch")
    if present is not None and not isinstance(present, StandIn):
        raise RuntimeError("install_as_torch: PyTorch is imported already; install before anything imports torch")
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    dtypes.namespace = Tensor.__module__ = "torch"


def uninstall() -> None:
    """Undo ``install_as_torch``. Modules that imported torch meanwhile keep what they have."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name, module in list(sys.modules.items()):
        if isinstance(module, StandIn):
            del sys.modules[name]
    dtypes.namespace = Tensor.__module__ = "leafgrad"


@contextmanager
def as_torch() -> Iterator[None]:
    """``install_as_torch`` for the duration of a ``with`` block."""
    outermost = _finder not in sys.meta_path
    install_as_torch()
    try:
        yield
    finally:
        if outermost:
            uninstall()
