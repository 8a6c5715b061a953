"""Effects on Python objects: pops, appends, counters, prints, logs; and tensors that are kept outside."""

from __future__ import annotations

import contextlib
import io
import logging
import types

from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn, optim


@row
def pop_of_a_list(w):
    queue = [float(i) for i in range(20)]
    step = w.compile(lambda x: x * queue.pop())
    for i in range(8):
        w.call(step, points())
        if i == 4:
            queue.append(100.0)


@row
def pop_of_an_empty_list(w):
    queue = [3.0, 2.0, 1.0]
    step = w.compile(lambda x: x * queue.pop())
    for i in range(8):
        w.call(step, points())
        if i == 5:
            queue.extend([7.0, 8.0])


@row
def pop_of_a_dict(w):
    table = {i: float(i) for i in range(20)}
    step = w.compile(lambda x: x * table.popitem()[1] + table.pop(0, 5.0))
    for _ in range(7):
        w.call(step, points())


@row
def append_and_read_back(w):
    log = []

    def step(x):
        log.append(len(log) + 1)
        return x * sum(log)

    step = w.compile(step)
    for i in range(8):
        w.call(step, points())
        if i == 4:
            log.clear()


@row
def counter_in_an_attribute(w):
    o = types.SimpleNamespace(step=0)

    def step(x):
        o.step += 1
        return x

    step = w.compile(step)
    for i in range(8):
        w.call(step, points())
        if i == 4:
            o.step = 100


@row
def counter_of_an_object(w):
    class Trainer:
        def __init__(self):
            self.step, self.p = 0, nn.Parameter(points())
            self.sgd = optim.SGD([self.p], lr=0.1)

        def train(self, x):
            self.step += 1
            self.sgd.zero_grad()
            loss = (self.p * x).square().sum() / self.step
            loss.backward()
            self.sgd.step()
            return loss

    trainer = Trainer()
    step = w.compile(trainer.train)
    for _ in range(8):
        w.call(step, points())


@row
def counter_in_a_dict(w):
    counts = {}

    def step(x):
        counts["calls"] = counts.get("calls", 0) + 1
        return x * 2

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())


@row
def counter_of_a_module(w):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    net = Net()
    step = w.compile(net)
    for _ in range(7):
        w.call(step, points())


@row
def schedule_by_a_counter(w):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls, self.layer = 0, nn.Linear(3, 3)

        def forward(self, x):
            self.calls += 1
            return self.layer(x) if self.calls > 4 else x * 2

    net = Net()
    step = w.compile(net)
    for _ in range(8):
        w.call(step, points())


@row
def class_attribute_counts(w):
    class Net:
        calls = 0

        def __call__(self, x):
            Net.calls += 1
            return x * 2

    net = Net()
    step = w.compile(lambda x: net(x))
    w.watch(Net)
    for _ in range(7):
        w.call(step, points())


@row
def best_loss_is_remembered(w):
    o = types.SimpleNamespace(best=float("inf"), since=0)

    def step(x):
        loss = x.sum().item()
        if loss < o.best:
            o.best, o.since = loss, 0
        else:
            o.since += 1
        return x * o.since

    step = w.compile(step)
    for k in w.turns(3.0, 2.0, 4.0, 1.0):
        w.call(step, points() * k)


@row
def toggle(w):
    o = types.SimpleNamespace(flag=False)

    def step(x):
        o.flag = not o.flag
        return x.sin() if o.flag else x.cos()

    step = w.compile(step)
    for _ in range(9):
        w.call(step, points())


@row
def moving_average_as_a_number(w):
    o = types.SimpleNamespace(mean=0.0)

    def step(x):
        o.mean = 0.9 * o.mean + 0.1 * x.mean().item()
        return x - o.mean

    step = w.compile(step)
    for i in range(8):
        w.call(step, points() + i)


@row
def moving_average_as_a_tensor(w):
    o = types.SimpleNamespace(mean=leafgrad.zeros(3))

    def step(x):
        o.mean = 0.9 * o.mean + 0.1 * x
        return x - o.mean

    step = w.compile(step)
    for i in range(8):
        w.call(step, points() + i)


@row
def prints(w):
    o, out = types.SimpleNamespace(i=0), io.StringIO()

    def step(x):
        print("call", o.i, x.shape, file=out)
        return x * 2

    step = w.compile(step)
    for o.i in range(7):
        w.call(step, points())
        w.see("printed", out.getvalue())


@row
def prints_to_standard_output(w):
    out = io.StringIO()

    def step(x):
        print("called")
        return x * 2

    step = w.compile(step)
    for i in range(7):
        with contextlib.redirect_stdout(out):
            w.call(step, points() + i)
        w.see("printed", out.getvalue())


@row
def prints_a_loss(w):
    out = io.StringIO()

    def step(x):
        loss = x.square().mean()
        print(f"loss {loss:.3f}", loss.item(), file=out)
        return loss

    step = w.compile(step)
    for i in range(7):
        w.call(step, points() + i)
        w.see("printed", out.getvalue())


@row
def prints_a_tensor(w):
    out = io.StringIO()

    def step(x):
        y = x * 2
        print(y, repr(y), str(x), file=out)
        return y

    step = w.compile(step)
    for i in range(7):
        w.call(step, points() + i)
        w.see("printed", out.getvalue())


@row
def logs(w):
    records, logger = [], logging.getLogger("a step")
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())
    logger.handlers, logger.propagate = [handler], False
    o = types.SimpleNamespace(i=0)

    def step(x):
        logger.warning("call %s", o.i)
        return x * 2

    step = w.compile(step)
    for o.i in range(7):
        w.call(step, points())
        w.see("records", records)


@row
def level_of_a_logger_decides(w):
    logger, log = logging.getLogger("another step"), []
    logger.setLevel(logging.ERROR)

    def step(x):
        if logger.isEnabledFor(logging.INFO):
            log.append(x.sum().item())
        return x * 2

    step = w.compile(step)
    for level in w.turns(logging.ERROR, logging.INFO, logging.ERROR):
        logger.setLevel(level)
        w.call(step, points())


@row
def progress_bar(w):
    class Bar:
        def __init__(self):
            self.n, self.text = 0, ""

        def update(self, n=1):
            self.n += n

        def set_postfix(self, **values):
            self.text = ", ".join(f"{k}={v:.2f}" for k, v in values.items())

    bar = Bar()

    def step(x):
        loss = x.square().mean()
        bar.update()
        bar.set_postfix(loss=loss.item(), n=bar.n)
        return loss

    step = w.compile(step)
    for i in range(7):
        w.call(step, points() + i)


@row
def callbacks(w):
    o, seen = types.SimpleNamespace(callbacks=[]), []

    def step(x):
        for callback in o.callbacks:
            callback(x)
        return x * len(o.callbacks)

    step = w.compile(step)
    w.watch(seen)
    for callbacks in w.turns([], [lambda x: seen.append(1)], [lambda x: seen.append(x.shape), seen.append]):
        o.callbacks = callbacks
        w.call(step, points())


@row
def file_is_written(w):
    file = io.StringIO()

    def step(x):
        file.write("line\n")
        return x * file.tell()

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())
        w.see("file", file.getvalue())
