"""Views, and what is written in place, in a recorded call: memory and gradients are those of the eager call."""

from __future__ import annotations

from typing import Any

import pytest

import leafgrad as lg

LOG: list[Any] = []


def view_read_before_its_base_is_written(q, v, u, w):
    a = v.sum()
    q.mul_(w)
    return a + v.sum()


def base_read_after_its_view_is_written(q, v, u, w):
    a = v.sum()
    v.mul_(w)
    return a + q.sum()


def two_views_that_overlap(q, v, u, w):
    a = u.sum() + v.sum()
    v.mul_(w)
    u.mul_(w)
    return a + (v * v).sum() + (u * u).sum()


def each_in_turn(q, v, u, w):
    a = v.sum() + q.sum()
    v.mul_(w)
    b = (q * 3).sum()
    q.mul_(w)
    LOG.append(q.sum().item())
    return a + b + q.sum() + v.sum()


def view_of_a_view_across_a_break(q, v, u, w):
    z = v[1:]
    a = z.sum()
    q.mul_(w)
    LOG.append(q.sum().item())
    b = z.sum()
    z.mul_(w)
    return a + b + q.sum() + v.sum() + z.sum()


def written_after_a_value_was_read(q, v, u, w):
    LOG.append(q.sum().item())
    q.mul_(w)
    return q.sum()


def copied_into(q, v, u, w):
    a, b = q * 1, q * 2
    a.copy_(b)
    LOG.append(b.sum().item())
    q.mul_(2)
    return a, b, a.detach()[1:]


def copied_from_what_is_written_later(q, v, u, w):
    a = w * lg.zeros(4)
    a.copy_(q)
    LOG.append(a.sum().item())
    q.mul_(2)
    LOG.append(q.sum().item())
    q.mul_(2)
    return a, (a * 3).sum()


def result_kept_by_its_node(q, v, u, w):
    a = q * 1
    a.tanh_()
    LOG.append(a.sum().item())
    return a, a * 1


STEPS = [
    view_read_before_its_base_is_written, base_read_after_its_view_is_written, two_views_that_overlap, each_in_turn,
    view_of_a_view_across_a_break, written_after_a_value_was_read, copied_into, copied_from_what_is_written_later,
    result_kept_by_its_node,
]  # fmt: skip


def call(step):
    """What can be seen of a call, its results written after it."""
    w = lg.tensor(0.7).requires_grad_()
    q = lg.arange(4.0) * w
    result = step(q, q[1:], q[:3], w)
    results = result if isinstance(result, tuple) else (result,)
    seen = [t.tolist() for t in (*results, q)]
    with lg.no_grad():
        results[0].mul_(0.5)
    seen += [t.tolist() for t in results]
    (q.sum() + sum(t.sum() for t in results if t.requires_grad)).backward()
    return [*seen, w.grad.tolist(), LOG[-1:]]


def agree(ours, theirs) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(agree, ours, theirs))
    return ours == pytest.approx(theirs, rel=1e-5)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_as_eager(step, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_COMPILE", "always")
    compiled = lg.compile(step)
    for _ in range(8):
        LOG.clear()
        ours = call(compiled)
        LOG.clear()
        assert agree(ours, call(step))


@pytest.mark.parametrize("write", [lambda q: q.mul_(0.7), lambda q: q.detach().mul_(0.7)], ids=["recorded", "not"])
def test_base_written_since_its_view_was_made(write):
    """The view's node is made anew before the call, though it is asked for in it."""

    def step(q, v):
        return v.sum() + q.sum() * 2

    compiled = lg.compile(step)
    for _ in range(5):
        found = []
        for function in (compiled, step):
            w = lg.tensor(0.7).requires_grad_()
            q = lg.arange(6.0) * w
            v = q.reshape(2, 3)
            write(q)
            function(q, v).backward()
            found.append(w.grad.item())
        assert found[0] == pytest.approx(found[1])


def test_parts_of_one_memory_have_one_history():
    def step(a, b, w):
        c = b * 1
        a.mul_(w)
        return b * 2, c

    compiled = lg.compile(step)
    for function in (step, *[compiled] * 4):
        memory = lg.arange(6.0)
        after, before = function(memory[:3], memory[3:], lg.tensor(0.7).requires_grad_())
        assert [t.requires_grad for t in (after, before, memory)] == [True, False, True]


def test_memory_of_a_view_is_written():
    """Its node is made anew after that, and is younger than that of the result."""

    @lg.compile
    def step(v):
        v.data.mul_(0.5)
        return v.sum()

    for _ in range(5):
        w = lg.ones(4, requires_grad=True)
        step((w * 2)[1:]).backward()
        assert w.grad.tolist() == [0, 2, 2, 2]


def test_view_of_a_leaf_is_written_detached():
    @lg.compile
    def step(v):
        v.detach().mul_(0.5)

    for _ in range(4):
        leaf = lg.ones(4, requires_grad=True)
        step(leaf[1:])
        assert leaf.tolist() == [1, 0.5, 0.5, 0.5]


def test_view_that_is_kept_gets_the_history_of_its_base():
    kept = {}
    u, w = lg.ones(4), lg.tensor(0.7).requires_grad_()

    @lg.compile
    def step(x):
        kept["view"] = u.reshape(-1).view_as(u)
        u.add_(x * w)
        return len(kept)

    step(lg.arange(4.0))
    assert kept["view"].requires_grad
    kept["view"].sum().backward()
    assert w.grad.item() == 6


def test_one_of_the_elements_in_one_place_is_written():
    @lg.compile
    def step(x):
        x[0] = 2.0
        x[1] = x[2] + 1
        return x * 1

    for _ in range(5):
        x = lg.ones(1).expand(3)
        assert step(x).tolist() == [3, 3, 3] == x.tolist()


def test_a_zero_in_one_place_gets_another_sign():
    @lg.compile
    def step(x):
        x[0] = -0.0
        return x * 1

    for _ in range(4):
        x = lg.zeros(1).expand(3)
        assert str(step(x).tolist()) == "[-0.0, -0.0, -0.0]" == str(x.tolist())


@pytest.mark.parametrize(
    "spread", [lambda x: x.sum().expand(3), lambda x: (x * 2)[:1].expand(2, 3), lambda x: (x * 1).unfold(0, 2, 1)]
)
def test_elements_of_a_result_in_one_place(spread):
    """Nothing of that memory is returned but the result, which shows it several times."""
    compiled = lg.compile(lambda x: spread(x) if x.sum() > 0 else spread(x) * 1)
    for _ in range(4):
        x, y = (lg.arange(1.0, 4.0).requires_grad_() for _ in range(2))
        ours, theirs = compiled(x), spread(y)
        ours.sum().backward()
        theirs.sum().backward()
        assert x.grad.tolist() == y.grad.tolist()
        with lg.no_grad():
            for result in (ours, theirs):
                with pytest.raises(RuntimeError, match="single memory location"):
                    result.mul_(2)
                result[0] = 7.0
        assert ours.tolist() == theirs.tolist()
        assert ours.stride() == theirs.stride()


def test_another_part_of_the_memory_is_written():
    """What gradients need is as it was, though all of the memory counts as written."""

    @lg.compile
    def step(a, b, w):
        with lg.no_grad():
            a.mul_(0.5)
        return (b * w).sum()

    for make in (lambda: (lg.ones(3), lg.ones(3)), lambda: lg.ones(6).chunk(2)):
        for _ in range(4):
            w = lg.tensor(0.7).requires_grad_()
            step(*make(), w).backward()
            assert w.grad.item() == 3


def test_elements_in_one_place_are_not_written():
    def step(x):
        y = x * 1
        y.expand(2, 3).mul_(2)
        return y

    compiled = lg.compile(step)
    for function in (step, compiled, compiled):
        with pytest.raises(RuntimeError, match="more than one element"):
            function(lg.ones(3))


def test_a_view_made_before_its_base_requires_grad_has_no_part_in_that():
    def before(b, v):
        return v * 2, b[1:3] * v

    def inside(b, v):
        b.requires_grad_()
        return v * 2, b[1:3] * v

    for function in (before, inside):
        compiled = lg.compile(function)
        for i in range(5):
            b = lg.arange(4.0) + i
            v = b[1:3]
            b.requires_grad_(function is before)
            apart, product = compiled(b, v)
            assert (apart.requires_grad, v.requires_grad, v.is_leaf) == (False, False, True)
            product.sum().backward()
            assert b.grad.tolist() == [0, i + 1, i + 2, 0]


def test_a_part_that_requires_grad_stays_a_leaf_when_another_gets_a_history():
    def step(a, b):
        a.requires_grad_()
        b.add_(a.sum())
        b.sin_()
        return a * 2, b

    compiled = lg.compile(step)
    for _ in range(4):
        found = []
        for function in (step, compiled):
            memory = lg.arange(12.0) / 12
            a, b = memory[:6], memory[6:]
            results = function(a, b)
            sum(t.sum() for t in results).backward()
            found.append([a.is_leaf, b.is_leaf, a.requires_grad, b.requires_grad, a.grad.tolist(), memory.tolist()])
        assert found[0] == found[1]


def test_a_detached_result_is_no_view_of_another():
    w = lg.ones(1, requires_grad=True)

    def both(x):
        y = x * 0.5
        return y, y.detach()

    for function in (both, lg.compile(both)):
        for _ in range(4):
            y, apart = function(lg.ones(1, requires_grad=True))
            version = y._version
            apart += w * 2
            assert (apart.item(), y.item(), apart.requires_grad, apart._base) == (2.5, 2.5, True, None)
            assert y._version == apart._version == version + 1


def test_a_detached_state_is_written_in_place_at_the_next_call():
    w = lg.ones(1, requires_grad=True)

    def trained(compiler):
        state = {"h": lg.ones(1)}

        def step(x):
            h = state["h"]
            h += w * 2
            state["h"] = (x * 0.5).detach()
            return h.sum()

        step = compiler(step)
        return [step(lg.ones(1, requires_grad=True)).item() for _ in range(5)]

    assert trained(lg.compile) == trained(lambda function: function) == [3.0] + [2.5] * 4


# ---- views that are arguments, and what their nodes are after the call ------------------------------------------


def part_written(b, v, u, c):
    v[...] = 0.5
    return v[:].sum()


def part_copied(b, v, u, c):
    v.copy_(v * 2)
    return (v * v).sum() + (b.sin() * u.sum()).sum()


def whole_written(b, v, u, c):
    with lg.no_grad():
        b.mul_(1.1)
    return (v * v).sum() + u.sum()


def written_apart(b, v, u, c):
    c.relu_()
    return (v * v).sum() + (u * u.t().reshape(3, 2)).sum()


def written_between(b, v, u, c):
    before = u.sum() * 3
    v.tanh_()
    return before + (v * b.reshape(3, 2)[1:]).sum()


def written_after_a_break(b, v, u, c):
    LOG.append(u.sum().item())
    with lg.no_grad():
        v.mul_(2)
    flat = v.view(-1)
    LOG.append(v.sum().item())
    return (flat * flat).sum() + v[1:].sum()


def in_two_parts(b, v, u, c):
    u.add_(c.mean())
    return (v * v).sum() + c.sum() + (u * u).sum()


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize(
    "step",
    [
        part_written, part_copied, whole_written, written_apart, written_between, written_after_a_break, in_two_parts,
    ],
)  # fmt: skip
def test_a_written_view_is_where_it_is_in_the_graph(step, hooked, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_COMPILE", "always")
    compiled = lg.compile(step)
    for _ in range(9):
        found = []
        for function in (step, compiled):
            LOG.clear()
            w = lg.linspace(-1, 1.3, 6).reshape(2, 3).requires_grad_()
            b = w * 1
            u = b.view(3, 2)
            v, c = u[1:], b.detach()
            loss = function(b, v, u, c)
            if hooked:
                v.register_hook(lambda g: LOG.append(g.sum().item()))
                b.retain_grad()
            parts = lg.autograd.grad(loss, [b, v, u], retain_graph=True, allow_unused=True)
            loss.backward()
            kept = b.grad.tolist() if hooked and b.grad is not None else None
            found.append(
                [None if g is None else g.tolist() for g in parts] + [w.grad.tolist(), kept, b.tolist(), [*LOG]]
            )
        assert agree(found[0], found[1])


@pytest.mark.parametrize("executor", ["numpy", "native"])
def test_a_view_is_read_after_its_base_is_written(executor):
    def step(x):
        base = x * 1
        row, turned = base[0], base.T
        base.add_(10)
        LOG.extend(row.tolist())
        turned.mul_(2)
        LOG.append(len(row.unique()))
        LOG.append(str(row))
        return row.nonzero().sum()

    compiled = lg.compile(step, executor=executor)
    for _ in range(6):
        found = []
        for function in (step, compiled):
            LOG.clear()
            found.append([function(lg.arange(4.0).reshape(2, 2)).item(), *LOG])
        assert found[0] == found[1]


@pytest.mark.parametrize("part", [lambda w: w[:2], lambda w: w.unbind(0)[1], lambda w: (w * 2)[1]])
@pytest.mark.parametrize("again", [False, True])
def test_a_captured_view_is_read_before_and_after_a_write(part, again):
    found = []
    for wrap in (lambda f: f, lg.compile):
        w = lg.arange(12.0).reshape(3, 4).requires_grad_()
        view = part(w)

        def step(view=view):
            before = view * 3
            with lg.no_grad():
                view.add_(0.1)
            return before + view.square() if again else (before, view.square())[0]

        function = wrap(step)
        found.append([])
        for _ in range(9):
            (slope,) = lg.autograd.grad(function().sum(), [w], allow_unused=True, retain_graph=True)
            found[-1].append(None if slope is None else slope.tolist())
    assert agree(found[0], found[1])


@pytest.mark.parametrize("of", [lambda x: x.view(-1, 4), lambda x: x[:9], lambda x: x.flip(0)[:]])
@pytest.mark.parametrize("checks", [False, True])
def test_arguments_share_memory_at_a_later_call_only(of, checks, monkeypatch):
    if checks:
        monkeypatch.setenv("LEAFGRAD_COMPILE", "check")
    step = lg.compile(lambda x, y: (x[:, 0].sin() + y[:, 1] * 2).sum())
    for shared in (False, False, False, True, True, False, True):
        x = lg.rand(9, 4)
        y = of(x) if shared else lg.rand(9, 4)
        assert step(x, y).item() == pytest.approx((x[:, 0].sin() + y[:, 1] * 2).sum().item())
    assert step._calls.programs
