"""Derivatives that a physicist asks for, each with the gradient by all weights: jets beside the other ways to them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from compare import compare, start

import leafgrad
from leafgrad.autograd import grad
from leafgrad.func import hessian, jet, vmap

POINTS, DIMENSIONS, WIDTH, DEPTH = 1000, 10, 64, 4


def network(weights: list[Any], x: Any) -> Any:
    """An MLP. (..., DIMENSIONS) -> (...)"""
    for i in range(0, len(weights) - 1, 2):
        x = leafgrad.tanh(x @ weights[i] + weights[i + 1])
    return (x @ weights[-1])[..., 0]


def by_hessian(weights: list[Any], x: Any) -> Any:
    return vmap(lambda x: hessian(lambda x: network(weights, x))(x).diagonal().sum())(x)


def by_reverse(weights: list[Any], x: Any) -> Any:
    columns = [x[:, i].detach().requires_grad_() for i in range(DIMENSIONS)]
    value = network(weights, leafgrad.stack(columns, -1))
    slopes = grad(value.sum(), columns, create_graph=True)
    return sum(grad(slope.sum(), [c], create_graph=True)[0] for slope, c in zip(slopes, columns, strict=True))


def directions(x: Any) -> Any:
    return leafgrad.eye(DIMENSIONS, dtype=x.dtype)[:, None, :].expand(DIMENSIONS, *x.shape)


def by_jet(weights: list[Any], x: Any) -> Any:
    _, (_, laplacian) = jet(lambda x: network(weights, x), (x,), ([directions(x), None],), collapse=True)
    return laplacian


def by_hand(weights: list[Any], x: Any) -> Any:
    """The same jets written out: values, slopes along all directions, and the sum of the curvatures."""
    value, slopes, curved = x, directions(x), None
    for i in range(0, len(weights) - 1, 2):
        value, slopes = value @ weights[i] + weights[i + 1], slopes @ weights[i]
        value = leafgrad.tanh(value)
        s = 1 - value * value
        bent = value * (slopes * (slopes * s)).sum(0) * -2
        curved = bent if curved is None else s * (curved @ weights[i]) + bent
        slopes = slopes * s
    return (curved @ weights[-1])[..., 0]


def step(laplacian: Callable[..., Any], weights: list[Any], x: Any) -> Callable[[], Any]:
    compiled = leafgrad.compile(lambda weights, x: grad((laplacian(weights, x) ** 2).mean(), weights))
    return lambda: compiled(weights, x)


def shared(each: bool, weight: Any, x: Any, compiled: bool) -> Callable[[], Any]:
    """The gradient by a weight that all samples share: in vmap, and in one product."""

    def layer(x: Any, w: Any) -> Any:
        return leafgrad.tanh(x @ w)

    whole = vmap(layer, in_dims=(0, None)) if each else layer

    def run(w: Any, x: Any) -> Any:
        return grad(whole(x, w).sum(), [w])

    made = leafgrad.compile(run) if compiled else run
    return lambda: made(weight, x)


def residual(weights: list[Any], x: Any) -> Callable[[], Any]:
    """The gradient of a residual with a second derivative, at points with any dimensions."""

    def run(weights: list[Any], x: Any) -> Any:
        u = network(weights, x)
        (slopes,) = grad(u.sum(), x, create_graph=True)
        (second,) = grad(slopes[..., 0].sum(), x, create_graph=True)
        return grad((second[..., 0] + u).square().mean(), weights)

    compiled = leafgrad.compile(run)
    return lambda: compiled(weights, x)


def main() -> None:
    start("Derivatives along curves, compiled")
    leafgrad.manual_seed(0)
    sizes = [DIMENSIONS, *[WIDTH] * DEPTH]
    weights = []
    for rows, columns in pairwise(sizes):
        weights += [leafgrad.randn(rows, columns) / rows**0.5, leafgrad.randn(columns) / 10]
    weights = [w.detach().requires_grad_() for w in [*weights, leafgrad.randn(WIDTH, 1) / WIDTH**0.5]]
    x = leafgrad.randn(POINTS, DIMENSIONS)
    ways = {"jet": by_jet, "by hand": by_hand, "vmap(hessian)": by_hessian, "reverse": by_reverse}
    what = f"Laplacian in {DIMENSIONS} dimensions"
    compare(what, {name: step(way, weights, x) for name, way in ways.items()}, runs=7, unit="ms")
    shapes = {f"{POINTS} x 10": (POINTS, 10), f"{POINTS * 10}": (POINTS * 10,)}
    points = {name: leafgrad.randn(*lead, DIMENSIONS).requires_grad_() for name, lead in shapes.items()}
    pair = {name: residual(weights, x) for name, x in points.items()}
    compare("residual at points of two dimensions, and of one", pair, runs=15, unit="ms")
    weight, x = leafgrad.randn(64, 64).requires_grad_(), leafgrad.randn(2000, 64)
    for compiled in (False, True):
        pair = {name: shared(each, weight, x, compiled) for name, each in (("vmap", True), ("product", False))}
        compare("shared weight" + ", compiled" * compiled, pair, runs=15, unit="ms")


if __name__ == "__main__":
    main()
