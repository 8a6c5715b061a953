"""Lists that a step appends to: what is appended is a part of its result, and whoever else sees the list sees all."""

from __future__ import annotations

import functools
import json
import threading
from collections import Counter

import pytest

import leafgrad as lg

LEN = list.__len__


class Trainer:
    def __init__(self):
        self.losses = []
        self.logs = {"loss": [], "length": []}
        self.seen = Counter()
        self.hidden = None


def item(trainer, y, x):
    trainer.losses.append(y.item())


def computed(trainer, y, x):
    trainer.losses.append(2 * y.item() / 3)
    trainer.logs["loss"].append(y.item() * len(x))


def tensors(trainer, y, x):
    trainer.losses.append(y.detach())
    trainer.logs["length"].append((y.detach(), y.item(), 3))


def extended(trainer, y, x):
    trainer.losses.extend([1, y.item(), y.detach(), "text"])
    trainer.losses += [y.item()]


def by_a_local_name(trainer, y, x):
    losses = trainer.losses
    for weight in (1.0, 2.0):
        losses.append(weight * y.item())


def nested(trainer, y, x):
    trainer.losses.append({"loss": y.item(), "parts": [y.detach()]})


def counted(trainer, y, x):
    trainer.seen["steps"] += 1
    trainer.hidden = y.detach() if trainer.hidden is None else trainer.hidden + y.detach()


CLOSED = [item, computed, tensors, extended, by_a_local_name, nested, counted]


def plain(value):
    """What can be compared: tensors as rounded numbers."""
    if isinstance(value, lg.Tensor):
        return "tensor", round(value.item(), 4)
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [plain(part) for part in value]
    return round(value, 4) if isinstance(value, float) else value


def trained(write, wrap, change=lambda trainer, call: None, calls=8):
    """Results and state of a few calls."""
    trainer = Trainer()
    w = lg.tensor([1.0, 2.0], requires_grad=True)

    @wrap
    def step(x):
        y = (x @ w).pow(2).mean()
        extra = write(trainer, y, x)
        return y.detach() if extra is None else y.detach() * extra

    results = []
    for call in range(calls):
        change(trainer, call)
        results.append(plain(step(lg.full((3, 2), call + 1.0))))
        results.append(plain(vars(trainer)))
    return results, step


def agree(write, change=lambda trainer, call: None):
    """The compiled step, which does what the plain one does."""
    expected, _ = trained(write, lambda f: f, change)
    found, step = trained(write, lg.compile, change)
    assert found == expected
    return step


@pytest.mark.parametrize("write", CLOSED)
def test_what_is_appended_is_a_result(write):
    step = agree(write)
    assert step.closed or "closed" in str(step.explain()).splitlines()[0]
    assert step._calls.programs


READS = {
    "len": lambda losses: len(losses),
    "truth": lambda losses: 2.0 if losses else 1.0,
    "last": lambda losses: losses[-1],
    "sum": lambda losses: sum(losses),
    "copy": lambda losses: len([*losses]),
    "sort": lambda losses: sorted(losses)[0],
    "equal": lambda losses: 2.0 if losses == [] else 3.0,
    "in": lambda losses: 2.0 if 9 in losses else 3.0,
    "json": lambda losses: len(json.dumps(losses)),
    "unbound": lambda losses: list.__len__(losses),
    "slot": lambda losses: LEN(losses),
    "class": lambda losses: [].__class__.__len__(losses),
    "name": lambda losses: getattr(list, "__le" + "n__")(losses),
    "pop": lambda losses: losses.pop(0) + 1 if len(losses) > 3 else 1.0,
    "insert": lambda losses: losses.insert(0, 1),
    "assign": lambda losses: losses.__setitem__(0, 5.0),
    "clear": lambda losses: losses.clear(),
}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("read", READS)
def test_a_list_that_is_read_stays_open(read, first):
    def write(trainer, y, x):
        if first:
            trainer.losses.append(3.0)
        found = READS[read](trainer.losses) if trainer.losses else None
        if not first:
            trainer.losses.append(4.0)
        return found

    step = agree(write)
    assert not step._calls.programs or read in ("pop", "clear")  # which leave the list as it was


ALIASES = {
    "another attribute": lambda t: vars(t).update(other=t.losses) or (lambda: len(t.other)),
    "a bound method": lambda t: vars(t).update(cb=t.losses.append) or (lambda: t.cb(7)),
    "a partial": lambda t: vars(t).update(cb=functools.partial(list.append, t.losses)) or (lambda: t.cb(7)),
    "a tuple": lambda t: vars(t).update(pair=(t.losses,)) or (lambda: len(t.pair[0])),
    "a closure": lambda t: functools.partial((lambda held: lambda: len(held))(t.losses)),
}


@pytest.mark.parametrize("alias", ALIASES)
def test_a_list_with_another_way_to_it_stays_open(alias):
    def run(wrap):
        trainer = Trainer()
        other = ALIASES[alias](trainer)

        @wrap
        def step(x):
            trainer.losses.append(1.0)
            found = other()
            trainer.losses.append(2.0)
            return x * 2 if found is None else x * found

        return [(step(lg.ones(1)).item(), trainer.losses[:]) for _ in range(6)], step

    found, step = run(lg.compile)
    assert found == run(lambda f: f)[0]
    assert not step._calls.programs


def replaced(trainer, call):
    if call == 5:
        trainer.losses = []


def filled(trainer, call):
    trainer.losses.append(call)


def emptied(trainer, call):
    trainer.losses.clear()


def joined(trainer, call):
    if call == 5:
        trainer.logs["loss"] = trainer.losses


def forgotten(trainer, call):
    if call == 5:
        trainer.hidden = None


@pytest.mark.parametrize("change", [replaced, filled, emptied, joined, forgotten])
@pytest.mark.parametrize("write", CLOSED)
def test_the_user_changes_it_between_calls(write, change):
    agree(write, change)


def test_what_comes_before_an_error_is_appended():
    losses = []

    @lg.compile
    def step(x, fails):
        losses.append(x.sum().item())
        if fails:
            raise ValueError("no")
        return x * 2

    for call in range(6):
        step(lg.full((2,), call), False)
    with pytest.raises(ValueError, match="no"):
        step(lg.full((2,), 9.0), True)
    assert losses == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 18.0]
    assert type(losses) is list


def test_a_thread_that_appends_meanwhile_loses_nothing():
    losses, wait, goes_on = [], threading.Event(), threading.Event()

    def other():
        wait.wait()
        losses.append("theirs")
        goes_on.set()

    thread = threading.Thread(target=other)

    @lg.compile
    def step(x):
        losses.append(x.sum().item())
        hold()
        return x * 2

    def hold():
        if held:
            wait.set()
            goes_on.wait()

    held = False
    thread.start()
    for call in range(7):
        held = call == 2  # while it is recorded
        step(lg.full((2,), float(call)))
    thread.join()
    assert sorted(map(str, losses)) == sorted(["theirs", *(str(2.0 * call) for call in range(7))])


def test_what_keeps_the_list_has_the_list_itself():
    class Log:
        losses: list

    log, kept = Log(), []
    log.losses = []

    @lg.compile
    def step(x):
        log.losses.append(x.sum().item())
        log.last = log.losses
        return x * 2

    for call in range(5):
        step(lg.full((1,), call))
        kept.append(log.last)
    assert all(held is log.losses and type(held) is list for held in kept)
    assert log.losses == [0, 1, 2, 3, 4]


def test_a_list_that_holds_itself():
    log = Trainer()

    @lg.compile
    def step(x):
        log.losses.append(log.losses)
        return x.sum().item()

    for call in range(5):
        if call == 3:
            log.losses = []
        step(lg.full((1,), call))
        assert all(held is log.losses for held in log.losses)
    assert len(log.losses) == 2
