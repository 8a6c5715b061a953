"""A forward that writes into its arguments is refused where it first runs, whatever runs it."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import op
from leafgrad.errors import OpDefinitionError


def doubling():
    @op("elementwise")
    def doubled(xp, x):
        x *= 2
        return x + 0

    return doubled


def ruled():
    """With a shape rule, so that a trace does not run it."""

    @op
    def ordered(xp, x):
        x.sort()
        return x + 0

    ordered.shape(lambda x: x.shape)
    ordered.batched(lambda call: call.sample_by_sample())  # asked for, it does not warn
    return ordered


WAYS = {
    "a tensor": lambda f, x: f(x),
    "an array": lambda f, x: f.compute((x.numpy(),), {}),
    "vmap": lambda f, x: leafgrad.func.vmap(f)(x),
    "replay": lambda f, x: leafgrad.compile(lambda t: f(t * 1) + 1, executor="replay")(x),
    "numpy": lambda f, x: leafgrad.compile(lambda t: f(t * 1) + 1, executor="numpy")(x),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("make", [doubling, ruled])
def test_a_forward_that_writes(make, way):
    wrong, x = make(), leafgrad.tensor([[3.0, 1.0], [2.0, 0.0]])
    for _ in range(2):
        with pytest.raises(
            OpDefinitionError, match=rf"op '{wrong.name}': its forward, from {__file__}:\d+, writes into"
        ):
            way(wrong, x)
    assert x.tolist() == [[3.0, 1.0], [2.0, 0.0]]


def test_one_that_writes_on_a_device_without_read_only_arrays(device):
    wrong, x = doubling(), leafgrad.ones(2, device=device)
    with pytest.raises(OpDefinitionError, match=r"op 'doubled': its forward, from .*, writes into"):
        wrong(x)
    assert x.tolist() == [1.0, 1.0]


def test_the_second_argument_is_named():
    @op("elementwise")
    def summed(xp, x, y):
        y += x
        return y + 0

    with pytest.raises(OpDefinitionError, match=r"its argument 'y', in summed\(x: float32 \(2,\), y: float32 \(2,\)\)"):
        summed(leafgrad.ones(2), leafgrad.ones(2))


def test_views_show_the_memory_of_the_argument_from_the_first_call_on():
    @op("view")
    def turned(xp, x):
        return x.T

    turned.vjp(x=lambda g: turned(g))
    x = leafgrad.zeros(2, 3)
    for _ in range(2):
        turned(x).add_(1)
    assert x.sum().item() == 12


def test_later_calls_run_the_forward_itself():
    @op
    def plain(xp, x):
        return x + 1

    x = leafgrad.ones(2)
    plain(x)
    assert plain.table[np.ndarray][0] is plain.forward


def test_a_forward_that_asks_for_memory_that_it_could_write_is_no_mistake():
    """As compiled code does that takes no read-only arrays."""
    calls = []

    @op
    def picky(xp, x):
        calls.append(x)
        if not x.flags.writeable:
            raise ValueError("buffer source array is read-only")
        return x + 1

    for _ in range(12):
        assert picky(leafgrad.ones(2)).tolist() == [2.0, 2.0]
    assert picky.table[np.ndarray][0] is picky.forward


C = {
    "x +": "an end after",
    "(x": "a '(' too many",
    "x x": "'x' after 'x'",
    "x ? 1": "not as many ':' as '?'",
    "x; x": "';'",
}


@pytest.mark.parametrize(("c", "words"), C.items())
def test_c_is_an_expression(c, words):
    with pytest.raises(OpDefinitionError, match="op 'two': c: expected a C expression, got ") as caught:
        op("elementwise", name="two", c=c)(lambda xp, x: x)
    assert words in str(caught.value)


def test_c_is_text_and_for_one_result():
    with pytest.raises(OpDefinitionError, match="c: expected text, a C expression of one result, got"):
        op("elementwise", name="two", c=("x", "y"))(lambda xp, x: x)

    @op("elementwise", c="x")
    def both(xp, x):
        return x + 0, x + 1

    with pytest.raises(OpDefinitionError, match="c='x' is for one result, but its forward gives 2"):
        both(leafgrad.ones(2))
