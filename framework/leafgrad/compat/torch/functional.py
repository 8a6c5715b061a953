"""``torch.functional``: functions that are torch's as well."""

from __future__ import annotations

import leafgrad

__all__ = list(
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul "
    "einsum lu_unpack meshgrid norm split tensordot unique_consecutive unravel_index".split()
)

for _name in __all__:
    globals()[_name] = getattr(leafgrad, _name)
