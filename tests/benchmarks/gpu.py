"""Training steps on a GPU beside PyTorch and JAX, as a table: ``make gpu-check`` appends it to its report.

Each figure is the time of a call in a loop that reads no value, with one wait at its end; libraries take turns, and
medians are told. A library that cannot do a step, or not in memory, has no figure.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import statistics
import time
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

from compare import number, peer

NU = 0.0031830988618379067  # 0.01 / pi
ROUNDS = 5


def burgers(library: Any, width: int, depth: int, rows: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The residual of Burgers' equation by nested grad, its gradients, and Adam."""
    nn = library.nn
    sizes = [2, *[width] * depth, 1]
    layers = [m for a, b in itertools.pairwise(sizes) for m in (nn.Linear(a, b), nn.Tanh())]
    net = nn.Sequential(*layers[:-1]).to("cuda")
    optimizer = adam(library, net)
    points = library.rand(rows, 2, device="cuda").requires_grad_()

    def step(x):
        u = net(x)
        (first,) = library.autograd.grad(u.sum(), x, create_graph=True)
        (second,) = library.autograd.grad(first[:, 0].sum(), x, create_graph=True)
        loss = (first[:, 1:] + u * first[:, :1] - NU * second[:, :1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, (points,)


def jax_burgers(width: int, depth: int, rows: int) -> Callable[[], Any]:
    """The same with JAX, by nested forward mode."""
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.PRNGKey(0), depth + 2)
    sizes = [2, *[width] * depth, 1]
    weights = [
        (jax.random.normal(k, (a, b)) / a**0.5, jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:], strict=False)
    ]
    points = jax.random.uniform(keys[-1], (rows, 2))

    def u(weights, x, t):
        h = jnp.stack([x, t])
        for w, b in weights[:-1]:
            h = jnp.tanh(h @ w + b)
        w, b = weights[-1]
        return (h @ w + b)[0]

    def residual(weights, x, t):
        def along(f):
            return lambda x: jax.jvp(f, (x,), (1.0,))[1]

        u_x = along(lambda x: u(weights, x, t))
        u_t = along(lambda t: u(weights, x, t))(t)
        return u_t + u(weights, x, t) * u_x(x) - NU * along(u_x)(x)

    def loss(weights):
        return (jax.vmap(partial(residual, weights))(points[:, 0], points[:, 1]) ** 2).mean()

    return trained_by_jax(loss, weights)


def trained_by_jax(loss: Callable[..., Any], weights: Any) -> Callable[[], Any]:
    """A step of Adam, with its state given away."""
    import jax
    import jax.numpy as jnp

    @partial(jax.jit, donate_argnums=(0, 1, 2))
    def step(weights, m, v, t):
        value, g = jax.value_and_grad(loss)(weights)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        scale = 1e-3 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        return jax.tree.map(lambda w, m, v: w - scale * m / (jnp.sqrt(v) + 1e-8), weights, m, v), m, v, value

    zeros = partial(jax.tree.map, jnp.zeros_like)
    state = [weights, zeros(weights), zeros(weights), 0]

    def run():
        *state[:3], value = step(*state[:3], state[3] + 1)
        state[3] += 1
        return value

    return run


def adam(library: Any, net: Any) -> Any:
    """Adam; PyTorch's in a form that a CUDA graph can hold."""
    if library.__name__ == "torch":
        return library.optim.Adam(net.parameters(), capturable=True, fused=True)
    return library.optim.Adam(net.parameters())


def supervised(library: Any, net: Any, loss: Any, x: Any, y: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    net = net.to("cuda")
    optimizer = adam(library, net)

    def step(x, y):
        optimizer.zero_grad()
        value = loss(net(x), y)
        value.backward()
        optimizer.step()
        return value.detach()

    return step, (x.to("cuda"), y.to("cuda"))


def classifier(library: Any) -> Any:
    nn = library.nn
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    x, y = library.randn(256, 784), library.randint(0, 10, (256,))
    return supervised(library, net, nn.functional.cross_entropy, x, y)


def convolutions(library: Any) -> Any:
    nn = library.nn
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip
    return supervised(
        library, net, nn.functional.cross_entropy, library.randn(64, 1, 8, 8), library.randint(0, 10, (64,))
    )


def transformer(library: Any) -> Any:
    from training import transformer as made

    return made(library, "cuda", adam)


def graphed(torch: Any, step: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], Any]:
    """A step of PyTorch's as one CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step(*args)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(*args)
    return lambda _=(step, args): graph.replay()  # which reads the tensors of both


def ways(name: str, make: Callable[[Any], Any], jax: Callable[[], Any] | None, given: argparse.Namespace) -> Any:
    """Functions by name; what a library cannot do is told, and left out."""
    ours, torch = peer("leafgrad"), peer("torch")

    def compiled():
        step, args = make(ours)
        run = ours.compile(step)
        for _ in range(4):
            run(*args)
        if given.kernels:
            print(f"\n{name}\n\n```text\n{run.explain()}\n```\n", flush=True)
        return partial(run, *args)

    def eager(library):
        step, args = make(library)
        step(*args)
        return partial(step, *args)

    makers: dict[str, Callable[[], Any]] = {"leafgrad": compiled, "leafgrad, eager": lambda: eager(ours)}
    if torch is not None and not given.alone:
        makers["PyTorch, eager"] = lambda: eager(torch)
        makers["PyTorch, CUDA graph"] = lambda: graphed(torch, *make(torch))
        if jax is None:  # torch.compile knows no second derivatives
            makers["torch.compile"] = lambda: partial(torch.compile(make(torch)[0]), *make(torch)[1])
    if jax is not None and not given.alone and peer("jax") is not None:
        makers["JAX jit"] = jax
    found = {}
    for which, maker in makers.items():
        try:
            found[which] = function = maker()
            function()
        except Exception as error:
            found.pop(which, None)
            if given.kernels or which.startswith("leafgrad"):
                print(f"\n{name}: {which}: {type(error).__name__}: {str(error)[:300]}\n", flush=True)
                if which.startswith("leafgrad"):
                    traceback.print_exc()
    return found


def wait(value: Any) -> None:
    """Until what a call began is done."""
    import cupy

    cupy.cuda.Device(0).synchronize()
    if hasattr(value, "block_until_ready"):
        value.block_until_ready()


def seconds(functions: dict[str, Callable[[], Any]], budget: float) -> dict[str, float]:
    """Medians of a call's time in a loop, as many calls as fit."""
    counts: dict[str, int] = {}
    for name, function in functions.items():
        wait(function())
        begin = time.perf_counter()
        wait([function() for _ in range(3)][-1])
        counts[name] = max(3, min(200, int(budget / ROUNDS / ((time.perf_counter() - begin) / 3))))
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(ROUNDS):
        for name, function in functions.items():
            begin = time.perf_counter()
            for _ in range(counts[name]):
                value = function()
            wait(value)
            times[name].append((time.perf_counter() - begin) / counts[name])
    return {name: statistics.median(t) for name, t in times.items()}


def on_points(rows: int, aim: float) -> dict[str, Any]:
    """Steps of Burgers' equation: what makes them, JAX's, and the share of the best peer that is aimed at."""
    return {
        f"Burgers {depth} x {width}, {rows:,} points": (
            partial(burgers, width=width, depth=depth, rows=rows),
            partial(jax_burgers, width, depth, rows),
            aim,
        )
        for width, depth in ((20, 8), (128, 4))
    }


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[], Any] | None, float]] = {
    **on_points(10_000, 0.5),
    "classifier 784-512-512-10, batch 256": (classifier, None, 0.5),
    "transformer block of width 64": (transformer, None, 0.5),
    "convolutional network, batch 64": (convolutions, None, 0.5),
    **on_points(1_000_000, 0.9),
}


def kernels(graph: Any) -> tuple[float | None, float]:
    """Seconds of a program's kernels: on paper, for a GPU whose peaks are known, and measured, each by itself."""
    import cupy

    from leafgrad_cuda.gpu import Gpu
    from leafgrad_cuda.plan import CudaPlan
    from leafgrad_cuda.predict import DEVICES, seconds

    place = Gpu(0)
    plan = CudaPlan(graph, place.shared, place.processors)
    place.load(plan)
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode().lower()
    peaks = next((peaks for key, peaks in DEVICES.items() if key in name), None)
    paper = None if peaks is None else sum(seconds(plan, launch, peaks) for launch in plan.kernels)
    return paper, sum(place.times(plan).values())


def row(name: str, given: argparse.Namespace) -> str:
    """A case as a line of the table."""
    make, jax, aim = CASES[name]
    functions = ways(name, make, jax, given)
    times: dict[str, float | None] = dict(seconds(functions, given.budget))
    others = [t for n, t in times.items() if t and not n.startswith("leafgrad")]
    ours = times.get("leafgrad")
    ratio = f"{ours / min(others):.2f}" if others and ours else ""
    times["on paper"], times["kernels"] = kernels(functions["leafgrad"].func.graph) if ours else (None, None)
    cells = [number(1e6 * t) if (t := times.get(n)) is not None else "" for n in COLUMNS]
    return f"| {name} | {' | '.join(cells)} | {ratio} | {aim} |"


def free() -> None:
    """Give back what libraries keep for later."""
    import cupy

    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()
    if (torch := peer("torch")) is not None:
        torch.cuda.empty_cache()


COLUMNS = ["leafgrad", "leafgrad, eager", "PyTorch, eager", "PyTorch, CUDA graph", "torch.compile", "JAX jit",
           "on paper", "kernels"]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", action="store_true", help="print each program's kernels, and what others refuse")
    parser.add_argument("--alone", action="store_true", help="without PyTorch and JAX")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--budget", type=float, default=1.5, help="seconds for each library and case")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("\n## Training steps\n")
    print("Microseconds a step, in a loop that reads no value. The last two columns are leafgrad's kernels alone: at")
    print("the GPU's peaks, and measured one by one.\n")
    print(f"| us a step | {' | '.join(COLUMNS)} | ratio | aim |", f"| {'--- | ' * (len(COLUMNS) + 3)}", sep="\n")
    for name in CASES:
        if given.only in name:
            print(row(name, given), flush=True)
            free()


if __name__ == "__main__":
    main()
