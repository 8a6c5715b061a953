"""The text of a plan's kernels: phases between barriers, and what each thread does in them."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from leafgrad.lowering.expressions import STORED
from leafgrad.lowering.forms import Root
from leafgrad_cuda.launches import Group, Launch, Phase, Section, memory_size, share
from leafgrad_cuda.writer import QUAD, Task

if TYPE_CHECKING:
    from leafgrad_cuda.plan import CudaPlan

OFTEN = 3  # calls of a function from which on it is compiled once, not into each caller


class Text:
    """Writes the kernels of a plan."""

    def __init__(self, plan: CudaPlan) -> None:
        self.plan = plan

    def code(self) -> str:
        """The text of all kernels: CUDA, and C where it is emulated. Nothing in it depends on names or addresses."""
        bodies = [self.text(launch) for launch in self.plan.kernels]
        used = "\n".join(bodies)
        functions = [f for f in self.plan.functions.texts if f"{f.split('(')[0].split()[-1]}(" in used]
        parts = [header().replace("LG_INDEX", self.index()), *map(self.called, functions), *bodies, ""]
        return "\n\n".join(parts)

    def called(self, function: str) -> str:
        """A function as it is compiled: once, where many tasks call it."""
        name = function.split("(")[0].split()[-1]
        calls = sum(t.function == name and not t.tile for launch in self.plan.kernels for t in launch.tasks)
        return function.replace("LG_FUNCTION", "LG_SHARED", 1) if calls >= OFTEN else function

    def index(self) -> str:
        """The type that kernels count in: one of 32 bits where it does."""
        counts = [sum(group.count for group in phase) for launch in self.plan.kernels for phase in launch.phases]
        sizes = [math.prod(r.shape) for launch in self.plan.kernels for r in launch.touched(reads=True)]
        return "int" if max([*counts, *sizes], default=0) < 1 << 30 else "int64_t"

    def text(self, launch: Launch) -> str:
        lines = [f"KERNEL({launch.name}, {launch.threads}) {{", "    SHARED"]
        if any(t.failures or t.guarded for t in launch.tasks):
            lines.append("    uint64_t *flag = (uint64_t *)arrays[0];")
        if launch.segment is not None:
            lines += self.loop_text(launch)
        elif len(launch.sections) == 1:
            lines += self.section(launch, launch.sections[0], "BLOCK")
        else:
            end = 0
            for section in launch.sections:
                first, end = end, end + section.blocks
                test = f"if (BLOCK < {end}) " if end < launch.blocks else ""
                lines += [f"    {'else ' * bool(first)}{test}{{", f"    const INDEX block = BLOCK - {first};"]
                lines += [*self.section(launch, section, "block"), "    }"]
        return "\n".join([*lines, "}"])

    def section(self, launch: Launch, section: Section, block: str) -> list[str]:
        if section.scan is not None:
            return self.scan_text(launch, section, section.scan, block)
        if section.squares:
            return self.squares_text(launch, section, block)
        if not section.rows:
            (phase,) = section.phases
            first, step = f"{block} * THREADS + t", f"{section.blocks} * THREADS"
            return self.phase(launch, phase, "    ", first, step)
        lines = [f"    for (INDEX row = {block}; row < {section.rows}; row += {section.blocks}) {{"]
        for phase in section.phases:
            lines += self.phase(launch, phase, "        ", "t", "THREADS", section.rows)
        return [*lines, "    }"]

    def loop_text(self, launch: Launch) -> list[str]:
        lines = []
        if launch.partial:
            zeros = [
                f"        for (INDEX k = t; k < {root.lanes}; k += THREADS) ({self.pointer(launch, root)})[k] = 0;"
                for root in launch.partial
            ]
            lines += ["    EACH {", *zeros, "    }", "    BARRIER"]
        lines += [
            f"    for (INDEX chunk = BLOCK; chunk < {launch.chunks}; chunk += BLOCKS) {{",
            f"        const INDEX lo = chunk * {launch.chunk};",
            f"        const INDEX n = {launch.length} - lo < {launch.chunk} ? {launch.length} - lo : {launch.chunk};",
        ]
        for phase in launch.phases:
            lines += self.phase(launch, phase, "        ", "t", "THREADS")
        return [*lines, "    }"]

    def scan_text(self, launch: Launch, section: Section, task: Task, block: str) -> list[str]:
        """Blocks take whole rows, through all steps."""
        items = share(task)
        return [
            f"    for (INDEX first = {block} * {items}; first < {task.count}; first += {section.blocks * items}) {{",
            f"        const INDEX end = first + {items} < {task.count} ? first + {items} : {task.count};",
            f"        for (INDEX s = 0; s < {task.steps}; s++) {{",
            "            EACH for (INDEX g = first + t; g < end; g += THREADS) {",
            f"                {self.call(launch, task, 'g')}",
            "            }",
            "            BARRIER",
            "        }",
            "    }",
        ]

    def squares_text(self, launch: Launch, section: Section, block: str) -> list[str]:
        """Blocks take squares of all products, which count on."""
        (phase,) = section.phases
        total = sum(group.count for group in phase)
        lines, at = [], 0
        for group in phase:
            branch = "if" if not at else "} else if"
            lines += [
                f"        {branch} (g < {at + group.count}) {{",
                f"            const INDEX item = g - {at};",
                *self.square(launch, group),
            ]
            at += group.count
        tile = section.squares[0].tile
        assert tile is not None
        loop = f"    for (INDEX g = {block}; g < {total}; g += {section.blocks}) {{"
        return [f"    LG_KEEP({tile.type}, {tile.kept}, {tile.threads})", loop, *lines, "        }", "    }"]

    def square(self, launch: Launch, group: Group) -> list[str]:
        """A square of a product: what a step multiplies was fetched in the step before."""
        task, *then = group.tasks
        tile = task.tile
        assert tile is not None
        shared, depth, kept = f"({tile.type} *)shared", tile.depth, f"t, KEPT, ({tile.type} *)shared"
        given, out = (
            "".join(f", {self.pointer(launch, r)}" for r in roots) for roots in (tile.pointers, task.pointers)
        )
        calls, each = " ".join(self.call(launch, t, "e") for t in then), tile.elements // tile.threads
        some = math.gcd(each, QUAD)
        return [
            "            EACH {",
            f"                LG_UNROLL for (int i = 0; i < {tile.kept}; i++) KEPT[i] = 0;",
            f"                {tile.fetch}(item, 0, t, KEPT{given});",
            "            }",
            f"            for (INDEX done = 0; done < {tile.terms}; done += {depth}) {{",
            f"                EACH {tile.put}({kept});",
            "                BARRIER",
            "                EACH {",
            f"                    if (done + {depth} < {tile.terms})",
            f"                        {tile.fetch}(item, done + {depth}, t, KEPT{given});",
            f"                    {tile.multiply}({kept});",
            "                }",
            "                BARRIER",
            "            }",
            f"            EACH {tile.gather}({kept});",
            "            BARRIER",
            f"            EACH {{ LG_ROLLED for (int i = 0; i < {each}; i += {some})",
            f"                LG_UNROLL for (int j = 0; j < {some}; j++) {{",
            f"                const INDEX e = {task.function}(item, t + (i + j) * {tile.threads}, {shared}{out});",
            f"                {f'if (e >= 0) {{ {calls} }}' if then else '(void)e;'}",
            "            } }",
            "            BARRIER",
        ]

    def call(self, launch: Launch, t: Task, item: str) -> str:
        arguments = [item, *(["s"] if t.steps else []), *(self.pointer(launch, r) for r in t.pointers)]
        arguments += ["lo", "n"] if launch.segment else []
        arguments += ["flag"] if t.failures or t.guarded else []
        arguments += [str(self.plan.first[t])] if t.failures else []
        return f"{t.function}({', '.join(arguments)});"

    def part(self, launch: Launch, group: Group, k: int, item: str) -> str:
        """An item of one of a group's tasks."""
        task, start = group.tasks[k], group.starts[k]
        call = self.call(launch, task, f"{item} - {start}" if start else item)
        if task.count == group.count:
            return call
        tests = [*([f"{item} >= {start}"] if start else []), f"{item} < {start + task.count}"]
        return f"if ({' && '.join(tests)}) {call}"

    def phase(self, launch: Launch, phase: Phase, indent: str, first: str, step: str, rows: int = 0) -> list[str]:
        """Each thread takes its items of all groups, which count on: all of them, or those of one of ``rows``."""
        counts = [group.count // max(1, rows) for group in phase]
        lines = [f"{indent}EACH for (INDEX g = {first}; g < {sum(counts)}; g += {step}) {{"]
        at = 0
        for k, (group, count) in enumerate(zip(phase, counts, strict=True)):
            item = f"{f'row * {count} + ' if rows else ''}g{f' - {at}' if at else ''}"
            calls = [self.part(launch, group, k, item) for k in range(len(group.tasks))]
            at += count
            branch = "" if len(phase) == 1 else f"if (g < {at}) " if k == 0 else f"else if (g < {at}) "
            lines.append(f"{indent}    {branch}{calls[0] if len(calls) == 1 else ' '.join(['{', *calls, '}'])}")
        return [*lines, f"{indent}}}", f"{indent}BARRIER"]

    def pointer(self, launch: Launch, root: Root) -> str:
        """A root's address, read where it is used: a long kernel has not the registers to keep all."""
        return f"({STORED[root.dtype]} *)({self.address(launch, root)})"

    def address(self, launch: Launch, root: Root) -> str:
        if root in launch.offsets:
            return f"shared + {launch.offsets[root]}"
        if root in launch.spilled:
            assert launch.spill is not None
            start, size = self.plan.offsets[launch.spill], launch.spill.shape[1]
            return f"arena + {start}LL + BLOCK * {size}LL + {launch.spilled[root]}"
        if root in launch.partial:
            size = root.lanes * memory_size(root.dtype)
            return f"arena + {self.plan.offsets[launch.partial[root]]}LL + BLOCK * {size}LL"
        if root is self.plan.functions.words:
            return f"arrays + {1 + len(self.plan.slots)}"
        if root in self.plan.slots:
            return f"arrays[{self.plan.slots[root]}]"
        return f"arena + {self.plan.offsets[root]}LL"


@cache
def header() -> str:
    return (Path(__file__).parent / "runtime" / "kernels.cuh").read_text(encoding="utf-8")
