"""Residual steps of physics-informed networks: compiled leafgrad, PyTorch eager, JAX jit, side by side.

Each step computes the mean squared residual of an equation at N points and its gradients with respect to all
parameters. JAX runs the best of three formulations: nested reverse mode, nested forward mode, forward over reverse.

    python tests/benchmarks/pinn.py                       # Burgers at the sizes of the table
    python tests/benchmarks/pinn.py --equations           # the other equations
    python tests/benchmarks/pinn.py --threads 2 --dtype float64
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

NU = 0.0031830988618379067  # 0.01 / pi


@dataclass(frozen=True)
class Equation:
    """A residual, written twice: on tensors with nested ``grad``, and on scalars with a derivative operator.

    Attributes:
        inputs: coordinates of a point.
        outputs: components of the solution.
        tensors: residuals from ``(d, u, *coordinates)``; ``d(u, x)`` is the derivative of each point's u.
        scalars: residuals from ``(d, u, *coordinates)``; ``d(u, i)`` is the function that is u's i-th derivative.
    """

    inputs: int
    outputs: int
    tensors: Callable[..., Sequence[Any]]
    scalars: Callable[..., Sequence[Any]]


def burgers_t(d, u, x, t):
    u_x, u_t = d(u, x, t)
    (u_xx,) = d(u_x, x)
    return (u_t + u * u_x - NU * u_xx,)


def burgers_s(d, u, x, t):
    return (d(u, 1)(x, t) + u(x, t) * d(u, 0)(x, t) - NU * d(d(u, 0), 0)(x, t),)


def allen_cahn_t(d, u, x, t):
    u_x, u_t = d(u, x, t)
    (u_xx,) = d(u_x, x)
    return (u_t - 1e-4 * u_xx + 5 * u * u * u - 5 * u,)


def allen_cahn_s(d, u, x, t):
    v = u(x, t)
    return (d(u, 1)(x, t) - 1e-4 * d(d(u, 0), 0)(x, t) + 5 * v * v * v - 5 * v,)


def kdv_t(d, u, x, t):
    u_x, u_t = d(u, x, t)
    (u_xx,) = d(u_x, x)
    (u_xxx,) = d(u_xx, x)
    return (u_t + u * u_x + 0.0025 * u_xxx,)


def kdv_s(d, u, x, t):
    u_x = d(u, 0)
    return (d(u, 1)(x, t) + u(x, t) * u_x(x, t) + 0.0025 * d(d(u_x, 0), 0)(x, t),)


def beam_t(d, u, x, t):
    u_x, u_t = d(u, x, t)
    (u_tt,) = d(u_t, t)
    (u_xx,) = d(u_x, x)
    (u_xxx,) = d(u_xx, x)
    (u_xxxx,) = d(u_xxx, x)
    return (u_tt + u_xxxx,)


def beam_s(d, u, x, t):
    return (d(d(u, 1), 1)(x, t) + d(d(d(d(u, 0), 0), 0), 0)(x, t),)


def kovasznay_t(d, w, x, y):
    u, v, p = w[:, 0:1], w[:, 1:2], w[:, 2:3]
    (u_x, u_y), (v_x, v_y), (p_x, p_y) = d(u, x, y), d(v, x, y), d(p, x, y)
    (u_xx,), (u_yy,), (v_xx,), (v_yy,) = d(u_x, x), d(u_y, y), d(v_x, x), d(v_y, y)
    return (u * u_x + v * u_y + p_x - (u_xx + u_yy) / 40, u * v_x + v * v_y + p_y - (v_xx + v_yy) / 40, u_x + v_y)


def kovasznay_s(d, w, x, y):
    u, v, p = (lambda *a, k=k: w(*a)[k] for k in range(3))
    at = (x, y)
    lap_u = d(d(u, 0), 0)(*at) + d(d(u, 1), 1)(*at)
    lap_v = d(d(v, 0), 0)(*at) + d(d(v, 1), 1)(*at)
    return (
        u(*at) * d(u, 0)(*at) + v(*at) * d(u, 1)(*at) + d(p, 0)(*at) - lap_u / 40,
        u(*at) * d(v, 0)(*at) + v(*at) * d(v, 1)(*at) + d(p, 1)(*at) - lap_v / 40,
        d(u, 0)(*at) + d(v, 1)(*at),
    )


EQUATIONS = {
    "Burgers": Equation(2, 1, burgers_t, burgers_s),
    "Allen-Cahn": Equation(2, 1, allen_cahn_t, allen_cahn_s),
    "KdV (3rd order)": Equation(2, 1, kdv_t, kdv_s),
    "beam (4th order)": Equation(2, 1, beam_t, beam_s),
    "Kovasznay (3 outputs)": Equation(2, 3, kovasznay_t, kovasznay_s),
}
SIZES = [(8, 20, 10_000), (4, 50, 10_000), (4, 128, 10_000), (8, 20, 256)]


def tensor_step(m: Any, equation: Equation, weights: list[Any], points: list[Any]) -> Callable[..., Any]:
    """The step in leafgrad or PyTorch: ``m`` is the package."""

    def d(u, *xs):
        return m.autograd.grad(u.sum(), xs, create_graph=True)

    def step(*xs):
        h = m.cat(xs, 1)
        for w, b in zip(weights[:-2:2], weights[1:-2:2], strict=True):
            h = m.tanh(h @ w + b)
        residuals = equation.tensors(d, h @ weights[-2] + weights[-1], *xs)
        loss = sum((r * r).mean() for r in residuals)
        return loss, *m.autograd.grad(loss, weights, materialize_grads=True)

    return step


def jax_steps(equation: Equation, weights: list[Any], points: list[Any]) -> dict[str, Callable[[], Any]]:
    """The step in JAX, in three formulations."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", weights[0].dtype.name == "float64")
    weights = [jnp.asarray(w) for w in weights]
    points = [jnp.asarray(p[:, 0]) for p in points]

    def reverse(f, i):
        return jax.grad(f, i)

    def forward(f, i):
        def derivative(*xs):
            seed = tuple(jnp.ones_like(x) if k == i else jnp.zeros_like(x) for k, x in enumerate(xs))
            return jax.jvp(f, xs, seed)[1]

        return derivative

    class Mixed:
        """Reverse mode for the first derivative of the network, forward mode for those of it."""

        def __call__(self, f, i):
            g = (forward if hasattr(f, "derived") else reverse)(f, i)

            def derivative(*xs):
                return g(*xs)

            derivative.derived = True
            return derivative

    def loss(d):
        def residuals(weights, *xs):
            def network(*at):
                h = jnp.stack(at)
                for w, b in zip(weights[:-2:2], weights[1:-2:2], strict=True):
                    h = jnp.tanh(h @ w + b)
                h = h @ weights[-2] + weights[-1]
                return h if equation.outputs > 1 else h[0]

            return jnp.stack(equation.scalars(d, network, *xs))

        def mean(weights, *xs):
            batched = jax.vmap(residuals, (None, *[0] * len(xs)))
            return (batched(weights, *xs) ** 2).mean(0).sum()

        return jax.jit(jax.value_and_grad(mean))

    def caller(f):
        return lambda: jax.block_until_ready(f(weights, *points))

    modes = {"JAX reverse": reverse, "JAX forward": forward, "JAX mixed": Mixed()}
    return {name: caller(loss(d)) for name, d in modes.items()}


def contenders(
    equation: Equation, depth: int, width: int, n: int, dtype: str, without: Sequence[str]
) -> dict[str, Any]:
    """A function per framework that runs one step on the same numbers, after a check that they agree."""
    import numpy as np

    import leafgrad

    rng = np.random.default_rng(0)
    sizes = [equation.inputs, *[width] * depth, equation.outputs]
    arrays = []
    for a, b in itertools.pairwise(sizes):
        arrays += [(rng.normal(size=(a, b)) / a**0.5).astype(dtype), (0.1 * rng.normal(size=b)).astype(dtype)]
    points = [rng.uniform(-1, 1, size=(n, 1)).astype(dtype) for _ in range(equation.inputs)]

    def on(m: Any) -> Callable[..., Any]:
        weights = [m.tensor(a, requires_grad=True) for a in arrays]
        xs = [m.tensor(p, requires_grad=True) for p in points]
        step = tensor_step(m, equation, weights, xs)
        if m is leafgrad:
            step = leafgrad.compile(step)
        return lambda: step(*xs)

    start = time.perf_counter()
    functions: dict[str, Any] = {"leafgrad": on(leafgrad)}
    functions["leafgrad"](), functions["leafgrad"]()
    first = time.perf_counter() - start
    expected = float(functions["leafgrad"]()[0])
    if "torch" not in without and importable("torch"):
        import torch

        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        functions["PyTorch"] = on(torch)
        check(float(functions["PyTorch"]()[0]), expected, dtype)
    if "jax" not in without and importable("jax"):
        for name, f in jax_steps(equation, arrays, points).items():
            functions[name] = f
            check(float(f()[0]), expected, dtype)
    functions["first call"] = first
    return functions


def importable(name: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(name) is not None


def check(got: float, expected: float, dtype: str) -> None:
    tolerance = 1e-3 if dtype == "float32" else 1e-9
    if abs(got - expected) > tolerance * abs(expected):
        raise SystemExit(f"the frameworks disagree: {got} and {expected}")


def floor_seconds(depth: int, width: int, n: int, dtype: str, outputs: int) -> float:
    """A bound for Burgers on this BLAS: 12 products of a layer per point, and one tanh.

    Forward, its derivative, both again for the second derivative, and for each of these four a product for the
    gradient of its input and one for that of the weights.
    """
    import numpy as np

    a, w = np.ones((width, width), dtype), np.ones((width, 512), dtype)
    out, t = np.empty_like(w), np.ones((width, 512), dtype)
    product = min(timed(lambda: np.matmul(a, w, out)) for _ in range(200))
    tanh = min(timed(lambda: np.tanh(t, out)) for _ in range(200))
    return n / 512 * (12 * (depth - 1) * product + depth * tanh)


def timed(f: Callable[[], Any]) -> float:
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def compare(functions: dict[str, Any], rounds: int) -> dict[str, float]:
    """Median milliseconds of each, measured in turns of random order.

    A pause comes before each turn: threads of the one before spin for a while on the cores that all share.
    """
    order = list(functions.items())
    shuffle = random.Random(0).shuffle
    for f in functions.values():
        f()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        shuffle(order)
        for name, f in order:
            time.sleep(0.05)
            times[name].append(timed(f))
    return {name: 1e3 * statistics.median(ts) for name, ts in times.items()}


def report(name: str, depth: int, width: int, n: int, dtype: str, args: argparse.Namespace) -> None:
    functions = contenders(EQUATIONS[name], depth, width, n, dtype, args.without)
    first = functions.pop("first call")
    ms = compare(functions, args.rounds)
    ours = ms.pop("leafgrad")
    line = f"| {name} | {depth} x {width} | {n} | {dtype} | {ours:.2f} |"
    line += "".join(f" {ms.get(p, float('nan')):.2f} |" for p in ("PyTorch", "JAX reverse", "JAX forward", "JAX mixed"))
    ratio = ours / min(ms.values()) if ms else float("nan")
    floor = 1e3 * floor_seconds(depth, width, n, dtype, 1) if name == "Burgers" else float("nan")
    print(line + f" {ratio:.2f} | {ours / floor:.1f} | {first:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", nargs="+", default=["float32", "float64"])
    parser.add_argument("--equations", action="store_true", help="the other equations, at 4 x 50")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--without", nargs="*", default=[], help="peers to leave out: torch, jax")
    args = parser.parse_args()
    # Before any array library is imported: the same cores and threads for everyone.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-args.threads :])
    os.environ.update({k: str(args.threads) for k in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")})
    if args.threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    print(f"{platform.processor() or platform.machine()}, {args.threads} thread(s), Python {platform.python_version()}")
    print("python " + " ".join(sys.argv))
    print("| equation | network | points | dtype | leafgrad ms | PyTorch | JAX reverse | JAX forward | JAX mixed |"
          " ratio to best peer | multiple of floor | first two calls s |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for dtype in args.dtype:
        if args.equations:
            for name in list(EQUATIONS)[1:]:
                report(name, 4, 50, 10_000, dtype, args)
        else:
            for depth, width, n in SIZES:
                report("Burgers", depth, width, n, dtype, args)


if __name__ == "__main__":
    main()
