"""What a plan launches, and what that takes, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from leafgrad_cuda.launches import Launch, OpRun, Section
from leafgrad_cuda.plan import CudaPlan


def report(plan: CudaPlan, registers: dict[str, int], times: dict[str, float]) -> list[str]:
    """A line for each graph, each kernel of it and each op that runs by itself, and one on memory."""

    def kernel(launch: Launch) -> str:
        taken, seconds = registers.get(launch.name), times.get(launch.name)
        more = f", {taken} registers a thread" if taken else ""
        return described(plan, launch) + more + (f"; measured {1e6 * seconds:.2f} us" if seconds else "")

    graphs = sum(not isinstance(part, OpRun) for part in plan.course) + bool(plan.delivery)
    return [*course(plan, kernel), f"{graphs} graphs a call; memory between kernels: {plan.arena / 1024:.0f} kB"]


def course(plan: CudaPlan, kernel: Callable[[Launch], str]) -> Iterator[str]:
    """CUDA graphs with their kernels, and what parts them: ops that run by themselves, and why."""
    for part in plan.course:
        if isinstance(part, OpRun):
            yield f"op by op: {part.equation.name}, from {part.equation.line}: {part.why}"
            continue
        count = len(part.launches)
        yield f"CUDA graph of {count} kernel{'s' if count > 1 else ''}, started at once:"
        yield from (f"  {kernel(launch)}" for launch in part.launches)
    if plan.delivery:
        yield f"CUDA graph that writes {len(plan.targets)} results into tensors:"
        yield from (f"  {kernel(launch)}" for launch in plan.delivery)


def described(plan: CudaPlan, launch: Launch) -> str:
    """A kernel: what it computes, how it is launched, and what it moves and computes at least."""
    moved, work = plan.traffic(launch), plan.flops(launch)
    how = f"{launch.blocks} blocks of {launch.threads} threads, {moved / 1024:.0f} kB moved, {work / 1e6:.3g} Mflop"
    if launch.segment is None:
        return f"kernel {launch.name}: {', '.join(map(section, launch.sections))}; {how}"
    spilled = f", {len(launch.spilled)} arrays of a chunk in global memory" if launch.spilled else ""
    return (
        f"kernel {launch.name}: loop over {launch.length} rows, {launch.chunk} at a time: "
        f"{len(launch.equations)} equations in {len(launch.phases)} phases, {len(launch.partial)} sums; {how}, "
        f"{launch.shared / 1024:.0f} kB of shared memory{spilled}"
    )


def section(section: Section) -> str:
    """What blocks of a kernel over whole arrays do."""
    names = list(dict.fromkeys(e for t in section.tasks for e in t.equations))
    if section.scan is not None:
        return f"{section.scan.steps} steps of {names[0].name} from {names[0].line}"
    if section.squares:
        return f"squares of {' and '.join(f'{e.name} from {e.line}' for e in names)}"
    phases = f"{len(section.phases)} phases of {section.rows} rows" if section.rows else f"{len(section.tasks)} tasks"
    return f"{len(names)} equations in {phases}"
