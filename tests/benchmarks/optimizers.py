"""A step of every optimizer over a hundred small parameters: beside PyTorch's default, and beside its ``foreach``."""

from __future__ import annotations

import sys

from compare import header, one_thread, peer, times

COUNT, SIDE = 100, 10
CASES = [
    ("SGD", {"lr": 1e-3}),
    ("SGD", {"lr": 1e-3, "momentum": 0.9}),
    ("Adam", {}),
    ("AdamW", {}),
    ("NAdam", {}),
    ("RAdam", {}),
    ("Adamax", {}),
    ("RMSprop", {}),
    ("Adagrad", {}),
    ("Adadelta", {}),
    ("ASGD", {}),
    ("Rprop", {}),
    ("Adafactor", {}),
    ("Muon", {}),
]


def case(library, name, **options):
    params = [library.randn(SIDE, SIDE).requires_grad_() for _ in range(COUNT)]
    for p in params:
        p.grad = library.randn(SIDE, SIDE)
    return getattr(library.optim, name)(params, **options).step


def main() -> None:
    one_thread()
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 51
    header(
        f"Optimizer step over {COUNT} parameters of {SIDE} x {SIDE}: medians of {runs}, us; share of the faster peer"
    )
    ours, torch = peer("leafgrad"), peer("torch")
    for name, options in CASES:
        steps = {"leafgrad": case(ours, name, **options)}
        if torch is not None:
            steps["torch"] = case(torch, name, **options)
            if name != "Muon":  # which has none
                steps["foreach"] = case(torch, name, **options, foreach=True)
        medians = {key: sorted(t)[runs // 2] * 1e6 for key, t in times(steps, runs).items()}
        peers = [median for key, median in medians.items() if key != "leafgrad"]
        share = f"{medians['leafgrad'] / min(peers):.2f}" if peers else ""
        columns = "".join(f"{key} {median:8.0f}  " for key, median in medians.items())
        print(f"  {name + (' momentum' if 'momentum' in options else ''):14} {columns} {share}")


if __name__ == "__main__":
    main()
