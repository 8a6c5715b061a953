"""What a function does to the world: a program does it too, in the same order, and to the same memory."""

from __future__ import annotations

import pytest
from small_trainings import step_of

import leafgrad
from leafgrad import nn, optim
from leafgrad.compile.ir.effects import complete
from leafgrad.nn import functional as F
from leafgrad.ops.node import Version


def both(make, calls=4, executor=None):
    """Run ``make()``, a (function, state) pair, eagerly and compiled, and compare the states after each call."""
    one, ours = make()
    other, theirs = make()
    compiled = leafgrad.compile(other, executor=executor)
    for _ in range(calls):
        one()
        compiled()
        for a, b in zip(ours(), theirs(), strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                assert leafgrad.allclose(a, b)
    return compiled


@pytest.mark.parametrize("executor", ["numpy", "replay"])
def test_gradients_accumulate(executor):
    def make():
        w = nn.Parameter(leafgrad.ones(3))

        def f():
            (w * w).sum().backward()
            (w * 2).sum().backward()

        return f, lambda: [w.grad]

    both(make, executor=executor)


def test_an_accumulated_gradient_stays_the_same_tensor():
    w = nn.Parameter(leafgrad.ones(3))
    f = leafgrad.compile(lambda: (w * 2).sum().backward())
    f()
    kept = w.grad
    for n in range(2, 5):
        f()
        assert w.grad is kept
        assert kept.tolist() == [2 * n] * 3


def test_gradients_are_tensors_of_their_own():
    v, w = nn.Parameter(leafgrad.ones(3)), nn.Parameter(leafgrad.ones(3))

    @leafgrad.compile
    def f(x):
        v.grad = w.grad = None
        loss = (v + w + x).sum()
        loss.backward()
        return v.grad, w.grad, x, loss.expand(3)

    for _ in range(3):
        x = leafgrad.ones(3)
        gv, gw, same, out = f(x)
        assert same is x
        assert gv is v.grad
        assert gw is w.grad
        gv.mul_(5)
        x.mul_(7)
        out.detach().clone().mul_(3)
        assert w.grad.tolist() == [1, 1, 1]
    before = v.grad
    f(leafgrad.ones(3))
    assert v.grad is not before
    assert before.tolist() == [5, 5, 5]


def test_gradients_of_an_open_step_are_in_memory_of_their_own(monkeypatch):
    monkeypatch.setenv("LEAFGRAD_COMPILE", "always")
    v, w = nn.Parameter(leafgrad.ones(3)), nn.Parameter(leafgrad.ones(3))
    seen = []
    w.register_hook(seen.append)

    @leafgrad.compile
    def step(x):
        v.grad = w.grad = None
        seed = x * 2
        (v + w).backward(seed)
        return float(seed.sum()), seed

    for _ in range(4):
        _, seed = step(leafgrad.ones(3))
        v.grad.mul_(5)
        assert w.grad.tolist() == seed.tolist() == seen[-1].tolist() == [2, 2, 2]


def test_results_never_share_memory():
    @leafgrad.compile
    def f(x):
        return x.reshape(-1), x.T, x + 0, x.detach(), x * 1

    for _ in range(3):
        x = leafgrad.ones(2, 3)
        results = f(x)
        x.zero_()
        for i, r in enumerate(results[2:]):
            r.add_(i)
    assert results[0].tolist() == [1] * 6
    assert results[1].tolist() == [[1, 1]] * 3
    first = f(leafgrad.ones(2, 3))
    f(leafgrad.zeros(2, 3))
    assert first[2].tolist() == [[1, 1, 1]] * 2


def test_one_tensor_returned_twice_is_one_tensor():
    @leafgrad.compile
    def f(x):
        y = x * 2
        return y, [y]

    for _ in range(3):
        a, (b,) = f(leafgrad.ones(2))
        assert a is b


def test_a_gradient_returned_before_it_is_cleared():
    w = nn.Parameter(leafgrad.ones(2))

    @leafgrad.compile
    def f():
        old = w.grad
        w.grad = None
        return old

    for n in range(3):
        w.grad = leafgrad.full((2,), float(n))
        kept = w.grad
        assert f() is kept
        assert w.grad is None


def test_writes_in_place_views_and_order():
    def make():
        a, b = leafgrad.arange(6.0).reshape(2, 3), leafgrad.ones(3)

        def f():
            old = a[0].clone()
            a[0] = b
            b.copy_(old)
            a[:, 1].add_(10)
            b.mul_(a[1, 0])

        return f, lambda: [a, b]

    for executor in ("numpy", "replay"):
        both(make, executor=executor)


def test_a_swap_of_two_tensors():
    def make():
        a, b = leafgrad.zeros(2), leafgrad.ones(2)

        def f():
            old = a.clone()
            a.copy_(b)
            b.copy_(old)

        return f, lambda: [a, b]

    for executor in ("numpy", "replay"):
        both(make, executor=executor)


def test_writes_into_views_of_captured_tensors_and_into_arguments():
    base = leafgrad.zeros(4)
    part = base[1:3]

    @leafgrad.compile
    def f(x):
        part.add_(1)
        x.mul_(2)

    data = leafgrad.ones(3, 2)
    for i in range(3):
        f(data[i])
    assert base.tolist() == [0, 3, 3, 0]
    assert part.tolist() == [3, 3]
    assert data.tolist() == [[2, 2]] * 3


def test_writes_count_as_versions():
    w = leafgrad.ones(2, requires_grad=True)
    buffer = leafgrad.ones(2)
    f = leafgrad.compile(lambda: buffer.add_(1))
    for _ in range(2):
        f()
    saved = (w * buffer).sum()
    f()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.backward()


def test_requires_grad_of_an_argument():
    @leafgrad.compile
    def f(x):
        x.requires_grad_()
        (x * x).sum().backward()

    for _ in range(3):
        x = leafgrad.tensor([3.0])
        f(x)
        assert x.requires_grad
        assert x.is_leaf
        assert x.grad.item() == 6


def test_leaves_made_inside_have_gradients_of_their_own():
    @leafgrad.compile
    def f(x):
        y = x.detach().requires_grad_()
        (y * y).sum().backward()
        return y.grad

    x = leafgrad.tensor([1.0, 2.0])
    assert [f(x).tolist() for _ in range(3)] == [[2, 4]] * 3


def test_random_numbers_are_those_of_eager():
    def make():
        def f():
            return leafgrad.rand(2) + leafgrad.randn(2) + F.dropout(leafgrad.ones(2), 0.5)

        return f

    leafgrad.manual_seed(0)
    expected = [make()() for _ in range(4)]
    leafgrad.manual_seed(0)
    f = leafgrad.compile(make())
    for e in expected:
        assert leafgrad.allclose(f(), e)
    own = leafgrad.Generator().manual_seed(5)
    g = leafgrad.compile(lambda: leafgrad.rand(2, generator=own))
    numbers = [g() for _ in range(3)]
    own.manual_seed(5)
    assert [n.tolist() for n in numbers] == [leafgrad.rand(2, generator=own).tolist() for _ in range(3)]


def test_what_comes_before_an_error_has_happened():
    w = leafgrad.ones(2)

    @leafgrad.op
    def refuses_sometimes(xp, x):
        if float(x.sum()) > 100:
            raise ValueError("too large")
        return x * 1

    @leafgrad.compile
    def f(x):
        w.add_(1)
        return refuses_sometimes(x)

    for _ in range(3):
        f(leafgrad.ones(2))
    with pytest.raises(RuntimeError, match=r"refuses_sometimes.*too large"):
        f(leafgrad.full((2,), 100.0))
    assert w.tolist() == [5, 5]
    f(leafgrad.ones(2))
    assert w.tolist() == [6, 6]


# ---- effects that cannot be repeated --------------------------------------------------------------------------------


def test_memory_reached_in_two_ways():
    w = nn.Parameter(leafgrad.ones(2))
    alias = w.detach()

    @leafgrad.compile
    def f():
        with leafgrad.no_grad():
            w.add_(1)
        return alias * 1

    assert [f().tolist() for _ in range(5)] == [[i, i] for i in range(2, 7)]
    assert w.tolist() == [6, 6]
    assert "also reaches through another tensor" in f.explain() or "memory" in f.explain()


def test_arguments_that_overlap_with_what_is_written():
    w = leafgrad.ones(4)

    @leafgrad.compile
    def f(x):
        w.add_(1)
        return x * 1

    for _ in range(3):
        f(leafgrad.ones(2))
    assert f(w.detach()[:2]).tolist() == [5, 5]
    assert f(w[:2]).tolist() == [6, 6]
    assert w.tolist() == [6] * 4
    f(leafgrad.ones(4)[:2])
    g = leafgrad.compile(lambda x: (w.add_(1), x * 1)[1])
    for _ in range(3):
        g(leafgrad.ones(4))
    assert g(w.detach()).tolist() == [11] * 4  # of the shape that was traced: only its memory tells
    assert g._calls.misses[-1].path == "memory that is written"
    g(leafgrad.ones(4))


def test_gradients_that_are_arguments():
    w = nn.Parameter(leafgrad.ones(2))

    @leafgrad.compile
    def f(x):
        (w * 2).sum().backward()
        return x * 1

    for _ in range(3):
        f(leafgrad.ones(2))
    assert f(w.grad).tolist() == [8, 8]
    other = leafgrad.ones(2)
    assert f(other).tolist() == [1, 1]
    assert other.tolist() == [1, 1]
    assert w.grad.tolist() == [10, 10]
    assert f(w.grad.detach()).tolist() == [12, 12]


def test_parts_of_one_memory_that_do_not_meet():
    data = leafgrad.zeros(4)

    @leafgrad.compile
    def f(x, y):
        x.add_(1)
        return y * 1

    for _ in range(3):
        assert f(data[:2], data[2:]).tolist() == [0, 0]
    assert data.tolist() == [3, 3, 0, 0]


def test_writes_that_change_history():
    w = leafgrad.ones(2, requires_grad=True)
    buffer = leafgrad.zeros(2)

    @leafgrad.compile
    def f():
        buffer.add_(w)

    for _ in range(4):
        buffer = leafgrad.zeros(2)
        f()
        assert buffer.requires_grad
        assert buffer.tolist() == [1, 1]
        w.grad = None
        buffer.sum().backward()
        assert w.grad.tolist() == [1, 1]
    assert "requires grad: by writing into it with recording on" in f.explain()


def test_backward_into_a_graph_from_outside():
    w = leafgrad.ones(2, requires_grad=True)
    hidden = w * 3
    f = leafgrad.compile(lambda: (hidden * 2).sum().backward())
    for i in range(1, 5):
        hidden = w * 3
        f()
        assert w.grad.tolist() == [6 * i, 6 * i]
    assert "closed; 1 program" in f.explain()


def test_results_pass_gradients_on_to_a_graph_from_outside():
    w = leafgrad.ones(2, requires_grad=True)
    f = leafgrad.compile(lambda h: (h * w).sum())
    for _ in range(3):
        w.grad = None
        f(w * 3).backward()
        assert w.grad.tolist() == [6, 6]
    hidden = w * 2
    part = hidden[:1]
    g = leafgrad.compile(lambda: part * part)
    g()
    w.grad = None
    g().sum().backward()
    assert w.grad.tolist() == [8, 0]


# ---- interrupted ----------------------------------------------------------------------------------------------------


def test_all_steps_are_taken_whatever_interrupts_them():
    for interrupted in range(4):
        taken, signals = [], [interrupted]

        def step(i, taken=taken, signals=signals):
            taken.append(i)
            if signals and signals[0] == i:
                signals.clear()
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            complete([lambda i=i, step=step: step(i) for i in range(4)])
        assert sorted(set(taken)) == [0, 1, 2, 3]


def test_a_step_that_fails_by_itself_ends_it():
    taken = []

    def fails():
        taken.append(1)
        raise ValueError("always")

    with pytest.raises(ValueError, match="always"):
        complete([fails, lambda: taken.append(2)])
    assert taken == [1, 1]


def test_an_interrupt_between_the_effects_of_a_step_leaves_none_out(monkeypatch):
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = optim.Adam(net.parameters(), lr=0.1)

    step = leafgrad.compile(step_of(net, optimizer))
    x = leafgrad.ones(5, 3)
    for _ in range(4):
        step(x)
    twin = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    twin.load_state_dict(net.state_dict())
    other = optim.Adam(twin.parameters(), lr=0.1)
    other.load_state_dict(optimizer.state_dict())
    bump, count = Version.bump, [0]

    def interrupted(*versions):
        for version in versions:
            bump(version)
            count[0] += 1
            if count[0] == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(Version, "bump", interrupted)
    with pytest.raises(KeyboardInterrupt):
        step(x)
    other.zero_grad()
    twin(x).square().mean().backward()
    other.step()
    for ours, theirs in zip(net.parameters(), twin.parameters(), strict=True):
        assert leafgrad.allclose(ours, theirs, atol=1e-6)
        assert leafgrad.allclose(ours.grad, theirs.grad, atol=1e-6)


@pytest.mark.parametrize("executor", ["numpy", "replay"])
def test_data_that_is_changed_in_place_stays_the_same_memory(executor):
    def make():
        w, view = nn.Parameter(leafgrad.ones(3)), leafgrad.ones(2, 3)
        before = w.data_ptr()

        def f():
            w.data -= 0.5
            w.data *= 2
            view.data += w.data
            (w * w).sum().backward()
            w.grad.data -= 1
            assert w.data_ptr() == before

        return f, lambda: [w, view, w.grad]

    both(make, executor=executor)


def test_data_that_is_changed_in_place_keeps_a_step_closed():
    w = nn.Parameter(leafgrad.ones(3))

    @leafgrad.compile(closed=True)
    def step():
        w.data -= 0.5
        return (w * w).sum()

    assert [step().item() for _ in range(4)] == [0.75, 0, 0.75, 3]
