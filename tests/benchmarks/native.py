"""leafgrad-native against the core's executor: time, share of the processor's peak, cost and memory by batch size.

python tests/benchmarks/native.py                 # Burgers at the sizes of the table, both executors
python tests/benchmarks/native.py --scale         # 1,000 to 10,000,000 points: time per point, memory
python tests/benchmarks/native.py --threads 2
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import resource
import subprocess
import sys
import tempfile
import time

from pinn import EQUATIONS, SIZES, compare, tensor_step


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
    """Of one point: 12 products of each inner layer (see `pinn.floor_seconds`)."""
    return 12 * (depth - 1) * width * width


def peak(dtype):
    """Multiply-adds per second of one core, measured: independent sums in registers."""
    import ctypes

    from leafgrad_native import build

    t, v = ("float", "lg_vf32") if dtype == "float32" else ("double", "lg_vf64")
    sums = range(12)
    text = f"""
double lg_peak(long n, {t} x) {{
    {v} h = ({v}){{0}} + x, {", ".join(f"a{i} = h * {i}" for i in sums)};
    for (long i = 0; i < n; i++) {{ {" ".join(f"a{i} = a{i} * h + h;" for i in sums)} }}
    {v} s = {" + ".join(f"a{i}" for i in sums)};
    return s[0];
}}
"""
    function = build.library(text, False).lg_peak
    function.restype = ctypes.c_double
    lanes, n, best = (build.vector_bytes() // (4 if t == "float" else 8)), 1_000_000, float("inf")
    number = (ctypes.c_float if t == "float" else ctypes.c_double)(0.5)
    for _ in range(20):
        start = time.perf_counter()
        function(ctypes.c_long(n), number)
        best = min(best, time.perf_counter() - start)
    return n * len(sums) * lanes / best


def table(args):
    header = "network|points|dtype|numpy ms|native ms|ratio|share of peak|first two calls s|from the cache s"
    print(f"| {header.replace('|', ' | ')} |")
    print("|---|---|---|---|---|---|---|---|---|")
    os.environ["LEAFGRAD_CACHE"] = tempfile.mkdtemp()  # so that the first call compiles
    for dtype in args.dtype:
        for depth, width, n in SIZES:
            first = float(alone("--first", depth, width, n, dtype))
            native, cached = burgers(depth, width, n, dtype, "native")
            numpy, _ = burgers(depth, width, n, dtype, "numpy")
            before = peak(dtype)
            ms = compare({"native": native, "numpy": numpy}, args.rounds)
            best = max(before, peak(dtype)) * args.threads  # the clock of a shared machine changes
            share = multiplications(depth, width) * n / (ms["native"] / 1e3) / best
            print(
                f"| {depth} x {width} | {n} | {dtype} | {ms['numpy']:.2f} | {ms['native']:.2f} | "
                f"{ms['native'] / ms['numpy']:.2f} | {share:.2f} | {first:.2f} | {cached:.2f} |",
                flush=True,
            )


def alone(*arguments):
    """What this script prints in a process of its own."""
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def scale(args):
    print("| points | ms a call | ns a point | memory of the process MB | inputs MB |")
    print("|---|---|---|---|---|")
    for n in (1_000, 10_000, 100_000, 1_000_000, 10_000_000):
        print(alone("--points", n, "--threads", args.threads).strip(), flush=True)


def one_scale(n):
    step, _ = burgers(8, 20, n, "float32", "native")
    times = []
    for _ in range(3 if n > 1_000_000 else 9):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    ms = 1e3 * sorted(times)[len(times) // 2]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {n} | {ms:.2f} | {1e6 * ms / n:.0f} | {memory:.0f} | {8 * n / 1e6:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", nargs="+", default=["float32", "float64"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--scale", action="store_true")
    parser.add_argument("--points", type=int, help="one row of --scale")
    parser.add_argument("--first", nargs=4, metavar=("DEPTH", "WIDTH", "N", "DTYPE"), help="seconds of two first calls")
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-args.threads :])
    os.environ.update({k: str(args.threads) for k in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")})
    if args.points:
        one_scale(args.points)
    elif args.first:
        depth, width, n, dtype = args.first
        print(burgers(int(depth), int(width), int(n), dtype, "native")[1])
    elif args.scale:
        scale(args)
    else:
        table(args)


if __name__ == "__main__":
    main()
