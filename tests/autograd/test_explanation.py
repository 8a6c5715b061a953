"""``explain``: each reason why a gradient is None, and what is said of one that is there."""

from __future__ import annotations

import gc
import threading

import pytest

import leafgrad
from leafgrad import explain, nn
from leafgrad.errors import TraceError


def leaf():
    return leafgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)


def said(*tensors):
    text = explain(*tensors)
    assert 1 <= len(text.splitlines()) <= 3
    assert repr(text) == str(text)
    return text


# ---- what requires no grad -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda x: x > 0, lambda x: x.argmax(), lambda x: x.long()])
def test_no_floating_numbers(make):
    assert "numbers have no derivatives" in said(make(leaf()))


def test_made_under_a_mode():
    x = leaf()
    with leafgrad.no_grad():
        view = x[:2]
    with leafgrad.inference_mode():
        inside = x * 2
    assert "made under no_grad()" in said(view)
    assert "made under inference_mode()" in said(inside)


def test_data_and_frozen_parameters():
    assert "requires_grad_()" in said(leafgrad.ones(2))
    frozen = nn.Parameter(leafgrad.ones(2), requires_grad=False)
    assert "since it was frozen" in said(frozen)


def test_recorded_reasons():
    x = leaf()
    with explain.record():
        cut = x.detach()
        with leafgrad.no_grad():
            under = x * 2
        plain = leafgrad.ones(3) + 1
        again = plain * 2
    assert "since it comes from detach()" in said(cut)
    assert "since mul made it under no_grad()" in said(under)
    assert "mul made it of tensors of which none requires grad" in said(again)
    for t, line in (cut, "x.detach()"), (under, "under = x * 2"), (again, "again = plain * 2"):
        assert said(t).splitlines()[-1].startswith("It was made at ")
        assert __file__ in said(t)
        assert line in said(t)


# ---- leaves ----------------------------------------------------------------------------------------------------------


def test_before_and_after_a_pass():
    x = leaf()
    loss = (x * x).sum()
    assert "no backward pass came to this leaf" in said(x)
    assert "The loss leads to it: call backward()" in said(x, loss)
    loss.backward()
    assert "holds the gradient of one backward pass, float32 tensor (3,), at most 6 in size" in said(x)
    (x * x).sum().backward()
    assert "holds the sum of 2 backward passes" in said(x)
    assert "zero_grad()" in said(x)
    assert said(x, loss) == said(x)
    assert "holds the sum of 2 backward passes" in said(x, x.detach().sum())
    assert "The loss itself requires no grad" in said(x, x.detach().sum())
    assert "No path leads from the loss to it" in said(x, leaf().sum())
    x.grad.zero_()
    assert "all zeros" in said(x)
    assert "written in place besides" in said(x)
    x.grad = None
    assert "2 backward passes came to this leaf" in said(x)
    (x * x).sum().backward()
    assert "one backward pass" in said(x)


def test_gradients_that_came_otherwise():
    x = leaf()
    x.grad = leafgrad.ones(3)
    assert "a compiled step put there, or an assignment" in said(x)
    (x * x).sum().backward()
    assert "a compiled step put there, or an assignment" in said(x)
    assert "nan" in said(with_gradient(float("nan")))


def with_gradient(value):
    x = leafgrad.ones(1, requires_grad=True)
    x.grad = leafgrad.tensor([value])
    return x


def test_compiled_steps():
    x = leaf()

    @leafgrad.compile
    def step():
        loss = (x * x).sum()
        loss.backward()
        return loss

    for _ in range(4):
        step()
        assert "a compiled step put there" in said(x)
        x.grad = None
    with pytest.raises(TraceError, match="call it after the function"):
        leafgrad.trace(lambda t: explain(t), leafgrad.ones(1))


def test_freed_without_a_gradient():
    x = leaf()
    loss = (x * x).sum()
    leafgrad.autograd.grad(loss, x)
    assert "its graph is freed" in said(x, loss)


def test_recorded_passes_and_several_threads():
    x = leaf()
    with pytest.warns(UserWarning, match="reference cycle"):
        (x**3).sum().backward(create_graph=True)
    assert "create_graph=True" in said(x)
    x.grad = None
    with explain.record():
        found = []
        thread = threading.Thread(target=lambda: found.append(explain(x * 2)))
        thread.start()
        thread.join()
    assert "It was made at" not in found[0]  # notes are this thread's


# ---- where the path breaks -------------------------------------------------------------------------------------------


def test_unrecorded_breaks():
    x, w = leaf(), leaf()
    assert "MulBackward0 read its values as a constant" in said(x, (x.detach() * w).sum())
    assert "run it under explain.record()" in said(x, (w * w).sum())
    assert "The loss itself requires no grad" in said(x, x.detach().sum())


BREAKS = {
    "detach": (lambda x, w: (x * 2).detach() * w, "it comes from detach()"),
    "comparison": (lambda x, w: (x > 0) * w, "gt, which made it, has no derivative"),
    "argmax": (lambda x, w: x.argmax() * w, "has no derivative"),
    "mode": (lambda x, w: leafgrad.no_grad()(lambda: x.exp())() * w, "exp made it under no_grad()"),
    "none": (lambda x, w: w * 2, "does the loss use it?"),
    "number": (lambda x, w: w * x.sum().item(), "does the loss use it?"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_recorded_breaks(name):
    way, why = BREAKS[name]
    x, w = leaf(), leaf()
    with explain.record():
        y = x + 1
        loss = way(y, w).sum()
    assert why in said(x, loss)
    assert "No path leads from the loss to it." in said(x, loss)


def test_the_first_break_is_named():
    x = leaf()
    with explain.record():
        y = (x * 2).detach()
        z = y.exp()
        loss = (z * leaf()).sum()
    text = said(x, loss)
    assert "y = (x * 2).detach()" in text
    assert "z = y.exp()" not in text


# ---- results of operations -------------------------------------------------------------------------------------------


def test_results():
    x = leaf()
    y = x * 2
    assert "is no leaf: MulBackward0 made it" in said(y)
    (y * y).sum().backward()
    z = x * x
    z.sum().backward()
    assert "freed" in said(z)
    kept = x * 3
    kept.retain_grad()
    loss = kept.sum()
    assert "it retains its gradient, but no backward pass came" in said(kept)
    assert "The loss leads to it" in said(kept, loss)
    loss.backward()
    assert "the gradient of this result, which retains it" in said(kept)


def test_lines_under_anomaly_detection():
    with leafgrad.autograd.set_detect_anomaly(True):
        y = leaf() * 2
    assert "y = leaf() * 2" in said(y)


# ---- notes -----------------------------------------------------------------------------------------------------------


def test_notes_hold_nothing_alive():
    with explain.record():
        x = leaf()
        y = x * 2
        count = len(explain.notes.made)
        del y
        gc.collect()
        assert len(explain.notes.made) == count - 1


def test_recording_without_with():
    notes = explain.record()
    y = leaf() * 2
    notes.stop()
    notes.stop()
    z = leaf() * 2
    assert "It was made at" in said(y)
    assert "It was made at" not in said(z)


def test_recording_changes_no_numbers():
    def run():
        leafgrad.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Tanh(), nn.Linear(4, 1))
        loss = net(leafgrad.randn(5, 3)).pow(2).mean()
        loss.backward()
        return [loss.item(), *(p.grad.tolist() for p in net.parameters())]

    plain = run()
    with explain.record():
        assert run() == plain


def test_misuse():
    with pytest.raises(TypeError, match="explain: t: expected a Tensor, got int"):
        explain(3)
    with pytest.raises(TypeError, match="explain: loss: expected a Tensor, got float"):
        explain(leaf(), 1.0)


def test_a_leaf_that_was_lost():
    for t in (leaf() * 0.1, leaf().to(leafgrad.float64), leaf() + leaf()):
        assert "made it of a leaf that no variable holds" in said(t)
        assert "t.detach().requires_grad_()" in said(t)
    x = leaf()
    assert "Call retain_grad()" in said(x * 0.1)


def test_a_function_that_gives_none():
    class Stop(leafgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return None

    x, w = leaf(), leaf()
    loss = Stop.apply(x).sum() + w.sum()
    loss.backward()
    assert "The loss leads to it by StopBackward" in said(x, loss)
    w.grad = None
    assert "Stop" not in said(w, loss)


def test_gradients_that_are_no_numbers():
    x = leafgrad.zeros(2, requires_grad=True)
    x.sqrt().sum().backward()
    assert "with inf in it" in said(x)
    x.grad = None
    (x.sqrt() * 0).sum().backward()
    assert "with nan in it; autograd.set_detect_anomaly(True) names" in said(x)
