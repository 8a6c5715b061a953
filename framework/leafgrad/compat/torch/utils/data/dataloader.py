"""What ``torch.utils.data.dataloader`` has beside leafgrad's loader: the classes of its iterators, to ask for."""

from leafgrad.compat.absent import refused_class
from leafgrad.utils.data.workers import WorkersIterator as _MultiProcessingDataLoaderIter

__all__ = ["_BaseDataLoaderIter", "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"]

REMEDY = "iterate over a DataLoader"
_BaseDataLoaderIter = refused_class("torch.utils.data.dataloader._BaseDataLoaderIter", REMEDY)
_SingleProcessDataLoaderIter = refused_class("torch.utils.data.dataloader._SingleProcessDataLoaderIter", REMEDY)
