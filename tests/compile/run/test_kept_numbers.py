"""Numbers that a compiled call follows are ordinary and right wherever the call keeps them."""

from __future__ import annotations

import gc
import io
import json
import linecache
import math
import random
import sqlite3
from collections import defaultdict, deque, namedtuple
from types import FunctionType, SimpleNamespace

import numpy as np
import pytest

import leafgrad
from leafgrad.compile.run.runner import Runner
from leafgrad.errors import TraceError

SOURCES = "e|e * 2 + 1|1.0 * e|x.square().sum().item()|(x * e).sum().item()|box['n']|names.n|cell".split("|")
KEPT = """items.append(v)|items[:] = [v]|table['k'] = v|table[v] = 1|table['t'] = (v, 2)|members.add(v)|queue.append(v)
lists['q'].append(v)|names.v = v|names.t = (v,)|names.u = [v]|names.d = {'a': v}|names.w = ((v, 2), 3)|names.p = pair
names.p = Pair(v, 1)|names.f = lambda: v|names.i = iter([v])|slots.a = v|slots.b = (v, v)|slots.c = [v]""".replace(
    "\n", "|"
).split("|")
RESULTS = "x * v|v|(x * v, v)|(pair, pair)|[v, x * v]|{'a': v, 'b': x * 2}|Pair(v, x)|(x * v, [v, v], (v, (v,)))|x + 1"
COUNTERS = ["box['n'] = box['n'] + 1", "names.n = names.n * 0.5"]

Pair = namedtuple("Pair", "a b")


class Slots:
    __slots__ = ("a", "b", "c")


def step_of(seed):
    """A random step: where a number comes from, where it is kept, what is returned."""
    r = random.Random(seed)
    lines = ["def step(x, e):", f"v = {r.choice(SOURCES)}", "pair = (v, v)"]
    lines += r.sample(COUNTERS, r.randint(0, 2)) + r.choices(KEPT, k=r.randint(0, 3))
    return "\n    ".join([*lines, f"return {r.choice(RESULTS.split('|'))}"])


def world():
    """What a step reads and writes outside."""
    made = {"items": [], "table": {}, "members": set(), "queue": deque(), "lists": defaultdict(list), "slots": Slots()}
    return made | {"box": {"n": 1.5}, "names": SimpleNamespace(n=2.0), "cell": 3.0, "Pair": Pair}


def spelled(value):
    """A value with the types of its parts, which tell numbers from what stands for them."""
    kind = type(value).__name__
    if isinstance(value, leafgrad.Tensor):
        return kind, [f"{part:.5g}" for part in value.tolist()]
    if type(value) is float:
        return f"{value:.6g}"
    if isinstance(value, (list, tuple, deque)):
        return kind, [*map(spelled, value)]
    if isinstance(value, dict):
        return kind, [(spelled(key), spelled(part)) for key, part in value.items()]
    if type(value) is set:
        return kind, sorted(map(str, map(spelled, value)))
    if type(value) is Slots:
        return [spelled(getattr(value, name, None)) for name in Slots.__slots__]
    if type(value) is SimpleNamespace:
        return spelled(vars(value))
    if type(value) is FunctionType:
        return spelled(value())
    return kind, spelled(list(value)) if kind == "list_iterator" else value


def history(text, compiled):
    """What the calls of a step return, and leave behind."""
    space, name = world(), f"<step {hash(text)}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    exec(compile(text, name, "exec"), space)
    step = leafgrad.compile(space["step"]) if compiled else space["step"]
    found = []
    for k in range(7):
        result = spelled(step(leafgrad.tensor([1 + k / 2, 2.0, 3.0]), 0.5 + k / 4))
        found.append((result, [spelled(space[name]) for name in world() if name != "Pair"]))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_numbers_that_a_step_keeps(seed):
    text = step_of(seed)
    for expected, got in zip(history(text, False), history(text, True), strict=True):
        assert got == expected, text


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 4000, 100))
def test_many_numbers_that_steps_keep(start):
    for seed in range(start, start + 100):
        test_numbers_that_a_step_keeps(seed)


def test_who_holds_a_number_is_not_looked_for_among_all_objects(monkeypatch):
    count = [0]

    @leafgrad.compile
    def step(x):
        count[0] += 1
        return x * count[0], x.sum().item()

    monkeypatch.setattr(gc, "get_referrers", None)
    assert [step(leafgrad.ones(3) * k)[1] for k in range(6)] == [0, 3, 6, 9, 12, 15]
    assert count == [6]


@pytest.mark.parametrize("executor", ["replay", "numpy"])
def test_what_was_written_while_the_program_ran_counts(executor, monkeypatch):
    """By a signal's handler, say, or another thread."""
    box = {"n": 0, "m": 2.0}

    def step(x):
        box["n"] += 1
        box["m"] = box["n"] * 0.5
        return x * 2

    compiled, x, run = leafgrad.compile(step, executor=executor), leafgrad.ones(3), Runner.__call__
    for _ in range(8):
        compiled(x)
    assert compiled.explain().summary.startswith(f"{step.__qualname__}: closed")

    def meanwhile(*args):
        box["n"] = 100
        return run(*args)

    monkeypatch.setattr(Runner, "__call__", meanwhile)
    assert compiled(x).tolist() == [2, 2, 2]
    assert box == {"n": 101, "m": 50.5}


C_FUNCTIONS = {
    "raises": lambda o: math.ldexp(1.0, o.n),
    "is caught": lambda o: caught(lambda: math.ldexp(1.0, o.n)),
    "is a method": lambda o: caught(lambda: float(float.is_integer(o.v))),
    "is a class": lambda o: caught(lambda: len(deque([1, 2, 3], o.n))),
    "is another": lambda o: caught(lambda: float.as_integer_ratio(o.v)[0]),
}  # fmt: skip


def caught(call):
    try:
        return call()
    except TypeError:
        return -1.0


@pytest.mark.parametrize("executor", ["numpy", None])
@pytest.mark.parametrize("name", C_FUNCTIONS)
def test_a_number_given_to_c_that_takes_it_only_from_itself(name, executor):
    def found(compiler):
        held = SimpleNamespace(n=0, v=0.5)

        def body(x):
            held.n += 1
            held.v = held.v * 0.5 + 1
            return x * C_FUNCTIONS[name](held)

        step = compiler(body)
        return [(step(leafgrad.ones(2)).tolist(), held.n, held.v) for _ in range(6)]

    assert found(lambda f: leafgrad.compile(f, executor=executor)) == found(lambda f: f)


MEMORY = sqlite3.connect(":memory:", check_same_thread=False)
CALLEES = {
    "json": lambda held, loss: json.dumps({"n": held.n}),
    "a default of json": lambda held, loss: json.dumps([held.n, held.v], default=str),
    "json of an item": lambda held, loss: json.dumps([held.n, round(loss.item(), 3)]),
    "save": lambda held, loss: leafgrad.save({"n": held.n}, io.BytesIO()),
    "array": lambda held, loss: type(np.array([held.n, None])[0]),
    "sql": lambda held, loss: MEMORY.execute("select ?, typeof(?)", (held.n, held.n)).fetchone(),
    "torn before": lambda held, loss: [loss.tolist(), json.dumps(held.n)],
}


@pytest.mark.parametrize("executor", ["numpy", None])
@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("name", CALLEES)
def test_what_nobody_knows_is_given_no_symbolic_number(name, every, executor):
    def found(compiler):
        held, weight, said = SimpleNamespace(n=0, v=0.5), leafgrad.ones(2), []

        def body(x):
            held.n += 1
            held.v = held.v * 0.5 + 1
            loss = (x * weight).sum()
            weight.mul_(1.5)
            if held.n % every == 0:
                said.append(CALLEES[name](held, loss))
            return loss * held.n

        step = compiler(body)
        results = [(step(leafgrad.ones(2) * i).item(), held.n, weight.tolist()) for i in range(14)]
        return results, said

    assert found(lambda f: leafgrad.compile(f, executor=executor)) == found(lambda f: f)


class Counts:
    count = 0


CHANGES = {
    "a class": lambda s: setattr(Counts, "count", Counts.count + 1),
    "an attribute that was not there": lambda s: setattr(s, "fresh", getattr(s, "fresh", 0) + 1),
    "an attribute that goes": lambda s: delattr(s, "gone") if hasattr(s, "gone") else None,
    "the class of an object": lambda s: setattr(s.other, "__class__", Other if type(s.other) is Counts else Counts),
    "a list": lambda s: s.list.pop(0),
    "a deque": lambda s: s.deque.rotate(1),
    "a set": lambda s: s.set.pop() if s.set else None,
    "a dict": lambda s: s.dict.update({s.n: s.dict.pop(0, 0) + 1}),
    "an array": lambda s: s.array.__iadd__(1),
    "an iterator": lambda s: next(s.iterator),
    "a dict with defaults": lambda s: s.counts.__setitem__(s.n, s.counts[s.n - 1] + 1),
    "Python's generator": lambda s: setattr(s, "drawn", random.random()),
    "NumPy's generator": lambda s: setattr(s, "drawn", float(s.rng.random())),
}


class Other:
    pass


PAIRS = [(name, other) for name in ("an array", "a set", "an attribute that goes") for other in CHANGES]


@pytest.mark.every(2)
@pytest.mark.parametrize(("name", "other"), [*((name, None) for name in CHANGES), *PAIRS])
def test_what_a_call_that_begins_anew_had_changed_is_put_back(name, other):
    """By code that all calls execute, and by code that is new to the call."""

    def found(compiler):
        random.seed(0)
        Counts.count = 0
        held, said = SimpleNamespace(n=0, gone=1, list=[*range(20)], deque=deque(range(9)), set={7, 8, 9, 10}), []
        held.dict, held.array, held.iterator, held.other, held.drawn = {0: 1}, np.zeros(2), iter(range(20)), Counts(), 0
        held.counts, held.rng = defaultdict(int), np.random.default_rng(0)

        weight = leafgrad.ones(2, requires_grad=True)
        adam = leafgrad.optim.Adam([weight])

        def rare():
            CHANGES[other or name](held)
            tell()

        def tell():
            said.append(json.dumps(held.n))

        def body(x):
            held.n += 1
            if other:
                CHANGES[name](held)
            if held.n % 3 == 0:
                rare()
            adam.zero_grad()
            (weight * x).sum().backward()
            adam.step()
            return x.sum() * held.n

        step = compiler(body)
        results = [step(leafgrad.ones(2)).item() for _ in range(9)]
        left = {key: str(value) for key, value in vars(held).items() if key not in ("iterator", "other", "rng")}
        drawn = random.random(), held.rng.random()
        return results, said, left, next(held.iterator), type(held.other), Counts.count, drawn

    assert found(leafgrad.compile) == found(lambda f: f)


def test_a_step_that_is_to_be_closed_says_what_opens_it_later():
    held, said = SimpleNamespace(n=0), []

    @leafgrad.compile(closed=True)
    def step(x):
        held.n += 1
        if held.n % 6 == 0:
            said.append(json.dumps(held.n))
        return x.sum() * held.n

    for _ in range(5):
        step(leafgrad.ones(2))
    with pytest.raises(TraceError, match=r"calls json.dumps\(\) at .* makes the step open"):
        step(leafgrad.ones(2))
    assert (held.n, said) == (6, [])


@pytest.mark.every(2)
@pytest.mark.parametrize("every", [3, 4])
@pytest.mark.parametrize("rare", ["iterator", "array", "set", "dict", "numpy"])
@pytest.mark.parametrize("always", ["nothing", "array", "set", "dict"])
def test_a_call_begins_anew_before_it_changes_what_cannot_be_put_back(always, rare, every):
    def found(compiler):
        held, said = SimpleNamespace(n=0, f=0.5), []
        counts, array, iterator, members, generator = (
            {},
            np.zeros(2),
            iter(range(20)),
            {*range(20)},
            np.random.default_rng(0),
        )
        acts = {
            "nothing": lambda: 0,
            "dict": lambda: counts.update({held.n: 1}),
            "array": lambda: array.__iadd__(1),
            "set": lambda: members.discard(held.n),
            "iterator": lambda: next(iterator),
            "numpy": lambda: generator.random(),
        }
        weight = leafgrad.ones(2, requires_grad=True)
        adam = leafgrad.optim.Adam([weight], 0.1)

        def tell():
            said.append(json.dumps(held.n))

        def seldom():
            if held.n % every == 0:
                acts[rare]()
                tell()

        def body(x):
            held.n += 1
            held.f = held.f * 0.9 + 0.1
            acts[always]()
            adam.zero_grad()
            (weight * x).sum().backward()
            adam.step()
            seldom()

        step = compiler(body)
        for _ in range(13):
            step(leafgrad.ones(2))
        return said, held, weight.tolist(), counts, array.tolist(), members, next(iterator), generator.random()

    assert found(leafgrad.compile) == found(lambda f: f)


@pytest.mark.parametrize("kind", ["error", "finally", "swallowed"])
def test_a_call_that_begins_anew_leaves_nothing_twice(kind):
    caught = BaseException if kind == "swallowed" else ValueError

    def found(compiler):
        held, weight, said = SimpleNamespace(n=0, ends=0), leafgrad.ones(2), []
        optimizer = leafgrad.optim.Adam([weight.requires_grad_()], 0.1)

        def body(x):
            held.n += 1
            optimizer.zero_grad()
            ((x * weight).sum() * held.n).backward()
            optimizer.step()
            try:
                if held.n % 4 == 0:
                    said.append(json.dumps(held.n))
                    if kind == "error":
                        raise ValueError
            except caught:
                said.append(weight.sum().item())
            finally:
                held.ends += 1
            return weight.detach() * 2

        step = compiler(body)
        results = [(step(leafgrad.ones(2) * i).tolist(), held.n, held.ends) for i in range(14)]
        return results, said

    assert found(leafgrad.compile) == found(lambda f: f)


class Counted(leafgrad.optim.Optimizer):
    """As published ones are: what it counts and averages is in the state of each parameter."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @leafgrad.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state.update(step=0, power=1.0, mean=leafgrad.zeros_like(p), warm=True)
                state["step"] += 1
                state["power"] *= 0.9
                state["mean"].lerp_(p.grad, 0.1)
                p.add_(state["mean"] / (1 - state["power"]), alpha=-group["lr"] / state["step"])


def test_an_optimizer_that_counts_in_its_state_is_closed():
    def found(compiler):
        weights = [leafgrad.ones(2, requires_grad=True), leafgrad.ones(3, requires_grad=True)]
        optimizer = Counted(weights, 0.1)

        def step(x, y):
            optimizer.zero_grad()
            sum((w * x).square().sum() for w in weights).backward()
            optimizer.step()
            return weights[0] + y

        compiled = compiler(step)
        for i in range(9):
            compiled(leafgrad.tensor(i / 3), weights[0])
        for size in (3, 4):
            with pytest.raises(RuntimeError):
                compiled(leafgrad.tensor(1.0), leafgrad.ones(size))
        states = optimizer.state.values()
        numbers = [v for tensor in (*weights, *(s["mean"] for s in states)) for v in tensor.tolist()]
        return numbers, [(s["step"], s["power"], s["warm"]) for s in states]

    (numbers, counts), (expected, own) = found(lambda f: leafgrad.compile(f, closed=True)), found(lambda f: f)
    assert numbers == pytest.approx(expected, rel=1e-6)
    assert counts == own
