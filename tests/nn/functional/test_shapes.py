"""Shapes that do not fit: what would enlarge the result by broadcasting is refused, in both libraries."""

from __future__ import annotations

import functools

import pytest

import leafgrad as lg
from leafgrad.func import vmap
from leafgrad.nn import functional as F

TESTS = "nn.functional.linear nn.functional.classification nn.functional.margin nn.functional.normalization"

# A function, the sizes of its arguments that fit together, and for some arguments sizes that do not.
CASES = [
    (
        "bilinear",
        {"input1": (5, 3), "input2": (5, 2), "weight": (4, 3, 2), "bias": (4,)},
        {
            "input1": [(3,), (1, 3), (5, 1), (5, 4), (2, 5, 3), (5, 1, 3), ()],
            "input2": [(2,), (1, 2), (5, 1), (5, 3), (2, 5, 2), ()],
            "weight": [(3, 2), (4, 3, 1), (4, 1, 2)],
            "bias": [(1,), (5,), (5, 4)],
        },
    ),
    ("linear", {"input": (3, 2), "weight": (2,)}, {"bias": [(1,), (3,), (3, 1)]}),
    (
        "soft_margin_loss",
        {"input": (3, 1), "target": (3, 1)},
        {"target": [(3,), (3, 2), (1, 3, 1)], "input": [(), (1,)]},
    ),
    (
        "binary_cross_entropy",
        {"input": (3, 2), "target": (3, 2), "weight": (3, 2)},
        {"weight": [(4, 1, 1), (3, 3), (1, 3, 2)]},
    ),
    (
        "binary_cross_entropy_with_logits",
        {"input": (3, 1), "target": (3, 1), "weight": (1,), "pos_weight": ()},
        {"weight": [(3,), (1, 3, 1)], "pos_weight": [(3,), (2,), (1, 2)]},
    ),
    ("multi_margin_loss", {"input": (3, 2), "target": [0, 1, 1]}, {"weight": [(1, 2), (2, 1), (1,)]}),
    *[
        (name, {"input": (3, 2), "target": (3, 2), "weight": (3, 2)}, {"input": [(2,), (3, 1)], "weight": [(3, 1)]})
        for name in ("mse_loss", "l1_loss", "huber_loss")
    ],
    ("cross_entropy", {"input": (2, 3), "target": (2, 3), "weight": (3,)}, {"weight": [(), (1,), (1, 3), (3, 1)]}),
    ("cross_entropy", {"input": (3,), "target": (3,), "weight": (3,)}, {"weight": [(), (1,), (4,)]}),
    ("cross_entropy", {"input": (2, 3, 4), "target": (2, 3, 4), "weight": (3,)}, {"weight": [(), (1,), (4,)]}),
    ("cross_entropy", {"input": (2, 3), "target": [0, 2], "weight": (3,)}, {"weight": [(), (1,), (1, 3), (4,)]}),
    ("nll_loss", {"input": (2, 3), "target": [0, 2], "weight": (3,)}, {"weight": [(), (1,), (1, 3), (4,)]}),
    (
        "linear_cross_entropy",
        {"input": (3, 2), "linear_weight": (4, 2), "target": [0, 1, 3], "linear_bias": (4,)},
        {"linear_bias": [(), (1,), (4, 1)]},
    ),
    (
        "group_norm",
        {"num_groups": 2, "input": (3, 4, 5), "weight": (4,), "bias": (4,)},
        {"weight": [(4, 1), (1,)], "bias": [(1, 4), ()]},
    ),
    *[
        (name, {"input": (3, 2, 4), "running_mean": (2,), "running_var": (2,)}, {"running_mean": [(1, 2), (1,)]})
        for name in ("batch_norm", "instance_norm")
    ],
    ("instance_norm", {"input": (3, 2, 4), "weight": (2,), "bias": (2,)}, {"weight": [(2, 1)], "bias": [(1,)]}),
    ("prelu", {"input": (4,), "weight": (1,)}, {"weight": [(1, 1), (4,)]}),
]


def called(t, name, given):
    """A tuple is a size, a list the values of a tensor; a number is as it is."""
    tensors = {k: t.full(v, 0.5) if isinstance(v, tuple) else v for k, v in given.items()}
    tensors |= {k: t.tensor(v) for k, v in given.items() if isinstance(v, list)}
    return getattr(t.nn.functional, name)(**tensors)


@pytest.mark.parametrize(("function", "fitting", "wrong"), CASES)
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_what_would_enlarge_the_result_is_refused(function, fitting, wrong, t):
    called(t, function, fitting)
    for name, every in wrong.items():
        for size in every:
            with pytest.raises((RuntimeError, ValueError)) as info:
                called(t, function, {**fitting, name: size})
            assert t is not lg or str(list(size)) in str(info.value).replace("Size(", "").replace("(,", "["), info.value


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_weights_of_class_probabilities_with_smoothing(smoothing, t):
    with pytest.raises(RuntimeError, match="all 3 classes or no classes"):
        t.nn.functional.cross_entropy(t.zeros(2, 3), t.eye(3)[:2], weight=t.tensor([3.0]), label_smoothing=smoothing)


@pytest.mark.parametrize("name", ["target", "weight"])
def test_multilabel_soft_margins_are_of_the_dimensions_of_their_input(name):
    given = {"target": lg.ones(3, 2), "weight": lg.ones(2), name: lg.ones(4, 3, 2)}
    with pytest.raises(RuntimeError, match=r"target and weight of at most 2 .*got losses of size \[4, 3, 2\]"):
        F.multilabel_soft_margin_loss(lg.zeros(3, 2), **given)


def test_one_number_weighs_all_classes(t):
    x, y = t.zeros(3, 2), t.ones(3, 2)
    loss = t.nn.functional.multilabel_soft_margin_loss
    assert loss(x, y, weight=2.0).equal(loss(x, y, weight=t.tensor([2.0, 2.0])))


def test_weights_of_batch_norm_are_counted(t):
    x, one = t.tensor([[1.0, 2.0], [3.0, 6.0]]), t.tensor([2.0, 3.0])
    mean, var = t.zeros(2), t.ones(2)
    wanted = t.nn.functional.batch_norm(x, mean, var, one, one)
    for size in ((1, 2), (2, 1)):
        assert t.nn.functional.batch_norm(x, mean, var, one.reshape(size), one.reshape(size)).equal(wanted)


def test_what_fits_broadcasts_to_the_input(t):
    x = t.tensor([[0.25, 0.5], [0.75, 0.125]])
    for size in ((), (1,), (2,), (2, 1), (1, 2)):
        weight = t.full(size, 2.0)
        wanted = 2 * t.nn.functional.binary_cross_entropy(x, x, reduction="none")
        assert t.nn.functional.binary_cross_entropy(x, x, weight, reduction="none").equal(wanted)
        y = t.nn.functional.soft_margin_loss(x, weight, reduction="none")
        assert y.equal(t.nn.functional.soft_margin_loss(x, t.full((2, 2), 2.0), reduction="none"))


def test_shapes_inside_vmap_and_compiled_steps_are_those_of_a_sample():
    x, y, w = lg.ones(5, 3), lg.ones(5, 2), lg.ones(4, 3, 2)
    wanted = F.bilinear(x, y, w, lg.ones(4))
    assert vmap(lambda a, b: F.bilinear(a, b, w, lg.ones(4)))(x, y).equal(wanted)
    assert lg.compile(F.bilinear)(x, y, w, lg.ones(4)).equal(wanted)
    with pytest.raises(RuntimeError, match=r"bias: expected size \[4\], got \[5, 4\]"):
        lg.compile(F.bilinear)(x, y, w, lg.ones(5, 4))
    p = lg.tensor([[0.5, 0.25], [0.125, 0.75]])
    weighted = functools.partial(F.binary_cross_entropy, reduction="none")
    assert vmap(weighted)(p, p, lg.ones(2, 2)).equal(weighted(p, p))
    with pytest.raises(RuntimeError, match=r"weight: expected a shape that broadcasts to \[2\], got \[2, 2\]"):
        vmap(weighted, in_dims=(0, 0, None))(p, p, lg.ones(2, 2))
