"""What Python sees of memory in recorded calls and later ones: addresses, storages, bases and versions."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import pytest

import leafgrad as lg

TESTS = "compile.record.versions"

READINGS = {
    "data_ptr": lambda a, b: a.data_ptr() - b.data_ptr(),
    "places": lambda a, b: len({t.data_ptr(): t for t in (a, b, a[...], b.view_as(b))}),
    "untyped_storage": lambda a, b: (
        a.untyped_storage() is b.untyped_storage(), a.untyped_storage().data_ptr() - b.data_ptr(),
    ),
    "storage": lambda a, b: (a.storage().data_ptr() - b.storage().data_ptr(), a.storage().tolist()),
    "storage_offset": lambda a, b: (a.storage_offset(), b.storage_offset(), a.stride()),
    "is_set_to": lambda a, b: (a.is_set_to(b), a.is_set_to(a.detach()), a.is_set_to(a[...])),
    "base": lambda a, b: (a._base is None, a._is_view(), b[...]._base is b, b[1:].view(-1)._base is b),
    "version": lambda a, b: (a._version, b._version, a.data._version, a.detach()._version),
    "numpy": lambda a, b: np.shares_memory(a.detach().numpy(), np.asarray(b.detach())),
    "interface": lambda a, b: a.detach().numpy().__array_interface__["data"][0] - b.data_ptr(),
    "buffer": lambda a, b: memoryview(a.detach().numpy()).tolist(),
    "dlpack": lambda a, b: np.from_dlpack(a.detach()).ctypes.data - b.data_ptr(),
    "transposed": lambda a, b: (a.mT.data_ptr() - b.data_ptr(), a.data.data_ptr() - b.real.data_ptr()),
}  # fmt: skip
KINDS = ["argument", "captured", "parameter", "made"]
VIEWS = {
    "itself": lambda t: t[...],
    "part": lambda t: t[1:],
    "part of a view": lambda t: t.view(-1)[1:].reshape(5, 1),
    "detached": lambda t: t.detach(),
    "part of data": lambda t: t.data[1:],
}


class World:
    """Tensors of all kinds, and a step that reads one and a view of it."""

    def __init__(self, kind, view, read):
        self.kind, self.view, self.read, self.log = kind, view, read, []
        self.captured, self.parameter = lg.ones(2, 3), lg.nn.Parameter(lg.full((2, 3), 2.0))

    def step(self, x):
        made = x * 2
        t = {"argument": x, "captured": self.captured, "parameter": self.parameter, "made": made}[self.kind]
        with lg.no_grad():
            t.add_(1)
            v = self.view(t)
            v.mul_(0.5)
            self.log.append(self.read(v, t))
            t.mul_(2)
            v.data.add_(1)
            self.log.append(self.read(t, v))
            t.sub_(v.mean())
        return made * 1, t.sum()

    def call(self, compiled, i):
        x = lg.arange(6.0).reshape(2, 3) + i
        results = compiled(x)
        tensors = [*results, x, self.captured, self.parameter]
        return [t.tolist() for t in tensors], [t._version for t in tensors], self.log


@pytest.mark.parametrize(("reading", "kind", "view"), [*itertools.product(READINGS, KINDS, VIEWS)])
@pytest.mark.every(4)
def test_what_is_read_of_memory(reading, kind, view):
    given = kind, VIEWS[view], READINGS[reading]
    ours, theirs = World(*given), World(*given)
    compiled = lg.compile(ours.step)
    for i in range(8):
        assert ours.call(compiled, i) == theirs.call(theirs.step, i)


def test_parts_of_memory_are_counted_once():
    buffer = lg.ones(2, 3)

    @lg.compile
    def step(x):
        parts = {p.data_ptr(): p for p in (buffer[0], buffer[1], buffer[0])}
        return sum((p * x).sum() for p in parts.values())

    assert [step(lg.ones(3)).item() for _ in range(8)] == [6] * 8


def test_bytes_of_a_storage_are_those_that_were_written_since():
    held = lg.zeros(3)
    outside = held.untyped_storage()

    @lg.compile
    def step(x):
        y = x * 2
        memory = y.view(3, 1).untyped_storage()
        y.add_(1)
        held.add_(1)
        return [*memory][:4] == [0, 0, 64, 64], [*outside] == [*held.untyped_storage()]

    for _ in range(8):
        assert step(lg.ones(3)) == (True, True)


def test_what_is_written_at_an_address_is_seen():
    held = lg.ones(3)

    def step(x):
        y = x * 2
        for t in (y.view(3, 1), held[:]):
            (ctypes.c_float * 3).from_address(t.data_ptr())[1] = 7.0
        return y * 1, held + 1

    compiled = lg.compile(step)
    for _ in range(8):
        y, after = compiled(lg.ones(3))
        assert (y.tolist(), after.tolist()) == ([2, 7, 2], [2, 8, 2])


def test_the_base_that_is_seen_is_the_tensor_itself():
    seen = {}

    @lg.compile
    def step(x):
        base = x[1:]._base
        seen[id(base)] = seen.get(id(base), 0) + 1
        base.add_(1)
        return base

    x = lg.ones(3)
    for _ in range(8):
        assert step(x) is x
    assert (seen, x.tolist()) == ({id(x): 8}, [9, 9, 9])


def test_memory_that_is_read_has_its_history():
    def step(p, x):
        h = p * x
        v = h.view(-1)
        same = v.data_ptr() == h.data_ptr(), v._base is h
        v.mul_(x.view(-1))
        h.tanh_()
        return (h * v.view(2, 2)).sum(), same

    compiled = lg.compile(step)
    for i in range(8):
        found = []
        for function in (step, compiled):
            p = lg.full((2, 2), 0.5).requires_grad_()
            loss, same = function(p, lg.arange(4.0).reshape(2, 2) + i)
            loss.backward()
            found.append((same, lg.round(loss, decimals=4).item(), lg.round(p.grad, decimals=4).tolist()))
        assert found[0] == found[1]


def written_twice(w, x):
    w.mul_(1.5)
    w.detach().mul_(1.5)
    return x * 2


def given_other_memory(w, x):
    w.add_(1)
    w.data = w.data.clone()
    return x * 2


def data(w, x):
    d = w.data
    d.add_(1)
    return d, d[1:], w[1:]


def detached(w, x):
    w.add_(1)
    y = x * 2
    y.mul_(2).add_(1)
    return w.detach(), y, y.detach(), y.data


@pytest.mark.parametrize("function", [written_twice, given_other_memory, data, detached])
def test_versions_of_closed_steps(function):
    ours, theirs = lg.ones(3), lg.ones(3)
    compiled = lg.compile(lambda x: function(ours, x), closed=True)
    for _ in range(6):
        found = []
        for w, call in ((ours, compiled), (theirs, lambda x: function(theirs, x))):
            result = call(lg.ones(3))
            results = result if isinstance(result, tuple) else (result,)
            before = [t._version for t in (w, *results)]
            results[0].add_(1)
            found.append((before, [t._version for t in (w, *results)]))
        assert found[0] == found[1]


def test_who_hides_its_base_hides_it_in_a_step():
    @lg.compile
    def step(y):
        address = y.data_ptr()
        return y.detach_().data_ptr() == address, y._is_view()

    for _ in range(6):
        y = lg.arange(4.0).requires_grad_().roll(1)
        assert (*step(y), y.requires_grad) == (True, False, False)


@pytest.mark.parametrize("name", ["tolist", "numpy", "item", "repr"])
def test_what_is_read_after_data_was_set_is_the_new_memory(name):
    def found(compiler):
        weight, said = lg.ones(2).requires_grad_(), []
        read = {"tolist": lambda: weight.tolist(), "numpy": lambda: weight.detach().numpy().tolist(),
                "item": lambda: weight[0].item(), "repr": lambda: repr(weight)}[name]  # fmt: skip

        def body(x):
            weight.data = weight.data + x
            said.append(read())
            weight.data = weight.data * 2
            said.append(read())
            return x.sum()

        step = compiler(body)
        for _ in range(6):
            step(lg.ones(2))
        return said

    assert found(lg.compile) == found(lambda f: f)
