"""Small random programs with first and second derivatives, on which executors are compared with eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from typecheck import check

import leafgrad
from leafgrad.compile.ir.sources import Argument
from leafgrad.compile.passes import optimize
from leafgrad.compile.record.trace import trace_call

N, K = 70, 3  # rows, more than one chunk of 32; columns

TARGET = leafgrad.tensor([-100 if i == 5 else i % K for i in range(N)])

# Each takes a (N, K) tensor, another one, and a (K, K) weight, and gives a (N, K) tensor.
STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "tanh": lambda a, b, w: leafgrad.tanh(a),
    "sin": lambda a, b, w: leafgrad.sin(a),
    "square": lambda a, b, w: a**2,
    "softplus": lambda a, b, w: leafgrad.log1p(leafgrad.exp(-a.abs())) + leafgrad.clamp(a, min=0),
    "add": lambda a, b, w: a + b,
    "sub": lambda a, b, w: 0.5 - a - b * 2,
    "mul": lambda a, b, w: a * b * 0.5,
    "div": lambda a, b, w: a / (b * b + 1),
    "matmul": lambda a, b, w: a @ w,
    "transposed matmul": lambda a, b, w: (w @ a.T).T,
    "bias": lambda a, b, w: a + w[0],
    "row norm": lambda a, b, w: a / (a * a).sum(dim=1, keepdim=True).add(1).sqrt(),
    "centre": lambda a, b, w: a - a.mean(dim=0),
    "scale by a sum": lambda a, b, w: a * leafgrad.tanh(b.sum() / N),
    "softmax": lambda a, b, w: leafgrad.softmax(a, dim=1),
    "columns": lambda a, b, w: leafgrad.cat([a[:, :1], b[:, 1:]], dim=1),
    "swap columns": lambda a, b, w: leafgrad.cat([a[:, 1:], a[:, :1]], dim=1),
    "reshape": lambda a, b, w: (a.reshape(N, K, 1) * w).sum(dim=1),
    "expand": lambda a, b, w: a[:, :1].expand(N, K) * b,
    "where": lambda a, b, w: leafgrad.where(a > b, a, b),
    "detach": lambda a, b, w: a * b.detach(),
    "log softmax": lambda a, b, w: leafgrad.nn.functional.log_softmax(a, dim=1) * 0.1,
    "softmax of columns": lambda a, b, w: leafgrad.softmax(a, dim=0) + b,
    "gelu": lambda a, b, w: leafgrad.nn.functional.gelu(a),
    "sigmoid": lambda a, b, w: leafgrad.sigmoid(a) * b,
    "layer norm": lambda a, b, w: leafgrad.nn.functional.layer_norm(a, (K,), w[0], w[1], eps=0.1),
    "cross-entropy": lambda a, b, w: leafgrad.nn.functional.cross_entropy(a, TARGET) + b,
    "relu": lambda a, b, w: leafgrad.relu(a - 0.3) + b,
    "batched matmul": lambda a, b, w: (a.reshape(N // 7, 7, K) @ w).reshape(N, K),
    "sum of leading": lambda a, b, w: a * a.reshape(N // 7, 7, K).sum(dim=(0, 1)).tanh(),
    "flip rows": lambda a, b, w: a.flip(0) + b,
}
programs = st.lists(
    st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6
)


def build(program: list[tuple[str, int, int]]) -> Callable[..., tuple[Any, ...]]:
    """A function of points and weights that returns a loss, its gradients, and derivatives along the points."""

    def function(x: Any, w: Any) -> tuple[Any, ...]:
        values = [x, x @ w]
        for name, i, j in program:
            values.append(STEPS[name](values[-1 - i % len(values)], values[-1 - j % len(values)], w))
        u = values[-1]
        (u_x,) = leafgrad.autograd.grad(u.sum(), x, create_graph=True, materialize_grads=True)
        first = (u_x * leafgrad.cos(x)).sum() + 0 * x.sum()
        (u_xx,) = leafgrad.autograd.grad(first, x, create_graph=True, materialize_grads=True)
        loss = (u_xx**2).mean() + (u * u_x).mean() + (u**2).mean() + 0 * w.sum()
        g_w, g_x = leafgrad.autograd.grad(loss, (w, x))
        return loss, g_w, g_x, u, u_xx

    return function


def compare(
    program: list[tuple[str, int, int]], optimized: bool, run: Callable[[Any, list[Any]], list[list[Any]]]
) -> None:
    """Assert that what ``run(graph, arrays)`` gives, a list of runs, equals eager."""
    rng = np.random.default_rng(len(program))
    x = leafgrad.tensor(rng.normal(size=(N, K)), dtype=leafgrad.float64, requires_grad=True)
    w = leafgrad.tensor(rng.normal(size=(K, K)) / 2, dtype=leafgrad.float64, requires_grad=True)
    function = build(program)
    expected = [t.detach().numpy() for t in function(x, w)]
    graph = trace_call(function, (x, w), {}).graph
    if optimized:
        graph = check(optimize(graph))
    arrays = [((x, w)[s.index] if isinstance(s, Argument) else s.tensor)._data for s in graph.inputs.values()]
    for got in run(graph, arrays):
        for ours, theirs in zip(got, expected, strict=True):
            scale = max(1.0, float(np.abs(theirs).max()))
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12 * scale, err_msg=str(program))
