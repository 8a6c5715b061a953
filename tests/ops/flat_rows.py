"""Many arrays as one vector, and back."""

from __future__ import annotations

import numpy as np
from op_table import Row

from leafgrad.ops import flat


def unpack(x, shapes):
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    return tuple(part.reshape(shape) for part, shape in zip(np.split(x, ends), shapes, strict=True))


ROWS = [
    Row(flat.pack, lambda *xs: np.concatenate([x.ravel() for x in xs]), shapes=[((2, 3), (), (0, 2), (4,)), ((3,),)]),
    Row(flat.unpack, unpack, shapes=[((11,),)], params=[{"shapes": ((2, 3), (), (0, 2), (4,))}, {"shapes": ((11,),)}]),
]
