"""A training step of a small classifier: 64-64-64-10, batch 64, cross-entropy, Adam."""

from __future__ import annotations

from compare import compare, each, start


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
    start("A small classifier, eager")
    cases = each(case)
    for what, target in (("forward", None), ("and backward", None), ("and Adam: the whole step", 0.5)):
        functions = {name: functions and functions[what] for name, functions in cases.items()}
        compare(what, functions, runs=301, targets=(target,))


if __name__ == "__main__":
    main()
