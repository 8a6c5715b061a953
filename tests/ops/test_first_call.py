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


@pytest.mark.parametrize("way", [way for way in WAYS if way != "vmap"])
def test_an_elementwise_forward_of_another_shape_is_refused(way):
    @op("elementwise")
    def summed(xp, x):
        return x.sum(axis=0)

    for _ in range(2):
        with pytest.raises(OpDefinitionError, match=r"op 'summed': it is elementwise: expected .* shape \(2, 3\) in"):
            WAYS[way](summed, leafgrad.ones(2, 3))


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


def test_views_show_the_memory_of_the_argument_from_the_first_call_on(device):
    @op("view")
    def turned(xp, x):
        return x.T

    turned.vjp(x=lambda g: turned(g))
    x = leafgrad.zeros(2, 3, device=device)
    for _ in range(2):
        turned(x).add_(1)
    assert x.sum().item() == 12


def test_later_calls_are_given_the_arguments_themselves():
    given = []

    @op
    def plain(xp, x):
        given.append(x)
        return x + 1

    x = leafgrad.ones(2)
    plain(x)
    plain(x)
    assert [a is x._data for a in given] == [False, True]


def test_a_forward_that_asks_for_memory_that_it_could_write_is_no_mistake():
    """As compiled code does that takes no read-only arrays."""
    calls = []

    @op
    def picky(xp, x):
        calls.append(x)
        if not x.flags.writeable:
            raise ValueError("buffer source array is read-only")
        return x + 1

    x = leafgrad.ones(2)
    for _ in range(12):
        assert picky(x).tolist() == [2.0, 2.0]
    assert calls[-1] is x._data


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


ALIASES = {
    "itself": lambda xp, x: x,
    "reshape": lambda xp, x: x.reshape(-1),
    "ravel": lambda xp, x: x.ravel(),
    "a slice": lambda xp, x: x[:],
    "reversed": lambda xp, x: x[::-1],
    "squeeze": lambda xp, x: xp.squeeze(x),
    "asarray": lambda xp, x: xp.asarray(x),
    "ascontiguousarray": lambda xp, x: xp.ascontiguousarray(x),
    "astype": lambda xp, x: x.astype(x.dtype, copy=False),
    "real": lambda xp, x: x.real,
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (2, *x.shape)),
}


@pytest.mark.parametrize("forward", ALIASES.values(), ids=ALIASES)
@pytest.mark.parametrize("grad", [False, True])
def test_what_shows_the_memory_of_an_argument_is_copied_at_every_call(forward, grad, device):
    given = op(lambda xp, x: forward(xp, x), name="given")
    given.vjp(x=lambda g: g)
    for _ in range(3):
        w = leafgrad.tensor([1.0, 2.0], device=device, requires_grad=grad) * 1
        given(w).mul_(10)
        assert w.tolist() == [1.0, 2.0]
        assert w._version == 0


def test_an_argument_that_is_returned_depending_on_a_parameter():
    @op("elementwise", "float")
    def kept(xp, x, *, p=0.5):
        return x if p == 0 else x * (1 - p)

    kept.vjp(x=lambda g, *, p: g * (1 - p))
    x = leafgrad.tensor([1.0, 2.0], requires_grad=True)

    def step(x):
        w = x * 1
        q = w * w
        y = kept(w, p=0).mul_(10)
        return w, leafgrad.autograd.grad(q.sum(), x)[0], y

    kept(x)
    for run in (step, leafgrad.compile(step, executor="numpy")):
        assert [t.tolist() for t in run(x)] == [[1.0, 2.0], [2.0, 4.0], [10.0, 20.0]]


KEPT = np.array([1.0, 2.0], "float32"), np.array([3.0, 4.0], "float32")
BYTES = bytearray(KEPT[0].tobytes())
THEIRS = {
    "an array": lambda xp, x: KEPT[0],
    "bytes": lambda xp, x: np.frombuffer(BYTES, "float32"),
    "a broadcast": lambda xp, x: np.broadcast_to(KEPT[0][:1], (2,)),
    "a view of it": lambda xp, x: KEPT[0][::1],
    "several": lambda xp, x: KEPT,
    "in a new tuple": lambda xp, x: (KEPT[0], x + 3),
}


@pytest.mark.parametrize("forward", THEIRS.values(), ids=THEIRS)
@pytest.mark.parametrize("executor", [None, "numpy", "replay"])
def test_an_array_that_a_forward_keeps_is_copied(forward, executor):
    given = op(forward, name="given")
    run = given if executor is None else leafgrad.compile(lambda x: given(x), executor=executor)
    for _ in range(5):
        made = run(leafgrad.zeros(2))
        for result in made if isinstance(made, tuple) else (made,):
            result.mul_(2)
            result[0] = 5
    assert [array.tolist() for array in (*KEPT, np.frombuffer(BYTES, "float32"))] == [[1, 2], [3, 4], [1, 2]]


def test_numbers_of_foreign_bytes_become_ones_of_the_machine():
    table = np.array([1.0, 2.0], ">f8")
    given = op(lambda xp, x: table.copy(), name="given")
    for run in (given, leafgrad.compile(lambda x: given(x))):
        for _ in range(3):
            made = run(leafgrad.zeros(2))
            assert made.view(leafgrad.int64).tolist() == np.array([1.0, 2.0]).view("int64").tolist()


def test_results_in_results_are_refused():
    nested = op(lambda xp, x: (x * 1, (x * 2, x * 3)), name="nested")
    with pytest.raises(OpDefinitionError, match="op 'nested': its forward gives a tuple in a tuple"):
        nested(leafgrad.ones(2))


RESULTS = {
    "twice": lambda y: (y, y),
    "a view and its memory": lambda y: (y[1:], y),
    "memory and a view": lambda y: (y, y[1:]),
    "a list": lambda y: [y, y],
}


@pytest.mark.parametrize("results", RESULTS.values(), ids=RESULTS)
def test_results_do_not_share_memory(results, device):
    several = op(lambda xp, x: results(x * 2), name="several")
    for _ in range(2):
        first, second = several(leafgrad.tensor([1.0, 2.0], device=device))
        first.zero_()
        assert second.tolist()[-1] == 4.0


def test_an_array_that_is_a_parameter_is_not_the_result(device):
    k = np.array([1.0, 2.0], "float32")
    constant = op(lambda xp, x, *, k: k, name="constant")
    constant(leafgrad.ones(2), k=k).zero_()
    assert k.tolist() == [1.0, 2.0]
