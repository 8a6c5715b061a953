"""A step of each optimizer over a hundred small parameters."""

from __future__ import annotations

from compare import compare, header, one_thread, peer

COUNT = 100


def case(library, name, **options):
    params = [library.randn(10, 10).requires_grad_() for _ in range(COUNT)]
    for p in params:
        p.grad = library.randn(10, 10)
    return getattr(library.optim, name)(params, **options).step


def main() -> None:
    one_thread()
    header(f"Optimizer step over {COUNT} parameters of 10 x 10")
    libraries = {name: library for name in ("leafgrad", "torch") if (library := peer(name)) is not None}
    for name, options in (("SGD", {"lr": 1e-3, "momentum": 0.9}), ("Adam", {}), ("AdamW", {})):
        compare(name, {key: case(library, name, **options) for key, library in libraries.items()}, runs=301)


if __name__ == "__main__":
    main()
