"""What it costs that a compiled step is open: the same step closed, open, and uncompiled; and what guards cost."""

from __future__ import annotations

import itertools
import random
import timeit
from collections.abc import Callable
from typing import Any

from compare import Row, arguments, medians, start, tell

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


def steps(points: int, rounds: int, executor: str) -> None:
    step, opened = burgers(points)
    cases = {
        "open": leafgrad.compile(opened, executor=executor),
        "closed": leafgrad.compile(step, executor=executor),
        "uncompiled": step,
    }
    values = {name: None if t is None else 1e3 * t for name, t in medians(cases, rounds).items()}
    count = len(leafgrad.trace(step).equations)
    cost = 1e3 * ((values["open"] or 0) - (values["closed"] or 0)) / count
    tell(Row(f"{points} points, {executor}", "ms", values, more={"operations": count, "us an operation": cost}))


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
    found = step._calls.programs[0].guards
    seconds = min(timeit.repeat(lambda: found.match(1, found.structure, [x]), number=100, repeat=20)) / 100
    tell(Row(f"guards of {2 * layers} parameters", "us", {"leafgrad": 1e6 * seconds}))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--points", type=int, nargs="*", default=[256, 2000, 10000])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--executor", nargs="*", default=["numpy", "native"])
    args = parser.parse_args()
    start("Closed and open steps: Burgers 8 x 20 with Adam", args.threads)
    leafgrad.manual_seed(0)
    for executor in args.executor:
        for points in args.points:
            steps(points, args.rounds, executor)
    guards(50)


if __name__ == "__main__":
    main()
