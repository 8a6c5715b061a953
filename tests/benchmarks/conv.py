"""Convolutional networks: a training step on 8 x 8 digits, eager and compiled, and single layers with gradients."""

from __future__ import annotations

import argparse
import os
import sys

from compare import THREADS, compare, header, peer

# batch, channels, size, outputs, groups
LAYERS = {
    "conv 1-16, 8 x 8, batch 64": (64, 1, 8, 16, 1),
    "conv 16-32, 8 x 8, batch 64": (64, 16, 8, 32, 1),
    "conv 32-64, 32 x 32, batch 16": (16, 32, 32, 64, 1),
    "conv 64-64, 56 x 56, batch 1": (1, 64, 56, 64, 1),
    "depthwise 64, 32 x 32, batch 8": (8, 64, 32, 64, 64),
}


def network(library, compiled=False):
    nn = library.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip
    optimizer = library.optim.Adam(model.parameters())
    x, y = library.randn(64, 1, 8, 8), library.randint(0, 10, (64,))

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

    return library.compile(step) if compiled else step


def layer(library, batch, channels, size, outputs, groups):
    conv = library.nn.Conv2d(channels, outputs, 3, padding=1, groups=groups)
    x = library.randn(batch, channels, size, size, requires_grad=True)

    def both():
        conv(x).sum().backward()

    return both


def pooling(library, name):
    x = library.randn(64, 32, 8, 8, requires_grad=True)
    pool = getattr(library.nn, name)(2)

    def both():
        pool(x).sum().backward()

    return both


def restart_with(threads: int) -> None:
    """Start this script again with so many threads for all libraries, unless it has them."""
    wanted = dict.fromkeys(THREADS, str(threads))
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **wanted})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=51)
    args = parser.parse_args()
    restart_with(args.threads)
    header("Convolutional networks")
    libraries = {name: library for name in ("leafgrad", "torch") if (library := peer(name)) is not None}
    if "torch" in libraries:
        libraries["torch"].set_num_threads(args.threads)
    steps = {name: network(library) for name, library in libraries.items()}
    compare("training step on digits", steps, runs=args.runs, unit="ms")
    compiled = {**steps, "leafgrad": network(libraries["leafgrad"], compiled=True)}
    compare("the same, ours compiled", compiled, runs=args.runs, unit="ms")
    for what, sizes in LAYERS.items():
        compare(what, {name: layer(library, *sizes) for name, library in libraries.items()}, runs=args.runs, unit="ms")
    for name in ("MaxPool2d", "AvgPool2d"):
        both = {key: pooling(library, name) for key, library in libraries.items()}
        compare(f"{name}(2), 64 x 32 x 8 x 8", both, runs=args.runs, unit="ms")


if __name__ == "__main__":
    main()
