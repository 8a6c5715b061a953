"""leafgrad-native against the core's executor: time, share of the processor's peak, cost and memory by batch size.

The share is that of the matrix products' multiplications alone. The first two calls trace, compile and compare with
NumPy; from the cache, they trace. Both are those of a fresh process whose modules are there as bytecode.
"""

from __future__ import annotations

import functools
import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from compare import Row, arguments, compare, start, tell
from peak import peak
from pinn import EQUATIONS, SIZES, tensor_step


def burgers(depth, width, n, dtype, executor):
    """A compiled step, and the seconds that its first two calls took."""
    import numpy as np

    import leafgrad

    rng = np.random.default_rng(0)
    weights = []
    for a, b in itertools.pairwise([2, *[width] * depth, 1]):
        weights += [(rng.normal(size=(a, b)) / a**0.5).astype(dtype), (0.1 * rng.normal(size=b)).astype(dtype)]
    weights = [leafgrad.tensor(w, requires_grad=True) for w in weights]
    points = [leafgrad.tensor(rng.uniform(-1, 1, (n, 1)).astype(dtype), requires_grad=True) for _ in range(2)]
    step = leafgrad.compile(tensor_step(leafgrad, EQUATIONS["Burgers"], weights, points), executor=executor)
    start = time.perf_counter()
    step(*(p[:100] for p in points))
    step(*points)
    run = functools.partial(step, *points)
    run.compiled = step
    return run, time.perf_counter() - start


def multiplications(depth, width):
    """Of one point: 12 products of each inner layer, as many of them backward as forward and for derivatives twice."""
    return 12 * (depth - 1) * width * width


def table(args):
    os.environ |= {name: tempfile.mkdtemp() for name in ("LEAFGRAD_CACHE", "PYTHONPYCACHEPREFIX")}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    alone("--points", 1_000)  # writes the bytecode
    for dtype in args.dtype:
        for depth, width, n in SIZES:
            what = f"{depth} x {width}, {n:,} points, {dtype}"
            two = "--first", depth, width, n, dtype, "--threads", args.threads
            first = float(alone(*two))  # compiles
            cached = statistics.median(float(alone(*two)) for _ in range(7))
            native, _ = burgers(depth, width, n, dtype, "native")
            numpy, _ = burgers(depth, width, n, dtype, "numpy")
            before = peak(dtype)
            (row,) = compare(what, {"leafgrad": native, "NumPy executor": numpy}, args.rounds, unit="ms")
            best = max(before, peak(dtype)) * args.threads  # the clock of a shared machine changes
            share = multiplications(depth, width) * n / (row.values["leafgrad"] / 1e3) / best
            tell(Row(f"{what}: share of peak", "", {"leafgrad": share}))
            headline = 1.0 if (width, n, dtype) == (20, 10_000, "float32") else None
            tell(Row(f"{what}: first two calls", "s", {"leafgrad": first, "allowed": 1.5}, headline))
            tell(Row(f"{what}: from the cache", "s", {"leafgrad": cached, "allowed": 0.2}, headline))


def alone(*arguments):
    """What this script prints in a process of its own."""
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def scale(args):
    for n in (1_000, 10_000, 100_000, 1_000_000, 10_000_000):
        ms, memory = map(float, alone("--points", n, "--threads", args.threads).split())
        tell(Row(f"{n:,} points", "ms", {"leafgrad": ms}, more={"ns a point": 1e6 * ms / n, "inputs MB": 8 * n / 1e6}))
        headline = 1.0 if n == 10_000_000 else None
        tell(Row(f"{n:,} points: memory of the process", "MB", {"leafgrad": memory, "allowed": 300}, headline))


def one_scale(n):
    step, _ = burgers(8, 20, n, "float32", "native")
    times = []
    for _ in range(1 if n > 1_000_000 else 5):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    print(1e3 * sorted(times)[len(times) // 2], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--dtype", nargs="+", default=["float32"])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--scale", action="store_true", help="1,000 to 10,000,000 points: time per point, memory")
    parser.add_argument("--points", type=int, help="one row of --scale")
    parser.add_argument("--first", nargs=4, metavar=("DEPTH", "WIDTH", "N", "DTYPE"), help="seconds of two first calls")
    args = parser.parse_args()
    if args.points:
        one_scale(args.points)
    elif args.first:
        depth, width, n, dtype = args.first
        print(burgers(int(depth), int(width), int(n), dtype, "native")[1])
    elif args.scale:
        start("Burgers as C by size of the batch, 8 x 20, float32", args.threads)
        scale(args)
    else:
        start("Burgers as C and by the core's executor", args.threads)
        table(args)


if __name__ == "__main__":
    main()
