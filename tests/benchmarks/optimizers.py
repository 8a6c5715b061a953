"""A step of every optimizer over a hundred small parameters: beside PyTorch's default, and beside its ``foreach``."""

from __future__ import annotations

from functools import partial

from compare import arguments, compare, each, peer, start

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
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=51)
    args = parser.parse_args()
    start(f"A step of each optimizer, {COUNT} parameters of {SIDE} x {SIDE}", args.threads)
    for name, options in CASES:
        steps = each(partial(case, name=name, **options))
        if name != "Muon":  # which has none
            steps["PyTorch foreach"] = (theirs := peer("torch")) and case(theirs, name, **options, foreach=True)
        what = name + " with momentum" * ("momentum" in options)
        compare(what, steps, args.runs, targets=(0.5 if name == "Adam" else None,))


if __name__ == "__main__":
    main()
