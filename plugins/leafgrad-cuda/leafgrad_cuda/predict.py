"""``leafgrad cuda predict``: what the steps of a script would launch on a GPU, and how long that takes on paper.

A kernel takes as long as the slower of its bytes and its operations at the GPU's peaks, with as many of its processors
as it has blocks. No kernel reaches peaks: this is a bound from below, by which measured times are judged.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from leafgrad.compile.ir.graph import Graph
from leafgrad_cuda.executor import EmulatedExecutor
from leafgrad_cuda.launches import Launch, OpRun
from leafgrad_cuda.plan import CudaPlan
from leafgrad_cuda.report import course, described


@dataclass(frozen=True)
class Peaks:
    """What a GPU can do at most.

    Attributes:
        name: of the GPU.
        bandwidth: bytes a second.
        float32, float64: operations a second, without tensor cores.
        processors: streaming multiprocessors.
        shared: bytes of shared memory that a block may have.
    """

    name: str
    bandwidth: float
    float32: float
    float64: float
    processors: int
    shared: int


# Bandwidth and operations from NVIDIA's data sheets of each; shared memory from the CUDA C++ Programming Guide, the
# table of technical specifications by compute capability (9.0, 8.0, 8.9, 7.5).
DEVICES: Final = {
    "h200": Peaks("H200 SXM", 4.8e12, 67e12, 34e12, 132, 227 << 10),
    "h100": Peaks("H100 SXM", 3.35e12, 67e12, 34e12, 132, 227 << 10),
    "a100": Peaks("A100 SXM 80 GB", 2.039e12, 19.5e12, 9.7e12, 108, 163 << 10),
    "rtx4090": Peaks("RTX 4090", 1.008e12, 82.6e12, 1.29e12, 128, 99 << 10),
    "t4": Peaks("T4", 0.32e12, 8.1e12, 0.253e12, 40, 64 << 10),
}
LAUNCH: Final = 5e-6  # seconds of the host to start a graph or an op; an assumption
NEXT: Final = 1.5e-6  # seconds from one kernel of a graph to the next; an assumption


def seconds(plan: CudaPlan, launch: Launch, peaks: Peaks) -> float:
    """How long a kernel takes at least."""
    double = any(r.dtype == "float64" for t in launch.tasks for r in t.writes)
    rate = (peaks.float64 if double else peaks.float32) * min(1.0, launch.blocks / peaks.processors)
    return max(plan.traffic(launch) / peaks.bandwidth, plan.flops(launch) / rate)


def prediction(graph: Graph, peaks: Peaks) -> list[str]:
    """A program's launches, with the time of each."""
    plan = CudaPlan(graph, peaks.shared, peaks.processors)
    lines = course(plan, lambda launch: f"{described(plan, launch)}; {1e6 * seconds(plan, launch, peaks):.2f} us")
    busy = sum(seconds(plan, launch, peaks) for launch in plan.kernels)
    ops = sum(isinstance(part, OpRun) for part in plan.course)
    graphs, kernels = len(plan.course) - ops + bool(plan.delivery), len(plan.kernels)
    return [
        *lines,
        f"{graphs} graphs of {kernels} kernels, and {ops} ops: at least {1e6 * (busy + NEXT * kernels):.1f} us of "
        f"kernels, with {1e6 * NEXT:.1f} us from each to the next{', without those of the ops' if ops else ''}; "
        f"{1e6 * LAUNCH * (graphs + ops):.0f} us of the host, at {1e6 * LAUNCH:.0f} us for each graph or op",
    ]


def main(argv: Sequence[str]) -> int:
    """``leafgrad cuda predict SCRIPT --device h200``; what else is given goes to the script."""
    parser = argparse.ArgumentParser(prog="leafgrad cuda", description="Compiled steps as CUDA kernels.")
    commands = parser.add_subparsers(dest="command", required=True)
    predict = commands.add_parser("predict", help="what a script's steps launch, and the time that takes on paper")
    predict.add_argument("script", help="a Python file, which runs on the processor")
    predict.add_argument("--device", choices=sorted(DEVICES), default="h200", help="for which GPU; default: h200")
    given, rest = parser.parse_known_args(argv)
    if not os.path.isfile(given.script):
        parser.error(f"script: expected a Python file, got {given.script!r}, which is not there")
    graphs = traced(given.script, rest)
    peaks = DEVICES[given.device]
    if not graphs:
        print(f"{given.script} compiled no step: decorate one with leafgrad.compile, and call it twice at least")
        return 1
    print(f"On paper, for {peaks.name}: bounds from below.")
    for k, graph in enumerate(graphs, 1):
        print(f"\nprogram {k}: {len(graph)} equations", *prediction(graph, peaks), sep="\n  ")
    return 0


def traced(script: str, arguments: Sequence[str]) -> list[Graph]:
    """The graphs of the steps that a script compiles, while it runs on the processor."""
    before, wanted = sys.argv, os.environ.get("LEAFGRAD_EXECUTOR")
    found: list[Graph] = []
    EmulatedExecutor.recorded = found
    sys.argv, os.environ["LEAFGRAD_EXECUTOR"] = [script, *arguments], EmulatedExecutor.name
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        EmulatedExecutor.recorded, sys.argv = None, before
        os.environ.pop("LEAFGRAD_EXECUTOR")
        if wanted is not None:
            os.environ["LEAFGRAD_EXECUTOR"] = wanted
    return found
