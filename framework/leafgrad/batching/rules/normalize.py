"""Normalisation, over dimensions one further back."""

from leafgrad.batching.call import BatchedCall
from leafgrad.ops.normalize import standardize, standardize_slope

standardize.batched(BatchedCall.along)
standardize_slope.batched(BatchedCall.along)
