"""Contexts that a compiled step copies, and threads that it sets going: they find tensors as in an uncompiled step.

What tells whether they record is ``modes.tracer``; what is done before they go on is in record/watch.py.
"""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor

import pytest

import leafgrad


def later(weight, mean, y):
    asyncio.get_running_loop().call_soon(lambda: mean.lerp_(y, 0.5))


def in_a_task(weight, mean, y):
    async def track():
        await asyncio.sleep(0)
        mean.lerp_(y, 0.5)

    return asyncio.create_task(track())


def in_a_thread(weight, mean, y):
    return asyncio.ensure_future(asyncio.to_thread(mean.add_, 1))


def in_a_copied_context(weight, mean, y):
    contextvars.copy_context().run(lambda: mean.lerp_(y, 0.5))


@pytest.mark.parametrize("executor", ["numpy", None])
@pytest.mark.parametrize("act", [later, in_a_task, in_a_thread, in_a_copied_context])
def test_what_a_step_leaves_to_other_contexts(act, executor):
    async def found(compiler):
        weight, mean, results = leafgrad.ones(2), leafgrad.zeros(2), []

        def body(x):
            y = weight * x
            started = act(weight, mean, y)
            weight.add_(1)
            return y * 2, started

        step = compiler(body)
        for _ in range(8):
            y, started = step(leafgrad.ones(2))
            await (started or asyncio.sleep(0))
            results.append((y.tolist(), weight.tolist(), mean.tolist(), (weight * 2).sum().item()))
        return results

    def compiler(function):
        return leafgrad.compile(function, executor=executor)

    assert asyncio.run(found(compiler)) == asyncio.run(found(lambda function: function))


def test_a_context_that_was_copied_in_a_step_is_like_any_other_afterwards():
    weight, copies = leafgrad.ones(2), []

    @leafgrad.compile
    def step(x):
        y = weight * x
        copies.append(contextvars.copy_context())
        return y

    for _ in range(6):
        step(leafgrad.ones(2))
        assert copies[-1].run(lambda: (weight * 3).sum().item()) == 6
    assert copies[-1].run(leafgrad.compile(lambda: weight * 3)).tolist() == [3, 3]


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    ("name", "copies"),
    [("reads", False), ("computes", False), ("writes", False), ("reads", True), ("computes", True), ("writes", True),
     ("begins by writing", True), ("makes", True), ("differentiates", True), ("replaces", True)],
)  # fmt: skip
def test_what_another_thread_sees_and_does_that_a_step_sets_going(name, waits, copies):
    def found(compiler):
        weight, results = leafgrad.ones(2), []

        def differentiates():
            x = leafgrad.ones(2, requires_grad=True)
            (x * weight).sum().backward()
            return x.grad.tolist()

        def replaces():
            weight.data = weight * 2

        acts = {
            "reads": lambda: weight.numpy().sum().item(),
            "computes": lambda: (weight * 3).sum().item(),
            "writes": lambda: weight.add_(1).sum().item(),
            "begins by writing": lambda: weight.add_(1) is weight,
            "makes": lambda: leafgrad.tensor([1.0, 2.0]).sum().item(),
            "differentiates": differentiates,
            "replaces": replaces,
        }

        def body(x, pool):
            y = weight * x
            weight.add_(1)
            given = (contextvars.copy_context().run, acts[name]) if copies else (acts[name],)
            started = pool.submit(*given)
            return (y * 2, started.result()) if waits else (y * 2, started)

        step = compiler(body)
        with ThreadPoolExecutor(1) as pool:
            for _ in range(8):
                y, seen = step(leafgrad.ones(2), pool)
                results.append((y.tolist(), seen if waits else seen.result(), weight.tolist()))
        return results

    assert found(leafgrad.compile) == found(lambda function: function)
