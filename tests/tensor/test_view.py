"""Views are Tensors like all others; some of them refuse to be written."""

from __future__ import annotations

import copy
import pickle

import pytest

import leafgrad

MADE = {
    "select": lambda x: x[0],
    "slice": lambda x: x[:1],
    "transpose": lambda x: x.t(),
    "expand": lambda x: x.expand(2, 2, 3),
    "view": lambda x: x.view(6),
    "diagonal": lambda x: x.diagonal(),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "as_strided": lambda x: x.as_strided((2,), (1,)),
    "squeeze": lambda x: x.unsqueeze(0).squeeze((0, 1)),
    "movedim": lambda x: x.movedim(0, 1),
    "unflatten": lambda x: x.unflatten(1, (3, 1)),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "unbind": lambda x: x.unbind(1)[2],
    "mT": lambda x: x.mT,
    "bits": lambda x: x.view(leafgrad.int32),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_a_view_is_a_tensor(make):
    x = leafgrad.zeros(2, 3)
    y = make(x)
    assert type(y) is leafgrad.Tensor
    assert y._base is x
    assert y._is_view()
    assert y.data_ptr() - x.data_ptr() < x.nbytes
    assert type(pickle.loads(pickle.dumps(y))) is type(copy.deepcopy(y)) is leafgrad.Tensor


def test_bases():
    x = leafgrad.zeros(2, 3)
    assert x._base is None
    assert not x._is_view()
    assert x[0][1:]._base is x
    assert x.detach()._base is None
    assert not x.clone()._is_view()
    leaf = x[0].requires_grad_()
    assert leaf[1:]._base is x
    assert leafgrad.nn.Parameter(x)[0].__class__ is leafgrad.Tensor
    assert leafgrad.Tensor.__module__ == "leafgrad"


def product():
    return leafgrad.ones(4, 2, requires_grad=True) * 1


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda x: x.unbind(), "Output 1 of Unbind"),
        (lambda x: tuple(x), "Output 1 of Unbind"),
        (lambda x: x.split(2), "Output 1 of Split"),
        (lambda x: x.chunk(2), "Output 1 of Split"),
        (lambda x: x.split([1, 3]), "Output 1 of SplitWithSizes"),
        (lambda x: [None, x.unbind()[1][0:1]], "Output 1 of Unbind"),
    ],
)
def test_views_made_together_are_not_written(make, name):
    x = product()
    with pytest.raises(RuntimeError, match=f"{name} is a view and is being modified inplace.*multiple views"):
        make(x)[1].mul_(2)
    assert x.tolist() == [[1, 1]] * 4
    weight = leafgrad.ones(1, requires_grad=True)
    plain = leafgrad.ones(4, 2)
    with pytest.raises(RuntimeError, match="multiple views"):
        make(plain)[1].mul_(weight * 2)
    assert plain.tolist() == [[1, 1]] * 4
    make(plain)[1].mul_(2)  # nothing to record
    assert plain.sum() > 8
    with leafgrad.no_grad():
        make(x)[1].mul_(2)
    assert x.sum() > 8


def test_slices_of_tensor_split_may_be_written():
    x = product()
    x.tensor_split(2)[1].mul_(3)
    assert x.tolist() == [[1, 1], [1, 1], [3, 3], [3, 3]]


@pytest.mark.parametrize(
    ("mode", "message"),
    [(leafgrad.no_grad, "created in no_grad mode"), (leafgrad.inference_mode, "created in inference mode")],
)
def test_views_made_without_recording_are_not_written(mode, message):
    for x in (product(), leafgrad.ones(4, 2, requires_grad=True)):
        with mode():
            y = x[0]
        for write in (
            lambda v: v.mul_(2),
            lambda v: v.zero_(),
            lambda v: v.__setitem__(0, 1),
            lambda v: v[:1].copy_(v[:1]),
        ):
            with pytest.raises(RuntimeError, match=message):
                write(y)
        assert x.sum() == 8
    plain = leafgrad.ones(4, 2)
    with leafgrad.no_grad():
        y = plain[0]
    y.mul_(2)
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        y.mul_(leafgrad.ones(1, requires_grad=True))
    assert plain.sum() == 10


def test_a_leaf_that_is_a_view():
    x = leafgrad.zeros(3)
    leaf = x[:2].requires_grad_()
    for y in (leaf, leaf[0:1]):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            y.add_(1)
    assert x.tolist() == [0, 0, 0]
    with leafgrad.no_grad():
        leaf.add_(1)
    assert x.tolist() == [1, 1, 0]
    assert leaf.is_leaf


class Same(leafgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        return x


@pytest.mark.parametrize(
    "make",
    [lambda u: u.view(-1), lambda u: u.unbind()[0], lambda u: Same.apply(u, leafgrad.ones(1, requires_grad=True))],
    ids=["view", "unbind", "function"],
)
def test_a_view_of_a_view_is_of_the_memory_of_that(make):
    t = leafgrad.ones(4)
    u = t.view(2, 2)
    t.data = leafgrad.zeros(4)
    x = make(u)
    step = leafgrad.compile(lambda t, x: (t * 3, x * 2))
    for _ in range(4):
        assert [part.sum().item() for part in step(t, x)] == [0, 2 * x.numel()]


def test_expanded_tensors_take_one_value():
    x = leafgrad.zeros(1)
    y = x.expand(3)
    for write in (
        lambda: y.add_(1),
        lambda: y.copy_(leafgrad.ones(3)),
        lambda: y.clamp_(1),
        lambda: y.normal_(),
        lambda: y[:2].mul_(2),
    ):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            write()
    assert x.item() == 0
    y[1] = 3
    assert y.tolist() == [3, 3, 3]
    assert y.zero_().tolist() == [0, 0, 0]


def test_gradients_of_a_value_written_into_an_expanded_tensor():
    w = leafgrad.ones(2, 1, requires_grad=True)
    x = w * 3
    x.expand(2, 4)[0].fill_(5)
    assert x.tolist() == [[5], [3]]
    x.sum().backward()
    assert w.grad.tolist() == [[0], [3]]


def written(x):
    """A tensor, and a view of it that was written."""
    base = x * 2
    part = base[0]
    part.mul_(3)
    return base, part


def gradient(out, x):
    return leafgrad.autograd.grad((out * 5).sum(), x)[0].tolist()


def test_a_view_that_was_written_keeps_its_history_when_its_base_is_detached_in_place():
    x = leafgrad.ones(2, 2, requires_grad=True)
    base, part = written(x)
    base.detach_()
    assert part.requires_grad
    assert not base.requires_grad
    assert gradient(part, x) == [[30.0, 30.0], [0.0, 0.0]]
    base, part = written(x)
    base.detach_().requires_grad_()
    assert gradient(part, x) == [[30.0, 30.0], [0.0, 0.0]]
    base, part = written(x)
    base.detach_()
    part.retain_grad()
    (part * 5).sum().backward()
    assert part.grad.tolist() == [5.0, 5.0]


def test_a_view_does_not_know_what_others_wrote_before_its_base_was_detached_in_place():
    """As in PyTorch; a part of the gradient would be wrong."""
    for write in (
        lambda base: base.mul_(3),
        lambda base: base[0].mul_(3),
        leafgrad.no_grad()(lambda base: base.mul_(3)),
    ):
        base, part = written(leafgrad.ones(2, 2, requires_grad=True))
        write(base)
        base.detach_()
        assert not part.requires_grad
        base, part = written(leafgrad.ones(2, 2, requires_grad=True))
        base.detach_()
        write(base)
        assert not part.requires_grad


def test_a_tensor_that_is_detached_in_place_and_written_again_forgets_its_graph():
    x, state, found = leafgrad.ones(2, requires_grad=True), leafgrad.zeros(2, 2), []
    for _ in range(3):
        row = state[0]
        row.add_(x)
        found.append(leafgrad.autograd.grad((row * row).sum(), x)[0].tolist())
        state.detach_()
    assert found == [[2.0, 2.0], [4.0, 4.0], [6.0, 6.0]]


def test_compiled_views_that_were_written_keep_their_history_when_their_base_is_detached_in_place():
    def inside(x):
        base, part = written(x)
        base.detach_()
        return (part * 5).sum()

    def given(base, part):
        base.detach_()
        return (part * 5).sum()

    x, step = leafgrad.ones(2, 2, requires_grad=True), leafgrad.compile(given)
    for call in (leafgrad.compile(inside), lambda x: step(*written(x))):
        for _ in range(2):
            assert leafgrad.autograd.grad(call(x), x)[0].tolist() == [[30.0, 30.0], [0.0, 0.0]]
    base, part = leafgrad.compile(written)(x)
    base.detach_()
    assert gradient(part, x) == [[30.0, 30.0], [0.0, 0.0]]


ALONE = {
    "max": lambda x: x.max(0).values,
    "kthvalue": lambda x: x.kthvalue(1, 0).values,
    "gather": lambda x: x[0, 0].gather(0, leafgrad.tensor(0)),
    "unfold": lambda x: leafgrad.nn.functional.unfold(x[None], 1),
    "masked_scatter": lambda x: x.masked_scatter(x > 2, x),
    "put": lambda x: x.put(leafgrad.tensor([0]), leafgrad.ones(1)),
    "group_norm": lambda x: leafgrad.nn.functional.group_norm(x[:1], 1),
}


@pytest.mark.parametrize("make", ALONE.values(), ids=ALONE)
def test_what_is_no_view_has_the_gradients_of_its_views(make):
    x = make(leafgrad.arange(1.0, 5.0).reshape(2, 2).requires_grad_())
    view = x.view(-1)
    x.mul_(2)
    x.retain_grad()
    ((x * 2).sum() + (view * 3).sum()).backward()
    assert not x._is_view()
    assert x.grad.unique().tolist() == [5.0]


@pytest.mark.parametrize("make", [*ALONE.values(), lambda x: (x * 1).unsqueeze_(0)], ids=[*ALONE, "unsqueeze_"])
@pytest.mark.parametrize("act", [lambda x: x.mul_(2), lambda x: x.detach().mul_(2), lambda x: x.view(-1)[:1].zero_()])
def test_what_is_no_view_keeps_its_history_where_nothing_is_recorded(make, act):
    x = make(leafgrad.arange(1.0, 5.0).reshape(2, 2).requires_grad_())
    before, loss = x.grad_fn, (x + 1).sum()
    with leafgrad.no_grad():
        act(x)
    assert x.grad_fn is before
    (gradient,) = leafgrad.autograd.grad(loss + (x * 2).sum(), x)
    assert gradient.unique().tolist() == [3.0]
