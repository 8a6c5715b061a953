"""Models on several devices: in processes of their own, or, as a process here has one device, not at all."""

from leafgrad.nn.parallel.data_parallel import DataParallel, data_parallel
from leafgrad.nn.parallel.distributed import DistributedDataParallel
from leafgrad.tensor.public import publish

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]

publish(globals())
