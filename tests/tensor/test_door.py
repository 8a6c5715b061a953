"""The door in front of a public function: it passes on what fits, and explains what does not."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad.tensor.door import explained

X = leafgrad.tensor([[1.0, 2.0], [3.0, 4.0]])


def scaled(input: leafgrad.Tensor, by: int, offset: int = 0, *, twice: bool = False) -> object:
    """What it was given."""
    return input, by, offset, twice


def sized(*size: int, fill: float, name: str = "") -> object:
    """What it was given."""
    return size, fill, name


def test_all_ways_to_call():
    f = explained(scaled)
    for _ in range(2):  # the first call writes the function
        assert f(X, 2) == (X, 2, 0, False)
        assert f(X, 2, 3, twice=True) == (X, 2, 3, True)
        assert f(by=2, input=X) == (X, 2, 0, False)
        assert f(x=X, by=2) == (X, 2, 0, False)
        assert f(X, 2, layout=None) == (X, 2, 0, False)
    g = explained(sized)
    assert g(1, 2, fill=0.5) == ((1, 2), 0.5, "")
    assert g(size=(1, 2), fill=0.5, name="a") == (((1, 2),), 0.5, "a")


def test_methods_whose_object_is_called_self():
    class Counter:
        def step(self, by: int, times: int = 1) -> int:
            return by * times

    Counter.step = explained(Counter.step, bound=True, name="Counter.step")
    assert Counter().step(by=2, times=3) == 6
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'by'"):
        Counter().step(times=3)
    with pytest.raises(TypeError, match=r"Counter.step\(\): argument 'times' \(position 2\) must be int"):
        Counter().step(2, times=None)


def test_what_arrays_are_made_of_says_its_own_error():
    def total(values: np.ndarray[Any, Any], by: int) -> float:
        if np.iscomplexobj(values):
            raise TypeError("values: expected real numbers")
        return float(np.sum(values)) / by

    f = explained(total)
    assert f([1, 2], 2) == 1.5
    with pytest.raises(TypeError, match="values: expected real numbers"):
        f([1j], 2)
    with pytest.raises(TypeError, match=r"total\(\): argument 'by' \(position 2\) must be int, not str"):
        f([1], "2")


def test_it_looks_like_the_function():
    f = explained(scaled)
    for _ in range(2):
        assert (f.__name__, f.__doc__, f.__wrapped__) == ("scaled", "What it was given.", scaled)
        assert inspect.signature(f) == inspect.signature(scaled)
        f(X, 2)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((X,), {}, r"scaled\(\) missing 1 required positional argument: 'by'"),
        ((), {"by": 1}, r"scaled\(\) missing 1 required positional argument: 'input'"),
        ((X, 1, 2, 3), {}, r"scaled\(\) takes from 2 to 3 positional arguments but 4 were given"),
        ((X, 1), {"by": 2}, r"scaled\(\) got multiple values for argument 'by'"),
        ((X, 1), {"wrong": 2}, r"scaled\(\) got an unexpected keyword argument 'wrong'"),
        ((X, 1), {"x": X}, r"scaled\(\) got"),
    ],
)
def test_calls_that_do_not_fit_fail_as_those_of_the_function(args, kwargs, message):
    for _ in range(2):
        with pytest.raises(TypeError, match=message):
            explained(scaled)(*args, **kwargs)


def test_a_failure_blames_the_first_argument_that_is_wrong():
    @explained
    def failing(input: leafgrad.Tensor, by: int = 1, *others: int) -> None:
        return input.shape[0] + by

    with pytest.raises(TypeError, match=r"failing\(\): argument 'input' \(position 1\) must be Tensor, not str"):
        failing("a")
    with pytest.raises(TypeError, match=r"failing\(\): argument 'by' \(position 2\) must be int, not str"):
        failing(X, by="a")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.sum(0, 1), r"^sum\(\): argument 'keepdim' \(position 2\) must be bool, not int$"),
        (lambda x: leafgrad.sort(x, descending="yes"), r"^sort\(\): argument 'descending' .* must be bool, not str$"),
        (lambda x: x.topk(1, 0, None), r"^topk\(\): argument 'largest' .* must be bool, not NoneType$"),
        (lambda x: leafgrad.var(x, unbiased=[]), r"^var\(\): argument 'unbiased' .* must be bool or None, not list$"),
        (lambda x: x.sum(axis=0, keepdims=1), r"^sum\(\): argument 'keepdim' .* must be bool, not int$"),
        (lambda x: leafgrad.sum(x, 0, 1, out=x), r"^sum\(\): argument 'keepdim' .* must be bool, not int$"),
        (lambda x: nn.functional.dropout(x, 0.5, 1), r"^dropout\(\): argument 'training' .* must be bool, not int$"),
    ],
)
def test_what_is_neither_true_nor_false_is_refused(call, message):
    with pytest.raises(TypeError, match=message):
        call(leafgrad.ones(3))


def test_classes_take_any_truth_and_others_decide_for_themselves():
    net = nn.Linear(2, 2, bias=1)
    net.zero_grad(set_to_none=0)
    assert net.bias is not None

    class Other:
        @classmethod
        def __torch_function__(cls, function, kinds, args=(), kwargs=None):
            return kwargs

    assert leafgrad.sort(Other(), descending="yes") == {"descending": "yes"}


def test_what_is_raised_on_purpose_passes():
    @explained
    def refusing(input: int) -> None:
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        refusing("a")


def test_out_goes_through_the_same_door():
    out = leafgrad.empty(0)
    assert leafgrad.sum(X, axis=1, out=out) is out
    assert out.tolist() == [3, 7]
    out = leafgrad.empty(0)
    assert leafgrad.exp(out=out, input=X * 0) is out
    assert out.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(TypeError, match="argument 'out' must be Tensor"):
        leafgrad.sum(X, out=3)


FLAGS = {
    "inplace": lambda t, x, yes: t.nn.functional.relu(x.clone(), yes),
    "dropout": lambda t, x, yes: t.nn.functional.dropout(x.clone(), 0.5, False, inplace=yes),
    "return_indices": lambda t, x, yes: t.nn.functional.max_pool1d(x, 2, return_indices=yes)[1],
    "full": lambda t, x, yes: t.nn.functional.gaussian_nll_loss(x, x, x + 1, full=yes),
    "antialias": lambda t, x, yes: t.nn.functional.interpolate(x[None, None], 2, mode="bilinear", antialias=yes),
    "get_infos": lambda t, x, yes: t.lu(x[:, :3] + t.eye(3), get_infos=yes)[2],
    "keepdim": lambda t, x, yes: t.masked.mean(x, 0, keepdim=yes),
}


@pytest.mark.filterwarnings("ignore:.*lu is deprecated")
@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_may_be_numpys(t, name):
    x = t.arange(12.0).reshape(3, 4)
    assert FLAGS[name](t, x, np.bool_(True)).tolist() == FLAGS[name](t, x, True).tolist()


def test_what_is_no_flag_is_refused():
    for wrong in (np.array([True]), 1.0, "yes", leafgrad.tensor(True)):
        with pytest.raises(TypeError, match=r"argument 'inplace' .*must be bool"):
            nn.functional.relu(X, inplace=wrong)
