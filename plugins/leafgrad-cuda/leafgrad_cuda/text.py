"""The text of a plan's kernels: phases between barriers, and what each thread does in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leafgrad.lowering.expressions import STORED
from leafgrad.lowering.forms import Root
from leafgrad_cuda.launches import Launch, Phase, memory_size, share
from leafgrad_cuda.writer import Task

if TYPE_CHECKING:
    from leafgrad_cuda.plan import CudaPlan

CONSTANT = 1 << 14  # characters of tables, of 8 bytes at most, that lie in the 64 kB of constant memory
OFTEN = 2  # calls of a function from which on it is compiled once, not into each caller


class Text:
    """Writes the kernels of a plan."""

    def __init__(self, plan: CudaPlan) -> None:
        self.plan = plan
        self.numbers: list[int] | None = None  # of the phase that is written, if it is one of a loop
        self.tables: list[str] = []

    def code(self) -> str:
        """The text of all kernels: CUDA, and C where it is emulated. Nothing in it depends on names or addresses."""
        bodies = [self.text(launch) for launch in self.plan.kernels]
        used = "\n".join(bodies)
        functions = [f for f in self.plan.functions.texts if f"{f.split('(')[0].split()[-1]}(" in used]
        space = "__constant__" if sum(map(len, self.tables)) < CONSTANT else "__device__"
        parts = [
            header().replace("LG_INDEX", self.index()).replace("LG_SPACE", space),
            *[self.called(f, used) for f in functions],
            *self.tables,
            *bodies,
            "",
        ]
        return "\n\n".join(parts)

    def called(self, function: str, used: str) -> str:
        """A function as it is compiled: once, where it is called often."""
        calls = used.count(f" {function.split('(')[0].split()[-1]}(")
        return function.replace("LG_FUNCTION", "LG_SHARED", 1) if calls >= OFTEN else function

    def index(self) -> str:
        """The type that kernels count in: one of 32 bits where it does."""
        counts = [sum(group[0].count for group in phase) for launch in self.plan.kernels for phase in launch.phases]
        sizes = [math.prod(r.shape) for launch in self.plan.kernels for r in launch.touched(reads=True)]
        return "int" if max([*counts, *sizes], default=0) < 1 << 30 else "int64_t"

    def text(self, launch: Launch) -> str:
        lines = [f"KERNEL({launch.name}, {launch.threads}) {{", "    SHARED"]
        if any(t.failures or t.guarded for t in launch.tasks):
            lines.append("    uint64_t *flag = (uint64_t *)arrays[0];")
        if launch.scan is not None:
            lines += self.scan_text(launch, launch.scan)
        elif launch.segment is None:
            for phase in launch.phases:
                lines += [*self.phase(launch, phase, "    ", "BLOCK * THREADS + t", "BLOCKS * THREADS"), "    BARRIER"]
        else:
            lines += self.loop_text(launch)
        return "\n".join([*lines, "}"])

    def loop_text(self, launch: Launch) -> list[str]:
        sums = [[root] for root in launch.partial]
        begun = [f"    {self.table(launch, 'zero', sums, self.zeros, '    ')}", "    BARRIER"] if sums else []
        return [
            *begun,
            f"    for (INDEX chunk = BLOCK; chunk < {launch.chunks}; chunk += BLOCKS) {{",
            f"        const INDEX lo = chunk * {launch.chunk};",
            f"        const INDEX n = {launch.length} - lo < {launch.chunk} ? {launch.length} - lo : {launch.chunk};",
            f"        {self.table(launch, 'phase', launch.phases, self.chunk_phase, '        ', 'BARRIER')}",
            "    }",
        ]

    def table(self, launch: Launch, what: str, rows: Sequence[Any], write: Any, indent: str, after: str = "") -> str:
        """Each of some rows in order, by the text of its kind and a table of the numbers in which rows of one differ.

        A long kernel waits for its own instructions, which it reads anew for each chunk.
        """
        numbers: list[int] = []
        first, kinds, texts = [], [], []
        for row in rows:
            mine: list[int] = []
            self.numbers = mine
            text = "\n".join(write(launch, row, indent + "        "))
            self.numbers = None
            first.append(len(numbers))
            numbers += mine
            if text not in texts:
                texts.append(text)
            kinds.append(texts.index(text))
        name = f"{launch.name}_{what}"
        columns = {"int64_t at": numbers or [0], "int first": first, "int kind": kinds}
        for column, values in columns.items():
            kind, _, suffix = column.partition(" ")
            self.tables.append(f"LG_TABLE {kind} {name}_{suffix}[] = {{{', '.join(map(str, values))}}};")
        cases = [f"{indent}    case {k}:\n{text}\n{indent}        break;" for k, text in enumerate(texts)]
        return "\n".join([
            f"LG_ROLLED for (int row = 0; row < {len(kinds)}; row++) {{",
            f"{indent}    const int64_t *const at = {name}_at + {name}_first[row];",
            f"{indent}    switch ({name}_kind[row]) {{",
            *cases,
            f"{indent}    }}",
            f"{indent}    {after}",
            f"{indent}}}",
        ])  # fmt: skip

    def zeros(self, launch: Launch, row: Sequence[Root], indent: str) -> list[str]:
        """A sum begins."""
        (root,) = row
        to, count = self.pointer(launch, root), self.number(root.lanes)
        return [f"{indent}EACH LG_ROLLED for (INDEX k = t; k < {count}; k += THREADS) ({to})[k] = 0;"]

    def chunk_phase(self, launch: Launch, phase: Phase, indent: str) -> list[str]:
        return self.phase(launch, phase, indent, "t", "THREADS")

    def number(self, number: int) -> str:
        """A number, in a loop from its table."""
        if self.numbers is None:
            return f"{number}LL"
        self.numbers.append(number)
        return f"at[{len(self.numbers) - 1}]"

    def scan_text(self, launch: Launch, task: Task) -> list[str]:
        """Blocks take whole rows, through all steps."""
        items = share(task)
        return [
            f"    for (INDEX first = BLOCK * {items}; first < {task.count}; first += BLOCKS * {items}) {{",
            f"        const INDEX end = first + {items} < {task.count} ? first + {items} : {task.count};",
            f"        for (INDEX s = 0; s < {task.steps}; s++) {{",
            "            EACH LG_ROLLED for (INDEX g = first + t; g < end; g += THREADS) {",
            f"                {self.call(launch, task, 'g')}",
            "            }",
            "            BARRIER",
            "        }",
            "    }",
        ]

    def call(self, launch: Launch, t: Task, item: str) -> str:
        arguments = [item, *(["s"] if t.steps else []), *(self.pointer(launch, r) for r in t.pointers)]
        arguments += ["lo", "n"] if launch.segment else []
        arguments += ["flag"] if t.failures or t.guarded else []
        arguments += [f"(int)({self.number(self.plan.first[t])})"] if t.failures else []
        return f"{t.function}({', '.join(arguments)});"

    def phase(self, launch: Launch, phase: Phase, indent: str, first: str, step: str) -> list[str]:
        """Each thread takes its items of all groups, which count on."""
        total = sum(group[0].count for group in phase)
        rolled = "LG_ROLLED " if launch.segment else ""  # its text is short, and whole arrays are long
        lines = [f"{indent}EACH {rolled}for (INDEX g = {first}; g < {total}; g += {step}) {{"]
        at = 0
        for k, group in enumerate(phase):
            calls = [self.call(launch, t, f"g - {at}" if at else "g") for t in group]
            at += group[0].count
            branch = "" if len(phase) == 1 else f"if (g < {at}) " if k == 0 else f"else if (g < {at}) "
            lines.append(f"{indent}    {branch}{calls[0] if len(calls) == 1 else ' '.join(['{', *calls, '}'])}")
        return [*lines, f"{indent}}}"]

    def pointer(self, launch: Launch, root: Root) -> str:
        """A root's address, read where it is used: a long kernel has not the registers to keep all."""
        return f"({STORED[root.dtype]} *)({self.address(launch, root)})"

    def address(self, launch: Launch, root: Root) -> str:
        if root in launch.offsets:
            return f"shared + {self.number(launch.offsets[root])}"
        if root in launch.spilled:
            assert launch.spill is not None
            start, size = self.plan.offsets[launch.spill], launch.spill.shape[1]
            return f"arena + {start}LL + BLOCK * {size}LL + {self.number(launch.spilled[root])}"
        if root in launch.partial:
            size = root.lanes * memory_size(root.dtype)
            start = self.plan.offsets[launch.partial[root]]
            return f"arena + {self.number(start)} + BLOCK * {self.number(size)}"
        if root is self.plan.functions.words:
            return f"arrays + {1 + len(self.plan.slots)}"
        if root in self.plan.slots:
            return f"arrays[{self.number(self.plan.slots[root] + 1)}]"
        return f"arena + {self.number(self.plan.offsets[root])}"


@cache
def header() -> str:
    return (Path(__file__).parent / "runtime" / "kernels.cuh").read_text(encoding="utf-8")
