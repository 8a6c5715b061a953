"""Networks, data and steps that several kinds of scenarios share."""

from __future__ import annotations

from typing import Any

import leafgrad
from leafgrad import nn


def network(width: int = 4) -> Any:
    return nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 1))


def batch(i: int = 0) -> Any:
    return (leafgrad.arange(12.0) + i).reshape(4, 3).sin()


def gradients(w: Any, net: Any) -> Any:
    """A step that leaves gradients and returns the loss, compiled."""

    def step(x: Any) -> Any:
        net.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        return loss

    return w.compile(step)


def training(w: Any, net: Any, optimizer: Any) -> Any:
    """A step of training that returns the loss, compiled."""

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return w.compile(step)


def put(space: Any, name: Any, value: Any) -> None:
    """Set a key, or remove it for None."""
    if value is None:
        space.pop(name, None)
    else:
        space[name] = value
