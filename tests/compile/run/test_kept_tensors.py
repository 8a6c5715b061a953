"""Tensors that a step keeps for its next call are followed, whoever replaces them."""

from __future__ import annotations

import linecache
import random

import pytest

import leafgrad
from leafgrad import nn, optim

PLACES = ["names.a", "names.b", "table['k']", "items[0]", "items[1]", "module.h", "module.plain", "cell"]
READ = ["x", "w", *PLACES]
FORMS = "({} + {})|({} - 0.5 * {})|({} * {})|({}).tanh()|({}).detach()|({}).clone()|({})[:]|({}).cos()".split("|")
ENDS = "return out|return out.detach()|return None|return out, names.a|return {'out': out, 'cell': cell}".split("|")


class Names:
    """A place for attributes."""


def expression(r, places, depth=2):
    if not depth or r.random() < 0.2:
        return r.choice([*places, "x", "w"])
    form = r.choice(FORMS)
    return form.format(*[expression(r, places, depth - 1) for _ in range(form.count("{}"))])


def line(r, places):
    place, value = r.choice(places), expression(r, places)
    return r.choice(
        [
            f"{place} = ({value}).detach()",
            f"{place} = ({value}).detach()",
            f"{place} = {value}",
            f"{place} = x",
            f"{place}, {places[-1]} = {places[-1]}, {place}",
            f"with leafgrad.no_grad(): {place}.{r.choice(['mul_(0.9)', 'add_(0.1)', 'copy_(x)'])}",
            f"out = out + ({value}).sum()",
            f"if count[0] % 3 == 0: {place} = x.detach() * 0.5",
            "count[0] += 1",
            f"w.grad = None; (w * {place}).sum().backward(); sgd.step()",
            f"kept = {place}; {place} = kept * 0.5 + 0.1",
        ]
    )


def step_of(seed):
    r = random.Random(seed)
    places = r.sample(PLACES, r.randint(1, 4))
    lines = [line(r, places) for _ in range(r.randint(2, 6))]
    return "\n    ".join(["def step(x):", "global cell", "out = (w * x).sum()", *lines, r.choice(ENDS)])


def world():
    names, module = Names(), nn.Module()
    names.a, names.b = leafgrad.ones(3), leafgrad.arange(3) * 0.1
    module.register_buffer("h", leafgrad.ones(3) * 0.6)
    module.plain = leafgrad.ones(3) * 0.7
    w = leafgrad.full((3,), 0.5).requires_grad_()
    return {
        "names": names, "module": module, "table": {"k": leafgrad.ones(3) * 0.2, "other": leafgrad.zeros(2)},
        "items": [leafgrad.ones(3) * 0.4, leafgrad.zeros(3)], "cell": leafgrad.ones(3) * 0.3, "w": w,
        "sgd": optim.SGD([w], 0.01), "count": [0], "leafgrad": leafgrad,
    }  # fmt: skip


def leaves(result):
    parts = result.values() if isinstance(result, dict) else result if isinstance(result, tuple) else [result]
    return list(parts)


def runs_of(seed, source, made=lambda step: step):
    """What can be seen after each of some calls, between which somebody else puts tensors there, too."""
    space = world()
    name = f"<kept tensors {seed}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    exec(compile(source, name, "exec"), space)
    step, r, seen, old = made(space["step"]), random.Random(seed + 1), [], []
    leafgrad.manual_seed(seed)
    for _ in range(10):
        x = leafgrad.randn(3)
        if r.random() < 0.3:
            others = ["leafgrad.randn(3)", "x", "leafgrad.randn(1)", "w", r.choice(PLACES), "leafgrad.randn(6)[::2]"]
            space["x"] = x
            exec(f"{r.choice(PLACES)} = {r.choice(others)}", space)
        try:
            result, error = step(x), None
        except RuntimeError as failure:
            result, error = None, type(failure).__name__
        held = [eval(place, space) for place in PLACES]
        tensors = [t for t in (*leaves(result), *held, *old, space["w"], x) if isinstance(t, leafgrad.Tensor)]
        ids = [*map(id, tensors)]
        old = [*old, r.choice(held)][-3:]
        facts = [(t.requires_grad, t.dtype, [f"{v:.8g}" for v in t.detach().flatten().tolist()]) for t in tensors]
        seen.append((error, [ids.index(i) for i in ids], facts, space["count"][0]))
    return seen, step


@pytest.fixture
def double():
    before = leafgrad.get_default_dtype()
    leafgrad.set_default_dtype(leafgrad.float64)
    yield
    leafgrad.set_default_dtype(before)


@pytest.mark.filterwarnings("ignore:.*has been traced again")
@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("start", [0, 10, *[pytest.param(n, marks=pytest.mark.slow) for n in range(20, 300, 10)]])
def test_random_steps_that_keep_tensors(start):
    closed = 0
    for seed in range(start, start + 10):
        source = step_of(seed)
        plain, _ = runs_of(seed, source)
        compiled, step = runs_of(seed, source, lambda f: leafgrad.compile(f, executor="numpy"))
        assert compiled == plain, source
        closed += "closed" in step.explain().summary
    assert closed >= 5


def test_a_hidden_state_is_an_argument_of_the_program():
    cell, state = nn.GRUCell(3, 4), {"h": leafgrad.zeros(2, 4)}

    @leafgrad.compile
    def step(x):
        state["h"] = cell(x, state["h"]).detach()
        return state["h"].sum()

    for i in range(8):
        x, before = leafgrad.randn(2, 3), state["h"]
        with leafgrad.no_grad():
            right = cell(x, before)
        result = step(x)
        assert leafgrad.allclose(state["h"], right, atol=1e-6)
        assert result.item() == pytest.approx(right.sum().item(), abs=1e-5)
        if i == 5:
            state["h"] = leafgrad.ones(2, 4)
    assert "closed; 1 program" in step.explain().summary
    assert any(line.startswith("state['h']: float32 (2, 4)") for line in step.explain().guards[0])


def test_something_else_in_the_place_of_a_tensor():
    names = Names()
    names.h, names.n = leafgrad.ones(2), 0

    @leafgrad.compile
    def step(x):
        names.n += 1
        names.h = None if names.n % 5 == 0 else x * 2 if names.h is None else names.h + x
        return x + 1

    h = leafgrad.ones(2)
    for n in range(1, 30):
        x = leafgrad.full((2,), n)
        step(x)
        h = None if n % 5 == 0 else x * 2 if h is None else h + x
        assert (names.h is None) == (h is None)
        assert h is None or names.h.tolist() == h.tolist()


@pytest.mark.usefixtures("double")
def test_states_in_a_tuple_are_arguments_of_the_program():
    def training(made=lambda step: step):
        leafgrad.manual_seed(0)
        cell, names, seen = nn.LSTMCell(3, 4), Names(), []
        names.state = leafgrad.zeros(2, 4), leafgrad.zeros(2, 4)

        @made
        def step(x):
            h, c = cell(x, names.state)
            names.state = h.detach(), c.detach()
            return h.sum()

        for i in range(16):
            if i == 10:
                names.state = names.state[::-1]
            if i == 12:
                names.state = (names.state[0],) * 2
            seen.append([step(leafgrad.randn(2, 3)).item(), *(t.sum().item() for t in names.state)])
            assert type(names.state) is tuple
        return step, seen

    (_, plain), (step, compiled) = training(), training(leafgrad.compile)
    for got, right in zip(compiled, plain, strict=True):
        assert got == pytest.approx(right, abs=1e-12)
    assert "closed" in step.explain().summary


def test_a_tensor_that_a_step_writes_keeps_its_gradient_at_the_new_value():
    def found(compiler):
        x = leafgrad.ones(2, requires_grad=True)
        results = []

        def body(y, k):
            y.mul_(k)
            return y.sum()

        step = compiler(body)
        for k in (2.0, 3.0, 4.0, 5.0):
            y = x * 1
            y.retain_grad()
            (step(y, k) * 2).backward()
            results.append((None if y.grad is None else y.grad.tolist(), x.grad.tolist()))
        return results

    assert found(leafgrad.compile) == found(lambda f: f)
