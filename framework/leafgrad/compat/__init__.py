"""leafgrad in place of other libraries: ``install_as_torch`` for PyTorch, ``leafgrad.compat.einops`` for einops."""

from leafgrad.compat.install import as_torch as as_torch, install_as_torch as install_as_torch, uninstall as uninstall
