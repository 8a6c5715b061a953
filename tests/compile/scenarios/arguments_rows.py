"""Arguments: shapes, dtypes, structures, kinds; and captured tensors that are rebound to others."""

from __future__ import annotations

import collections
import dataclasses
import types

from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn


@row
def shape(w):
    step = w.compile(lambda x: (x * 2).sum(dim=0))
    for n in w.turns(3, 4, 1):
        w.call(step, points(n))


@row
def number_of_dimensions(w):
    step = w.compile(lambda x: x * x.dim() + x.shape[-1])
    for size in w.turns((6,), (2, 3), (1, 3, 2)):
        w.call(step, points(6).reshape(size))


@row
def no_elements(w):
    step = w.compile(lambda x: (x * 2).sum() + x.numel())
    for n in w.turns(3, 0, 4):
        w.call(step, points(n))


@row
def dtype(w):
    step = w.compile(lambda x: x * 2 + 1)
    for kind in w.turns(leafgrad.float32, leafgrad.float64, leafgrad.int64, leafgrad.float16):
        w.call(step, points().to(kind))


@row
def number_or_tensor(w):
    step = w.compile(lambda x, k: x * k)
    for k in w.turns(2.0, 3, 4.0):
        w.call(step, points(), leafgrad.tensor(k) if k == 3 else k)


@row
def none_or_tensor(w):
    step = w.compile(lambda x, mask=None: x if mask is None else x * mask)
    for on in w.turns(False, True, False):
        w.call(step, points(), leafgrad.zeros(3) if on else None)


@row
def list_or_tuple(w):
    step = w.compile(lambda pair: type(pair)(2 * x for x in pair))
    for kind in w.turns(list, tuple, list):
        w.call(step, kind([points(), points() + 1]))


@row
def length_of_a_list(w):
    step = w.compile(lambda parts: sum(parts))
    for n in w.turns(1, 2, 3):
        w.call(step, [points() + i for i in range(n)])


@row
def nested_structures(w):
    step = w.compile(lambda batch: batch["x"][0] * batch["k"] + batch.get("b", 0.0))
    for k in w.turns(1.0, 2.0, 3.0):
        batch = {"x": (points(), None), "k": k}
        if k == 3.0:
            batch["b"] = points()
        w.call(step, batch)


@row
def keys_in_another_order(w):
    step = w.compile(lambda table: sum((i + 1) * v for i, v in enumerate(table.values())))
    for keys in w.turns("ab", "ba", "abc"):
        w.call(step, {k: points() * ord(k) for k in keys})


@row
def keyword_or_position(w):
    def step(x, y, *, k=1.0):
        return x - y * k

    step = w.compile(step)
    for how in w.turns(0, 1, 2):
        x, y = points(), points() + 1
        if how == 0:
            w.call(step, x, y)
        elif how == 1:
            w.call(step, y=x, x=y)
        else:
            w.call(step, x, y=y, k=2.0)


@row
def keywords_of_any_name(w):
    step = w.compile(lambda **tensors: sum(len(name) * t for name, t in tensors.items()))
    for names in w.turns(["a"], ["a", "bb"], ["ccc", "a"]):
        w.call(step, **{name: points() for name in names})


@row
def wrong_arguments(w):
    step = w.compile(lambda x, y: x + y)
    for n in w.turns(2, 1, 3):
        w.call(step, *[points() for _ in range(n)])


@row
def default_argument_that_is_a_tensor(w):
    t = points()

    def step(x, shift=t):
        return x + shift

    step = w.compile(step)
    w.watch(t)
    for i in range(8):
        w.call(step, points())
        if i in (1, 4):
            t.add_(10)


@row
def dataclass_of_tensors(w):
    @dataclasses.dataclass
    class Batch:
        x: leafgrad.Tensor
        k: float

    step = w.compile(lambda batch: batch.x * batch.k)
    for k in w.turns(1.0, 2.0, 3.0):
        w.call(step, Batch(points() + k, k))


@row
def object_with_tensors(w):
    o = types.SimpleNamespace(x=points(), y=points())
    step = w.compile(lambda batch: batch.x * 2 + batch.y)
    for k in w.turns(1.0, 2.0, 3.0):
        o.x = points() * k
        w.call(step, o)


@row
def deque_and_ordered_dict(w):
    step = w.compile(lambda q, d: q[0] * 2 + sum(d.values()))
    for n in w.turns(1, 2, 3):
        q = collections.deque([points() * i for i in range(1, n + 1)])
        w.call(step, q, collections.OrderedDict(a=points(), b=points() * n))


@row
def set_as_an_argument(w):
    step = w.compile(lambda x, names: x * len(names) + ("a" in names))
    for names in w.turns({"a"}, {"a", "b"}, {"b"}):
        w.call(step, points(), names)


@row
def text_and_bytes(w):
    step = w.compile(lambda x, how, data: getattr(x, how)() * data[0])
    for how, data in w.turns(("sin", b"\x01"), ("cos", b"\x01"), ("sin", b"\x02")):
        w.call(step, points(), how, data)


@row
def same_list_with_other_contents(w):
    batch = [points(), 1.0]
    step = w.compile(lambda b: b[0] * b[1])
    for k in w.turns(1.0, 2.0, 3.0):
        batch[:] = [points() + k, k]
        w.call(step, batch)


@row
def one_tensor_in_two_places(w):
    step = w.compile(lambda pair: pair[0] * pair[1] + (1 if pair[0] is pair[1] else 0))
    for same in w.turns(False, True, False):
        x = points()
        w.call(step, (x, x if same else points()))


@row
def argument_that_is_also_captured(w):
    t = points()

    def step(x):
        return x * 2 + (t if x is t else 0)

    step = w.compile(step)
    for same in w.turns(False, True, False):
        w.call(step, t if same else points())


@row
def parameter_as_an_argument(w):
    a, b = nn.Parameter(points()), nn.Parameter(points() * 2)
    w.watch(a, b)

    def step(p, x):
        (p * x).sum().backward()

    step = w.compile(step)
    for which in w.turns(a, b, a):
        w.call(step, which, points())


@row
def captured_tensor_rebound(w):
    o = types.SimpleNamespace(t=None)
    step = w.compile(lambda x: x + o.t)
    for k in w.turns(1.0, 2.0, 3.0):
        o.t = leafgrad.full((3,), k)
        w.call(step, points())


@row
def captured_tensor_of_another_shape(w):
    o = types.SimpleNamespace(t=None)
    step = w.compile(lambda x: x.sum() * o.t)
    for n in w.turns(3, 4, 1):
        o.t = points(n)
        w.call(step, points())


@row
def captured_tensor_of_another_dtype(w):
    o = types.SimpleNamespace(t=None)
    step = w.compile(lambda x: x * o.t)
    for kind in w.turns(leafgrad.float32, leafgrad.float64, leafgrad.int64):
        o.t = points().to(kind)
        w.call(step, points())


@row
def captured_tensor_in_a_closure_rebound(w):
    t = points()

    def step(x):
        return x + t

    step = w.compile(step)
    for k in w.turns(1.0, 2.0, 3.0):
        t = points() * k
        w.call(step, points())


@row
def captured_tensor_of_no_dimensions(w):
    k = leafgrad.tensor(1.0)
    step = w.compile(lambda x: x * k)
    for value in w.turns(1.0, 2.0, 3.0):
        k.fill_(value)
        w.call(step, points())


@row
def captured_tensor_becomes_a_number(w):
    o = types.SimpleNamespace(k=None)
    step = w.compile(lambda x: x * o.k)
    for as_tensor in w.turns(True, False, True):
        o.k = leafgrad.tensor(2.0) if as_tensor else 3.0
        w.call(step, points())


@row
def captured_tensors_are_exchanged(w):
    o = types.SimpleNamespace(a=points(), b=points() * 2)
    step = w.compile(lambda x: x + o.a - o.b * 3)
    for i in range(8):
        w.call(step, points())
        if i in (1, 2, 5):
            o.a, o.b = o.b, o.a


@row
def captured_tensors_become_one(w):
    o = types.SimpleNamespace(a=points(), b=points() * 2)

    def step(x):
        o.a.add_(x)
        return o.b * 2

    step = w.compile(step)
    for i in range(8):
        w.call(step, points())
        if i == 3:
            o.b = o.a
        if i == 5:
            o.b = points()


@row
def batch_of_the_last_step_is_shorter(w):
    data = leafgrad.arange(30.0).reshape(10, 3)
    net = nn.Linear(3, 1)

    def step(x):
        net.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss

    step = w.compile(step)
    for lo in (0, 4, 8, 0, 4, 8, 0, 4):
        w.call(step, data[lo : lo + 4])


@row
def strides_of_an_argument(w):
    base = leafgrad.arange(12.0)
    step = w.compile(lambda x: (x * 2, x.is_contiguous(), x.stride()))
    for f in w.turns(lambda: leafgrad.ones(4), lambda: base[::3], lambda: leafgrad.ones(1).expand(4)):
        w.call(step, f())


@row
def place_in_memory_of_an_argument(w):
    base = leafgrad.arange(12.0)
    step = w.compile(lambda x: (x * 2, x.storage_offset(), x.as_strided((2,), (1,), 5)))
    for f in w.turns(lambda: base[2:8], lambda: base[4:10], lambda: leafgrad.arange(7.0)[1:]):
        w.call(step, f())


@row(leaves=False)
def whether_an_argument_is_a_view(w):
    base = leafgrad.arange(12.0)
    step = w.compile(lambda x: (x * 2, x._is_view(), x._base is None, x.is_inference()))
    for f in w.turns(lambda: leafgrad.ones(4), lambda: base[:4], lambda: leafgrad.inference_mode()(leafgrad.ones)(4)):
        w.call(step, f())


@row
def whether_an_argument_retains_its_gradient(w):
    p = nn.Parameter(points())

    def retained():
        t = p * 1
        t.retain_grad()
        return t

    step = w.compile(lambda x: (x.detach() * 2, x.retains_grad))
    for f in w.turns(lambda: p * 1, retained, points):
        w.call(step, f())
