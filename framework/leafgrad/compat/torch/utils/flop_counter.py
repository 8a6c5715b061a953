"""``torch.utils.flop_counter``: how many floating point operations products of matrices, convolutions, attention and
recurrent layers take, forward and backward, by module. A multiplication and an addition are two.
"""

from __future__ import annotations

import math
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Self

from leafgrad import modes
from leafgrad.nn.hooked import register_module_forward_hook, register_module_forward_pre_hook
from leafgrad.ops.attention import attention
from leafgrad.ops.convolution import convolution, convolution_input
from leafgrad.ops.matmul import linear, matmul
from leafgrad.ops.op import Op
from leafgrad.ops.recurrent import gru, lstm, rnn
from leafgrad.tensor.tensor import Tensor

__all__ = ["FlopCounterMode"]

Shape = tuple[int, ...]


def each_row(x: Shape, w: Shape, *_: Any) -> int:
    """A product of each row of ``x`` with all of ``w``."""
    return 2 * math.prod(x[:-1]) * math.prod(w)


COSTS: dict[Op, Callable[..., int]] = {
    matmul: lambda x, y, out: 2 * math.prod(out) * x[-1],
    linear: each_row,
    convolution: lambda x, w, *rest: 2 * math.prod(rest[-1]) * math.prod(w[1:]),
    convolution_input: lambda y, w, *_: 2 * math.prod(y) * math.prod(w[1:]),
    attention: lambda q, k, v, *_: 2 * math.prod(q[:-1]) * k[-2] * (q[-1] + v[-1]),
    rnn: each_row,
    gru: each_row,
    lstm: each_row,
}
"""Op -> its operations, by the shapes of its arguments and of its result. A gradient takes as many."""


class FlopCounterMode:
    """Counts within ``with FlopCounterMode() as counter:``, backward passes of what ran there, too.

    Compiled calls are not counted.

    Args:
        mods: accepted; all modules are told apart. depth: modules so far within others stand in the table.
        display: print the table at the end.
        custom_mapping: accepted, and not used.
    """

    def __init__(
        self, mods: Any = None, depth: int | None = 2, display: bool = True, custom_mapping: Any = None
    ) -> None:
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, Counter[str]] = {"Global": Counter()}
        self._inside: list[str] = ["Global"]
        self._running = False

    def get_total_flops(self) -> int:
        """All that was counted."""
        return self.flop_counts["Global"].total()

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """Path of a module, or "Global" -> op -> what was counted."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """As text: the modules and their ops."""
        depth = self.depth if depth is None else depth
        rows = [
            (" " * name.count(".") + name, f"{counts.total():,}", ", ".join(f"{op} {n:,}" for op, n in counts.items()))
            for name, counts in self.flop_counts.items()
            if depth is None or name.count(".") < depth
        ]
        rows = [("Module", "FLOP", "by operation"), *rows]
        wide = [max(len(row[i]) for row in rows) for i in range(2)]
        return "\n".join(f"{name:<{wide[0]}}  {total:>{wide[1]}}  {ops}".rstrip() for name, total, ops in rows)

    def __enter__(self) -> Self:
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._hooks = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        self._watching, self._running = modes.watching(self._watch), True
        self._watching.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._watching.__exit__()
        self._running = False
        for hook in self._hooks:
            hook.remove()
        if self.display:
            print(self.get_table())

    def _enter_module(self, module: Any, _: Any) -> None:
        if module not in self._names:
            top = type(module).__name__
            for path, each in module.named_modules():
                self._names[each] = f"{top}.{path}".rstrip(".")
        self._inside.append(self._names[module])

    def _leave_module(self, *_: Any) -> None:
        self._inside.pop()

    def _watch(self, what: Any, args: Sequence[Any], run: Callable[[], Any]) -> Any:
        result = run()
        if isinstance(what, Op) and what in COSTS:
            out = result[0] if isinstance(result, tuple) else result
            cost = COSTS[what](*[tuple(t.shape) for t in (*args, out) if isinstance(t, Tensor)])
            where = [*dict.fromkeys(self._inside)]
            self._add(what.name, cost, where)
            if out.grad_fn is not None:
                pulled = cost * sum(t.requires_grad for t in args[:2])
                out.grad_fn.register_prehook(lambda _: self._add(f"{what.name}_backward", pulled, where))
        return result

    def _add(self, name: str, cost: int, where: list[str]) -> None:
        for module in where if self._running else ():
            self.flop_counts.setdefault(module, Counter())[name] += cost
