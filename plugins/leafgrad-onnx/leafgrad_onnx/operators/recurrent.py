"""RNN, GRU and LSTM, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import leafgrad
from leafgrad.nn import functional as F
from leafgrad_onnx.errors import OnnxLoadError
from leafgrad_onnx.operators.registry import ints, operator, tensor_of


def activation(name: str, alpha: float | None, beta: float | None) -> Callable[[Any], Any]:
    """A function by ONNX's name for it."""

    def a(default: float) -> float:
        return default if alpha is None else alpha

    def b(default: float) -> float:
        return default if beta is None else beta

    plain: dict[str, Callable[[Any], Any]] = {
        "relu": leafgrad.relu, "tanh": leafgrad.tanh, "sigmoid": leafgrad.sigmoid, "softsign": F.softsign,
        "softplus": F.softplus, "leakyrelu": lambda x: F.leaky_relu(x, a(0.01)),
        "thresholdedrelu": lambda x: leafgrad.where(x > a(1.0), x, leafgrad.zeros_like(x)),
        "elu": lambda x: F.elu(x, a(1.0)),
        "hardsigmoid": lambda x: (x * a(0.2) + b(0.5)).clamp(0, 1),
        "affine": lambda x: x * a(1.0) + b(0.0),
        "scaledtanh": lambda x: leafgrad.tanh(x * b(1.0)) * a(1.0),
    }  # fmt: skip
    if name.lower() not in plain:
        raise OnnxLoadError(f"activation {name!r}")
    return plain[name.lower()]


class Layer:
    """A recurrent layer in one or both directions.

    Args:
        gates: how many parts its weights have.
        step: from the input's part, states and weights to new states, of which the first is the result.
    """

    def __init__(self, gates: int, defaults: list[str], given: dict[str, Any]) -> None:
        self.gates = gates
        self.direction = given["direction"]
        self.hidden = given["hidden_size"]
        self.clip = given["clip"]
        self.layout = given["layout"]
        names = given["activations"] or defaults * (2 if self.direction == "bidirectional" else 1)
        alphas, betas = (iter(given[k] or ()) for k in ("activation_alpha", "activation_beta"))
        takes_alpha = ("leakyrelu", "thresholdedrelu", "elu", "hardsigmoid", "affine", "scaledtanh")
        takes_beta = ("hardsigmoid", "affine", "scaledtanh")
        self.functions = [
            activation(
                n, next(alphas, None) if n.lower() in takes_alpha else None,
                next(betas, None) if n.lower() in takes_beta else None,
            )
            for n in names
        ]  # fmt: skip
        self.per = len(defaults)

    def run(
        self, step: Callable[..., Any], x: Any, w: Any, r: Any, b: Any, lengths: Any, states: list[Any], *more: Any
    ) -> Any:
        """The results of all steps (T, directions, N, H), and the last states (directions, N, H)."""
        if self.layout:
            x, states = x.transpose(0, 1), [None if s is None else s.transpose(0, 1) for s in states]
        steps, batch, _ = x.shape
        directions = w.shape[0]
        sizes = None if lengths is None else tensor_of(np.array(ints(lengths), dtype="int64")).reshape(-1, 1)
        results, last = [], []
        for d in range(directions):
            back = self.direction == "reverse" or d == 1
            functions = self.functions[d * self.per : (d + 1) * self.per]
            now = [x.new_zeros((batch, self.hidden)) if s is None else s[d] for s in states]
            bias = None if b is None else b[d]
            rows: list[Any] = [None] * steps
            for t in range(steps - 1, -1, -1) if back else range(steps):
                new = step(self, x[t], now, w[d], r[d], bias, functions, *[m if m is None else m[d] for m in more])
                if sizes is not None:
                    inside = sizes > t
                    rows[t] = leafgrad.where(inside, new[0], leafgrad.zeros_like(new[0]))
                    now = [leafgrad.where(inside, a, o) for a, o in zip(new, now, strict=True)]
                else:
                    rows[t], now = new[0], new
            results.append(leafgrad.stack(rows))
            last.append(now)
        y = leafgrad.stack(results, 1)
        ends = [leafgrad.stack([n[i] for n in last]) for i in range(len(states))]
        if self.layout:
            return y.permute(2, 0, 1, 3), *[e.transpose(0, 1) for e in ends]
        return (y, *ends)

    def limited(self, x: Any) -> Any:
        return x if self.clip is None else x.clamp(-self.clip, self.clip)

    def products(self, x: Any, h: Any, w: Any, r: Any, b: Any) -> tuple[list[Any], list[Any]]:
        """The parts that come from the input and from the state."""
        n = self.gates * self.hidden
        one, other = x @ w.T, h @ r.T
        if b is not None:
            one, other = one + b[:n], other + b[n : 2 * n]
        return list(one.split(self.hidden, -1)), list(other.split(self.hidden, -1))


def rnn_step(layer: Layer, x: Any, states: list[Any], w: Any, r: Any, b: Any, functions: Any) -> list[Any]:
    (one,), (other,) = layer.products(x, states[0], w, r, b)
    return [functions[0](layer.limited(one + other))]


def gru_step(linear: int) -> Callable[..., list[Any]]:
    def step(layer: Layer, x: Any, states: list[Any], w: Any, r: Any, b: Any, functions: Any) -> list[Any]:
        h, k = states[0], layer.hidden
        (z1, r1, n1), (z2, r2, n2) = layer.products(x, h, w, r, b)
        z, reset = (functions[0](layer.limited(p)) for p in (z1 + z2, r1 + r2))
        if linear:
            n = n1 + reset * n2
        else:
            n = n1 + (reset * h) @ r[2 * k :].T
            n = n if b is None else n + b[5 * k :]
        n = functions[1](layer.limited(n))
        return [(1 - z) * n + z * h]

    return step


def lstm_step(forget: int) -> Callable[..., list[Any]]:
    def step(layer: Layer, x: Any, states: list[Any], w: Any, r: Any, b: Any, functions: Any, p: Any) -> list[Any]:
        (h, c), k = states, layer.hidden
        i, o, f, g = (a + e for a, e in zip(*layer.products(x, h, w, r, b), strict=True))
        if p is not None:
            i, f = i + p[:k] * c, f + p[2 * k :] * c
        i, f = functions[0](layer.limited(i)), functions[0](layer.limited(f))
        f = 1 - i if forget else f
        new = f * c + i * functions[1](layer.limited(g))
        o = o if p is None else o + p[k : 2 * k] * new
        return [functions[0](layer.limited(o)) * functions[2](new), new]

    return step


@operator("RNN", host=(4,))
def rnn(
    x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None, *, direction: str = "forward",
    hidden_size: int, clip: float | None = None, layout: int = 0, activations: Any = None, activation_alpha: Any = None,
    activation_beta: Any = None,
) -> Any:  # fmt: skip
    layer = Layer(1, ["Tanh"], locals())
    return layer.run(rnn_step, x, w, r, b, lengths, [h])


@operator("GRU", host=(4,))
def gru(
    x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None, *, direction: str = "forward",
    hidden_size: int, clip: float | None = None, layout: int = 0, activations: Any = None, activation_alpha: Any = None,
    activation_beta: Any = None, linear_before_reset: int = 0,
) -> Any:  # fmt: skip
    layer = Layer(3, ["Sigmoid", "Tanh"], locals())
    return layer.run(gru_step(linear_before_reset), x, w, r, b, lengths, [h])


@operator("LSTM", host=(4,))
def lstm(
    x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None, c: Any = None, p: Any = None, *,
    direction: str = "forward", hidden_size: int, clip: float | None = None, layout: int = 0, activations: Any = None,
    activation_alpha: Any = None, activation_beta: Any = None, input_forget: int = 0,
) -> Any:  # fmt: skip
    layer = Layer(4, ["Sigmoid", "Tanh", "Tanh"], locals())
    return layer.run(lstm_step(input_forget), x, w, r, b, lengths, [h, c], p)
