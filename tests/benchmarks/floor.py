"""Where the time of eager execution goes, beside NumPy alone doing the same work on arrays: the floor.

What ``chain.py`` and ``mlp.py`` measure, taken apart. A part is the difference between two measurements, and a
difference of medians drowns in what else a machine does: here the shortest of many runs counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from chain import forward
from compare import header, one_thread, peer, times
from mlp import case

import leafgrad

LENGTH = 100


def arrays(*shape: int) -> Any:
    return np.random.default_rng(0).random(shape, dtype="float32")


# ---- the chain of multiplies --------------------------------------------------------------------------------------


def products(x: Any, a: Any) -> list[Any]:
    """The arrays of the chain, which a graph keeps, too."""
    kept = [x]
    for _ in range(LENGTH):
        kept.append(kept[-1] * a)
    return kept


def gradients(kept: list[Any], a: Any, g: Any) -> tuple[Any, Any]:
    """Two products and a sum for each multiply."""
    total = np.zeros_like(a)
    for y in reversed(kept[:-1]):
        total += g * y
        g = g * a
    return g, total


def chain(library: Any) -> tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]:
    """The chain without recording, with it, and with its backward pass."""
    x = library.rand(32, 32).requires_grad_()
    a = (1 - 1e-3 * library.rand(32, 32)).detach().requires_grad_()
    seed = library.ones(32, 32)

    def unrecorded() -> Any:
        with library.no_grad():
            return products(x, a)

    def backward() -> None:
        x.grad = a.grad = None
        forward(x, a, LENGTH).backward(seed)

    return unrecorded, lambda: forward(x, a, LENGTH), backward


def measure_chain(torch: Any) -> None:
    x, a, seed = arrays(32, 32), 1 - arrays(32, 32) / 1000, np.ones((32, 32), "float32")
    kept = products(x, a)
    ours = dict(zip(("unrecorded", "recorded", "backward"), chain(leafgrad), strict=True))
    functions: dict[str, Callable[[], Any]] = {
        "products": lambda: products(x, a),
        "gradients": lambda: gradients(kept, a, seed),
        **ours,
    }
    if torch is not None:
        _, functions["torch forward"], functions["torch backward"] = chain(torch)
    t = least(functions, runs=1001, per=LENGTH)
    numpy = t["products"] + t["gradients"]
    print("\nA multiply of 32 x 32 arrays: what of it is whose")
    rows = [
        ("NumPy: the product", t["products"]),
        ("dispatch: a Tensor, its checks", t["unrecorded"] - t["products"]),
        ("recording: a node", t["recorded"] - t["unrecorded"]),
        ("forward, in all", t["recorded"]),
        ("NumPy: two products and a sum", t["gradients"]),
        ("backward pass: engine, rules", t["backward"] - t["recorded"] - t["gradients"]),
        ("forward and backward, in all", t["backward"]),
    ]
    of = {"NumPy: the product": "forward", "forward, in all": "forward", "forward and backward, in all": "backward"}
    for what, time in rows:
        line(what, time, t.get(f"torch {of.get(what)}"))
    line("NumPy alone, both", numpy, t.get("torch backward"))


# ---- the step of a classifier -------------------------------------------------------------------------------------


class Classifier:
    """What ``mlp.py`` computes, in NumPy, with no more than it takes."""

    def __init__(self) -> None:
        self.weights = [(arrays(m, n) - 0.5) / 4 for n, m in ((64, 64), (64, 64), (64, 10))]
        self.biases = [(arrays(w.shape[0]) - 0.5) / 4 for w in self.weights]
        self.x, self.rows, self.y = arrays(64, 64), np.arange(64), np.arange(64) % 10
        n = sum(p.size for p in (*self.weights, *self.biases))
        self.m, self.v, self.steps = np.zeros(n, "float32"), np.zeros(n, "float32"), 0

    def forward(self) -> tuple[list[Any], Any, Any]:
        """Inputs of the layers, the exponentials of the scores and their sums."""
        inputs = [self.x]
        for weight, bias in zip(self.weights, self.biases, strict=True):
            y = inputs[-1] @ weight.T
            y += bias
            inputs.append(np.maximum(y, 0))
        y -= y.max(axis=1, keepdims=True)
        exponentials = np.exp(y)
        sums = np.add.reduce(exponentials, axis=1, keepdims=True)
        y -= np.log(sums)
        self.loss = -np.add.reduce(y[self.rows, self.y]) / 64
        return inputs[:-1], exponentials, sums

    def backward(self) -> list[Any]:
        """The gradients of the weights and the biases."""
        inputs, exponentials, sums = self.forward()
        g = exponentials / sums
        g[self.rows, self.y] -= 1
        g *= 1 / 64
        found = []
        for i in (2, 1, 0):
            found += [g.T @ inputs[i], np.add.reduce(g, axis=0)]
            if i:
                mask = (inputs[i] <= 0).astype("int32")
                mask -= 1
                g = ((g @ self.weights[i]).view("int32") & mask).view("float32")
        return found

    def step(self) -> None:
        """Adam, on all parameters at once."""
        g = np.concatenate([x.reshape(-1) for x in self.backward()])
        self.steps += 1
        self.m *= 0.9
        self.m += g * 0.1
        self.v *= 0.999
        g *= g
        g *= 0.001
        self.v += g
        root = np.sqrt(self.v / (1 - 0.999**self.steps))
        root += 1e-8
        change = self.m * (1e-3 / (0.9**self.steps - 1))
        change /= root
        end = 0
        for weight, bias in zip(reversed(self.weights), reversed(self.biases), strict=True):
            for p in (weight, bias):
                p += change[end : end + p.size].reshape(p.shape)
                end += p.size


def measure_classifier(torch: Any) -> None:
    plain = Classifier()
    alone: tuple[Callable[[], Any], ...] = plain.forward, plain.backward, plain.step
    cases = {name: case(library) for name, library in (("leafgrad", leafgrad), ("torch", torch)) if library is not None}
    print("\nClassifier 64-64-64-10, batch 64")
    for what, floor in zip(next(iter(cases.values())), alone, strict=True):
        functions = {"numpy": floor, **{name: functions[what] for name, functions in cases.items()}}
        t = least(functions, runs=501)
        for name, label in (("numpy", "NumPy alone"), ("leafgrad", "leafgrad")):
            line(f"{what}: {label}", t[name], t.get("torch"))


# ---- figures ------------------------------------------------------------------------------------------------------


def least(functions: dict[str, Callable[[], Any]], runs: int, per: int = 1) -> dict[str, float]:
    """Microseconds of each function over ``per``, of the run that was disturbed least."""
    return {name: min(t) * 1e6 / per for name, t in times(functions, runs).items()}


def line(what: str, time: float, theirs: float | None) -> None:
    print(
        f"  {what:44} {time:8.2f} us" + ("" if theirs is None else f"   {time / theirs:.2f} of PyTorch's {theirs:.2f}")
    )


def main() -> None:
    one_thread()
    header("Where the time of eager execution goes")
    torch = peer("torch")
    measure_chain(torch)
    measure_classifier(torch)


if __name__ == "__main__":
    main()
