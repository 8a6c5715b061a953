"""The format of the op table: one row says what an op computes and how to check it.

Rows are in ``tests/ops/*_rows.py``, each file with a list ``ROWS``; ``leafgrad.testing.check_op`` checks every row:
``test_ops.py``, ``test_vmap_ops.py`` and ``compile/test_op_table.py`` call it. An op that fits no row, say one that
draws random numbers, is named in the file's ``ELSEWHERE``: op -> the file in tests/ that checks it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

FLOATS = ("float64", "float32", "float16")
Shape = tuple[int, ...]
Sample = tuple[tuple[Any, ...], dict[str, Any]]  # arrays (NumPy) or numbers, and parameters

UNARY: tuple[tuple[Shape, ...], ...] = (((3, 4),), ((),), ((0, 2),))
BINARY: tuple[tuple[Shape, ...], ...] = (((2, 3), (2, 3)), ((2, 1), (3,)), ((2,), ()), ((0, 2), (2,)))
SHAPES = {1: UNARY, 2: BINARY}


@dataclass(frozen=True)
class Row:
    """An op, what it computes, and where.

    Attributes:
        op: the Op, or a public function.
        reference: the same of NumPy arrays, with the same parameters.
        shapes: for each sample, the shapes of the arguments; by default those of a unary or binary op.
        params: for each sample, parameters; every shape is combined with every one of these.
        domain: where the arguments are drawn from, uniformly: (low, high) for all, or a list with one for each.
        samples: instead of shapes, params and domain: ``samples(rng, dtype) -> [(args, params), ...]``.
        order: how often the op is differentiated and each derivative compared with differences; 0 for never.
        dtypes: of the arguments; samples of several dtypes are drawn by ``samples``.
        integers: whether an elementwise op also takes integers; they are checked by its traits.
        errors: ``(args, params, exception, pattern)``, with args as arrays, numbers or lists.
        rtol: relative tolerance in float64; others by dtype.
        name: the row's name in the test's; the op's by default.
    """

    op: Any
    reference: Callable[..., Any]
    shapes: Sequence[tuple[Shape, ...]] = ()
    params: Sequence[dict[str, Any]] = ({},)
    domain: Any = (-2.0, 2.0)
    samples: Callable[[np.random.Generator, str], list[Sample]] | None = None
    order: int = 4
    dtypes: Sequence[str] = FLOATS
    integers: bool = True
    errors: Sequence[tuple[tuple[Any, ...], dict[str, Any], type[Exception], str]] = field(default=())
    rtol: float = 1e-12
    name: str = ""

    def __str__(self) -> str:
        return self.name or getattr(self.op, "name", None) or self.op.__name__

    def draw(self, dtype: str, seed: int = 0) -> list[Sample]:
        """The samples of the row in one dtype, the same at every call."""
        rng = np.random.default_rng(math.prod(map(ord, str(self))) + seed)
        if self.samples is not None:
            return self.samples(rng, dtype)
        shapes = self.shapes or SHAPES[len(self.op.signature.arguments)]
        return [(self.arrays(rng, dtype, s), params) for s in shapes for params in self.params]

    def few(self, dtype: str) -> list[Sample]:
        """One sample of each kind: the first with such dimensions of its arrays and such names of parameters."""
        found: dict[Any, Sample] = {}
        for args, params in self.draw(dtype):
            kind = tuple([a.ndim if isinstance(a, np.ndarray) else type(a) for a in args]), tuple(params)
            found.setdefault(kind, (args, params))
        return list(found.values())

    def arrays(self, rng: np.random.Generator, dtype: str, shapes: Sequence[Shape]) -> tuple[Any, ...]:
        domains = self.domain if isinstance(self.domain, list) else [self.domain] * len(shapes)
        return tuple(uniform(rng, dtype, s, *d) for s, d in zip(shapes, domains, strict=True))


def uniform(rng: np.random.Generator, dtype: str, shape: Shape, low: float = -2.0, high: float = 2.0) -> Any:
    """Random numbers of ``dtype`` in [low, high)."""
    return np.asarray(rng.uniform(low, high, shape)).astype(dtype)
