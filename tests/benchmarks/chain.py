"""A thousand chained multiplies of 32 x 32 arrays: what one small operation costs."""

from __future__ import annotations

from compare import compare, header, one_thread, peer

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
    one_thread()
    header("Chain of multiplies, time of one")
    libraries = {name: library for name in ("leafgrad", "torch") if (library := peer(name)) is not None}
    cases = {name: case(library) for name, library in libraries.items()}
    for i, what in enumerate(("forward", "forward and backward")):
        compare(what, {name: functions[i] for name, functions in cases.items()}, runs=41, per=LENGTH)


if __name__ == "__main__":
    main()
