"""Iterators that are held outside and move on at each call."""

from __future__ import annotations

import io
import itertools
import types

from compile.scenarios.harness import points, row

import leafgrad


@row
def next_of_a_list_iterator(w):
    it = iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    step = w.compile(lambda x: x * next(it))
    for _ in range(7):
        w.call(step, points())


@row
def next_of_a_generator(w):
    def rates():
        rate = 1.0
        while True:
            yield rate
            rate *= 0.5

    it = rates()
    step = w.compile(lambda x: x * next(it))
    for _ in range(7):
        w.call(step, points())


@row
def next_of_a_cycle(w):
    it = itertools.cycle([1.0, 2.0, 3.0])
    step = w.compile(lambda x: x * next(it))
    for _ in range(8):
        w.call(step, points())


@row
def next_of_a_cycle_of_tensors(w):
    batches = itertools.cycle([leafgrad.ones(3), leafgrad.zeros(3), points()])
    step = w.compile(lambda: next(batches) * 2 + 1)
    for _ in range(8):
        w.call(step)


@row
def next_with_a_default_after_the_end(w):
    it = iter([1.0, 2.0, 3.0])
    step = w.compile(lambda x: x * next(it, 100.0))
    for _ in range(7):
        w.call(step, points())


@row
def end_of_an_iterator_raises(w):
    it = iter([1.0, 2.0, 3.0, 4.0])
    step = w.compile(lambda x: x * next(it))
    for _ in range(7):
        w.call(step, points())


@row
def for_over_a_held_iterator(w):
    it = iter(range(40))

    def step(x):
        for i in it:
            x = x + i
            if i % 3 == 2:
                break
        return x

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())


@row
def islice_of_a_held_iterator(w):
    it = itertools.count(1)
    step = w.compile(lambda x: x * sum(itertools.islice(it, 2)))
    for _ in range(7):
        w.call(step, points())


@row
def held_enumerate(w):
    it = enumerate([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0])

    def step(x):
        i, k = next(it)
        return x * k + i

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())


@row
def held_zip_and_map(w):
    pairs = zip(range(20), map(float, range(5, 25)), strict=True)

    def step(x):
        a, b = next(pairs)
        return x * a + b

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())


@row
def held_reversed_and_filter(w):
    backwards, even = reversed(range(30)), filter(lambda i: i % 2 == 0, range(30))
    step = w.compile(lambda x: x * next(backwards) + next(even))
    for _ in range(7):
        w.call(step, points())


@row
def accumulate_and_chain(w):
    it = itertools.accumulate(itertools.chain([1.0, 2.0], itertools.repeat(0.5)))
    step = w.compile(lambda x: x * next(it))
    for _ in range(7):
        w.call(step, points())


@row
def tee_of_an_iterator(w):
    first, second = itertools.tee(itertools.count(1))
    step = w.compile(lambda x: x * next(first))
    for i in range(7):
        w.call(step, points())
        w.see("the other", next(second), i)


@row
def iterator_that_others_move_too(w):
    it = itertools.count(1)
    step = w.compile(lambda x: x * next(it))
    for skip in w.turns(0, 1, 2):
        for _ in range(skip):
            next(it)
        w.call(step, points())


@row
def iterator_in_an_attribute_that_is_replaced(w):
    o = types.SimpleNamespace(it=iter([1.0]))
    step = w.compile(lambda x: x * next(o.it))
    for k in w.turns(1.0, 2.0, 3.0):
        o.it = iter([k])
        w.call(step, points())


@row
def iterator_of_a_class(w):
    class Halving:
        def __init__(self):
            self.value = 8.0

        def __iter__(self):
            return self

        def __next__(self):
            self.value /= 2
            return self.value

    it = Halving()
    step = w.compile(lambda x: x * next(it))
    for _ in range(7):
        w.call(step, points())


@row
def sequence_by_getitem(w):
    class Countdown:
        n = 3

        def __getitem__(self, i):
            if i >= self.n:
                raise IndexError(i)
            return 1.0 + i

    o = Countdown()
    step = w.compile(lambda x: sum((x * k for k in o), x))
    for n in w.turns(3, 1, 5):
        o.n = n
        w.call(step, points())


@row
def generator_that_receives_values(w):
    def smooth():
        mean = 0.0
        while True:
            new = yield mean
            mean = 0.5 * mean + 0.5 * new

    o, it = types.SimpleNamespace(k=1.0), smooth()
    next(it)
    step = w.compile(lambda x: x * it.send(o.k))
    for o.k in w.turns(1.0, 3.0, 5.0):
        w.call(step, points())


@row
def generator_expression_held(w):
    it = (2.0**-i for i in range(20))
    step = w.compile(lambda x: x * next(it))
    for _ in range(7):
        w.call(step, points())


@row
def generator_that_yields_tensors_of_a_net(w):
    data = leafgrad.arange(24.0).reshape(8, 3)

    def batches():
        while True:
            yield from data

    it = batches()
    step = w.compile(lambda: (next(it) ** 2).sum())
    for _ in range(10):
        w.call(step)


@row
def data_loader_held(w):
    data = leafgrad.utils.data.TensorDataset(leafgrad.arange(12.0).reshape(6, 2))
    it = iter(leafgrad.utils.data.DataLoader(data, batch_size=1))

    def step():
        (x,) = next(it)
        return (x**2).sum()

    step = w.compile(step)
    for _ in range(6):
        w.call(step)


@row
def data_loader_walked_inside_the_step(w):
    data = leafgrad.utils.data.TensorDataset(leafgrad.arange(12.0).reshape(6, 2))
    loader = leafgrad.utils.data.DataLoader(data, batch_size=2, shuffle=True)

    def step():
        total = leafgrad.zeros(())
        for i, (x,) in enumerate(loader):
            total = total + (i + 1) * x.sum()
        return total

    step = w.compile(step)
    for _ in range(6):
        w.call(step)


@row
def file_read_line_by_line(w):

    file = io.StringIO("1.0\n2.0\n3.0\n4.0\n5.0\n6.0\n7.0\n8.0\n")
    step = w.compile(lambda x: x * float(file.readline()))
    for _ in range(7):
        w.call(step, points())


@row
def keys_and_values_of_a_dict(w):
    table = {"a": 1.0, "b": 2.0}
    step = w.compile(lambda x: sum((x * v + len(k) for k, v in table.items()), x) * max(table.values()))
    for new in w.turns({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 3.0}, {"b": 2.0, "longer": 1.0}):
        table.clear()
        table.update(new)
        w.call(step, points())


@row
def view_of_a_dict_held(w):
    table = {"a": 1.0, "b": 2.0}
    values = table.values()
    step = w.compile(lambda x: x * sum(values))
    for table["b"] in w.turns(2.0, 3.0, 4.0):
        w.call(step, points())
