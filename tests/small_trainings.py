"""Small trainings of many kinds, for tests that stop them and go on."""

from __future__ import annotations

import leafgrad
from leafgrad import nn, optim

EXECUTORS = ("numpy", "replay", "native", "none")


def step_of(net, optimizer):
    """A training step that makes the mean square of what a network gives smaller."""

    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm, self.out = nn.Linear(6, 6), nn.LayerNorm(6), nn.Linear(6, 1)

    def forward(self, x):
        return self.out(x + nn.functional.gelu(self.norm(self.inner(x))))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cells, self.out = kind(3, 5, batch_first=True), nn.Linear(5, 1)

    def forward(self, x):
        return self.out(self.cells(x.reshape(-1, 2, 3))[0][:, -1])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.out = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.1, batch_first=True), nn.Linear(6, 1)

    def forward(self, x):
        return self.out(self.layer(x[:, None])[:, 0])


def between(*layers, first=lambda layer: layer):
    return nn.Sequential(first(nn.Linear(6, 8)), *layers, nn.Linear(8, 1))


MODELS = {
    "tanh": lambda: between(nn.Tanh()),
    "dropout": lambda: between(nn.Tanh(), nn.Dropout(0.3)),
    "batch norm": lambda: between(nn.BatchNorm1d(8), nn.ReLU()),
    "cumulative batch norm": lambda: between(nn.BatchNorm1d(8, momentum=None), nn.ReLU()),
    "group norm": lambda: between(nn.GroupNorm(2, 8), nn.SiLU()),
    "spectral norm": lambda: between(nn.Tanh(), first=nn.utils.parametrizations.spectral_norm),
    "weight norm": lambda: between(nn.ELU(), first=nn.utils.parametrizations.weight_norm),
    "convolution": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.Flatten(), nn.Linear(16, 1)
    ),
    "residual": Residual,
    "LSTM": lambda: Recurrent(nn.LSTM),
    "GRU": lambda: Recurrent(nn.GRU),
    "attention": Attention,
}
UPDATES = {
    "SGD": lambda params: optim.SGD(params, lr=0.05, momentum=0.9, nesterov=True),
    "AdamW": lambda params: optim.AdamW(params, lr=0.01),
    "RMSprop": lambda params: optim.RMSprop(params, lr=0.01, centered=True, momentum=0.5),
    "NAdam": lambda params: optim.NAdam(params, lr=0.01),
}


class Small:
    """A training of one model by one optimizer.

    Args:
        executor: of the compiled step; "none" leaves it uncompiled.
    """

    def __init__(self, model, update, executor):
        leafgrad.manual_seed(0)
        self.net = MODELS[model]()
        self.optimizer = UPDATES[update](self.net.parameters())
        self.data = leafgrad.randn(64, 6, generator=leafgrad.Generator().manual_seed(3))
        self.step = self.eager if executor == "none" else leafgrad.compile(self.eager, executor=executor)

    def eager(self, x):
        self.optimizer.zero_grad()
        loss = ((self.net(x) - x.sum(1, keepdim=True)) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        return loss

    def train(self, start, end):
        for i in range(start, end):
            self.step(self.data[i % 4 :: 4])

    def state(self):
        return [self.net.state_dict(), self.optimizer.state_dict(), leafgrad.get_rng_state()]

    def load(self, state):
        net, optimizer, rng = state
        self.net.load_state_dict(net)
        self.optimizer.load_state_dict(optimizer)
        leafgrad.set_rng_state(rng)
