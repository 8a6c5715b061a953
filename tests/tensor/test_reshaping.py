"""In-place changes of shape."""

from __future__ import annotations

import pytest

import leafgrad

CHANGES = {
    "t_": (lambda x: x.t_(), lambda x: x.t()),
    "transpose_": (lambda x: x.transpose_(0, 1), lambda x: x.transpose(0, 1)),
    "swapaxes_": (lambda x: x.swapaxes_(0, -1), lambda x: x.swapaxes(0, -1)),
    "swapdims_": (lambda x: x.swapdims_(0, 1), lambda x: x.swapdims(0, 1)),
    "unsqueeze_": (lambda x: x.unsqueeze_(1), lambda x: x.unsqueeze(1)),
    "squeeze_": (lambda x: x.unsqueeze_(0).squeeze_(), lambda x: x),
    "squeeze_ of a dim": (lambda x: x.unsqueeze_(0).squeeze_((0, 1)), lambda x: x),
    "as_strided_": (lambda x: x.as_strided_((2, 2), (2, 1), 1), lambda x: x.as_strided((2, 2), (2, 1), 1)),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES)
def test_the_tensor_itself_takes_the_shape(change, expected):
    w = leafgrad.arange(6.0).view(2, 3).clone().requires_grad_()
    x = w * 2
    row = x[1]
    assert change(x) is x
    y = expected(w * 2)
    assert x.tolist() == y.tolist()
    assert not x._is_view()
    x.mul_(3)
    weights = leafgrad.arange(1.0, x.numel() + 1).view(x.shape)
    if "strided" not in row.grad_fn.name() and x.numel() == 6:
        assert row.tolist() == [18, 24, 30]
    (x * weights).sum().backward()
    (expected_grad,) = leafgrad.autograd.grad((expected(w * 6) * weights).sum(), w)
    assert w.grad.tolist() == expected_grad.tolist()


def test_older_views_keep_their_place():
    w = leafgrad.ones(2, 3, requires_grad=True)
    x = w * 1
    row = x[0]
    x.t_()
    x.unsqueeze_(0)
    x.mul_(2)
    assert row.tolist() == [2, 2, 2]
    row.sum().backward()
    assert w.grad.tolist() == [[2, 2, 2], [0, 0, 0]]
    row.mul_(5)
    assert x.tolist() == [[[10, 2], [10, 2], [10, 2]]]


def test_a_view_takes_another_shape():
    x = leafgrad.zeros(2, 3)
    y = x[0]
    y.unsqueeze_(0).t_()
    assert y.shape == (3, 1)
    assert y._base is x
    y[1] = 4
    assert x.tolist() == [[0, 4, 0], [0, 0, 0]]


def test_what_was_saved_is_missed():
    x = leafgrad.ones(2, 3, requires_grad=True) * 2
    y = x * x
    x.t_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_retained_gradients_have_the_new_shape():
    x = leafgrad.ones(2, 3, requires_grad=True) * 2
    x.retain_grad()
    x.t_()
    x.sum().backward()
    assert x.grad.shape == (3, 2)


def test_leaves_keep_their_shape():
    x = leafgrad.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x.t_()
    with leafgrad.no_grad(), pytest.raises(RuntimeError, match="a leaf that requires grad cannot change its shape"):
        x.t_()


def test_in_compiled_functions():
    @leafgrad.compile
    def f(v):
        w = v * 2
        w.t_()
        w.unsqueeze_(0)
        return w

    for k in (1, 2):
        assert (
            f(leafgrad.arange(6.0).view(2, 3) * k).tolist()
            == (leafgrad.arange(6.0).view(2, 3) * 2 * k).t()[None].tolist()
        )


def test_afterwards_it_is_a_tensor_like_others():
    w = leafgrad.ones(2, 3, requires_grad=True)
    x = w * 2
    x.t_()
    assert not x.detach_().requires_grad
    x.mul_(leafgrad.tensor(2.0, requires_grad=True))
    assert x.requires_grad
    y = leafgrad.ones(2, 3).t_().requires_grad_()
    (y[0] * y).sum().backward()
    assert y.grad.tolist() == [[4, 4], [1, 1], [1, 1]]

    @leafgrad.compile
    def double(v):
        v.mul_(2)
        return v.sum()

    z = leafgrad.ones(2, 3).t_()
    assert [double(z).item(), double(z).item()] == [12, 24]
    assert z.tolist() == [[4, 4], [4, 4], [4, 4]]


def test_resize():
    x = leafgrad.arange(6.0)
    pointer = x.data_ptr()
    assert x.resize_(2, 2) is x
    assert x.tolist() == [[0, 1], [2, 3]]
    assert x.data_ptr() == pointer
    assert x.resize_(5).tolist()[:4] == [0, 1, 2, 3]
    assert leafgrad.arange(6.0).view(2, 3).t().resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    y = leafgrad.arange(6.0)
    part = y[1:3].resize_(2, 2)
    assert part.tolist() == [[1, 2], [3, 4]]
    part[0, 0] = 9
    assert y[1] == 9
    assert leafgrad.ones(2).resize_as_(leafgrad.ones(0, 3)).shape == (0, 3)
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        leafgrad.ones(2, requires_grad=True).resize_(3)
    with pytest.raises(RuntimeError, match="must be non-negative"):
        leafgrad.ones(2).resize_(-1)


def test_set():
    x, y = leafgrad.zeros(2), leafgrad.ones(3)
    assert x.set_(y) is x
    x[0] = 5
    assert y.tolist() == [5, 1, 1]
    with pytest.raises(RuntimeError, match="expected a source of dtype"):
        x.set_(leafgrad.ones(2, dtype=leafgrad.float64))
    with pytest.raises(RuntimeError, match="does not share memory"):
        x.share_memory_()


def test_a_memory_format_after_a_change_of_size():
    x = leafgrad.empty(2, 3 * 4 * 4).resize_(2, 3, 4, 4, memory_format=leafgrad.channels_last)
    assert x.shape == (2, 3, 4, 4)
    assert x.is_contiguous(memory_format=leafgrad.channels_last)
    grown = leafgrad.arange(4.0).resize_((1, 2, 2, 2), memory_format=leafgrad.channels_last)
    assert grown.stride() == (8, 1, 4, 2)
    assert grown[0, :, 0].tolist() == [[0.0, 2.0], [1.0, 3.0]]  # elements keep their places in memory
    assert leafgrad.empty(3).resize_as_(x, memory_format=leafgrad.preserve_format).stride() == x.stride()
    assert leafgrad.empty(3).resize_as_(x).is_contiguous()
    with pytest.raises(RuntimeError, match="required rank 4 tensor"):
        leafgrad.empty(3).resize_(3, memory_format=leafgrad.channels_last)


def test_more_elements_than_there_can_be():
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        leafgrad.empty(()).resize_(8, 8, 2**29, 2**29)


@pytest.mark.parametrize(
    "act", [lambda x, v: x.unsqueeze_(0), lambda x, v: v.unsqueeze_(0), lambda x, v: x.t_().mul_(2)]
)
def test_its_gradient_has_what_flows_through_its_views(act):
    x = leafgrad.ones(2, 3, requires_grad=True) * 1.0
    view = x.view(-1)
    act(x, view)
    x.retain_grad()
    ((x * 2).sum() + (view * 3).sum()).backward()
    assert x.grad.shape == x.shape
    assert x.grad.unique().tolist() == [5.0]


def test_a_view_that_takes_another_shape_leaves_its_base_as_it_is():
    x = (leafgrad.ones(2, 3, requires_grad=True) * 1.0).unsqueeze_(0)
    before = x.grad_fn
    x.view(-1).unsqueeze_(0)
    assert x.grad_fn is before


def test_a_detached_tensor_that_takes_another_shape_hides_nothing():
    x = (leafgrad.ones(2, 3, requires_grad=True) * 1.0).unsqueeze_(0)
    view = x.view(-1)
    x.detach().squeeze_(0)
    (gradient,) = leafgrad.autograd.grad((x * 2).sum() + (view * 3).sum(), x)
    assert gradient.unique().tolist() == [5.0]
