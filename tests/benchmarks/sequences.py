"""Training steps of sequence models with Adam inside, eager and compiled, against PyTorch.

python tests/benchmarks/sequences.py                # one thread
python tests/benchmarks/sequences.py --threads 2
python tests/benchmarks/sequences.py LSTM GRU       # some cases only
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial

from compare import THREADS, compare, header, peer

WIDTH, HEADS, TOKENS, BATCH = 128, 4, 128, 16  # of the transformer
INPUTS, HIDDEN, STEPS = 32, 64, 50  # of the recurrent layers


def trained(library, model, x, y, result):
    """A step that fits ``result(model, x)`` to y, and its arguments."""
    adam = library.optim.Adam(model.parameters())

    def step(x, y):
        adam.zero_grad()
        loss = ((result(model, x) - y) ** 2).mean()
        loss.backward()
        adam.step()
        return loss

    return step, (x, y)


def transformer(library):
    """nn.TransformerEncoderLayer without dropout, four times as wide in the middle."""
    layer = library.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True)
    x, y = (library.randn(BATCH, TOKENS, WIDTH) for _ in range(2))
    return trained(library, layer, x, y, lambda model, x: model(x))


def recurrent(kind, library):
    """One layer, and a linear one after its last step."""
    nn = library.nn
    model = nn.ModuleList([getattr(nn, kind)(INPUTS, HIDDEN, batch_first=True), nn.Linear(HIDDEN, 1)])
    x, y = library.randn(BATCH, STEPS, INPUTS), library.randn(BATCH, 1)
    return trained(library, model, x, y, lambda model, x: model[1](model[0](x)[0][:, -1]))


CASES = {"transformer": transformer, **{kind: partial(recurrent, kind) for kind in ("LSTM", "GRU", "RNN")}}


def steps(make):
    """The steps to compare, as functions without arguments."""
    functions = {}
    ours, theirs = peer("leafgrad"), peer("torch")
    step, arguments = make(ours)
    functions["compiled"] = partial(ours.compile(step), *arguments)
    step, arguments = make(ours)
    functions["eager"] = partial(step, *arguments)
    if theirs is not None:
        theirs.set_num_threads(int(os.environ[THREADS[0]]))
        step, arguments = make(theirs)
        functions["torch"] = partial(step, *arguments)
    return functions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], default=[], help=", ".join(CASES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=61)
    args = parser.parse_args()
    wanted = dict.fromkeys(THREADS, str(args.threads))
    if any(os.environ.get(name) != value for name, value in wanted.items()):  # before any library is imported
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **wanted})
    header(f"Training steps of sequence models, {args.threads} thread(s)")
    for name, make in CASES.items():
        if not args.cases or name in args.cases:
            functions = steps(make)
            compare(name, functions, args.runs, unit="ms")
            if "torch" in functions:  # eager beside PyTorch, too
                compare(name, {n: functions[n] for n in ("eager", "torch")}, args.runs, unit="ms")


if __name__ == "__main__":
    main()
