"""What one eager op costs where the arrays cost nothing: 29 ops on 3 x 4 tensors, forward and with backward.

Of each op the processor's time, beside PyTorch's, and how many Python frames it takes; then eager steps of small
networks, which are made of such ops, with Adam and without. Libraries take turns, and each turn is many calls.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from compare import Row, arguments, each, start, tell

Call = Callable[[], Any]

CALLS = 40  # of an op, in one turn
MEAN = "geometric mean"
TARGETS = {"forward": 1.2, "forward and backward": 1.0}


# ---- ops ----------------------------------------------------------------------------------------------------------


def ops(library: Any) -> dict[str, Call]:
    """29 ops on tensors that require grad, by name."""
    library.manual_seed(0)
    f, row, images = library.nn.functional, [0, 2, 3], library.randn(1, 1, 4, 4).requires_grad_()
    x, y = (library.rand(3, 4).requires_grad_() for _ in range(2))
    square, weight, bias = (library.randn(*shape).requires_grad_() for shape in ((4, 4), (4,), (4,)))
    at, classes, mask = library.tensor(row[:2]), library.tensor(row), library.tensor([[True, False, True, False]] * 3)
    return {
        "add": lambda: x + y,
        "mul": lambda: x * y,
        "mul by a number": lambda: x * 2.0,
        "pow": lambda: x**2,
        "exp": lambda: x.exp(),
        "tanh": lambda: library.tanh(x),
        "relu": lambda: f.relu(x),
        "clamp": lambda: x.clamp(0.2, 0.8),
        "where": lambda: library.where(mask, x, y),
        "maximum": lambda: library.maximum(x, y),
        "sum": lambda: x.sum(),
        "sum of rows": lambda: x.sum(1),
        "mean": lambda: x.mean(),
        "var": lambda: x.var(),
        "max": lambda: x.max(),
        "softmax": lambda: library.softmax(x, 1),
        "index": lambda: x[at],
        "slice": lambda: x[1:, :2],
        "reshape": lambda: x.reshape(4, 3),
        "transpose": lambda: x.transpose(0, 1),
        "T": lambda: x.T,
        "unsqueeze": lambda: x.unsqueeze(0),
        "cat": lambda: library.cat((x, y)),
        "chunk": lambda: x.chunk(2, 1)[0],
        "matmul": lambda: x @ square,
        "linear": lambda: f.linear(x, square, bias),
        "layer norm": lambda: f.layer_norm(x, (4,), weight, bias),
        "cross entropy": lambda: f.cross_entropy(x, classes),
        "max pool": lambda: f.max_pool2d(images, 2),
    }


def and_backward(op: Call) -> Call:
    """An op and its backward pass, from a gradient of ones, into leaves that have none."""
    out = op()
    ones = out.detach() * 0 + 1
    leaves = [entry[0].variable for entry in out.grad_fn.next_functions if hasattr(entry[0], "variable")]

    def both() -> None:
        for leaf in leaves:
            leaf.grad = None
        op().backward(ones)

    return both


def frames(call: Call) -> int:
    """How many Python functions are entered by a call, itself aside."""
    count = -1  # of the call's own frame

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    call()
    sys.setprofile(counted)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


# ---- networks -----------------------------------------------------------------------------------------------------


def networks(library: Any) -> dict[str, Call]:
    """A forward and a backward pass of small networks, by name; and the same with a step of Adam."""
    library.manual_seed(0)
    nn = library.nn

    class Residual(nn.Module):
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
            self.norms = nn.ModuleList([nn.BatchNorm2d(channels) for _ in range(2)])

        def forward(self, x: Any) -> Any:
            y = nn.functional.relu(self.norms[0](self.first(x)))
            return nn.functional.relu(x + self.norms[1](self.second(y)))

    class UNet(nn.Module):
        """One level down and up again, with the way past."""

        def __init__(self) -> None:
            super().__init__()
            self.inward, self.below = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
            self.up, self.outward = nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Conv2d(8, 1, 3, padding=1)

        def forward(self, x: Any) -> Any:
            relu, past = nn.functional.relu, nn.functional.relu(self.inward(x))
            deep = relu(self.below(nn.functional.max_pool2d(past, 2)))
            return self.outward(library.cat((past, self.up(deep)), 1))

    found = {
        "MLP": (nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)), (16, 8)),
        "ResNet block": (Residual(4), (2, 4, 8, 8)),
        "encoder layer": (nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), (2, 6, 16)),
        "LSTM": (nn.LSTM(8, 16), (6, 2, 8)),
        "U-Net": (UNet(), (2, 1, 8, 8)),
    }
    steps = {name: trained(model, library.randn(*shape)) for name, (model, shape) in found.items()}
    updates = {name: library.optim.Adam(model.parameters()).step for name, (model, _) in found.items()}
    return steps | {f"{name}, with Adam": partial(both, steps[name], updates[name]) for name in found}


def both(first: Call, second: Call) -> None:
    first()
    second()


def trained(model: Any, x: Any) -> Call:
    parameters = list(model.parameters())

    def step() -> None:
        for p in parameters:
            p.grad = None
        out = model(x)
        (out[0] if isinstance(out, tuple) else out).square().mean().backward()

    return step


# ---- figures ------------------------------------------------------------------------------------------------------


def busy(functions: dict[str, Call | None], turns: int, calls: int) -> dict[str, float | None]:
    """Median seconds of the processor for a call; None stays None."""
    known = [(name, function) for name, function in functions.items() if function is not None]
    found: dict[str, list[float]] = {name: [] for name, _ in known}
    shuffle = random.Random(0).shuffle
    for turn in range(turns + 2):
        shuffle(known)
        for name, function in known:
            begin = time.process_time_ns()
            for _ in range(calls):
                function()
            if turn > 1:  # before, all warms up
                found[name].append((time.process_time_ns() - begin) / calls * 1e-9)
    return {name: statistics.median(found[name]) if name in found else None for name in functions}


def measure(what: str, cases: dict[str, dict[str, Call] | None], turns: int, calls: int) -> list[Row]:
    """A row for each call of ``cases``, by library and name."""
    rows = []
    for name, ours in (cases["leafgrad"] or {}).items():
        functions = {library: found and found[name] for library, found in cases.items()}
        seconds = {n: None if t is None else t * 1e6 for n, t in busy(functions, turns, calls).items()}
        rows.append(Row(f"{name}{what}", "us", seconds, None, {"frames": frames(ours)}))
        tell(rows[-1])
    return rows


def tell_mean(what: str, rows: list[Row], target: float) -> None:
    ratios = [row.ratio for row in rows if row.ratio is not None]
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        tell(Row(f"{MEAN}, {what}", "of PyTorch's", {"leafgrad": mean, "PyTorch": 1.0}, target, {"most": max(ratios)}))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--turns", type=int, default=31)
    parser.add_argument("--only", default="", help="ops whose name has this in it")
    args = parser.parse_args()
    start("Single ops on 3 x 4 tensors", args.threads)
    found = each(ops)
    cases = {n: c and {o: call for o, call in c.items() if args.only in o} for n, c in found.items()}
    backward = {n: c and {o: and_backward(call) for o, call in c.items()} for n, c in cases.items()}
    for what, chosen in (("forward", cases), ("forward and backward", backward)):
        tell_mean(what, measure(f", {what}", chosen, args.turns, CALLS), TARGETS[what])
    if not args.only:
        measure("", each(networks), args.turns, 3)


if __name__ == "__main__":
    main()
