"""``torch.utils.flop_counter``: a class to name; nothing counts operations."""

from leafgrad.compat.absent import refused_class

__all__ = ["FlopCounterMode"]

FlopCounterMode = refused_class("torch.utils.flop_counter.FlopCounterMode", "time the step instead")
