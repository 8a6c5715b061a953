"""Open steps whose statements are compiled but for those that need Python: they do what they do uncompiled."""

from __future__ import annotations

import ast
import itertools
import time

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad.autograd import grad
from leafgrad.compile.run import breaks
from leafgrad.compile.run.outline import Outline

CALLS = 40


class Log:
    """What steps leave in a class and an object."""

    count = 0
    last = None

    def __init__(self):
        self.seen = []
        self.numbers = itertools.count()
        type(self).count = 0


class Training:
    """Steps of a network, each with what makes it open, and what they leave."""

    def __init__(self):
        leafgrad.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        self.adam = leafgrad.optim.Adam(self.net.parameters(), lr=0.01)
        self.log = Log()
        self.generator = np.random.default_rng(0)

    def printed(self, x, y):
        self.adam.zero_grad()
        loss = ((self.net(x) - y) ** 2).mean()
        loss.backward()
        self.adam.step()
        self.log.seen.append(float(loss))
        return loss.detach()

    def counted(self, x, y):
        Log.count += 1
        self.adam.zero_grad()
        loss = ((self.net(x) - y) ** 2).mean()
        loss.backward()
        self.adam.step()
        Log.last = next(self.log.numbers)
        return loss.detach(), Log.count

    def noisy(self, x, y):
        noise = self.generator.normal()
        self.adam.zero_grad()
        loss = ((self.net(x) + noise - y) ** 2).mean()
        loss.backward()
        self.adam.step()
        return float(loss)

    def timed(self, x, y):
        start = time.monotonic()
        self.adam.zero_grad()
        loss = ((self.net(x) - y) ** 2).mean()
        loss.backward()
        self.adam.step()
        self.log.seen.append(time.monotonic() - start >= 0)
        return loss.detach()

    def early(self, x, y):
        self.adam.zero_grad()
        loss = ((self.net(x) - y) ** 2).mean()
        if float(loss) < 0.5:
            return None
        loss.backward()
        self.adam.step()
        return loss.detach()

    def looped(self, x, y):
        total = 0.0
        for part in range(2):
            self.adam.zero_grad()
            loss = ((self.net(x[part : part + 4]) - y[part : part + 4]) ** 2).mean()
            loss.backward()
            self.adam.step()
            total += float(loss)
        return total

    def penalty(self, x, y):
        loss = ((self.net(x) - y) ** 2).mean()
        found = grad(loss, [*self.net.parameters()], create_graph=True)
        size = sum((g**2).sum() for g in found)
        self.log.seen.append(size.tolist())
        self.adam.zero_grad()
        (loss + 0.1 * size).backward()
        self.adam.step()
        return loss.detach()

    def caught(self, x, y):
        total = leafgrad.zeros(())
        try:
            total = ((self.net(x) - y) ** 2).mean()
            if len(self.log.seen) % 3 == 2:
                raise ValueError
            total = total * 2
        except ValueError:
            self.log.seen.append("error")
        self.log.seen.append(float(total))
        self.adam.zero_grad()
        total.backward()
        self.adam.step()
        return total.detach()


KINDS = ["printed", "counted", "noisy", "timed", "early", "looped", "penalty", "caught"]


def run(kind, compiled, **options):
    """The losses, parameters and log of a training, and the step."""
    training = Training()
    step = getattr(training, kind)
    step = leafgrad.compile(step, **options) if compiled else step
    draws = np.random.default_rng(1)
    found = []
    for i in range(CALLS):
        rows = 5 if i % 11 else 6
        x, y = (leafgrad.tensor(draws.normal(size=(rows, n)).astype("float32")) for n in (3, 1))
        result = step(x, y)
        found.append([np.asarray(v) for v in (result if isinstance(result, tuple) else (result,)) if v is not None])
    return (
        found,
        [p.detach().numpy() for p in training.net.parameters()],
        (training.log.seen, Log.count, Log.last),
        step,
    )


@pytest.mark.every(2)
@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_divided_step_does_what_it_does_uncompiled(kind, always, monkeypatch):
    if always:
        monkeypatch.setenv("LEAFGRAD_COMPILE", "always")
    expected, parameters, left, _ = run(kind, False)
    found, own, also, step = run(kind, True, executor="numpy")
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    for a, b in zip(parameters, own, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert left[1:] == also[1:]
    assert len(left[0]) == len(also[0])
    text = step.explain()
    assert "graph breaks" in text
    assert "closed; " in text


def test_explain_names_the_lines_that_break_and_no_others():
    _, _, _, step = run("printed", True)
    told = step.explain().split("part 1")[0]
    assert "log.seen.append(float(loss))" in told
    assert "adam.step()" not in told
    assert "log.seen.append" not in step.source()


def test_what_a_callee_changes_breaks_the_statement_that_calls_it():
    weight = leafgrad.ones(3)

    def helper(x):
        Log.count += 1
        return x * 2

    @leafgrad.compile
    def step(x):
        weight.mul_(0.5)
        a = (x * weight).tanh().sin() + x
        b = helper(a)
        c = (b * weight).tanh().sin() + x
        return c * weight

    Log.count = 0
    for i in range(20):
        found = step(leafgrad.ones(3))
        half = np.float32(0.5 ** (i + 1))
        a = np.sin(np.tanh(half)) + 1
        assert found.tolist() == pytest.approx([(np.sin(np.tanh(2 * a * half)) + 1) * half] * 3)
    assert Log.count == 20
    told = step.explain()
    assert "b = helper(a)" in told.split("part 1")[0]
    assert told.count("closed; 1 program") == 2


def test_a_function_that_is_replaced_is_no_longer_divided():
    def step(x):
        y = (x * 2).sin().tanh() + x
        Log.last = float(y.sum())
        return y

    compiled = leafgrad.compile(step)
    for _ in range(20):
        compiled(leafgrad.ones(2))
    step.__code__ = (lambda x: x * 5).__code__
    assert compiled(leafgrad.ones(2)).tolist() == [5.0, 5.0]


@pytest.mark.parametrize(("before", "after"), [(1, 1.0), ([1], [True]), (leafgrad.ones(2), leafgrad.zeros(2))])
def test_a_default_that_is_replaced_by_an_equal_one_is_the_new_one(before, after, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_COMPILE", "always")

    def step(x, seen=None, held=before, *, named=before):
        seen.append(1)
        y = (x * 2).sin().tanh() + x
        Log.last = float(y.sum())
        return seen, held, named

    step.__defaults__ = ([], before)
    compiled = leafgrad.compile(step)
    for _ in range(20):
        compiled(leafgrad.ones(2))
    step.__defaults__, step.__kwdefaults__ = ([1] * 20, after), {"named": after}
    seen, held, named = compiled(leafgrad.ones(2))
    assert seen is step.__defaults__[0]
    assert len(seen) == 21
    assert held is after
    assert named is after


def test_errors_are_those_of_the_function(monkeypatch):
    monkeypatch.setenv("LEAFGRAD_COMPILE", "always")
    weight = leafgrad.ones(3)

    @leafgrad.compile
    def step(x):
        weight.add_(1)
        y = (x * 2).sin().tanh() + x
        Log.last = float(y.sum())
        weight.add_(1)
        return y @ leafgrad.ones(3)

    for _ in range(20):
        step(leafgrad.ones(3))
    before = weight.tolist()
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        step(leafgrad.ones(4))
    assert weight.tolist() == [before[0] + 2] * 3


def test_a_method_is_divided_with_its_object():
    class Trainer:
        def __init__(self, factor):
            self.factor, self.seen = factor, []

        @leafgrad.compile
        def step(self, x):
            y = (x * self.factor).sin().tanh() + x
            self.seen.append(float(y.sum()))
            return y * self.factor

    for factor in (2.0, 3.0):
        trainer = Trainer(factor)
        for _ in range(20):
            found = trainer.step(leafgrad.ones(2))
        assert found.tolist() == pytest.approx([factor * (np.tanh(np.sin(factor)) + 1)] * 2)
        assert len(trainer.seen) == 20


@pytest.mark.parametrize(("repaid", "outlines"), [(1e9, 1), (0, 2)])
def test_what_was_divided_in_vain_is_divided_again_when_that_is_repaid(repaid, outlines, monkeypatch):
    """A step is looked at again after 64 calls; its parts, which Python runs as fast, are made again only later."""
    made = []
    monkeypatch.setattr(breaks, "REPAID", repaid)
    monkeypatch.setattr(breaks, "Outline", lambda *given: made.append(Outline(*given)) or made[-1])

    @leafgrad.compile
    def step(x):
        print(end="")
        return x * 2

    for _ in range(120):
        assert step(leafgrad.ones(2)).tolist() == [2.0, 2.0]
    assert "no part is worth it" in step.explain()
    assert len(made) == outlines


def trained(kind):
    """A step whose clock is known to nobody, and whose optimizer counts its steps."""
    leafgrad.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    adam = leafgrad.optim.Adam(net.parameters(), lr=0.01)
    words = {"last": "ab"}

    def train(x):
        words["last"] = words["last"][::-1]
        adam.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        adam.step()
        return loss

    def called(x):
        time.monotonic()
        return train(x)

    def written_out(x):
        time.monotonic()
        adam.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        adam.step()
        return loss

    return {"called": called, "written_out": written_out}[kind]


@pytest.mark.parametrize(("kind", "breaks"), [("written_out", 1), ("called", 2)])
def test_numbers_that_parts_follow_break_nothing(kind, breaks):
    """Nor does what a callee changes, which is divided in its turn.

    After a call that nobody knows no number is followed, and the optimizer's count of steps was one that changed.
    """
    x = leafgrad.ones(5, 3)
    plain, step = trained(kind), leafgrad.compile(trained(kind))
    right = [plain(x).item() for _ in range(40)]
    assert [step(x).item() for _ in range(40)] == pytest.approx(right, rel=1e-4)
    told = step.explain()
    assert told.split("part 1")[0].count("test_breaks.py:") == 1 + breaks  # and what opened it
    assert told.count("closed; 1 program") == 1


def test_calls_are_taken_apart_where_a_statement_itself_changes_nothing():
    statement = ast.parse("y = f(g(x), k=1)").body[0]
    assert [ast.unparse(call) for call in breaks.calls_in(statement)] == ["f(g(x), k=1)", "g(x)"]
    assert breaks.calls_in(ast.parse("self.y = f(x)").body[0]) == []
    assert breaks.calls_in(ast.parse("a, log[0] = f(x)").body[0]) == []
    assert breaks.calls_in(ast.parse("del log[f(x)]").body[0]) == []
