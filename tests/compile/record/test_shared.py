"""``t.data = v`` in a compiled step: another array in a closed program, and the same memory in an open one."""

from __future__ import annotations

import pytest

import leafgrad as lg

WORLD = {
    "p": lambda: lg.tensor([0.5, -1.0, 2.0, 1.5]),
    "w": lambda: lg.tensor([1.0, 0.5, -0.5, 2.0]).requires_grad_(),
    "q": lambda: lg.ones(4),
}
CLOSED = {
    "average": "q.data = q.data * 0.9 + p.data * 0.1; return q.sum()",
    "step": "w.grad = None; (w * p).sin().sum().backward(); w.data = w.data - 0.1 * w.grad; return w.sum().detach()",
    "named": "v = p * 2; p.data = v; v.add_(1); return p * 1",
    "written after": "v = p * 2; p.data = v; p.mul_(3); return v * 1",
    "twice": "p.data = p * 3; p.data = p.clamp(-9, 9); return p * 1",
    "exchange": "v = p * 1; p.data = q * 1; q.data = v; return p - q",
    "views before": "a, b, c = p[0], p.data, p.detach()[1:]; p.data = p * 2; return a * 1, b * 1, c * 1, p * 1",
    "views of what is made": "y = p * 2; a = y[0]; y.data = p * 3; return a, y",
    "write, then another": "p.mul_(0.5); b = p.data; p.data = p + 1; b.add_(1); return p * 1, b * 1",
    "leaf within": "x = p.clone().detach().requires_grad_(); x.data -= 0.1; x.data = x * 2; x.sin().sum().backward(); "
    "return x.grad * 1",
    "of the view's base": "q.data = q + 1; return v * 1, q * 1",
}
OPEN = {
    "returned": "v = p * 2; p.data = v; return v",
    "kept": "p.data = p * 2; s.v = q * 2; q.data = s.v; return p * 1",
    "of one outside": "p.data = q.data; p.add_(1); return q * 1",
    "another shape": "p.data = lg.cat([p, q])[:4]; return p * 1",
    "old memory returned": "b = p.data; p.data = p + 1; return b",
    "given back": "b = p.data; p.data = p + 1; r = p * 1; p.data = b; return r",
    "value read": "p.data = p + 1; r = float(p.sum()); p.data = p * 0.5; return p * r",
    "numpy": "y = p * 2; v, w = y[1:], y.detach(); a = y.numpy(); v.mul_(2); w.add_(1); return lg.tensor(a * 1.0), y",
    "shared within": "x = (p * 2).detach().requires_grad_(); q.data = x.data; x.data += 1; return q * 1, x",
}


def world(body: str):
    """A step with tensors of its own, and what shows them."""

    class State:
        v = None

    s = State()
    tensors = {name: make() for name, make in WORLD.items()}
    tensors["v"] = tensors["q"][1:]
    names = {"lg": lg, "s": s, **{k: t for k, t in tensors.items() if k != "v" or "v *" in body.split(";")[-1]}}
    exec("\n    ".join(["def step():", *body.split("; ")]), names)
    return names["step"], [*tensors.values()]


def seen(result, tensors) -> list[list[float]]:
    """The numbers of a result, and of tensors."""
    parts = result if isinstance(result, tuple) else (result,)
    return [t.detach().reshape(-1).tolist() for t in (*parts, *tensors)]


@pytest.mark.parametrize("name", [*CLOSED, *OPEN])
def test_is_as_uncompiled(name):
    (step, ours), (plain, theirs) = (world({**CLOSED, **OPEN}[name]) for _ in range(2))
    compiled = lg.compile(step)
    kept = []
    for _ in range(5):
        kept.append((compiled(), plain()))
        with lg.no_grad():  # whoever shares memory with them sees it
            ours[0].mul_(0.75)
            theirs[0].mul_(0.75)
        for a, b in kept:
            for x, y in zip(seen(a, ours), seen(b, theirs), strict=True):
                assert x == pytest.approx(y, rel=1e-5)
    state = str(compiled.explain()).splitlines()[0]
    assert ("closed" in state) == (name in CLOSED), state


def test_an_error_comes_after_what_was_set():
    p = lg.ones(3)

    @lg.compile
    def step():
        p.data = p + 1
        return p[:2] + lg.ones(3)

    for k in range(3):
        with pytest.raises(RuntimeError, match="size of tensor a"):
            step()
        assert p.tolist() == [2.0 + k] * 3


def test_a_leaf_whose_data_was_set_counts_it():
    w = lg.ones(3, requires_grad=True)

    @lg.compile
    def step():
        w.data = w.data * 2
        return w.sum().detach()

    for _ in range(3):
        y = (w * w).sum()
        step()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()
    assert w.is_leaf
    assert w.tolist() == [8.0] * 3


def test_arguments_get_other_memory_whether_they_are_views_or_not():
    def step(x):
        x.data = x * 2
        return x.sum()

    compiled = lg.compile(step)
    kinds = [
        lambda b: b.clone(),
        lambda b: b[1:3],
        lambda b: b.detach()[1:3],
        lambda b: b[1:3].clone().requires_grad_(),
    ]
    for make in [kinds[0]] * 4 + kinds * 2:
        (a, ours), (b, theirs) = ((base, make(base)) for base in (lg.arange(4.0), lg.arange(4.0)))
        assert compiled(ours).item() == step(theirs).item()
        with lg.no_grad():
            a.add_(10)
            b.add_(10)
        assert ours.tolist() == theirs.tolist()
        assert ours._base is theirs._base is None
