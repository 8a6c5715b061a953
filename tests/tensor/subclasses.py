"""The tests of ``test_subclasses.py``, in a process of their own: here classes are asked, which no other test pays for.

Subclasses of Tensor, and modes, say by ``__torch_function__`` what functions of tensors do, as in PyTorch.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import ClassVar

import pytest

import leafgrad
from leafgrad import nn
from leafgrad.compat.torch import overrides
from leafgrad.compat.torch._C import DisableTorchFunctionSubclass, _disabled_torch_function_impl as unwrapped
from leafgrad.nn import functional as F
from leafgrad.utils.data import default_collate

BEFORE = leafgrad.Tensor.__add__, leafgrad.exp
KNOWN = {
    leafgrad.Tensor.add: "add", leafgrad.Tensor.__pow__: "__pow__", leafgrad.Tensor.exp: "exp", leafgrad.exp: "F.exp",
    leafgrad.Tensor.shape.__get__: "shape", leafgrad.Tensor.not_equal: "not_equal", leafgrad.Tensor.trace: "trace",
}  # fmt: skip


class Quiet(leafgrad.Tensor):
    """Is not asked."""

    __torch_function__ = unwrapped


assert type(Quiet([1.0]) + 1) is leafgrad.Tensor
assert leafgrad.Tensor.__add__ is BEFORE[0]


class Plain(leafgrad.Tensor):
    """Tensor's own ``__torch_function__``: results are of the class."""


class Logged(leafgrad.Tensor):
    """Notes what it is asked about."""

    seen: ClassVar = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(overrides.resolve_name(func).partition(".")[2])
        return super().__torch_function__(func, types, args, kwargs)


class Labelled(leafgrad.Tensor):
    """Carries a label through functions, as the class of PyTorch's documentation does."""

    label = ""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        labels = [a.label for a in args if isinstance(a, Labelled)]
        out = super().__torch_function__(func, types, args, kwargs)
        if isinstance(out, Labelled):
            out.label = "+".join(labels)
        return out


def labelled(values, label):
    out = leafgrad.tensor(values).as_subclass(Labelled)
    out.label = label
    return out


def seen(call):
    Logged.seen.clear()
    return call(), Logged.seen[:]


CALLS = {
    "Tensor.add": lambda x, p: x + p, "Tensor.sub": lambda x, p: p - x, "Tensor.mul": lambda x, p: 2 * x,
    "Tensor.add_": lambda x, p: x.__iadd__(p), "Tensor.neg": lambda x, p: -x, "Tensor.matmul": lambda x, p: x @ p,
    "Tensor.lt": lambda x, p: x < p, "Tensor.__rsub__": lambda x, p: 1 - x, "Tensor.__getitem__": lambda x, p: x[0],
    "Tensor.__pow__": lambda x, p: x**p, "Tensor.__rpow__": lambda x, p: 2**x, "Tensor.ne": lambda x, p: x != p,
    "Tensor.__floordiv__": lambda x, p: p // x, "Tensor.floor_divide_": lambda x, p: x.__ifloordiv__(p),
    "Tensor.__ipow__": lambda x, p: x.__ipow__(p), "Tensor.positive": lambda x, p: +x,
    "Tensor.exp": lambda x, p: x.exp(), "exp": lambda x, p: leafgrad.exp(x),
    "where": lambda x, p: leafgrad.where(p > 0, x, p),
    "nn.functional.linear": lambda x, p: F.linear(p, x), "stack": lambda x, p: leafgrad.stack([p, x]),
    "Tensor.T.__get__": lambda x, p: x.T, "Tensor.data.__get__": lambda x, p: x.data,
    "linalg.det": lambda x, p: leafgrad.linalg.det(x),
    "einsum": lambda x, p: leafgrad.einsum("ij,jk", p, x), "Tensor.clamp_": lambda x, p: x.clamp_(0, 1),
    "nn.functional.dropout": lambda x, p: F.dropout(x, 0.5), "zeros_like": lambda x, p: leafgrad.zeros_like(x),
    "broadcast_tensors": lambda x, p: leafgrad.broadcast_tensors(p, x)[0],
    "Tensor.__deepcopy__": lambda x, p: copy.deepcopy(x),
}  # fmt: skip


@pytest.mark.parametrize(("name", "call"), CALLS.items())
def test_the_outermost_function_asks_alone_and_results_are_of_the_class(name, call):
    x, p = leafgrad.rand(2, 2).as_subclass(Logged), leafgrad.rand(2, 2)
    found, names = seen(lambda: call(x, p))
    assert names == [name]
    assert type(found) is Logged


def test_what_is_no_tensor_stays_what_it_is():
    x = leafgrad.rand(2, 3).as_subclass(Logged)
    assert seen(lambda: x.shape) == ((2, 3), ["Tensor.shape.__get__"])
    assert seen(lambda: len(x)) == (2, ["Tensor.__len__"])
    assert seen(lambda: x.requires_grad) == (False, ["Tensor.requires_grad.__get__"])
    assert [type(part) for part in x] == [Logged, Logged]
    largest = x.max(dim=0)
    assert type(largest).__name__ == "max"
    assert type(largest.values) is type(largest.indices) is Logged
    assert hash(x) == object.__hash__(x)


def test_plain_subclasses_give_their_class():
    x = Plain([1.0, 2.0])
    assert [type(v) for v in (x + 1, leafgrad.sum(x), x.view(2, 1), leafgrad.cat([x, leafgrad.ones(1)]))] == [Plain] * 4
    assert type(leafgrad.ones(2) + 1) is leafgrad.Tensor
    assert repr(x) == "Plain([1., 2.])"
    assert type(pickle.loads(pickle.dumps(x))) is type(copy.copy(x)) is Plain
    assert type(nn.Linear(2, 2)(x)) is Plain
    assert type(nn.Parameter(x) * 1) is leafgrad.Tensor
    assert type(default_collate([x, x])) is Plain


def test_gradients_go_through():
    leaf = leafgrad.rand(3, requires_grad=True)
    x = leaf.as_subclass(Logged)
    loss = (x * x).sum()
    loss.backward()
    assert type(loss) is Logged
    assert type(leaf.grad) is leafgrad.Tensor
    assert leaf.grad.tolist() == (2 * leaf.detach()).tolist()
    x = leafgrad.zeros(3).as_subclass(Logged)
    y = x.view(3)
    y[0] = 1
    x += 1
    assert (x.tolist(), y.tolist()) == ([2, 1, 1], [2, 1, 1])


def test_labels_are_carried():
    x, y = labelled([1.0], "x"), labelled([2.0], "y")
    assert (x * y).label == "x+y"
    assert leafgrad.add(y, x).label == "y+x"
    assert (x + 1).exp().label == "x"


def test_functions_of_ones_own_and_turning_it_off():
    class Own(leafgrad.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func not in (leafgrad.add, leafgrad.Tensor.add):
                return NotImplemented
            with DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {})), len(args)

    x = leafgrad.ones(2).as_subclass(Own)
    assert type((x + 1)[0]) is leafgrad.Tensor
    assert leafgrad.add(1, x)[0].tolist() == [2, 2]
    with pytest.raises(TypeError, match="mul: expected a Tensor, got Own, whose __torch_function__ returned NotImpl"):
        x * 2
    with pytest.raises(TypeError, match="add: expected a Tensor, got Plain, Logged"):
        Plain([1.0]) + Logged([1.0])


class Multiples(overrides.TorchFunctionMode):
    """Notes each function, and doubles what ``mul`` gives."""

    def __init__(self):
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(overrides.resolve_name(func).partition(".")[2])
        out = func(*args, **(kwargs or {}))
        return 2 * out if func is leafgrad.Tensor.mul else out


def test_modes():
    p = leafgrad.ones(2)
    with Multiples() as outer:
        assert overrides.has_torch_function(())
        q = leafgrad.ones(2).tanh()
        with Multiples() as inner:
            assert (p * p).tolist() == [8, 8]  # the inner one's 2 * out is the outer one's to double, and so is p * p
        F.relu(p)
    assert (p * p).tolist() == [1, 1]
    assert inner.seen == ["Tensor.mul", "Tensor.tolist"]
    assert outer.seen == ["ones", "Tensor.tanh", "Tensor.mul", "Tensor.mul", "Tensor.tolist", "nn.functional.relu"]
    assert q.shape == (2,)


def test_compiled_steps_ask_too():
    @leafgrad.compile
    def step(x, y):
        return (x * y).sum()

    x, y = leafgrad.rand(4), leafgrad.rand(4)
    expected = step(x, y).item()
    assert step(x, y).item() == expected
    for _ in range(3):
        found, names = seen(lambda: step(x.as_subclass(Logged), y))
        assert type(found) is Logged
        assert [n for n in names if n in ("Tensor.mul", "Tensor.sum")] == ["Tensor.mul", "Tensor.sum"]
        with Multiples() as mode:
            assert step(x, y).item() == pytest.approx(2 * expected)
        assert "Tensor.mul" in mode.seen
        assert type(step(x, y)) is leafgrad.Tensor


def test_what_can_be_overridden():
    found = overrides.get_overridable_functions()
    assert leafgrad.exp in found[leafgrad]
    assert F.linear in found[F]
    assert leafgrad.Tensor.exp in found[leafgrad.Tensor]
    assert leafgrad.no_grad not in found[leafgrad]
    assert overrides.resolve_name(leafgrad.Tensor.shape.__get__) == "leafgrad.Tensor.shape.__get__"
    assert overrides.resolve_name(len) is None
    assert overrides.is_tensor_method_or_property(leafgrad.Tensor.add)
    assert not overrides.is_tensor_method_or_property(leafgrad.add)
    assert leafgrad.Tensor.as_subclass in overrides.get_ignored_functions()
    assert leafgrad.Tensor.grad.__get__ in overrides.get_default_nowrap_functions()

    @overrides.wrap_torch_function(lambda x, times: (x,))
    def repeat(x, times):
        return x.repeat(times)

    out = repeat(labelled([1.0], "x"), 2)
    assert (out.label, out.shape) == ("x", (2,))
    assert repeat(leafgrad.ones(1), 2).shape == (2,)


def test_tables_made_before_there_was_such_a_class_know_what_is_asked():
    class Looked(leafgrad.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return KNOWN.get(func)

    x = leafgrad.ones(2, 2).as_subclass(Looked)
    found = [x + 1, x.add(1), x**2, x.exp(), leafgrad.exp(x), x.shape, x.not_equal(1), x.trace(), x.pow(2), x.sub(1)]
    assert found == ["add", "add", "__pow__", "exp", "F.exp", "shape", "not_equal", "trace", None, None]
    assert leafgrad.Tensor.add != leafgrad.Tensor.sub
    for made in copy.deepcopy(leafgrad.Tensor.add), pickle.loads(pickle.dumps(leafgrad.Tensor.add)):
        assert made is leafgrad.Tensor.add
    assert repr(leafgrad.Tensor.add) == "<method 'add' of 'Tensor' objects>"
    assert list(inspect.signature(leafgrad.Tensor.add).parameters)[1:] == ["other", "alpha"]


def test_nothing_changed_before_there_was_such_a_class():
    assert BEFORE[0] is not leafgrad.Tensor.__add__
    assert type(BEFORE[1](Plain([1.0]))) is Plain


@pytest.mark.parametrize(
    "call",
    [
        leafgrad.lgamma,
        leafgrad.digamma,
        leafgrad.i0,
        leafgrad.trace,
        lambda x: leafgrad.igamma(x, x),
        lambda x: leafgrad.igammac(input=x, other=x),
        lambda x: leafgrad.mvlgamma(x, 2),
        lambda x: leafgrad.polygamma(1, x),
        lambda x: leafgrad.special.zeta(x, 2.0),
        lambda x: leafgrad.special.bessel_j0(x),
        lambda x: leafgrad.special.hermite_polynomial_h(x, 2),
        lambda x: leafgrad.masked.mean(x, 0),
        lambda x: leafgrad.masked.amax(x, 0, keepdim=True),
        lambda x: leafgrad.masked.softmax(x, 0),
    ],
)
def test_functions_of_plugins_and_of_masked_tensors_ask(call):
    x = Plain([[3.0, 4.0], [5.0, 6.0]])
    assert type(call(x)) is Plain
    assert type(call(leafgrad.Tensor([[3.0, 4.0], [5.0, 6.0]]))) is leafgrad.Tensor
