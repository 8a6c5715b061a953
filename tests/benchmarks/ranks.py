"""Processes against threads: a compiled Burgers step, the time of its message, and what both say of more machines.

Run it as ``python tests/benchmarks/ranks.py [PAGE]``; PAGE is written in Markdown (docs/scaling.md). It starts itself
again with `leafgrad run --ranks` for the parts on several ranks; all parts take turns, and medians are compared.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

SHAPES = {"8 x 20": (8, 20), "4 x 50": (4, 50), "4 x 128": (4, 128)}
POINTS = 9_600
ROUNDS = 3
LATENCY, BANDWIDTH = 2e-6, 1.25e10  # s and bytes/s, assumed of a network between machines
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "LEAFGRAD_NUM_THREADS")


def measure() -> dict[str, float]:
    """Medians in seconds, on this process or rank."""
    import leafgrad as lg
    import leafgrad.distributed as dist
    from leafgrad import nn
    from leafgrad.nn.parallel import DistributedDataParallel

    dist.init_process_group()
    found = {}
    for name, (depth, width) in SHAPES.items():
        lg.manual_seed(0)
        sizes = [2, *[width] * depth, 1]
        layers = [f for a, b in itertools.pairwise(sizes) for f in (nn.Linear(a, b), nn.Tanh())]
        net = DistributedDataParallel(nn.Sequential(*layers[:-1]))
        optimizer = lg.optim.Adam(net.parameters())
        points = dist.shard(lg.rand(POINTS, 2)).clone()
        step = lg.compile(burgers(lg, net, optimizer))
        found[name] = median(lambda step=step, points=points: step(points), 15)
        count = sum(p.numel() for p in net.parameters())
        found[f"message {name}"] = median(partial(dist.all_reduce, lg.zeros(count)), 200)
    for count in (1, 1_000, 10_000, 100_000, 1_000_000):
        found[f"message {count}"] = median(partial(dist.all_reduce, lg.zeros(count)), 50)
    return found if dist.get_rank() == 0 else {}


def burgers(lg, net, optimizer):
    def step(points):
        optimizer.zero_grad()
        x, t = (points[:, i : i + 1].detach().requires_grad_() for i in (0, 1))
        u = net(lg.cat([x, t], 1))
        ux, ut = lg.autograd.grad(u.sum(), (x, t), create_graph=True)
        (uxx,) = lg.autograd.grad(ux.sum(), x, create_graph=True)
        loss = ((ut + u * ux - 0.01 / math.pi * uxx) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def median(run, times):
    for _ in range(4):
        run()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def start(ranks: int, threads: int) -> dict[str, float]:
    """The same in processes of its own."""
    launch = ["-m", "leafgrad", "run", "--ranks", str(ranks)] if ranks > 1 else []
    environment = {**os.environ, **dict.fromkeys(THREADS, str(threads))}
    done = subprocess.run(
        [sys.executable, *launch, __file__, "--measure"], env=environment, capture_output=True, text=True, check=True
    )
    return next(json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"'))


def main(page: str | None) -> None:
    from compare import Row, start as begin, tell

    begin(f"Two ranks against two threads: Burgers with Adam, {POINTS:,} points", threads=2)
    kinds = {"1 process, 1 thread": (1, 1), "1 process, 2 threads": (1, 2), "2 ranks, 1 thread each": (2, 1)}
    rounds = [{kind: start(*what) for kind, what in kinds.items()} for _ in range(ROUNDS)]
    middle = {
        kind: {name: statistics.median(r[kind][name] for r in rounds) for name in rounds[0][kind]} for kind in kinds
    }
    for name in SHAPES:
        one, threads, ranks = (1e3 * middle[kind][name] for kind in kinds)
        tell(Row(name, "ms", {"two ranks": ranks, "two threads": threads, "one thread": one}, 1.2))
    text = report(middle)
    if page:
        Path(page).write_text(text, encoding="utf-8")


def report(found: dict[str, dict[str, float]]) -> str:
    from compare import installed, machine

    one, threads, ranks = found.values()
    packages = ", ".join(filter(None, map(installed, ("leafgrad", "numpy", "mpi4py", "mpich"))))
    lines = [
        "# Scaling",
        "",
        "What several processes gain ([how they are used](distributed.md)), measured on one machine, and from these",
        "figures, on paper, what more machines would. Written by `python tests/benchmarks/ranks.py docs/scaling.md`.",
        "",
        f"{machine()}; Python {sys.version.split()[0]}; {packages}.",
        "",
        f"## Two ranks against two threads: Burgers with Adam, {POINTS:,} points, float32",
        "",
        f"Milliseconds for a compiled step, medians of {ROUNDS} rounds in turn, each a median of 15 steps.",
        "",
        "| network | one thread | two threads | two ranks | ranks / threads | message in it |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in SHAPES:
        a, b, c, message = one[name], threads[name], ranks[name], ranks[f"message {name}"]
        lines.append(
            f"| {name} | {1e3 * a:.2f} | {1e3 * b:.2f} | {1e3 * c:.2f} | {c / b:.2f} | {1e3 * message:.2f} ms |"
        )
    lines += [
        "",
        "The message waits for the slower rank, and is sent when backward is done: it is too short a part of the step",
        "for overlapping it with backward to pay.",
        "",
        "## The message alone, two ranks",
        "",
        "| float32 numbers | time | per number |",
        "| --- | --- | --- |",
    ]
    for key, value in ranks.items():
        count = key.removeprefix("message ")
        if count.isdigit():
            lines.append(f"| {int(count):,} | {1e6 * value:.0f} us | {1e9 * value / int(count):.2f} ns |")
    lines += ["", *on_paper(one, ranks)]
    return "\n".join(lines) + "\n"


def on_paper(one: dict[str, float], ranks: dict[str, float]) -> list[str]:
    """Strong and weak scaling to 1,000 ranks, by the latency-bandwidth model of an all-reduce."""
    own = ranks["message 1"]
    lines = [
        "## More machines, on paper",
        "",
        "A step of one rank takes T for all points. With P ranks it takes T / P (strong scaling: the same points) or T",
        "(weak scaling: as many points for each rank), and one message of n bytes: 2 log2(P) latencies and",
        "2 (P - 1) / P n bytes at the bandwidth, as recursive halving and doubling has it (Thakur, Rabenseifner and",
        "Gropp, 2005), and the cost of a call, measured above. Assumed of the network:",
        f"{1e6 * LATENCY:.0f} us and {BANDWIDTH / 1e9:.1f} GB/s. Efficiency is the share of the time that computes.",
        "",
        "| network | ranks | strong: step | efficiency | weak: efficiency |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, (depth, width) in SHAPES.items():
        sizes = [2, *[width] * depth, 1]
        nbytes = 4 * sum((a + 1) * b for a, b in itertools.pairwise(sizes))
        for p in (2, 10, 100, 1000):
            message = own + 2 * math.log2(p) * LATENCY + 2 * (p - 1) / p * nbytes / BANDWIDTH
            strong, weak = one[name] / p, one[name]
            lines.append(
                f"| {name} | {p:,} | {1e3 * (strong + message):.3f} ms | {strong / (strong + message):.0%} | "
                f"{weak / (weak + message):.1%} |"
            )
    lines += [
        "",
        "Strong scaling of so few points ends where a rank has less to compute than to say: give ranks more points.",
    ]
    return lines


if __name__ == "__main__":
    if sys.argv[1:] == ["--measure"]:
        found = measure()
        if found:
            print(json.dumps(found), flush=True)
    else:
        main(*sys.argv[1:2] or [None])
