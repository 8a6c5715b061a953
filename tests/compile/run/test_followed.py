"""Numbers that are followed become ordinary ones where the call comes to what nobody knows, and all is done once."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import heapq
import json
import math
import sqlite3
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad.nn.utils.parametrizations import spectral_norm

UNKNOWN = {
    "a value": "round(float(loss), 2)",
    "a callee": "json.dumps({'loss': round(loss.item(), 2)})",
    "one in C": "memory.execute('select 1').fetchone()",
}
SELDOM = {  # what is done in a branch that is taken now and then, and what it was
    "a scheduler": "cosine.step(); seen = cosine.last_epoch, adam.param_groups[0]['lr']",
    "of values": "plateau.step(1.0); seen = plateau.num_bad_epochs, other.param_groups[0]['lr']",
    "a scaler": (
        "scaler.scale((v * k).sum()).backward(); scaler.step(other); scaler.update();"
        " seen = scaler.state_dict(), v.tolist()"
    ),
    "a buffer": "seen = averaged(x).tolist()",
    "a parametrization": "spectral_norm(layers.pop()); seen = len(layers)",
    "a new parameter": "parts.append(nn.Parameter(x * 1)); seen = len(parts)",
    "slots": "frozen.count(); seen = frozen.n",
    "a metaclass": "Meter.n += 1; seen = Meter.n",
    "a string's": "text.n += 1; seen = text.n",
    "a shape": "array.resize(array.shape[::-1], refcheck=False); array[0] += 1; seen = array.tolist()",
    "the mode": "leafgrad.set_grad_enabled(not leafgrad.is_grad_enabled()); seen = leafgrad.is_grad_enabled()",
}
MEMORY = sqlite3.connect(":memory:", check_same_thread=False)
MODULES = {"json": json, "memory": MEMORY, "datetime": datetime, "math": math}
TRAINING = """
def step(x, k):
    adam.zero_grad()
    with leafgrad.enable_grad():
        loss = ((w * x) ** 2).sum() * k
        loss.backward()
    adam.step()
    if k % 4 == 3:
        {act}
        said.append(seen)
        said.append({unknown})
    return loss.detach()
"""


class Averaged(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", leafgrad.zeros(2))

    def forward(self, x):
        self.mean = self.mean * 0.5 + x
        return self.mean


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    n: int = 0

    def count(self):
        object.__setattr__(self, "n", self.n + 1)


class Metered(type):
    def __setattr__(cls, name, value):
        super().__setattr__(name, value * 10)


class Meter(metaclass=Metered):
    n = 0


class Text(str):
    n = 0


def training():
    """What the step works on, by name."""
    leafgrad.manual_seed(0)
    Meter.n, made = 0, SimpleNamespace(w=leafgrad.ones(2, requires_grad=True), v=leafgrad.ones(2, requires_grad=True))
    made.adam, made.other = leafgrad.optim.Adam([made.w], 0.1), leafgrad.optim.SGD([made.v], 0.1)
    made.cosine = leafgrad.optim.lr_scheduler.CosineAnnealingLR(made.adam, 4)
    made.plateau = leafgrad.optim.lr_scheduler.ReduceLROnPlateau(made.other, patience=0)
    made.scaler = leafgrad.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    made.averaged, made.layers, made.parts = Averaged(), [nn.Linear(2, 2) for _ in range(9)], nn.ParameterList()
    made.frozen, made.text, made.array, made.said = Frozen(), Text("a"), np.zeros((2, 3)), []
    return vars(made) | {"leafgrad": leafgrad, "nn": nn, "Meter": Meter, "spectral_norm": spectral_norm} | MODULES


@pytest.mark.filterwarnings("ignore:step has been traced again")
@pytest.mark.every(2)
@pytest.mark.parametrize("unknown", UNKNOWN)
@pytest.mark.parametrize("act", SELDOM)
def test_what_is_done_before_the_unknown_is_done_once(act, unknown):
    def found(compiler):
        names = training()
        exec(TRAINING.format(act=SELDOM[act], unknown=UNKNOWN[unknown]), names)
        step = compiler(names["step"])
        with leafgrad.enable_grad():
            results = [step(leafgrad.ones(2), k).item() for k in range(13)]
        return results, names["said"], names["w"].tolist()

    (results, said, weights), (expected, told, own) = found(leafgrad.compile), found(lambda f: f)
    assert (results, weights) == (pytest.approx(expected, rel=1e-5), pytest.approx(own, rel=1e-5))
    assert said == told


INLINE = {
    "a dict": "json.dumps({'n': o.n, 'nested': [o.v, (o.n,)]})",
    "variables": "json.dumps([n, (v, n)])",
    "variables after it": "[json.dumps(1), type(n).__name__, type(v).__name__]",
    "a variable that is left": "[json.dumps(1), setattr(o, 'left', n), type(o.left).__name__]",
    "a comprehension": "json.dumps({i: o.n for i in range(2)})",
    "a generator": "json.dumps(list(o.n * i for i in range(2)))",
    "an object": "json.dumps(vars(o), default=str)",
    "a cell": "[json.dumps(1), (lambda: type(n).__name__)()]",
    "in C": "str(datetime.timedelta(seconds=o.n))",
    "in C after a value": "[float(loss) > 0, str(datetime.timedelta(seconds=n)), math.ldexp(1.0, o.n)]",
    "a list in C": "memory.execute('select ?, typeof(?)', [o.n, o.n]).fetchone()",
    "a size": "json.dumps([x.shape[0], len(x), (x.numel(),)])",
    "a size in a new function": "sized(x)",
    "its type": "typed(o.n, [o.v])",
    "an object array": "[objects.fill(o.n), type(objects[0]).__name__]",
}
STEP = """
def step(x):
    o.n += 1
    o.v = o.v * 0.5 + 1
    n, v = o.n, o.v
    loss = (x * o.n).sum()
    if o.n % 4 == 0:
        o.said.append({text})
    return loss * n
"""


HISTORIES = {
    "a comprehension": "[v * 2 for v in o.history]",
    "a loop": "[json.dumps(v) for v in o.history]",
    "iterators": "[*map(json.dumps, reversed(o.history)), *zip(o.history, map(lambda v: -v, o.history))]",
    "sorted in place": "[o.history.sort(key=lambda v: -v), o.history[:]]",
    "a heap": "[heapq.heappush(o.history, 1.0), o.history[:], heapq.heappop(o.history)]",
    "methods of lists": "[list.append(o.history, 1.0), list.copy(o.history)]",
    "texts": "[f'{o.history}', json.dumps(1), repr(o.history), repr((n, o.history[-1:]))]",
    "kept beside a value": "[o.kept.append((o.history, float(loss))), o.kept[-1][0] is o.history, type(o.kept[-1][0])]",
    "a tuple twice": "same((n, k))",
    "a set of arguments": "[(seen := {x}), json.dumps(1), x in seen][1:]",
    "a partial function": "[(f := functools.partial(max, o.n)), json.dumps(1), type(f.args[0]).__name__, f(0)][2:]",
    "what is freed": "freed(n)",
}
RECORDING = """
def step(x, k):
    o.n += 1
    n = o.n
    loss = (x * o.n).sum()
    o.history.append(loss.item())
    if k in (5, 8):
        o.said.append(str({text}))
    return loss * n
"""


class Pair(tuple):
    count = 0


def same(pair):
    t = u = Pair(pair)
    json.dumps(1)
    t.count += 5
    return u.count, t is u, [type(part) for part in u]


def freed(n):
    class Noted:
        def __del__(self):
            gone.append(n)

    gone, noted = [], Noted()
    json.dumps(1)
    noted = None
    return len(gone), noted


@pytest.mark.filterwarnings("ignore:step has been traced again")
@pytest.mark.parametrize("text", HISTORIES.values(), ids=HISTORIES)
def test_lists_that_grow_and_others_stay_what_they_are(text):
    def found(compiler):
        o = SimpleNamespace(n=0, history=[], said=[], kept=[])
        names = {"o": o, "same": same, "freed": freed, "heapq": heapq, "functools": functools} | MODULES
        exec(RECORDING.format(text=text), names)
        step = compiler(names["step"])
        lengths = [4 + k % 5 if "seen" in text else 3 for k in range(11)]
        results = [step(leafgrad.ones(n), k).item() for k, n in enumerate(lengths)]
        return results, o.said, o.history, type(o.history), repr(o.history), [type(kept[0]) for kept in o.kept]

    assert found(leafgrad.compile) == found(lambda f: f)


def sized(x):
    return type(x.shape[0]) is int, json.dumps(x.shape[0]), isinstance(x.shape[0], int)


def typed(n, values):
    return type(n) is int, [type(value).__name__ for value in values], n.bit_length()


@pytest.mark.filterwarnings("ignore:step has been traced again")
@pytest.mark.parametrize("text", INLINE.values(), ids=INLINE)
def test_what_the_unknown_is_given(text):
    def found(compiler):
        o, objects = SimpleNamespace(n=0, v=0.5, said=[], left=0), np.zeros(2, object)
        names = {"o": o, "objects": objects, "sized": sized, "typed": typed} | MODULES
        exec(STEP.format(text=text), names)
        step = compiler(names["step"])
        results = [step(leafgrad.ones(3 + (i % 4 if "x" in text else 0))).item() for i in range(13)]
        return results, o.said, o.n, type(o.left)

    assert found(leafgrad.compile) == found(lambda f: f)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="time.sleep takes what has an __index__ or __float__")
def test_a_number_in_c_is_an_error_that_says_how_to_go_on():
    o = SimpleNamespace(n=0, v=0.5)

    @leafgrad.compile
    def step(x):
        o.n += 1
        o.v = o.v * 0.5
        if o.n == 7:
            time.sleep(o.v)
        return x.sum() * o.n

    for _ in range(6):
        step(leafgrad.ones(2))
    with pytest.raises(TypeError) as caught:
        step(leafgrad.ones(2))
    assert "pass int(number) or float(number)" in caught.value.__notes__[0]
    assert (o.n, o.v, type(o.v)) == (7, 0.5**8, float)
    assert step(leafgrad.ones(2)).item() == 16


def test_slots_are_looked_at_without_code_of_their_class():
    class Lazy:
        __slots__ = ("made", "table")

        def __init__(self):
            self.made = 0

        def __getattr__(self, name):
            self.made += 1
            self.table = leafgrad.rand(3)
            return self.table

    def found(compiler):
        leafgrad.manual_seed(0)
        lazy, n = Lazy(), SimpleNamespace(n=0)

        def body(x):
            n.n += 1
            loss = x.sum() + leafgrad.rand(1).sum()
            return loss + lazy.table.sum() if n.n == 6 else loss

        step = compiler(body)
        return [(step(leafgrad.ones(3)).item(), lazy.made) for _ in range(9)]

    assert found(leafgrad.compile) == found(lambda f: f)
