"""Indices that change from call to call: one program serves all that choose as many elements."""

import itertools

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad.autograd import grad
from leafgrad.ops.index import index

X = leafgrad.arange(210.0).reshape(6, 7, 5).sin()

CHOOSING = [
    lambda i, j: X[i],
    lambda i, j: X[-1 - i, j],
    lambda i, j: X[:, i, j],
    lambda i, j: X[..., j],
    lambda i, j: X[i : i + 3],
    lambda i, j: X[2 * i : 2 * (i + 1), 1:3],
    lambda i, j: X[:, i : i + 2, j : j + 3],
    lambda i, j: X[i, j : j + 2, None],
    lambda i, j: X[None, i : i + 1, :, j],
    lambda i, j: X[:, i : i + 4][:, 1:4].transpose(0, 1)[j],
    lambda i, j: X[i : i + 2].reshape(2, 35)[:, 3 * j : 3 * j + 5],
    lambda i, j: sum(X[i + k] for k in range(3)),
    lambda i, j: X.long()[i, j : j + 2] + X.bool()[i, j],
    lambda i, j: X[0:0, i],
]


WEIGHT = leafgrad.ones(1, requires_grad=True)


def gradient(choose, i, j):
    part = choose(i, j)
    return part * 2, grad((part * WEIGHT).cos().sum(), WEIGHT)[0]


def check(step, executor):
    compiled = leafgrad.compile(step, executor=executor)
    for i, j in [(0, 0), (2, 1), (1, 2), *itertools.product(range(3), repeat=2)]:
        for found, expected in zip(compiled(i, j), step(i, j), strict=True):
            assert found.stride() == expected.stride()
            assert found.dtype is expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert "closed; 1 program" in compiled.explain().summary


@pytest.mark.parametrize("choose", CHOOSING)
def test_one_program_serves_all_places(choose):
    check(lambda i, j: gradient(choose, i, j), "numpy")


def test_one_program_in_c_serves_all_places():
    pytest.importorskip("leafgrad_native")
    check(lambda i, j: [t for choose in CHOOSING for t in gradient(choose, i, j)], "native")


@pytest.mark.parametrize("choose", [lambda i: X[i], lambda i: X[:, -i], lambda i: X[i - 4, 1:2]])
def test_places_that_are_not_there_are_refused(choose):
    compiled = leafgrad.compile(lambda i: choose(i) * 2)
    for i in (1, 2, 3, 4):
        compiled(i)
    for i in (20, -20):
        with pytest.raises(IndexError) as expected:
            choose(i)
        with pytest.raises(IndexError) as error:
            compiled(i)
        assert str(expected.value) in str(error.value)
    assert compiled(5).tolist() == (choose(5) * 2).tolist()


def test_slices_that_end_with_the_tensor_are_shorter():
    compiled = leafgrad.compile(lambda i: X[i : i + 4].sum(0) * 2)
    for i in (0, 1, 2, 0, 2, 3, 4, 5, 6, 7, 1):
        assert compiled(i).tolist() == (X[i : i + 4].sum(0) * 2).tolist()


def test_large_slices_are_not_copied():
    data = leafgrad.arange(200_000.0).reshape(400, 500)
    compiled = leafgrad.compile(lambda i: data[i : i + 300].amax(0), executor="numpy")
    for i in (0, 1, 2, 1, 2):
        assert compiled(i).tolist() == data[i : i + 300].amax(0).tolist()
    assert all(e.op is not index for call in compiled._calls.programs for e in call.graph.equations)


@pytest.mark.parametrize("kept", ["the step's data", "an argument", "made in the step"])
def test_what_is_written_is_seen_through_slices(kept):
    """Through those that the step holds by then, and through those that it returns."""

    def step(data, x, i, j):
        data = x * 2 if kept == "made in the step" else x if kept == "an argument" else data
        part, other = data[i : i + 3], data[j]
        data[i + 1 : i + 2] += 1
        before = part * 2 + other
        part.mul_(2)
        return before, part + data[j], data[j : j + 2]

    ours, theirs = leafgrad.ones(8, 2), leafgrad.ones(8, 2)
    compiled = leafgrad.compile(step)
    for k, (i, j) in enumerate([(0, 1), (1, 0), (2, 5), (2, 3), (4, 1), (5, 6), (0, 0)]):
        x = leafgrad.full((8, 2), float(k))
        found, expected = compiled(ours, x.clone(), i, j), step(theirs, x.clone(), i, j)
        found[2].add_(1)
        expected[2].add_(1)
        assert [t.tolist() for t in (*found, ours)] == [t.tolist() for t in (*expected, theirs)]


def test_slices_of_what_requires_grad_have_gradients():
    table = nn.Parameter(leafgrad.rand(6, 3))
    compiled = leafgrad.compile(lambda i: grad((table[i : i + 2] ** 2).sum() + table[i].sum(), table)[0])
    for i in (0, 1, 2, 4, 3, 1):
        expected = grad((table[i : i + 2] ** 2).sum() + table[i].sum(), table)[0]
        assert compiled(i).tolist() == expected.tolist()


def test_counters_places_that_are_drawn_and_vmap():
    state, generator = {"at": 0}, leafgrad.Generator()

    def step(x):
        state["at"] = (state["at"] + 2) % 5
        return X[state["at"], x.long().max().item()], leafgrad.vmap(lambda row: row[state["at"]])(X.mT)

    compiled = leafgrad.compile(step)
    for k in range(7):
        generator.manual_seed(k)
        x = leafgrad.tensor([0.0, k % 3])
        before = dict(state)
        found, after = compiled(x), dict(state)
        state.update(before)
        expected = step(x)
        assert [t.tolist() for t in found] == [t.tolist() for t in expected]
        assert state == after


def test_an_op_of_a_plugin_says_what_it_is():
    @leafgrad.op("any_dtype")
    def stretch(xp, x, *, start, count):
        return x[start : start + count]

    @stretch.dynamic
    def stretch_at(numbers, x, *, start, count):
        inside = start >= 0 and start + count <= x.shape[0]
        return index(x, numbers.range(start, count), dims=(0,)) if inside else None

    compiled = leafgrad.compile(lambda i, n: stretch(X, start=i, count=n) * 2)
    for i, n in [(0, 2), (1, 2), (3, 2), (2, 2), (4, 1), (0, 1), (5, 3), (0, 3), (0, 4), (0, 2)]:
        assert compiled(i, n).tolist() == (X[i : i + n] * 2).tolist()
