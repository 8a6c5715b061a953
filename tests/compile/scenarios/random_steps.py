"""Random steps over a world of Python objects and tensors, with random changes of it between calls."""

from __future__ import annotations

import itertools
import linecache
import math
import random
import types
from typing import Any, NamedTuple

from compile.scenarios.harness import Row, World
from hypothesis import strategies as st

import leafgrad
from leafgrad import nn, optim

FILE = "a_random_step.py"
NUMBERS = (0.5, 1.0, 2.0, -1.5, 0.0, -0.0, 3)

# Each is a line or block of the step. ``y`` is a tensor of three numbers, ``x`` the argument, ``o`` the world.
READS = [
    "y = y * o.k",
    "y = y + o.n",
    "y = y * c",
    "y = y * GAIN",
    "y = y + o.table['a']",
    "y = y * o.table.get('z', 1.5)",
    "y = y * sum(o.numbers) + len(o.numbers)",
    "y = y + o.t",
    "y = y * o.p + o.q",
    "y = y + o.u * o.q",
    "y = y.sin() if o.flag else y.cos()",
    "y = y * getattr(o, 'late', 1.25)",
    "y = y + ('late' in vars(o))",
    "y = o.f(y)",
    "y = o.net(y)",
    "y = y * o.inner.scale.weights[1]",
    "y = y * o.array[0].item()",
    "y = y + leafgrad.tensor(o.numbers[:2], dtype=leafgrad.float64).sum()",
    "y = y / (2.5 + o.sgd.param_groups[0]['lr'])",
    "y = y * len({*o.table})",
    "y = y.reshape(o.shape).sum(dim=0).reshape(-1).expand(3) * 1",
    "for i in range(o.n % 3):\n    y = y + i * o.k",
    "for name, number in sorted(o.table.items()):\n    y = y + number * len(name)",
    "try:\n    y = y * o.late\nexcept AttributeError:\n    y = y - 1",
    "while y.sum() < o.k:\n    y = y.abs() + 1",
    "if isinstance(o.k, int):\n    y = y * 3",
]
DRAWS = [
    "y = y + leafgrad.rand(3)",
    "y = y * random.random()",
    "y = y * o.rng.uniform(0.5, 1.5)",
    "y = y * next(o.counter) * 0.1",
    "y = nn.functional.dropout(y, 0.5, training=o.flag)",
    "y = y + leafgrad.randn(3, generator=o.generator)",
    "y = y + (leafgrad.tensor([o.k, 1.0, 2.0]) if random.random() < 0.5 else leafgrad.rand(3))",
    "y = (y * o.k if random.random() < 0.5 else y.float() * o.k).double()",
    "y = y * o.k if random.random() < 0.5 else y + (leafgrad.arange(3) * o.k)",
]
EFFECTS = [
    "o.calls += 1",
    "o.calls += 1\ny = y + o.calls",
    "o.log.append(len(o.log))\ny = y + o.log[-1]",
    "o.log.append(y.detach())",
    "o.log.append(y.sum().item())",
    "o.last = y",
    "y = y if o.kept is None else y + o.kept\no.kept = y.detach()",
    "o.table['calls'] = o.table.get('calls', 0) + 1",
    "o.numbers.append(o.numbers.pop(0))",
    "o.flag = not o.flag",
    "o.k = o.k * 0.5 + 0.5",
    "with leafgrad.no_grad():\n    o.t.add_(1)",
    "with leafgrad.no_grad():\n    o.t.mul_(0.5)\n    o.u.copy_(o.t + x)",
    "o.u[1:] = o.u[:-1].clone()",
    "o.t[o.n % 3] = o.k",
    "o.view.add_(0.5)",
    "x.mul_(2)",
    "y = y.clone()\ny[0] = o.k",
    "if o.n == 3:\n    raise ValueError('three')",
    "if o.n == 2:\n    return None",
]
VALUES = [
    "y = y * math.tanh(y.sum().item())",
    "y = y + 1 if y.sum() > 0.1 else y - 1",
    "y = y + y[y > 0.05].sum()",
    "y = y * (1 + int(x.argmax()))",
    "y = y + float(y.detach().numpy().max())",
]
DERIVATIVES = [
    "(y * o.p).sum().backward()",
    "o.p.grad = None",
    "o.sgd.zero_grad()\n((y.detach() * o.p + o.q).tanh() ** 2).sum().backward()\no.sgd.step()",
    "o.adam.zero_grad()\no.net(y.detach() * o.p).square().mean().backward()\no.adam.step()",
    "y = y + leafgrad.autograd.grad((o.p.tanh() * y.detach()).sum(), o.p)[0]",
    "o.sgd.param_groups[0]['lr'] *= 0.9",
    "nn.utils.clip_grad_norm_([o.p, o.q], 0.5)",
]
RESULTS = ["y", "(y, o.k, [y])", "{'y': y, 'calls': o.calls}", "None", "y.detach()", "(y, y[1:], o.t)", "y.sum()"]

# Each is done between two calls; ``v`` is a number.
CHANGES = [
    "o.k = v",
    "o.n = int(v)",
    "o.flag = v > 0.5",
    "set_c(v)",
    "set_gain(v)",
    "o.table['a'] = v",
    "o.table['z'] = v",
    "o.table.pop('z', None)",
    "o.numbers.append(v)",
    "o.numbers[1] = v",
    "o.late = v",
    "vars(o).pop('late', None)",
    "o.inner.scale.weights[1] = v",
    "o.inner = types.SimpleNamespace(scale=types.SimpleNamespace(weights=[v, v]))",
    "o.array[0] = v",
    "o.f = (leafgrad.sin, leafgrad.cos, lambda y: y * v)[int(v) % 3]",
    "o.t = leafgrad.full((3,), v, dtype=leafgrad.float64)",
    "o.t.add_(v)",
    "o.u.fill_(v)",
    "o.t, o.u = o.u, o.t",
    "o.base.mul_(v)",
    "o.p.data = leafgrad.full((3,), v, dtype=leafgrad.float64)",
    "o.p.requires_grad_(v > 0)",
    "o.q.requires_grad_(v > 0.5)",
    "o.p.grad = None",
    "o.p.grad = leafgrad.full((3,), v, dtype=leafgrad.float64)",
    "o.p = nn.Parameter(leafgrad.full((3,), v, dtype=leafgrad.float64))",
    "o.sgd.param_groups[0]['lr'] = abs(v) * 0.1",
    "o.sgd.param_groups[0]['momentum'] = 0.5 if v > 0.5 else 0.0",
    "o.net[1] = (nn.Tanh, nn.Sigmoid, nn.Identity)[int(v) % 3]()",
    "o.net.train(v > 0.5)",
    "o.shape = (3, 1) if v > 0.5 else (1, 3)",
    "random.seed(int(v))",
    "leafgrad.manual_seed(int(v))",
    "o.log.clear()",
    "o.kept = None",
    "leafgrad.set_grad_enabled(v > 0)",
    "leafgrad.set_grad_enabled(True)",
]
changes = st.lists(st.tuples(st.sampled_from(CHANGES), st.sampled_from(NUMBERS)), max_size=3)


class Program(NamedTuple):
    """The lines of a step, what it returns, what changes before each call, and after which its result is derived."""

    lines: list[str]
    result: str
    changes: list[list[tuple[str, float]]]
    derived: set[int]

    @property
    def source(self) -> str:
        body = "\n".join(f"{line}\ny = y.tanh()" for line in self.lines)
        body = "\n".join("        " + line for line in ["y = x * 1", *body.split("\n"), f"return {self.result}"])
        text = (
            "def make(o, c):\n    def step(x):\n{}\n\n    def set_c(v):\n        nonlocal c\n        c = v\n\n"
            "    def set_gain(v):\n        global GAIN\n        GAIN = v\n\n    return step, set_c, set_gain\n"
        )
        return text.format(body)


programs = st.builds(
    Program,
    st.lists(st.one_of(*map(st.sampled_from, (READS, DRAWS, EFFECTS, VALUES, DERIVATIVES))), min_size=1, max_size=6),
    st.sampled_from(RESULTS),
    st.lists(changes, min_size=6, max_size=9),
    st.sets(st.integers(0, 8), max_size=3),
)


def world() -> types.SimpleNamespace:
    """Fresh objects and tensors."""
    leafgrad.set_default_dtype(leafgrad.float64)
    base = leafgrad.linspace(0, 1, 6)
    p, q, net = (
        nn.Parameter(leafgrad.ones(3)),
        nn.Parameter(leafgrad.zeros(3)),
        nn.Sequential(nn.Linear(3, 3), nn.Tanh()),
    )
    return types.SimpleNamespace(
        k=1.0,
        n=1,
        flag=True,
        table={"a": 1.0, "b": 2.0},
        numbers=[1.0, 2.0],
        calls=0,
        log=[],
        t=leafgrad.ones(3),
        u=leafgrad.zeros(3),
        base=base,
        view=base[1:4],
        p=p,
        q=q,
        net=net,
        sgd=optim.SGD([p, q], lr=0.1, momentum=0.5),
        adam=optim.Adam(net.parameters(), lr=0.05),
        f=leafgrad.sin,
        rng=random.Random(0),
        counter=itertools.count(1),
        kept=None,
        last=None,
        generator=leafgrad.Generator().manual_seed(1),
        array=leafgrad.ones(2).numpy().copy(),
        shape=(1, 3),
        inner=types.SimpleNamespace(scale=types.SimpleNamespace(weights=[1.0, 0.5])),
    )


def scenario(program: Program) -> Row:
    """The program as a row: eager and compiled worlds are compared by the harness."""

    def script(w: World) -> None:
        o = w.watch(world())
        linecache.cache[FILE] = (len(program.source), None, program.source.splitlines(keepends=True), FILE)
        space: dict[str, Any] = {"leafgrad": leafgrad, "nn": nn, "random": random, "math": math, "GAIN": 1.0}
        exec(compile(program.source, FILE, "exec"), space)
        step, set_c, set_gain = space["make"](o, 1.0)
        step = w.compile(step)
        names = {**space, "types": types, "o": o, "set_c": set_c, "set_gain": set_gain}
        for i, changed in enumerate(program.changes):
            for change, v in changed:
                w.attempt(change, lambda change=change, v=v: exec(change, {**names, "v": v}))
            x = leafgrad.arange(1.0, 4.0) + i
            result = w.call(step, x)
            if i in program.derived and isinstance(result, leafgrad.Tensor):
                w.attempt("backward pass", lambda result=result: result.sum().backward())
            w.see("the rest of the world", x, o)

    return Row(script)
