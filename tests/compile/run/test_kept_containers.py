"""Lists and dicts of tensors that a step replaces are given and made; where others know them, the step is open."""

from __future__ import annotations

import collections
import types

import pytest

import leafgrad as lg
from leafgrad.func import grad

CLOSED = {
    "gradient step": "g = grad(lambda p: ((p['a'] * x + p['b']) ** 2).sum())(s.d); "
    "s.d = {k: v - 0.1 * g[k] for k, v in s.d.items()}; return s.d['a'].sum()",
    "momentum": "s.none = {k: v * 0.1 + (s.none[k] * 0.9 if s.none else 0) for k, v in s.d.items()}; "
    "s.d = {k: v - s.none[k] for k, v in s.d.items()}; return s.d['b'] * 1",
    "list": "s.l = [v * 0.9 + x for v in s.l]; return s.l[0] * 1",
    "last three": "s.l = [*s.l, x * 1][-3:]; return len(s.l), s.l[0] * 1",
    "nested": "s.n = {'p': {'q': s.n['p']['q'] * 2}, 'r': [s.n['r'][0] + x]}; return s.n['p']['q'] * 1",
    "other order": "s.d = {k: v * 1 for k, v in reversed(s.d.items())}; return next(iter(s.d.values())) * 1",
}
OPEN = {
    "returned": "s.l = [v * 0.9 for v in s.l]; return s.l",
    "two places": "s.l = s.none = [v * 0.9 for v in s.l]; return s.l[0] * 1",
    "one of before": "s.none = s.l; s.l = [v * 0.9 for v in s.l]; return s.l[0] * 1",
    "part of before": "s.n = {'p': s.n['p'], 'r': [x + s.n['r'][0]]}; return s.n['r'][0] * 1",
    "kept": "s.l = [v * 0.9 for v in s.l]; s.all.append(s.l); return s.l[0] * 1",
    "changed, too": "s.l[0] = s.l[0] * 0.5; s.l = [v + x for v in s.l]; return s.l[1] * 1",
}
NAMES = ("l", "d", "n", "none", "all")


def world(body: str):
    """A step, and the namespace in which it keeps things."""
    s = types.SimpleNamespace(
        l=[lg.ones(2), lg.zeros(2)],
        d={"a": lg.ones(2), "b": lg.zeros(2)},
        n={"p": {"q": lg.ones(2)}, "r": [lg.zeros(2)]},
        none=None,
        all=[],
    )
    names = {"s": s, "grad": grad}
    exec("\n    ".join(["def step(x):", *body.split("; ")]), names)
    return names["step"], s


def seen(value, known=None):
    """What is in a value, rounded, and which lists and dicts are the same."""
    known = {} if known is None else known
    if isinstance(value, lg.Tensor):
        return [round(v, 4) for v in value.reshape(-1).tolist()]
    if not isinstance(value, (list, dict, tuple)):
        return value
    if id(value) in known:
        return known[id(value)]
    known[id(value)] = len(known)
    parts = [*value.items()] if isinstance(value, dict) else value
    return [type(value), *(seen(part, known) for part in parts)]


@pytest.mark.parametrize("name", [*CLOSED, *OPEN])
def test_replaced_containers(name):
    (step, ours), (plain, theirs) = (world({**CLOSED, **OPEN}[name]) for _ in range(2))
    compiled = lg.compile(step)
    for k in range(7):
        x = lg.full((2,), 0.1 * k)
        a, b = compiled(x), plain(x)
        assert seen([a, *(getattr(ours, n) for n in NAMES)]) == seen([b, *(getattr(theirs, n) for n in NAMES)])
        if k == 4:  # between calls, what is kept may be changed
            ours.l[0], theirs.l[0] = lg.full((2,), 3.0), lg.full((2,), 3.0)
            ours.d["b"], theirs.d["b"] = lg.ones(2), lg.ones(2)
    state = str(compiled.explain()).splitlines()[0]
    assert ("closed" in state) == (name in CLOSED), state


CHANGES = {
    "append": (lambda: [lg.ones(2)], lambda given, x: given.append(x)),
    "a number": (lambda: [lg.ones(2)], lambda given, x: given.append(3)),
    "another": (lambda: [lg.ones(2), 1], lambda given, x: given.__setitem__(0, x)),
    "key": (lambda: {"a": lg.ones(2)}, lambda given, x: given.setdefault("b", x)),
    "order": (lambda: {"a": 1, "b": 2}, lambda given, x: given.update(a=given.pop("a"))),
    "taken": (lambda: [lg.ones(2), lg.zeros(2)], lambda given, x: given.pop()),
    "reversed": (lambda: [lg.ones(2), lg.zeros(2)], lambda given, x: given.reverse()),
    "within": (lambda: ({"a": [lg.ones(2)]}, 2), lambda given, x: given[0]["a"].append(x)),
    "default": (lambda: collections.defaultdict(list), lambda given, x: given["k"].append(x)),
}


def outline(tree):
    if isinstance(tree, dict):
        return [(key, outline(value)) for key, value in tree.items()]
    return [*map(outline, tree)] if isinstance(tree, (list, tuple)) else tree


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_step_puts_into_its_arguments_is_put_at_each_call(name):
    make, change = CHANGES[name]
    compiled = lg.compile(lambda given, x: (change(given, x), x * 2)[1])
    for _ in range(6):
        x, got, expected = lg.ones(2), make(), make()
        change(expected, x)
        compiled(got, x)
        assert repr(outline(got)) == repr(outline(expected))


def test_lists_under_parameters_beside_a_list_in_two_places():
    weights = [lg.nn.Parameter(lg.ones(2)), lg.nn.Parameter(lg.ones(3))]
    s = types.SimpleNamespace(state={w: lg.zeros(w.shape) for w in weights}, grads=None, also=None)

    def step(x):
        found = lg.autograd.grad(sum((w * x).sum() for w in weights), weights)
        for w, g in zip(weights, found, strict=True):
            s.state[w] = [g]
        s.grads = s.also = [*found]

    compiled = lg.compile(step)
    for i in range(6):
        compiled(lg.tensor(float(i)))
        assert [s.state[w][0].tolist() for w in weights] == [[i] * 2, [i] * 3]
        assert s.grads is s.also
