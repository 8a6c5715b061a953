"""Residual steps of physics-informed networks: compiled leafgrad, PyTorch eager, JAX jit, side by side.

Each step computes the mean squared residual of an equation at N points and its gradients with respect to all
parameters. JAX runs in two formulations: nested reverse mode and nested forward mode.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from compare import arguments, compare, peer, start

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
NAMES = {"native": "", "numpy": ", NumPy executor"}
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
    """The step in JAX, in two formulations."""
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

    modes = {"JAX reverse": reverse, "JAX forward": forward}
    return {name: caller(loss(d)) for name, d in modes.items()}


def contenders(equation: Equation, depth: int, width: int, n: int, dtype: str, executors: list[str]) -> dict[str, Any]:
    """A function per framework that runs one step on the same numbers, after a check that they agree.

    None for one that is not installed.
    """
    import numpy as np

    import leafgrad

    rng = np.random.default_rng(0)
    sizes = [equation.inputs, *[width] * depth, equation.outputs]
    arrays = []
    for a, b in itertools.pairwise(sizes):
        arrays += [(rng.normal(size=(a, b)) / a**0.5).astype(dtype), (0.1 * rng.normal(size=b)).astype(dtype)]
    points = [rng.uniform(-1, 1, size=(n, 1)).astype(dtype) for _ in range(equation.inputs)]

    def on(m: Any, executor: str | None = None) -> Callable[..., Any]:
        weights = [m.tensor(a, requires_grad=True) for a in arrays]
        xs = [m.tensor(p, requires_grad=True) for p in points]
        step = tensor_step(m, equation, weights, xs)
        if executor is not None:
            step = leafgrad.compile(step, executor=executor)
        return lambda: step(*xs)

    functions: dict[str, Any] = {"leafgrad" + NAMES[executor]: on(leafgrad, executor) for executor in executors}
    functions["PyTorch"] = (torch := peer("torch")) and on(torch)
    if find_spec("jax") is not None:
        functions |= jax_steps(equation, arrays, points)
    else:
        functions["JAX"] = None
    losses = {name: float(f()[0].item()) for name, f in functions.items() if f is not None}
    for loss in losses.values():
        check(loss, losses["leafgrad" + NAMES[executors[0]]], dtype)
    return functions


def check(got: float, expected: float, dtype: str) -> None:
    tolerance = 1e-3 if dtype == "float32" else 1e-9
    if abs(got - expected) > tolerance * abs(expected):
        raise SystemExit(f"the frameworks disagree: {got} and {expected}")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--dtype", nargs="+", default=["float32", "float64"])
    parser.add_argument("--equations", action="store_true", help="the other equations, at 4 x 50")
    parser.add_argument("--executor", nargs="+", choices=list(NAMES), default=list(NAMES))
    parser.add_argument("--width", nargs="*", type=int, default=[20, 50, 128])
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    cores = f"{args.threads} core{'s' * (args.threads > 1)}"
    start(f"Residual steps, compiled, {'other equations, ' * args.equations}{cores}", args.threads)
    names = list(EQUATIONS)[1:] if args.equations else ["Burgers"]
    for dtype, name, (depth, width, n) in itertools.product(args.dtype, names, SIZES):
        if width not in args.width or (args.equations and (depth, width, n) != (4, 50, 10_000)):
            continue
        functions = contenders(EQUATIONS[name], depth, width, n, dtype, args.executor)
        targets = tuple(target(executor, name, depth, width, dtype, args.threads) for executor in args.executor)
        what = f"{name}, {depth} x {width}, {n:,} points, {dtype}"
        compare(what, functions, args.rounds, unit="ms", pause=0.05, targets=targets)


def target(executor: str, equation: str, depth: int, width: int, dtype: str, threads: int) -> float | None:
    """The share of the best peer's time that is aimed at."""
    if equation != "Burgers" or width == 128:
        return None
    if executor == "numpy":
        return 0.5
    return {("float64", 1): 0.15, ("float64", 2): 0.11}.get((dtype, threads), 0.25) if depth == 8 else 0.25


if __name__ == "__main__":
    main()
