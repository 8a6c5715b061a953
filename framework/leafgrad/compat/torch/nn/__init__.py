"""Names of ``torch.nn`` that leafgrad spells differently."""

from leafgrad.compat.torch.nn.parallel import DataParallel

__all__ = ["DataParallel"]
