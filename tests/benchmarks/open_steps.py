"""What it costs that a compiled step is open: the same step closed, open, and uncompiled; and what guards cost.

python tests/benchmarks/open_steps.py [--points 256] [--rounds 30] [--executor numpy]
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import time
import timeit
from collections.abc import Callable
from typing import Any

import leafgrad
from leafgrad import nn, optim
from leafgrad.autograd import grad

NU = 0.0031830988618379067  # 0.01 / pi


def network(depth: int, width: int) -> Any:
    sizes = [2, *[width] * depth, 1]
    layers: list[Any] = []
    for i, o in itertools.pairwise(sizes):
        layers += [nn.Linear(i, o), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def burgers(points: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """A training step on Burgers' equation; and the same, which asks Python's random numbers and so is open."""
    net, xt = network(8, 20), leafgrad.rand(points, 2)
    params = list(net.parameters())
    adam = optim.Adam(params)

    def step() -> Any:
        x, t = (xt[:, i : i + 1].detach().requires_grad_() for i in range(2))
        u = net(leafgrad.cat([x, t], 1))
        u_x, u_t = grad(u.sum(), (x, t), create_graph=True)
        (u_xx,) = grad(u_x.sum(), x, create_graph=True)
        loss = ((u_t + u * u_x - NU * u_xx) ** 2).mean()
        adam.zero_grad()
        loss.backward(inputs=params)
        adam.step()
        return loss

    def opened() -> Any:
        random.random()
        return step()

    return step, opened


def milliseconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return 1e3 * (time.perf_counter() - start)


def steps(points: int, rounds: int, executor: str | None) -> None:
    step, opened = burgers(points)
    cases = {
        "closed": leafgrad.compile(step, executor=executor),
        "open": leafgrad.compile(opened, executor=executor),
        "eager": step,
    }
    for _ in range(6):
        for case in cases.values():
            case()
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name in random.sample(list(cases), len(cases)):
            times[name].append(milliseconds(cases[name]))
    median = {name: statistics.median(found) for name, found in times.items()}
    count = len(leafgrad.trace(step).equations)
    cost = 1e3 * (median["open"] - median["closed"]) / count
    print(
        f"| {points} | {count} | {median['closed']:.2f} | {median['open']:.2f} | {median['eager']:.2f} | {cost:.1f} |"
    )


def guards(layers: int) -> None:
    """The guards of a training step of as many linear layers, each with two parameters."""
    net = nn.Sequential(*[nn.Linear(4, 4) for _ in range(layers)])
    adam = optim.Adam(net.parameters())

    def train(x: Any) -> Any:
        adam.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        adam.step()
        return loss

    step, x = leafgrad.compile(train), leafgrad.ones(3, 4)
    for _ in range(5):
        step(x)
    found = step._calls[0].guards
    seconds = min(timeit.repeat(lambda: found.match(1, found.structure, [x]), number=100, repeat=20)) / 100
    print(f"guards of a step with {2 * layers} parameters: {1e6 * seconds:.0f} us, {len(found.conditions)} conditions")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, nargs="*", default=[256, 2000, 10000])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--executor")
    args = parser.parse_args()
    leafgrad.manual_seed(0)
    print("| points | equations | closed ms | open ms | uncompiled ms | us an equation for being open |")
    print("|---|---|---|---|---|---|")
    for points in args.points:
        steps(points, args.rounds, args.executor)
    guards(50)


main()
