"""Normalisation, over dimensions one further back."""

from leafgrad.batching.call import reduction
from leafgrad.ops.normalize import standardize, standardize_slope

standardize.batched(reduction)
standardize_slope.batched(reduction)
