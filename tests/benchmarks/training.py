"""Whole training steps, compiled, against eager ones: a classifier, a transformer block, and an LSTM."""

from __future__ import annotations

import math

from compare import arguments, compare, start, ways
from peak import tell_floor


def classifier(library):
    """64-64-64-10 with ReLU, batch 128, cross-entropy, Adam: the size of the digits example."""
    nn = library.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = library.optim.Adam(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, (library.randn(128, 64), library.randint(0, 10, (128,)))


def transformer(library, device="cpu", adam=None):
    """A block of width 64 with 4 heads and GELU, before it LayerNorms; batch 32, 32 tokens."""
    nn = library.nn
    batch, tokens, width, heads = 32, 32, 64, 4

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            parts = self.inward(self.before(x)).chunk(3, dim=-1)
            q, k, v = (p.reshape(batch, tokens, heads, width // heads).transpose(1, 2) for p in parts)
            weights = library.softmax(q @ k.transpose(-2, -1) / math.sqrt(width // heads), dim=-1)
            x = x + self.outward((weights @ v).transpose(1, 2).reshape(batch, tokens, width))
            return x + self.feed(self.between(x))

    model = Block().to(device)
    optimizer = adam(library, model) if adam else library.optim.Adam(model.parameters())
    x, y = (library.randn(batch, tokens, width, device=device) for _ in range(2))

    def step(x, y):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, (x, y)


def lstm(library):
    """An LSTM cell of width 64 over 16 steps, batch 64, and a linear layer after the last."""
    nn = library.nn
    batch, length, width = 64, 16, 64
    inward, across, head = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width), nn.Linear(width, 10)
    optimizer = library.optim.Adam([*inward.parameters(), *across.parameters(), *head.parameters()])

    def step(x, y):
        optimizer.zero_grad()
        h = c = library.zeros(batch, width)
        for t in range(length):
            i, f, g, o = (inward(x[:, t]) + across(h)).chunk(4, dim=1)
            c = library.sigmoid(f) * c + library.sigmoid(i) * library.tanh(g)
            h = library.sigmoid(o) * library.tanh(c)
        loss = nn.functional.cross_entropy(head(h), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, (library.randn(batch, length, width), library.randint(0, 10, (batch,)))


CASES = {"classifier, batch 128": (classifier, 0.5), "transformer block": (transformer, 0.5), "LSTM cell": (lstm, 0.3)}


def main() -> None:
    args = arguments(__doc__).parse_args()
    start("Whole training steps with Adam", args.threads)
    for name, (make, target) in CASES.items():
        steps = ways(make)
        row, *_ = compare(name, steps, runs=31, unit="ms", targets=(target,))
        tell_floor(row, steps["leafgrad"].func.graph)


if __name__ == "__main__":
    main()
