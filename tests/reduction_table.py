"""Reductions of tensors without dimensions, without elements, or with one: programs must equal eager."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from typecheck import check

import leafgrad
from leafgrad.compile.passes import optimize
from leafgrad.compile.record.trace import trace_call

REDUCTIONS = (
    "sum", "mean", "prod", "amax", "amin", "max", "min", "median", "argmax", "argmin", "all", "any", "std", "var",
    "logsumexp", "norm", "softmax", "log_softmax", "cumsum", "cumprod", "sort", "argsort", "flip", "unique", "nansum",
    "count_nonzero", "mode", "kthvalue", "topk", "logcumsumexp", "cummax", "cummin", "nanmean", "aminmax", "diff",
    "var_mean", "std_mean", "quantile", "nanmedian", "softmin", "normalize", "cosine_similarity",
)  # fmt: skip
SHAPES = [(), (1,), (0, 3), (2, 1), *[pytest.param(s, marks=pytest.mark.slow) for s in ((0,), (1, 1), (3, 0))]]
DIMS: tuple[Any, ...] = ("none", 0, -1, (0,), (), (0, 1))
KEEP = (None, True)
REFUSALS = (RuntimeError, TypeError, IndexError, ValueError)  # of eager; of a trace where a shape depends on values

Function = Callable[[Any], Any]


@cache
def named(name: str) -> Function:
    """The reduction of that name. To look for one where it is not takes long: what is like it is looked for, too."""
    found: Function | None = getattr(leafgrad, name, None) or getattr(leafgrad.nn.functional, name, None)
    if found is None:
        raise AttributeError(name)
    return found


def call(name: str, dim: Any, keep: bool | None) -> Function:
    """The reduction as a function of a tensor."""
    found = named(name)
    params: dict[str, Any] = {} if dim == "none" else {"dim": dim}
    if keep is not None:
        params["keepdim"] = keep
    if name in ("kthvalue", "topk"):
        return lambda x: found(x, 1, **params)
    if name == "quantile":
        return lambda x: found(x, 0.3, **params)
    if name == "cosine_similarity":
        return lambda x: found(x, x, **params)
    if name == "flip":
        return lambda x: x.flip(() if dim == "none" else dim)
    return lambda x: found(x, **params)


def flat(result: Any) -> list[Any]:
    """The tensors of a result, each a new one: an argument that is handed back is no result of a program."""
    return [result.clone()] if isinstance(result, leafgrad.Tensor) else [t for part in result for t in flat(part)]


def tensor(shape: tuple[int, ...], dtype: str) -> Any:
    values = np.arange(1, 1 + int(np.prod(shape)), dtype=np.float64).reshape(shape) - 0.5
    return leafgrad.tensor(values).to(getattr(leafgrad, dtype))


@cache
def cases(shape: tuple[int, ...], dtype: str) -> list[tuple[str, Function]]:
    """What eager computes of such a tensor, with gradients where there are some."""
    found = []
    for name in REDUCTIONS:
        for dim in DIMS:
            for keep in KEEP:
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        function = call(name, dim, keep)
                        results = flat(function(tensor(shape, dtype)))
                except REFUSALS:
                    continue
                label = f"{name} of {dtype}{shape}, dim={dim}, keepdim={keep}"
                found.append((label, function))
                if dtype.startswith("float") and results[0].dtype == getattr(leafgrad, dtype):
                    found.append((f"gradient of {label}", gradient(function)))
    return [case for case in found if runs(case[1], shape, dtype)]


def gradient(function: Function) -> Function:
    def found(x: Any) -> Any:
        y = x.detach().clone().requires_grad_()
        (g,) = leafgrad.autograd.grad(flat(function(y))[0].sum() * 2, y, materialize_grads=True)
        return g

    return found


def runs(function: Function, shape: tuple[int, ...], dtype: str) -> bool:
    """Whether eager runs it, and a trace: shapes that depend on values have no program."""
    x = tensor(shape, dtype)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(x)
            trace_call(function, (x,), {})
    except REFUSALS:
        return False
    return True


def compare(shape: tuple[int, ...], dtype: str, build: Callable[[Any], Any]) -> list[str]:
    """The cases whose programs differ from eager."""
    every, x = cases(shape, dtype), tensor(shape, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [[t.detach().numpy() for t in flat(function(x))] for _, function in every]
        graph = trace_call(lambda x: [flat(function(x)) for _, function in every], (x,), {}).graph
        results = iter(build(check(optimize(graph)))([x._data for _ in graph.inputs]))
    found = []
    for (label, _), wants in zip(every, expected, strict=True):
        for want in wants:
            got = next(results)
            if type(got) is not np.ndarray or (got.shape, got.dtype) != (want.shape, want.dtype):
                found.append(f"{label}: {type(got).__name__} {got.dtype}{got.shape}, expected {want.dtype}{want.shape}")
            elif not np.allclose(got, want, rtol=1e-6, atol=1e-6, equal_nan=True):
                found.append(f"{label}: {got}, expected {want}")
    return found
