"""Batches that the program does not see: what vmap is made of. Its rules are known from the first vmap on."""

from leafgrad.batching import boundary
from leafgrad.batching.batched import Batch, Batched
from leafgrad.batching.call import BatchedCall
from leafgrad.batching.vmap import vmap

__all__ = ["Batch", "Batched", "BatchedCall", "boundary", "vmap"]
