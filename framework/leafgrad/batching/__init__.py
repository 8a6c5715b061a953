"""Batches that the program does not see: what vmap is made of. Its rules are known as soon as this is imported."""

from leafgrad.batching import boundary, rules
from leafgrad.batching.batched import Batch, Batched
from leafgrad.batching.call import BatchedCall
from leafgrad.batching.rules import random
from leafgrad.batching.vmap import vmap
from leafgrad.ops import carriers

__all__ = ["Batch", "Batched", "BatchedCall", "boundary", "rules", "vmap"]

carriers.adopt_batches(boundary.spread, random.draw, random.independent)
