"""Training steps of sequence models with Adam inside, eager and compiled, against PyTorch."""

from __future__ import annotations

from functools import partial

from compare import arguments, compare, start, ways
from peak import tell_floor

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


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], default=[], help=", ".join(CASES))
    parser.add_argument("--runs", type=int, default=15)
    args = parser.parse_args()
    start("Sequence models, training steps with Adam", args.threads)
    for name, make in CASES.items():
        if not args.cases or name in args.cases:
            steps = ways(make)
            row, *_ = compare(name, steps, args.runs, unit="ms", targets=(0.5 if name == "transformer" else 0.3,))
            if (
                name == "transformer"
            ):  # the others are loops of small steps, whose products are no equations of their own
                tell_floor(row, steps["leafgrad"].func.graph)


if __name__ == "__main__":
    main()
