"""Training steps with what they are called with, for tests of executors."""

from __future__ import annotations

import itertools

import leafgrad
from leafgrad import nn
from leafgrad.nn import functional as F


def network(sizes, activation=nn.Tanh):
    layers = [m for a, b in itertools.pairwise(sizes) for m in (nn.Linear(a, b), activation())]
    return nn.Sequential(*layers[:-1])


def burgers(rows=200, width=20, depth=2, device="cpu", dtype=leafgrad.float32, optimizer=leafgrad.optim.Adam):
    """A residual with derivatives of second order, its gradients, and an optimizer's step."""
    leafgrad.manual_seed(0)
    model = network([2, *[width] * depth, 1]).to(device, dtype)
    chosen = optimizer(model.parameters(), lr=1e-2)
    points = leafgrad.rand(rows, 2).to(device, dtype)

    def step(x):
        x = x.detach().requires_grad_()
        chosen.zero_grad()
        u = model(x)
        (first,) = leafgrad.autograd.grad(u.sum(), x, create_graph=True)
        (second,) = leafgrad.autograd.grad(first[:, 0].sum(), x, create_graph=True)
        loss = (first[:, 1:] + u * first[:, :1] - 0.01 * second[:, :1]).square().mean()
        loss.backward()
        chosen.step()
        return loss.detach()

    return model, step, (points,)


def classifier(rows=150, device="cpu", optimizer=leafgrad.optim.SGD, activation=nn.ReLU):
    leafgrad.manual_seed(0)
    model = network([10, 24, 24, 5], activation).to(device)
    chosen = optimizer(model.parameters(), lr=1e-2)
    x, y = leafgrad.rand(rows, 10).to(device), (leafgrad.arange(rows) % 5).to(device)

    def step(x, y):
        chosen.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        chosen.step()
        return loss.detach()

    return model, step, (x, y)


def trained(made, executor, calls=5):
    """The losses and parameters of some steps, on the host; and what compiled them, if anything did."""
    model, step, args = made
    run = step if executor is None else leafgrad.compile(step, executor=executor)
    losses = [run(*args) for _ in range(calls)]
    return [t.detach().cpu().numpy() for t in (*losses, *model.parameters())], run
