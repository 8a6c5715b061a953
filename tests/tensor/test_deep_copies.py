"""Deep copies of tensors, which share memory where the tensors do; in compiled steps, too."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import leafgrad


def test_deepcopy_keeps_what_is_shared(t):
    shared = t.nn.Linear(2, 2)
    twin = copy.deepcopy(t.nn.ModuleList([shared, shared]))
    assert twin[0] is twin[1] is not shared
    assert twin[0].weight.data_ptr() != shared.weight.data_ptr() if hasattr(shared.weight, "data_ptr") else True


def test_deepcopies_share_memory_where_what_is_copied_does(t):
    rows = t.arange(12.0).reshape(3, 4)
    tied = {"rows": rows, "last": rows[2], "columns": rows.t(), "every": rows[::2, 1:], "same": rows}
    twin = copy.deepcopy(tied)
    assert twin["rows"] is twin["same"]
    assert twin["columns"].stride() == tied["columns"].stride()
    twin["rows"].mul_(2)
    for name, found in twin.items():
        assert t.equal(found.detach(), tied[name].detach() * 2), name
    first, parameter = copy.deepcopy([rows, t.nn.Parameter(rows)])
    assert first.data_ptr() != parameter.data_ptr()
    alone = copy.deepcopy(rows[1:, ::3])
    assert (alone.stride(), alone.storage_offset(), alone.tolist()) == ((4, 3), 4, [[4, 7], [8, 11]])


def test_deepcopies_on_other_devices_and_of_other_dtypes(device):
    x = leafgrad.arange(12.0, device=device).reshape(3, 4)
    tied = [x, x[1:], x.t(), x[:, ::2]]
    twin = copy.deepcopy(tied)
    twin[0].mul_(2)
    assert all((a * 2 == b).all() and a.stride() == b.stride() for a, b in zip(tied, twin, strict=True))
    narrow = leafgrad.arange(6.0).bfloat16().reshape(2, 3)
    first, row = copy.deepcopy([narrow, narrow[1]])
    first.mul_(2)
    assert (row.tolist(), narrow[1].tolist()) == ([6, 8, 10], [3, 4, 5])
    assert copy.deepcopy(leafgrad.ones(2, 3, device="meta").t()).shape == (3, 2)
    assert copy.deepcopy([leafgrad.ones(0, 3), leafgrad.ones(0, 3).t()])[1].shape == (3, 0)
    assert copy.deepcopy(leafgrad.from_numpy(np.arange(10.0)[::-1])).tolist() == [*range(9, -1, -1)]
    part = leafgrad.zeros(3, dtype=leafgrad.complex64).real
    assert copy.deepcopy(part).tolist() == [0, 0, 0]


def test_deepcopies_of_attributes_are_deep(t):
    x = t.ones(1)
    x.notes = [1]
    assert copy.deepcopy(x).notes == x.notes
    assert copy.deepcopy(x).notes is not x.notes


def test_only_leaves_are_deepcopied(t):
    y = t.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match=r"Only Tensors created explicitly by the user \(graph leaves\) support"):
        copy.deepcopy(y)


def test_deepcopies_in_compiled_steps():
    table = leafgrad.arange(6.0).reshape(2, 3)

    def step(x):
        y = (x * 2).detach()
        made, part, whole, row = copy.deepcopy([y, y.view(-1)[1:], table, table[0]])
        made.add_(1)
        row.mul_(3)
        wide = copy.deepcopy(x.expand(2, 3))
        return made, part, whole, row, y * 1, wide, copy.deepcopy(table.t())

    compiled = leafgrad.compile(step)
    for i in range(8):
        x = leafgrad.arange(3.0) + i
        for ours, theirs in zip(compiled(x), step(x), strict=True):
            assert (ours.tolist(), ours.stride(), ours._is_view()) == (theirs.tolist(), theirs.stride(), False)
        shared = compiled(x)
        shared[0].zero_()
        assert shared[1].tolist() == [0, 0]


def test_copies_in_compiled_steps_have_versions_of_their_own():
    held = leafgrad.arange(3.0)

    def step(x, quiet):
        with leafgrad.inference_mode(quiet):
            first, second, bits = copy.deepcopy([held, held[:], held.view(leafgrad.int32)])
        product = second * x
        first.add_(1)
        shallow = copy.copy(held)
        shallow.add_(1)
        return product, held.tolist(), first._version, second._version, first.is_inference(), bits

    for quiet in (False, True):
        compiled = leafgrad.compile(step)
        for _ in range(6):
            found = []
            for function in (step, compiled):
                held.copy_(leafgrad.arange(3.0))
                x = leafgrad.ones(3, requires_grad=True)
                product, *rest, bits = function(x, quiet)
                product.sum().backward()
                found.append((x.grad.tolist(), rest, bits.tolist()))
            assert found[0] == found[1]
