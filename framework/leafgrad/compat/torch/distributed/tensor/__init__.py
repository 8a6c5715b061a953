"""``torch.distributed.tensor``: a class to ask for; no tensor lies on several ranks."""

from leafgrad.compat.absent import refused_class

__all__ = ["DTensor"]

DTensor = refused_class("torch.distributed.tensor.DTensor", "wrap the module in DistributedDataParallel")
