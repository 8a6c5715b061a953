"""What ``torch.profiler`` has beside leafgrad's profiler."""

from leafgrad.compat.absent import refused_class
from leafgrad.profiler.events import EventList

__all__ = ["EventList", "emit_nvtx"]

emit_nvtx = refused_class("torch.autograd.profiler.emit_nvtx", "use torch.profiler.profile")
