"""A thousand chained multiplies of 32 x 32 arrays: what one small operation costs."""

from __future__ import annotations

from compare import compare, each, start

LENGTH = 1000


def forward(x, a, length=LENGTH):
    y = x
    for _ in range(length):
        y = y * a
    return y


def case(library):
    x = library.rand(32, 32).requires_grad_()
    a = (1 - 1e-3 * library.rand(32, 32)).detach().requires_grad_()
    seed = library.ones(32, 32)

    def both():
        x.grad = a.grad = None
        forward(x, a).backward(seed)

    return lambda: forward(x, a), both


def main() -> None:
    start("A chain of small multiplies, time of one")
    cases = each(case)
    for i, what in enumerate(("forward", "forward and backward")):
        functions = {name: functions and functions[i] for name, functions in cases.items()}
        compare(what, functions, runs=41, per=LENGTH, targets=(0.5,))


if __name__ == "__main__":
    main()
