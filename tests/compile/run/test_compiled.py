"""Compiled functions do what the functions do."""

from __future__ import annotations

import copy
import os
import pickle
import sys
import threading
from typing import NamedTuple

import pytest
from small_trainings import step_of

import leafgrad
from leafgrad import modes, nn, optim
from leafgrad.batching.pytree import flatten
from leafgrad.nn import functional as F


def close(a, b, rtol=1e-5):
    assert leafgrad.allclose(a, b, rtol=rtol, atol=1e-7), f"{a} and {b}"


def same_calls(function, *calls, executor=None, rtol=1e-5):
    """Call a function and its compiled form several times, and compare results."""
    compiled = leafgrad.compile(function, executor=executor)
    for args in calls:
        expected, got = function(*args), compiled(*args)
        for a, b in zip(flatten(expected)[0], flatten(got)[0], strict=True):
            close(a, b, rtol)
    return compiled


EXECUTORS = pytest.mark.parametrize("executor", ["numpy", "replay"])


def mlp(seed=0, dtype=leafgrad.float32):
    leafgrad.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3)).to(dtype)


OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: optim.Adam(p, lr=0.01),
    "adamw": lambda p: optim.AdamW(p, lr=0.01, amsgrad=True),
}


@EXECUTORS
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_three_hundred_training_steps(name, executor):
    leafgrad.manual_seed(1)
    x, target = leafgrad.randn(32, 8, dtype=leafgrad.float64), leafgrad.randint(3, (32,))

    def train(wrap):
        net = mlp(dtype=leafgrad.float64)
        optimizer = OPTIMIZERS[name](net.parameters())
        scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.99)

        def step(x, target):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), target)
            loss.backward()
            optimizer.step()
            return loss

        run, losses = wrap(step), []
        for _ in range(300):
            losses.append(run(x, target).item())
            scheduler.step()
        return losses, run

    expected, _ = train(lambda f: f)
    got, compiled = train(lambda f: leafgrad.compile(f, executor=executor))
    assert got == pytest.approx(expected, rel=1e-11)
    assert "1 program, traced again 0 times" in compiled.explain()


@EXECUTORS
def test_higher_derivatives_inside(executor):
    leafgrad.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    x, t = (leafgrad.rand(50, 1, dtype=leafgrad.float64, requires_grad=True) for _ in range(2))

    def step(x, t):
        net.zero_grad()
        u = net(leafgrad.cat([x, t], 1))
        u_x, u_t = leafgrad.autograd.grad(u.sum(), (x, t), create_graph=True)
        (u_xx,) = leafgrad.autograd.grad(u_x.sum(), x, create_graph=True)
        loss = ((u_t + u * u_x - 0.01 * u_xx) ** 2).mean()
        loss.backward()
        return loss

    expected = step(x, t)
    gradients = [p.grad for p in net.parameters()]
    compiled = leafgrad.compile(step, executor=executor)
    for _ in range(3):
        x.grad = t.grad = None
        close(compiled(x, t), expected, 1e-13)
        for p, g in zip(net.parameters(), gradients, strict=True):
            close(p.grad, g, 1e-11)


def test_backward_with_inputs_and_returned_gradients():
    net = mlp()
    x = leafgrad.ones(4, 8)

    def some():
        net.zero_grad()
        net(x).sum().backward(inputs=list(net[2].parameters()))

    run = leafgrad.compile(some)
    for _ in range(3):
        run()
    assert net[0].weight.grad is None
    assert net[2].bias.grad.tolist() == [4, 4, 4]
    same_calls(lambda x: leafgrad.autograd.grad(net(x).sum(), list(net.parameters())), *[(x,)] * 3)


def test_results_have_a_compiled_backward():
    w = leafgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)

    @leafgrad.compile
    def f(x):
        return {"out": (w * x).tanh(), "sum": [(w * w).sum(), 7]}

    for _ in range(3):
        x = leafgrad.tensor([0.5, 0.1, 0.2], requires_grad=True)
        w.grad = None
        result = f(x)
        assert result["sum"][1] == 7
        (result["out"].sum() * 2 + result["sum"][0]).backward()
        slope = 1 - (w.detach() * x.detach()).tanh() ** 2
        close(w.grad, 2 * slope * x.detach() + 2 * w.detach())
        close(x.grad, 2 * slope * w.detach())
    result = f(x)
    result["out"].sum().backward(retain_graph=True)  # the other result gets no gradient
    result["out"].sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        result["out"].sum().backward()


def test_the_backward_of_results_is_differentiable():
    w = leafgrad.ones(2, requires_grad=True)
    f = leafgrad.compile(lambda x: (w * w * w * x).sum())
    for i in range(5):
        x = leafgrad.full((2,), float(i), requires_grad=True)
        first, by_x = leafgrad.autograd.grad(f(x), (w, x), create_graph=True)
        assert (first.tolist(), by_x.tolist()) == ([3 * i] * 2, [1] * 2)
        second, mixed = leafgrad.autograd.grad(first.sum(), (w, x), create_graph=True)
        assert (second.tolist(), mixed.tolist()) == ([6 * i] * 2, [3] * 2)
        (third,) = leafgrad.autograd.grad(second.sum(), w)
        assert third.tolist() == [6 * i] * 2


def test_derivatives_of_derivatives_use_the_numbers_that_the_call_drew():
    w = leafgrad.tensor([1.0, 2.0], requires_grad=True)
    f = leafgrad.compile(lambda: (w**3 * leafgrad.rand(2)).sum())
    for _ in range(3):
        out = f()
        (first,) = leafgrad.autograd.grad(out, w, create_graph=True)
        (second,) = leafgrad.autograd.grad(first.sum(), w)
        assert (first * 2 / w).tolist() == pytest.approx(second.tolist())


def test_a_tensor_that_the_backward_needs_must_not_be_written():
    w = leafgrad.ones(2, requires_grad=True)
    f = leafgrad.compile(lambda x: (w * x * x).sum())
    x = leafgrad.ones(2)
    for _ in range(2):
        out = f(x)
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_results_of_a_function_with_a_backward_of_its_own():
    class Cube(leafgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * g * x * x

    def f(x):
        y = Cube.apply(x)
        (g,) = leafgrad.autograd.grad(y.sum(), x, create_graph=True)
        (h,) = leafgrad.autograd.grad(g.sum(), x)  # frees the graph of g, not that of y
        return y, g, h

    compiled = leafgrad.compile(f)
    for run in (f, compiled, compiled, compiled):
        x = leafgrad.tensor([1.0, 2.0], requires_grad=True)
        y, g, h = run(x)
        assert [t.tolist() for t in (y, g, h)] == [[1, 8], [3, 12], [6, 12]]
        assert [t.requires_grad for t in (y, g, h)] == [True, True, False]
        y.sum().backward()
        assert x.grad.tolist() == [3, 12]
        with pytest.raises(RuntimeError, match="a second time"):
            g.sum().backward()
    assert "open, since the backward of CubeBackward would have to run" in compiled.explain()


def test_a_result_whose_graph_was_used_up():
    w = leafgrad.ones(2, requires_grad=True)

    @leafgrad.compile
    def f():
        w.grad = None
        loss = (w * w).sum()
        loss.backward()
        return loss

    for _ in range(3):
        loss = f()
        assert loss.requires_grad
        with pytest.raises(RuntimeError, match="a second time"):
            loss.backward()


@pytest.mark.parametrize("mode", [leafgrad.no_grad, leafgrad.inference_mode, leafgrad.enable_grad])
def test_modes(mode):
    net = mlp()
    x = leafgrad.ones(2, 8)
    f = leafgrad.compile(net)
    for _ in range(3):
        with mode():
            out = f(x)
        assert out.requires_grad == (mode is leafgrad.enable_grad)
        close(out, net(x))
    if mode is leafgrad.inference_mode:
        with pytest.raises(RuntimeError, match=r"[Ii]nference"):
            out.mul_(leafgrad.ones(3, requires_grad=True))


class Pair(NamedTuple):
    a: leafgrad.Tensor
    b: list


def test_nested_arguments_and_results():
    def f(batch, *rest, scale, pair):
        return {"s": (batch["u"] + rest[0][0], [rest[0][1] * scale]), "p": Pair(pair.a * pair.b[0], [1, "x", None])}

    x = leafgrad.tensor([1.0, 2.0])
    compiled = leafgrad.compile(f)
    for _ in range(3):
        out = compiled({"u": x}, (x, x + 1), scale=leafgrad.tensor(3.0), pair=Pair(x, [x]))
        assert out["s"][0].tolist() == [2, 4]
        assert out["s"][1][0].tolist() == [6, 9]
        assert isinstance(out["p"], Pair)
        assert out["p"].a.tolist() == [1, 4]
        assert out["p"].b == [1, "x", None]
    (conditions,) = compiled.explain().guards
    for path in ("batch.u", "rest[0][1]", "scale", "pair.b[0]"):
        assert any(line.startswith(f"{path}:") for line in conditions)


def test_methods_are_compiled_for_each_instance():
    class Model(nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor
            self.weight = nn.Parameter(leafgrad.ones(2))

        @leafgrad.compile
        def forward(self, x):
            return x * self.weight * self.factor

    one, two = Model(1.0), Model(2.0)
    x = leafgrad.ones(2)
    for _ in range(3):
        assert one(x).tolist() == [1, 1]
        assert two(x).tolist() == [2, 2]
    assert one.forward is one.forward
    assert one.forward is not two.forward
    three = copy.deepcopy(two)
    with leafgrad.no_grad():
        three.weight.mul_(5)
    for _ in range(3):
        assert three(x).tolist() == [10, 10]
        assert two(x).tolist() == [2, 2]
    assert "traced again 0 times" in two.forward.explain()


def test_methods_under_other_names_and_of_classes():
    class Model:
        factor = 2.0

        def plain(self, x):
            return x * self.factor

        fast = leafgrad.compile(plain)

        @classmethod
        @leafgrad.compile
        def of_class(cls, x):
            return x * cls.factor

        @staticmethod
        @leafgrad.compile
        def of_none(x):
            return x * 3

    model = Model()
    x = leafgrad.ones(1)
    for _ in range(3):
        assert model.fast(x).item() == Model.of_class(x).item() == model.of_class(x).item() == 2
        assert model.of_none(x).item() == 3
    assert not isinstance(model.plain, type(model.fast))
    Model.factor = 5.0
    assert model.fast(x).item() == Model.of_class(x).item() == 5


def test_modules_keep_their_attributes():
    net = mlp()
    compiled = leafgrad.compile(net)
    assert list(compiled.parameters()) == list(net.parameters())
    assert compiled.training
    compiled.eval()
    assert not net.training
    compiled.extra = 3
    assert net.extra == 3
    assert "Sequential" in repr(compiled)
    x = leafgrad.ones(2, 8)
    for _ in range(3):
        close(compiled(x), net(x))


@leafgrad.compile
def doubled(x):
    return x * 2


def halved(x):
    return x / 2


class Scaled(nn.Linear):
    @leafgrad.compile
    def scaled(self, x):
        return 3 * self(x)


def twin(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("copied", [twin, copy.copy, copy.deepcopy])
def test_copies_are_compiled_anew(copied):
    x, net = leafgrad.ones(2), Scaled(2, 2)
    half, module = leafgrad.compile(halved, executor="replay", closed=True), leafgrad.compile(net)
    for _ in range(3):
        half(x), module(x), net.scaled(x)
    assert copied(doubled)(x).tolist() == [2.0, 2.0]
    other = copied(half)
    assert (other.function, other.executor, other.closed) == (halved, "replay", True)
    assert other.explain() == "halved: has not been called"
    assert other(x).tolist() == [0.5, 0.5]
    other = copied(module)
    assert other.function is not net
    other.extra = 3
    assert not hasattr(net, "extra")
    close(other(x), net(x))
    inner = copied(net)
    close(inner.scaled(x), net.scaled(x))
    assert inner.scaled.function.__self__ is inner
    close(copied(net.scaled)(x), net.scaled(x))


def test_a_compiled_function_with_a_name_is_pickled_by_it():
    assert twin(doubled) is doubled


def test_batch_norm_buffers():
    leafgrad.manual_seed(0)
    one = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    two = copy.deepcopy(one)
    compiled = leafgrad.compile(two)
    for training in (True, False, True):
        one.train(training)
        two.train(training)
        for _ in range(3):
            x = leafgrad.randn(16, 4)
            close(compiled(x), one(x))
            for a, b in zip(one.buffers(), two.buffers(), strict=True):
                close(a, b)
    assert two[1].num_batches_tracked.item() == 6


@pytest.mark.parametrize("place", ["cpu", "fake:0"])
def test_dropout_draws_what_eager_draws(place):
    if place != "cpu":
        leafgrad.testing.fake.register()
    drop = nn.Dropout(0.5)
    compiled = leafgrad.compile(drop)
    x = leafgrad.ones(100, device=place)
    leafgrad.manual_seed(3)
    expected = [drop(x).cpu() for _ in range(4)]
    leafgrad.manual_seed(3)
    got = [compiled(x).cpu() for _ in range(4)]
    for a, b in zip(expected, got, strict=True):
        assert (a == b).all()
    assert not (got[2] == got[3]).all()
    drop.eval()
    assert (compiled(x).cpu() == x.cpu()).all()


def test_lbfgs_closure():
    def minimize(wrap):
        w = nn.Parameter(leafgrad.tensor([-1.2, 1.0], dtype=leafgrad.float64))
        optimizer = optim.LBFGS([w], max_iter=30, line_search_fn="strong_wolfe")

        @wrap
        def closure():
            optimizer.zero_grad()
            loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        return w.detach()

    close(minimize(leafgrad.compile), minimize(lambda f: f), 1e-9)


def test_minibatches_that_are_views():
    data = leafgrad.arange(12.0).reshape(6, 2)
    f = leafgrad.compile(lambda x: (x * 2).sum())
    for i in range(6):
        assert f(data[i]).item() == 2 * (4 * i + 1)


def test_other_devices():
    leafgrad.testing.fake.register()
    net = mlp().to("fake:0")
    optimizer = optim.Adam(net.parameters(), lr=0.01)
    x = leafgrad.ones(4, 8, device="fake:0")

    step = leafgrad.compile(step_of(net, optimizer))
    losses = [step(x).item() for _ in range(6)]
    reference = mlp()
    other = optim.Adam(reference.parameters(), lr=0.01)
    for loss in losses:
        other.zero_grad()
        expected = reference(x.cpu()).square().mean()
        expected.backward()
        other.step()
        assert loss == pytest.approx(expected.item(), rel=1e-5)
    assert "replayed" in step.explain()


def test_compiled_functions_inside_compiled_functions_are_inlined():
    inner = leafgrad.compile(lambda x: x.sin())
    outer = leafgrad.compile(lambda x: inner(x) * 2)
    x = leafgrad.tensor([0.5])
    for _ in range(3):
        close(outer(x), x.sin() * 2)
    assert [e.name for e in outer.graph.equations] == ["sin", "mul"]


def test_eager_by_environment(monkeypatch):
    calls = []

    @leafgrad.compile
    def f(x):
        calls.append(1)
        return x * 2

    monkeypatch.setenv("LEAFGRAD_COMPILE", "0")
    x = leafgrad.ones(2)
    assert [f(x).tolist() for _ in range(3)] == [[2, 2]] * 3
    assert len(calls) == 3


def test_threads_call_different_and_the_same_functions():
    square, cube = leafgrad.compile(lambda x: x * x), leafgrad.compile(lambda x: x * x * x)
    wrong = []

    def work(seed):
        for i in range(60):
            x = leafgrad.full((200 + i % 3,), float(seed))
            if square(x)[0].item() != seed**2 or cube(x)[-1].item() != seed**3:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(square._calls.programs) == 3


def test_the_program_can_be_looked_at():
    f = leafgrad.compile(lambda x: (x * 1.0).sin())
    with pytest.raises(RuntimeError, match="calls are recorded before"):
        f.source()
    assert "has not been called" in f.explain()
    f(leafgrad.ones(3))
    assert "def run(" in f.source()
    assert [e.name for e in f.graph.equations] == ["sin"]
    assert "2 equations traced, 1 after the passes" in f.explain()
    replayed = leafgrad.compile(lambda x: x.sin(), executor="replay")
    for _ in range(2):
        replayed(leafgrad.ones(3))
    assert replayed.source().startswith("program:")


def test_a_first_call_that_makes_state_is_followed_by_one_that_closes():
    w = leafgrad.zeros(2, requires_grad=True)
    optimizer = leafgrad.optim.Adam([w])

    @leafgrad.compile(closed=True)
    def step():
        optimizer.zero_grad()
        ((w - 1) ** 2).sum().backward()
        optimizer.step()

    step()
    assert "its first call was open, since it keeps the tensor made" in step.explain()
    step()
    assert "1 program, traced again 0 times" in step.explain()


def test_decorator_with_arguments_and_names():
    @leafgrad.compile(executor="replay")
    def halve(x):
        """Half of x."""
        return x / 2

    assert halve.__name__ == "halve"
    assert halve.__doc__ == "Half of x."
    assert "halve" in repr(halve)
    assert [halve(leafgrad.ones(1)).item() for _ in range(3)] == [0.5] * 3


def test_hooks_of_tensors_run_in_the_program():
    w = leafgrad.ones(2, requires_grad=True)
    f = leafgrad.compile(lambda: (w * 3).sum().backward())

    def gradient():
        w.grad = None
        f()
        return w.grad.tolist()

    assert [gradient() for _ in range(3)] == [[3, 3]] * 3
    handle = w.register_hook(lambda g: g * 2)
    assert [gradient() for _ in range(2)] == [[6, 6]] * 2
    handle.remove()
    assert gradient() == [3, 3]


def test_a_result_whose_graph_was_overwritten():
    w = leafgrad.ones(3, requires_grad=True)

    def f(x):
        y = (w * x).tanh()
        y[:2].mul_(2)
        return y

    compiled = leafgrad.compile(f)
    for _ in range(4):
        x = leafgrad.ones(3)
        assert compiled(x).tolist() == f(x).tolist()
        for run in (f, compiled):
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                run(x).sum().backward()


def test_a_closed_call_of_a_small_step_runs_few_frames():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = optim.Adam(net.parameters())

    step = leafgrad.compile(step_of(net, optimizer))
    x, counts = leafgrad.ones(5, 3), []
    settings = {
        getattr(read, "__code__", None) for read in modes.SETTINGS.values()
    }  # one frame each, of all rooms that tests import
    for _ in range(4):
        step(x)
    for _ in range(5):  # the garbage collector may call functions, too
        frames = []
        sys.setprofile(lambda frame, event, _, frames=frames: frames.append(frame.f_code) if event == "call" else None)
        try:
            step(x)
        finally:
            sys.setprofile(None)
        frames = [c for c in frames if c not in settings]
        counts.append([c.co_qualname for c in frames if f"{os.sep}ops{os.sep}" not in c.co_filename])  # no forwards
    own = min(counts, key=len)
    assert len(own) <= 40, "\n".join(own)


def test_a_step_that_was_left_open_is_tried_again():
    seen = []

    @leafgrad.compile
    def step(x):
        if len(seen) < 10:
            seen.append(x)
        return x * 2

    for _ in range(12):
        step(leafgrad.ones(2))
    assert "open, since it changes len(seen)" in step.explain().summary
    for _ in range(100):
        assert step(leafgrad.ones(2)).tolist() == [2, 2]
    assert "closed" in step.explain().summary


def test_what_is_made_in_inference_mode_is_an_inference_tensor():
    def step(x):
        return leafgrad.zeros(3), leafgrad.tensor([1.0]), leafgrad.rand(2), x * 2 + leafgrad.ones(3)

    compiled = leafgrad.compile(step)
    with leafgrad.inference_mode():
        for _ in range(5):
            assert [t.is_inference() for t in compiled(leafgrad.ones(3))] == [True] * 4
    assert [t.is_inference() for t in compiled(leafgrad.ones(3))] == [False] * 4
