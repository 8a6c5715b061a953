"""A training step of a small classifier: 64-64-64-10, batch 64, cross-entropy, Adam."""

from __future__ import annotations

from compare import compare, header, one_thread, peer


def case(library):
    nn = library.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = library.optim.Adam(model.parameters())
    x, y = library.randn(64, 64), library.randint(0, 10, (64,))

    def forward():
        return nn.functional.cross_entropy(model(x), y)

    def backward():
        optimizer.zero_grad()
        forward().backward()

    def step():
        backward()
        optimizer.step()

    return {"forward": forward, "and backward": backward, "and Adam: the whole step": step}


def main() -> None:
    one_thread()
    header("Classifier 64-64-64-10, batch 64")
    libraries = {name: library for name in ("leafgrad", "torch") if (library := peer(name)) is not None}
    cases = {name: case(library) for name, library in libraries.items()}
    for what in next(iter(cases.values())):
        compare(what, {name: functions[what] for name, functions in cases.items()}, runs=301)


if __name__ == "__main__":
    main()
