"""Writes in place: versions, views, and history that follows the memory."""

from __future__ import annotations

import copy

import pytest

import leafgrad
from leafgrad.testing import fake


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


# ---- leaves -----------------------------------------------------------------------------------------------------


def test_a_leaf_that_requires_grad_is_not_written_under_recording(t):
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf(t, 1.0).add_(1)


def test_nor_is_a_view_of_it(t):
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        leaf(t, 1.0, 2.0)[0].add_(1)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        leaf(t, 1.0, 2.0)[0] = 1.0


def test_under_no_grad_it_is(t):
    a = leaf(t, 1.0, 2.0)
    with t.no_grad():
        a.add_(1)
        a[0] = 7.0
    assert a.tolist() == [7.0, 3.0]
    assert a.is_leaf
    assert a.requires_grad


def test_a_leaf_without_grad_takes_on_history(t):
    a, b = leaf(t, 2.0), t.ones(1, dtype=t.float64)
    b.mul_(a)
    assert b.requires_grad
    assert not b.is_leaf
    b.backward()
    assert a.grad.tolist() == [1.0]


# ---- versions ---------------------------------------------------------------------------------------------------

MODIFIED = "modified by an inplace operation"


def test_an_argument_written_after_it_was_saved(t):
    a = leaf(t, 2.0)
    b = a * 1
    c = b * b
    b.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        c.backward()


def test_a_result_written_after_it_was_saved(t):
    b = leaf(t, 2.0).exp()
    b.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        b.backward()


def test_writing_what_was_not_saved_is_fine(t):
    a = leaf(t, 2.0)
    b = a + 1
    b.mul_(3)
    b.backward()
    assert a.grad.tolist() == [3.0]


def test_the_write_is_seen_through_views_and_detached_tensors(t):
    for write in (lambda b: b[0:1].add_(1), lambda b: b.detach().add_(1), lambda b: b.view(2, 1).zero_()):
        a = leaf(t, 2.0, 3.0)
        b = a * 1
        c = (b * b).sum()
        with t.no_grad():
            write(b)
        with pytest.raises(RuntimeError, match=MODIFIED):
            c.backward()


def test_a_write_through_data_is_not_seen(t):
    a = leaf(t, 2.0)
    b = a * 1
    c = b * b
    b.data.add_(1)
    c.backward()
    assert a.grad.tolist() == [6.0]


def test_second_derivatives_check_versions_too(t):
    a = leaf(t, 2.0)
    b = a * 1
    c = b * b * b
    e = a.exp()
    for written, result in ((b, c), (e, e)):
        written.add_(1)
        with pytest.raises(RuntimeError, match=MODIFIED):
            t.autograd.grad(result, a, create_graph=True)


# ---- history ----------------------------------------------------------------------------------------------------


def test_a_chain_of_writes(t):
    a = leaf(t, 2.0)
    b = a.clone()
    b.mul_(3).add_(a).div_(2)
    b.backward()
    assert a.grad.tolist() == [2.0]


def test_operators_write_in_place(t):
    a = leaf(t, 2.0)
    b = c = a * 1
    b += 1
    b *= a
    b -= 2
    b /= 4
    assert b is c
    b.backward()
    assert a.grad.tolist() == [5.0 / 4]


def test_a_rule_reads_the_old_value(t):
    a = leaf(t, 2.0)
    b = a * 1
    b.pow_(2)
    b.backward()
    assert a.grad.tolist() == [4.0]


@pytest.mark.parametrize(
    ("method", "name"),
    [("clamp_", "min"), ("clamp_", "max"), ("mul_", "other"), ("pow_", "exponent"), ("atan2_", "other")],
)
def test_an_operand_may_be_given_by_name(t, method, name):
    values, other = leaf(t, 0.5, 1.0, 2.0).detach(), leaf(t, 0.75, 0.5, 1.5)
    written, expected = values * 1, getattr(values, method[:-1])(**{name: other})
    (once,) = t.autograd.grad((expected**2).sum(), other)
    getattr(written, method)(**{name: other})
    (written**2).sum().backward()
    assert written.tolist() == expected.tolist()
    assert other.grad.tolist() == once.tolist()


def test_an_overwritten_tensor_forgets(t):
    a, c = leaf(t, 2.0), leaf(t, 5.0)
    b = a * 1
    b.copy_(c)
    b.backward(inputs=[c])
    assert c.grad.tolist() == [1.0]
    assert b.copy_(3).tolist() == [3.0]
    d = a * 1
    d.zero_()
    assert d.requires_grad
    d.backward()
    assert a.grad.tolist() == [0.0]


def test_writing_a_view_changes_the_base_s_history(t):
    a, c = leaf(t, 1.0, 2.0, 3.0), leaf(t, 10.0)
    b = a * 2
    b[1] = c[0]
    assert b.tolist() == [2.0, 10.0, 6.0]
    (b * t.tensor([1.0, 10.0, 100.0], dtype=t.float64)).sum().backward()
    assert a.grad.tolist() == [2.0, 0.0, 200.0]
    assert c.grad.tolist() == [10.0]


def test_writing_the_base_changes_a_view_s_history(t):
    a = leaf(t, 1.0, 2.0)
    b = a * 1
    v = b[0]
    b.mul_(5)
    assert v.item() == 5.0
    v.backward()
    assert a.grad.tolist() == [5.0, 0.0]


def test_views_of_views(t):
    a = leaf(t, 1.0, 2.0, 3.0, 4.0)
    b = a * 1
    v = b.view(2, 2)
    w = v[1]
    u = w[0]
    u.mul_(7)
    assert b.tolist() == [1.0, 2.0, 21.0, 4.0]
    assert v.tolist() == [[1.0, 2.0], [21.0, 4.0]]
    (w * w).sum().backward()
    assert a.grad.tolist() == [0.0, 0.0, 2 * 21.0 * 7, 8.0]


def test_one_view_sees_what_is_written_through_another(t):
    a, c = leaf(t, 1.0, 2.0), leaf(t, 5.0)
    b = a * 1
    v, w = b.view(2, 1), b[0]
    w.mul_(c[0])
    v.sum().backward()
    assert a.grad.tolist() == [5.0, 1.0]
    assert c.grad.tolist() == [1.0]


def test_a_base_without_grad_gets_it_through_a_view(t):
    a, base = leaf(t, 2.0), t.zeros(3, dtype=t.float64)
    base[1] = a[0] * a[0]
    assert base.requires_grad
    base.sum().backward()
    assert a.grad.tolist() == [4.0]


def test_transposed_and_expanded_views_lead_back(t):
    a = t.arange(6, dtype=t.float64).reshape(2, 3).requires_grad_()
    b = a * 1
    b.t()[0] *= 3
    (b * b).sum().backward()
    assert a.grad.tolist() == [[0.0, 2.0, 4.0], [54.0, 8.0, 10.0]]


def test_second_derivatives_through_a_written_view(t):
    a = leaf(t, 1.0, 2.0)
    b = a * a
    b[0] *= b[1].clone()
    (g,) = t.autograd.grad((b * b).sum(), a, create_graph=True)
    (h,) = t.autograd.grad(g.sum(), a)
    assert g.tolist() == [64.0, 64.0]  # a0^4 a1^4 + a1^4: 4 a0^3 a1^4, 4 a0^4 a1^3 + 4 a1^3
    assert h.tolist() == [320.0, 224.0]  # 12 a0^2 a1^4 + 16 a0^3 a1^3, 16 a0^3 a1^3 + 12 a0^4 a1^2 + 12 a1^2


def test_a_view_made_without_recording_takes_no_history(t):
    a, c = leaf(t, 1.0, 2.0), leaf(t, 5.0)
    b = a * 1
    with t.no_grad():
        v = b[0]
    with pytest.raises(RuntimeError, match="no_grad"):
        v.mul_(c[0])


def test_the_result_must_fit_where_it_is_written(t):
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        t.ones(2).add_(t.ones(3, 2))
    with pytest.raises(RuntimeError, match="can't be cast"):
        t.ones(2, dtype=t.int64).mul_(1.5)


def test_an_expanded_tensor_is_not_written(t):
    for wide in (t.ones(1).expand(3), t.ones(1, 2).expand(3, 2).detach()):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single mem"):
            wide.add_(1)


def test_hooks_stay_with_the_value_that_they_were_put_on(t):
    a, seen = leaf(t, 2.0), []
    b = a * 1
    b.register_hook(lambda g: seen.append(g.item()))
    b.mul_(3)
    b.backward()
    assert seen == [3.0]


WRITES = {
    "add_": lambda x, y: x.add_(y),
    "mul_": lambda x, y: x.mul_(2),
    "zero_": lambda x, y: x.zero_(),
    "copy_": lambda x, y: x.copy_(y),
    "item": lambda x, y: x.__setitem__(0, 5.0),
    "slice": lambda x, y: x.__setitem__(slice(0, 2), y[:2]),
    "masked_fill_": lambda x, y: x.masked_fill_(x > 0, 0.0),
    "out": lambda x, y: leafgrad.add(x, y, out=x),
    "gradients": lambda x, y: [(x.requires_grad_() * y).sum().backward() for _ in range(2)],
    "deepcopy": lambda x, y: copy.deepcopy(x).add_(y),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_done_on_the_tensors_own_device(name):
    fake.register()
    here, there = [[leafgrad.tensor([1.0, -2.0]).to(device) for _ in range(2)] for device in ("cpu", "fake:1")]
    WRITES[name](*here)
    WRITES[name](*there)
    assert str(there[0].device) == "fake:1"
    assert there[0].tolist() == here[0].tolist()
    if here[0].grad is not None:
        assert there[0].grad.tolist() == here[0].grad.tolist()


def test_a_copy_is_a_place_of_its_own_in_the_graph():
    w = leafgrad.ones(3, requires_grad=True)
    source = w * 2
    copy = leafgrad.zeros(3).copy_(source)
    copy.register_hook(lambda g: g * 10)
    parts = leafgrad.autograd.grad((copy * 3 + source * 5).sum(), [copy, source, w])
    assert [g[0].item() for g in parts] == [30.0, 35.0, 70.0]
    assert copy.grad_fn is not source.grad_fn


def test_a_copy_of_its_own_view_into_a_tensor():
    w = leafgrad.ones(3, requires_grad=True)
    whole = w * 2
    view = whole[:]
    whole.copy_(view)
    parts = leafgrad.autograd.grad((view * 3 + whole).sum(), [whole, view, w])
    assert [g[0].item() for g in parts] == [4.0, 3.0, 8.0]
