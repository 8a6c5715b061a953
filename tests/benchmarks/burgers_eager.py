"""One eager residual step of Burgers' equation: u_t + u u_x - nu u_xx at 10,000 points, loss and all gradients.

The network has 8 tanh layers of 20; derivatives are taken in reverse mode, twice, and the loss's on top.
"""

from __future__ import annotations

import math
from itertools import pairwise

from compare import compare, each, start

POINTS = 10_000
NU = 0.01 / math.pi


def case(library):
    nn = library.nn
    widths = [2] + [20] * 8
    layers = [part for n, m in pairwise(widths) for part in (nn.Linear(n, m), nn.Tanh())]
    model = nn.Sequential(*layers, nn.Linear(20, 1))
    params = list(model.parameters())
    t = library.rand(POINTS, 1).requires_grad_()
    x = (2 * library.rand(POINTS, 1) - 1).requires_grad_()
    grad = library.autograd.grad

    def step():
        u = model(library.cat([t, x], 1))
        ones = library.ones_like(u)
        u_t, u_x = grad(u, (t, x), ones, create_graph=True)
        (u_xx,) = grad(u_x, x, ones, create_graph=True)
        loss = ((u_t + u * u_x - NU * u_xx) ** 2).mean()
        return grad(loss, params)

    return step


def main() -> None:
    start("Burgers' equation, eager")
    compare(f"8 x 20, {POINTS} points, loss and gradients", each(case), runs=15, unit="ms", targets=(0.7,))


if __name__ == "__main__":
    main()
