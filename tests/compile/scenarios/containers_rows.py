"""Containers of every kind that a step reads and others change."""

from __future__ import annotations

import collections
import heapq
import types

from compile.scenarios.harness import points, row

import leafgrad


@row
def chain_map(w):
    base, over = {"k": 1.0, "b": 0.0}, {}
    table = collections.ChainMap(over, base)
    step = w.compile(lambda x: x * table["k"] + table["b"])
    for k, hidden in w.turns((1.0, None), (2.0, None), (2.0, 5.0)):
        base["k"] = k
        over.clear()
        if hidden:
            over["k"] = hidden
        w.call(step, points())


@row
def user_dict(w):
    table = collections.UserDict({"k": 1.0})
    step = w.compile(lambda x: x * table["k"])
    for table["k"] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def user_list(w):
    numbers = collections.UserList([1.0, 2.0])
    step = w.compile(lambda x: x * numbers[1] + len(numbers))
    for numbers[1] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def user_string(w):
    o = types.SimpleNamespace(name=collections.UserString("sin"))
    step = w.compile(lambda x: getattr(x, str(o.name))())
    for name in w.turns("sin", "cos", "exp"):
        o.name.data = name
        w.call(step, points())


@row
def mapping_proxy(w):
    table = {"k": 1.0}
    view = types.MappingProxyType(table)
    step = w.compile(lambda x: x * view["k"] + len(view))
    for table["k"] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def default_dict(w):
    table = collections.defaultdict(lambda: 1.0)
    step = w.compile(lambda x: x * table["k"])
    for k in w.turns(None, 2.0, 3.0):
        if k is None:
            table.pop("k", None)
        else:
            table["k"] = k
        w.call(step, points())


@row
def default_dict_whose_factory_changes(w):
    table = collections.defaultdict(float)
    step = w.compile(lambda x: x + table["k"])
    for k in w.turns(1.0, 2.0, 3.0):
        table.clear()
        table.default_factory = lambda k=k: k
        w.call(step, points())


@row
def dict_with_missing(w):
    class Table(dict):
        fallback = 1.0

        def __missing__(self, key):
            return self.fallback

    table = Table()
    step = w.compile(lambda x: x * table["k"])
    for table.fallback in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def ordered_dict_reordered(w):
    table = collections.OrderedDict(a=1.0, b=2.0, c=3.0)
    step = w.compile(lambda x: sum((x**i * v for i, v in enumerate(table.values())), x))
    for last in w.turns("c", "a", "b"):
        table.move_to_end(last)
        w.call(step, points())


@row
def dict_reordered(w):
    table = {"a": 2.0, "b": 3.0}
    step = w.compile(lambda x: x * next(iter(table.values())) + next(iter(table)).count("b"))
    for last in w.turns("b", "a", "b"):
        table[last] = table.pop(last)
        w.call(step, points())


@row
def counter(w):
    counts = collections.Counter(a=1)
    step = w.compile(lambda x: x * counts["a"] + counts["b"] + counts.total())
    for counts["b"] in w.turns(0, 2, 3):
        w.call(step, points())


@row
def counter_that_counts_inside(w):
    counts = collections.Counter()

    def step(x):
        counts["calls"] += 1
        return x * counts["calls"]

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())


@row
def deque(w):
    recent = collections.deque([1.0, 2.0], maxlen=3)
    step = w.compile(lambda x: x * sum(recent) + recent[-1])
    for k in w.turns(1.0, 2.0, 3.0):
        recent.append(k)
        w.call(step, points())


@row
def deque_of_tensors(w):
    recent = collections.deque([leafgrad.zeros(3)], maxlen=3)
    step = w.compile(lambda x: x + sum(recent))
    for i in range(8):
        w.call(step, points())
        recent.append(leafgrad.full((3,), float(i)))


@row
def deque_filled_inside(w):
    recent = collections.deque(maxlen=3)

    def step(x):
        recent.append(x)
        return sum(recent)

    step = w.compile(step)
    for i in range(8):
        w.call(step, points() + i)


@row
def heap(w):
    queue = [3.0, 5.0, 8.0]
    heapq.heapify(queue)

    def step(x):
        k = heapq.heappop(queue)
        heapq.heappush(queue, k + 4.5)
        return x * k

    step = w.compile(step)
    for _ in range(8):
        w.call(step, points())


@row
def list_subclass_with_attributes(w):
    class Numbers(list):
        pass

    numbers = Numbers([1.0, 2.0])
    numbers.scale = 1.0
    step = w.compile(lambda x: x * sum(numbers) * numbers.scale)
    for numbers.scale in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def list_subclass_that_computes(w):
    class Numbers(list):
        scale = 1.0

        def __getitem__(self, i):
            return super().__getitem__(i) * self.scale

        def __iter__(self):
            return (self[i] for i in range(len(self)))

    numbers = Numbers([1.0, 2.0])
    step = w.compile(lambda x: x * numbers[1] + sum(numbers))
    for numbers.scale in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def dict_subclass_with_attributes_as_keys(w):
    class Config(dict):
        __getattr__ = dict.__getitem__
        __setattr__ = dict.__setitem__

    config = Config(gain=1.0, inner=Config(b=0.0))
    step = w.compile(lambda x: x * config.gain + config.inner.b)
    for config.gain, config.inner.b in w.turns((1.0, 0.0), (2.0, 0.0), (2.0, 3.0)):
        w.call(step, points())


@row
def tuple_subclass_with_attributes(w):
    class Pair(tuple):
        pass

    pair = Pair((1.0, 2.0))
    pair.scale = 1.0
    step = w.compile(lambda x: x * sum(pair) * pair.scale)
    for pair.scale in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def string_subclass_with_attributes(w):
    class Name(str):
        __slots__ = ("gain",)

    name = Name("sin")
    name.gain = 1.0
    step = w.compile(lambda x: getattr(x, name)() * name.gain)
    for name.gain in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def int_subclass_with_attributes(w):
    class Step(int):
        pass

    n = Step(2)
    n.gain = 1.0
    step = w.compile(lambda x: x**n * n.gain)
    for n.gain in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def set_subclass_with_attributes(w):
    class Names(set):
        pass

    names = Names({"a"})
    names.gain = 1.0
    step = w.compile(lambda x: x * names.gain * (2 if "a" in names else 1))
    for names.gain, has in w.turns((1.0, True), (2.0, True), (2.0, False)):
        (names.add if has else names.discard)("a")
        w.call(step, points())


@row
def set_of_names(w):
    names = {"a"}
    step = w.compile(lambda x: x * len(names) + ("b" in names))
    for new in w.turns({"a"}, {"a", "b"}, {"c"}):
        names.clear()
        names.update(new)
        w.call(step, points())


@row
def frozen_set(w):
    o = types.SimpleNamespace(frozen=frozenset({1.0, 2.0}))
    step = w.compile(lambda x: x * sum(o.frozen))
    for numbers in w.turns({1.0, 2.0}, {1.0, 3.0}, {2.0}):
        o.frozen = frozenset(numbers)
        w.call(step, points())


@row
def tuple_that_holds_a_list(w):
    pair = (1.0, [2.0])
    step = w.compile(lambda x: x * pair[1][0])
    for pair[1][0] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def list_in_a_list_in_a_dict(w):
    table = {"layers": [[1.0, 2.0], [3.0]]}
    step = w.compile(lambda x: x * sum(sum(layer) * len(layer) for layer in table["layers"]))
    for layers in w.turns([[1.0, 2.0], [3.0]], [[1.0], [2.0, 3.0]], [[1.0, 2.0, 3.0]]):
        table["layers"][:] = layers
        w.call(step, points())


@row
def slice_of_a_list(w):
    numbers, o = [1.0, 2.0, 3.0, 4.0], types.SimpleNamespace(cut=slice(0, 2))
    step = w.compile(lambda x: x * sum(numbers[o.cut]))
    for o.cut in w.turns(slice(0, 2), slice(1, 3), slice(None, None, 2)):
        w.call(step, points())


@row
def slice_of_a_tensor(w):
    o = types.SimpleNamespace(cut=slice(0, 2), i=0)
    step = w.compile(lambda x: x[o.cut] + x[o.i])
    for o.cut, o.i in w.turns((slice(0, 2), 0), (slice(1, 3), 0), (slice(0, 2), 2)):
        w.call(step, points(6))


@row
def index_list(w):
    order = [0, 1, 2]
    step = w.compile(lambda x: x[order] * 2)
    for order[:] in w.turns([0, 1, 2], [2, 1, 0], [1, 1]):
        w.call(step, points())


@row
def index_tuple_given_as_an_argument(w):
    step = w.compile(lambda x, at: x.reshape(2, 3)[at])
    for at in w.turns((0, 1), (1, 1), (slice(None), 2), (Ellipsis, 0), (None, 1)):
        w.call(step, points(6), at)


@row
def range_of_a_loop(w):
    o = types.SimpleNamespace(over=range(3))
    step = w.compile(lambda x: sum((x * i for i in o.over), x))
    for o.over in w.turns(range(3), range(1, 6, 2), range(0)):
        w.call(step, points())


@row
def matrix_of_numbers_as_a_tensor(w):
    table = [[1.0, 0.0], [0.0, 1.0]]
    step = w.compile(lambda x: x @ leafgrad.tensor(table))
    for table[0][1] in w.turns(0.0, 2.0, 3.0):
        w.call(step, points(2))


@row
def numbers_of_mixed_types_as_a_tensor(w):
    numbers = [1, 2, 3]
    step = w.compile(lambda x: leafgrad.tensor(numbers) * 2)
    for numbers[1] in w.turns(2, 2.5, True):
        w.call(step, points())


@row
def list_of_tensors_is_stacked(w):
    parts = [leafgrad.ones(3)]
    step = w.compile(lambda x: leafgrad.stack([*parts, x]).sum(dim=0) * len(parts))
    for n in w.turns(1, 2, 4):
        parts[:] = [leafgrad.full((3,), float(i)) for i in range(n)]
        w.call(step, points())


@row
def dict_of_tensors(w):
    weights = {"a": leafgrad.ones(3), "b": leafgrad.zeros(3)}
    step = w.compile(lambda x: sum(x * v for v in weights.values()) + weights["b"])
    for k in w.turns(0.0, 2.0, 3.0):
        weights["b"] = leafgrad.full((3,), k)
        w.call(step, points())
