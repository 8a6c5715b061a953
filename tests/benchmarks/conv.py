"""Convolutional networks: a training step on 8 x 8 digits, eager and compiled, and single layers with gradients."""

from __future__ import annotations

from functools import partial

from compare import arguments, compare, each, start, ways

# batch, channels, size, outputs, groups
LAYERS = {
    "conv 1-16, 8 x 8, batch 64": (64, 1, 8, 16, 1),
    "conv 16-32, 8 x 8, batch 64": (64, 16, 8, 32, 1),
    "conv 32-64, 32 x 32, batch 16": (16, 32, 32, 64, 1),
    "conv 64-64, 56 x 56, batch 1": (1, 64, 56, 64, 1),
    "depthwise 64, 32 x 32, batch 8": (8, 64, 32, 64, 64),
}


def network(library):
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

    return step, ()


def layer(library, sizes):
    batch, channels, size, outputs, groups = sizes
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


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=31)
    args = parser.parse_args()
    start("Convolutional networks", args.threads)
    compare("training step on digits", ways(network), args.runs, unit="ms", targets=(0.7,))
    for what, sizes in LAYERS.items():
        compare(what, each(partial(layer, sizes=sizes)), args.runs, unit="ms")
    for name in ("MaxPool2d", "AvgPool2d"):
        compare(f"{name}(2), 64 x 32 x 8 x 8", each(partial(pooling, name=name)), args.runs, unit="ms")


if __name__ == "__main__":
    main()
