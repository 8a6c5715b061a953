"""Checkpoints: what is not saved is computed again, with the same values and the same random numbers."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import pytest

import leafgrad
from leafgrad import nn
from leafgrad.compat.torch.amp import autocast
from leafgrad.utils.checkpoint import checkpoint as recomputed, set_checkpoint_early_stop


@pytest.fixture
def checkpoint(t):
    return importlib.import_module(f"{t.__name__}.utils.checkpoint").checkpoint


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


def function(x):
    return (x.sin() * x).exp()


def test_gradients_of_both_orders(t, checkpoint):
    x = leaf(t, 0.1, 0.2)
    expected = t.autograd.grad(function(x).sum(), x, create_graph=True)[0]
    (g,) = t.autograd.grad(checkpoint(function, x, use_reentrant=False).sum(), x, create_graph=True)
    assert g.tolist() == expected.tolist()
    assert t.autograd.grad(g.sum(), x)[0].tolist() == t.autograd.grad(expected.sum(), x)[0].tolist()


def test_it_runs_once_more_for_each_pass(t, checkpoint):
    calls = []

    def counted(x):
        calls.append(1)
        return function(x)

    x = leaf(t, 0.1)
    y = checkpoint(counted, x, use_reentrant=False)
    assert len(calls) == 1
    y.backward(retain_graph=True)
    assert len(calls) == 2
    y.backward()
    assert len(calls) == 3
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_nothing_is_kept():
    x = leafgrad.ones(3, requires_grad=True)
    y = recomputed(function, x)
    kept = [v for v in y._node.saved if v is not None] + [y._node.out]
    assert not any(isinstance(getattr(v, "value", v), leafgrad.Tensor) for v in kept)


def test_it_stops_as_soon_as_all_is_there(t, checkpoint):
    reached = []

    def two_steps(x):
        y = x.sin()
        reached.append(1)
        z = y.sum()
        reached.append(2)
        return z

    x = leaf(t, 0.5)
    checkpoint(two_steps, x, use_reentrant=False).backward()
    assert reached == [1, 2]
    checkpoint(two_steps, x, use_reentrant=False, early_stop=False).backward()
    assert reached == [1, 2, 1, 2, 1, 2]


def test_the_same_random_numbers(t, checkpoint):
    t.manual_seed(0)
    x = t.ones(1000, requires_grad=True)
    y = checkpoint(lambda x: t.nn.functional.dropout(x, 0.5) * x, x, use_reentrant=False)
    state = t.get_rng_state()
    y.sum().backward()
    assert bool(((x.grad != 0) == (y != 0)).all())
    assert bool((t.get_rng_state() == state).all())


def test_other_random_numbers_if_wanted():
    x = leafgrad.ones(1000, requires_grad=True)
    y = recomputed(lambda x: leafgrad.nn.functional.dropout(x, 0.5) * x, x, preserve_rng_state=False)
    y.sum().backward()
    assert not bool(((x.grad != 0) == (y != 0)).all())


def test_modules_keywords_and_several_results(t, checkpoint):
    layer = t.nn.Linear(2, 2)
    a, b = checkpoint(lambda x, k=1: (layer(x) * k, x * 2), t.ones(1, 2), k=3, use_reentrant=False)
    a.sum().backward()
    assert layer.bias.grad.tolist() == [3.0, 3.0]
    assert not b.requires_grad


def test_checkpoints_inside_checkpoints(t, checkpoint):
    def inner(z):
        return z.sin().exp()

    def outer(x):
        return checkpoint(inner, x.cos(), use_reentrant=False) * x

    x = leaf(t, 0.5)
    plain = t.autograd.grad(inner(x.cos()) * x, x)[0]
    assert t.autograd.grad(checkpoint(outer, x, use_reentrant=False), x)[0].tolist() == plain.tolist()


def test_without_gradients_it_is_a_call(t, checkpoint):
    with t.no_grad():
        assert not checkpoint(function, leaf(t, 1.0), use_reentrant=False).requires_grad


def test_a_function_that_does_something_else_is_noticed(t, checkpoint):
    error = importlib.import_module(f"{t.__name__}.utils.checkpoint").CheckpointError
    calls = []

    def wider(x):
        calls.append(1)
        return x.repeat(len(calls)).exp()

    def shorter(x):
        calls.append(1)
        return x.exp() if len(calls) > 1 else x.exp().exp()

    for unstable, message in ((wider, "different metadata"), (shorter, "different number of tensors")):
        calls.clear()
        y = checkpoint(unstable, leaf(t, 1.0, 2.0), use_reentrant=False)
        with pytest.raises(error, match=message):
            y.sum().backward()


def test_sequential_parts(t):
    sequential = importlib.import_module(f"{t.__name__}.utils.checkpoint").checkpoint_sequential
    net = t.nn.Sequential(*[t.nn.Tanh() for _ in range(5)])
    x = leaf(t, 0.5)
    for steps in (net, list(net)):
        y = sequential(steps, 2, x, use_reentrant=False)
        assert t.autograd.grad(y, x)[0].tolist() == t.autograd.grad(net(x), x)[0].tolist()


def test_bad_arguments(t, checkpoint):
    with pytest.raises(ValueError, match="use_reentrant=False"):
        checkpoint(function, leaf(t, 1.0), use_reentrant=True, context_fn=lambda: 1)


def test_contexts(t, checkpoint):
    entered = []

    class Context:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *_):
            pass

    x = leaf(t, 1.0)
    y = checkpoint(function, x, use_reentrant=False, context_fn=lambda: (Context("first"), Context("again")))
    y.backward()
    assert entered == ["first", "again"]


def test_compiled_steps_with_checkpoints():
    def make():
        leafgrad.manual_seed(0)
        net, x = leafgrad.nn.Linear(3, 3).double(), leafgrad.ones(2, 3, dtype=leafgrad.float64)
        adam = leafgrad.optim.Adam(net.parameters())

        def step():
            adam.zero_grad()
            loss = recomputed(lambda x: leafgrad.nn.functional.dropout(net(x).tanh(), 0.5), x).square().sum()
            loss.backward()
            adam.step()
            return loss.detach()

        return step

    plain, compiled = make(), leafgrad.compile(make())
    leafgrad.manual_seed(1)
    expected = [plain().item() for _ in range(3)]
    leafgrad.manual_seed(1)
    assert [compiled().item() for _ in range(3)] == pytest.approx(expected, rel=1e-12)


def test_checkpoints_under_vmap_and_func():
    x = leafgrad.tensor([0.1, 0.2, 0.3])
    derivative = leafgrad.func.grad(lambda x: recomputed(function, x))
    expected = leafgrad.func.vmap(leafgrad.func.grad(function))(x)
    assert leafgrad.func.vmap(derivative)(x).tolist() == expected.tolist()
    assert derivative(x[0]).item() == pytest.approx(expected[0].item())


def test_a_recomputation_is_as_precise_as_the_first_time():
    """Under autocast, of which the backward pass is outside."""
    layer, x = nn.Linear(3, 3), leafgrad.ones(2, 3, requires_grad=True)
    kinds = []

    def step(x):
        y = layer(x)
        kinds.append(y.dtype)
        return layer(y)

    with autocast("cpu"):
        y = recomputed(step, x, use_reentrant=False)
    y.float().sum().backward()
    found, x.grad = x.grad, None
    with autocast("cpu"):
        y = step(x)
    y.float().sum().backward()
    assert set(kinds) == {leafgrad.bfloat16}
    assert found.equal(x.grad)


def test_a_compiled_function_in_a_checkpoint_draws_the_same_again():
    def block(x, w):
        return nn.functional.dropout(x * w, 0.5, True).exp()

    def run(function):
        leafgrad.manual_seed(1)
        x, w = leafgrad.randn(3, 3), leafgrad.randn(3, 3, requires_grad=True)
        found = []
        for _ in range(3):
            y = recomputed(function, x, w, use_reentrant=False)
            found += [
                y.sum().item(),
                *leafgrad.autograd.grad(y.sum(), w)[0].flatten().tolist(),
                leafgrad.rand(()).item(),
            ]
        return found

    assert run(leafgrad.compile(block)) == pytest.approx(run(block), rel=1e-6)


def test_whether_recomputations_stop_early_is_set_for_all():
    done = []

    def step(x):
        y = x.exp()
        done.append(1)
        return y

    for enable, count in ((True, 1), (False, 2)):
        done.clear()
        x = leafgrad.ones(2, requires_grad=True)
        with set_checkpoint_early_stop(enable):
            y = recomputed(step, x, use_reentrant=False)
        y.sum().backward()
        assert len(done) == count


def derived(t):
    """Functions that differentiate what they compute."""
    return {
        "grad": lambda x: t.autograd.grad((x**3).sum(), x, create_graph=True)[0],
        "jvp": lambda x: t.func.jvp(lambda x: x**3, (x,), (t.ones_like(x),))[1],
        "jacfwd": lambda x: t.func.jacfwd(lambda x: x**3)(x).sum(0),
    }


@pytest.mark.parametrize("name", ["grad", "jvp", "jacfwd"])
@pytest.mark.parametrize("early", [True, False])
def test_what_differentiates_inside(t, checkpoint, name, early):
    x = leaf(t, 0.5, 2.0)
    y = checkpoint(derived(t)[name], x, use_reentrant=False, early_stop=early)
    assert y.tolist() == [0.75, 12]
    y.sum().backward()
    assert x.grad.tolist() == [3, 12]


def test_a_residual_inside():
    """As of a differential equation: u'' of a network, differentiated by its parameters."""
    leafgrad.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    x = leafgrad.linspace(0, 1, 5, dtype=leafgrad.float64).reshape(5, 1).requires_grad_()

    def residual(x):
        u = net(x)
        for _ in range(2):
            (u,) = leafgrad.autograd.grad(u.sum(), x, create_graph=True)
        return (u + net(x)).square()

    expected = leafgrad.autograd.grad(residual(x).sum(), [x, *net.parameters()])
    found = leafgrad.autograd.grad(recomputed(residual, x).sum(), [x, *net.parameters()])
    assert [g.tolist() for g in found] == [g.tolist() for g in expected]
    assert recomputed(leafgrad.func.hessian(lambda x: (x**3).sum()), x[:, 0]).diagonal().sum().item() == 15


@pytest.mark.parametrize("write", [lambda x: x.add_(1), lambda x: x.view(-1).zero_()])
def test_arguments_that_are_written_are_noticed(t, checkpoint, write):
    x = leaf(t, 0.1, 0.2) * 2
    y = checkpoint(function, x, use_reentrant=False)
    write(x)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.* is at version 1; expected version 0"):
        y.sum().backward()


def test_what_the_function_saves_and_writes_is_noticed():
    def written(x):  # PyTorch is silently wrong
        y = x.sigmoid()
        z = y * 3
        y += 1
        return z * y

    with pytest.raises(RuntimeError, match=r"modified by an inplace operation: .*that the function saved of shape .2"):
        recomputed(written, leaf(leafgrad, 0.1, 0.2)).sum().backward()


def test_arguments_in_lists_and_dicts_that_are_written_are_noticed():
    for pack in (lambda x: [x], lambda x: {"x": (x,)}):
        x = leafgrad.ones(2)
        given, w = pack(x), leaf(leafgrad, 0.1, 0.2)
        first = (lambda held: held[0]) if isinstance(given, list) else (lambda held: held["x"][0])
        y = recomputed(lambda held, w, first=first: (first(held) * w).sin(), given, w)
        x.add_(1)
        with pytest.raises(RuntimeError, match=r"checkpoint: an argument of shape \[2\] is at version 1"):
            y.sum().backward()


@pytest.mark.parametrize("preserves", [False, True])
def test_what_is_drawn_after_a_backward_pass_does_not_depend_on_what_it_draws_again(preserves):
    leafgrad.manual_seed(0)
    y = recomputed(lambda x: leafgrad.nn.functional.dropout(x, 0.5) * x, x_of(4), preserve_rng_state=preserves)
    before = leafgrad.get_rng_state()
    y.sum().backward()
    assert leafgrad.equal(leafgrad.get_rng_state(), before) is preserves


def x_of(n):
    return leafgrad.ones(n, requires_grad=True)


@pytest.mark.parametrize("around", [lambda f: f, leafgrad.vmap], ids=["a step", "a batch in a step"])
def test_compiled_steps_are_within_the_context_of_the_first_pass(around):
    held = SimpleNamespace(factor=1.0)

    @contextmanager
    def doubled():
        held.factor *= 2
        yield
        held.factor /= 2

    def step(x):
        part = partial(recomputed, lambda v: v.sin() * held.factor, use_reentrant=False)
        y = around(lambda v: part(v, context_fn=lambda: (doubled(), doubled())))(x)
        return leafgrad.autograd.grad(y.sum(), x)[0], y.detach()

    x = leafgrad.tensor([0.5, 1.0], requires_grad=True)
    compiled = leafgrad.compile(step)
    for _ in range(4):
        assert [t.tolist() for t in compiled(x)] == [(2 * x.cos()).tolist(), (2 * x.sin()).tolist()]
