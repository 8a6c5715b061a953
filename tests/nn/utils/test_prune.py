"""Pruning: which elements go, what is left of a parameter, and how it is undone."""

from __future__ import annotations

import copy
import pickle

import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.nn.utils import prune

WEIGHT = [[1.0, -4.0, 2.0], [-0.5, 3.0, 0.25]]


def linear():
    m = nn.Linear(3, 2)
    with lg.no_grad():
        m.weight.copy_(lg.tensor(WEIGHT))
    return m


def test_the_least_elements_go_and_get_no_gradient():
    m = linear()
    parameter = m.weight
    assert prune.l1_unstructured(m, "weight", 2) is m
    assert m.weight_orig is parameter
    assert m.weight_mask.tolist() == [[1, 1, 1], [0, 1, 0]]
    assert m.weight.tolist() == [[1, -4, 2], [0, 3, 0]]
    assert list(m.state_dict()) == ["bias", "weight_orig", "weight_mask"]
    assert prune.is_pruned(nn.Sequential(m))
    m(lg.ones(1, 3)).sum().backward()
    assert m.weight_orig.grad.tolist() == [[1, 1, 1], [0, 1, 0]]
    with pytest.raises(AttributeError, match="weight is pruned: write to weight_orig"):
        m.weight = lg.ones(2, 3)


def test_what_is_pruned_twice_loses_a_part_of_the_rest():
    m = linear()
    prune.l1_unstructured(m, "weight", 2)
    prune.l1_unstructured(m, "weight", 0.5)
    assert m.weight_mask.tolist() == [[0, 1, 0], [0, 1, 0]]
    prune.ln_structured(m, "weight", 1, 2, dim=0)
    assert m.weight_mask.tolist() == [[0, 1, 0], [0, 0, 0]]


def test_slices_masks_and_chance():
    for structured in (prune.random_structured, lambda *given, dim: prune.ln_structured(*given, 2, dim=dim)):
        with pytest.raises(ValueError, match="only be applied to multidimensional tensors, got one of 1 dimensions"):
            structured(linear(), "bias", 1, dim=0)
    assert prune.ln_structured(linear(), "weight", 1, 1, dim=1).weight_mask.tolist() == [[0, 1, 1], [0, 1, 1]]
    mask = lg.tensor([[1, 0, 1], [0, 1, 1]])
    assert prune.custom_from_mask(linear(), "weight", mask).weight_mask.tolist() == mask.tolist()
    assert prune.identity(linear(), "weight").weight.tolist() == WEIGHT
    assert prune.random_unstructured(linear(), "weight", 0.5).weight_mask.sum().item() == 3
    rows = prune.random_structured(linear(), "weight", 1, dim=0).weight_mask.sum(1)
    assert sorted(rows.tolist()) == [0, 3]
    scores = lg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    by_score = prune.l1_unstructured(linear(), "weight", 2, importance_scores=scores)
    assert by_score.weight_mask.tolist() == [[0, 0, 1], [1, 1, 1]]


def test_several_parameters_as_one():
    a, b = linear(), linear()
    with lg.no_grad():
        b.weight.mul_(10)
    prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=4)
    assert a.weight_mask.tolist() == [[0, 1, 0], [0, 1, 0]]
    assert b.weight_mask.tolist() == [[1, 1, 1], [1, 1, 1]]
    with pytest.raises(TypeError, match="Only 'unstructured'"):
        prune.global_unstructured([(a, "weight")], prune.LnStructured, amount=1, n=2)


def test_removing_keeps_the_zeros():
    m = linear()
    parameter = m.weight
    prune.l1_unstructured(m, "weight", 2)
    assert prune.remove(m, "weight") is m
    assert m.weight is parameter
    assert m.weight.tolist() == [[1, -4, 2], [0, 3, 0]]
    assert sorted(m.state_dict()) == ["bias", "weight"]
    assert not prune.is_pruned(m)
    with pytest.raises(ValueError, match="has to be pruned before"):
        prune.remove(m, "weight")


def test_copies_and_loading():
    m = prune.l1_unstructured(linear(), "weight", 2)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert other.weight.tolist() == m.weight.tolist()
    fresh = prune.identity(nn.Linear(3, 2), "weight")
    fresh.load_state_dict(m.state_dict())
    assert fresh.weight.tolist() == m.weight.tolist()


def test_a_method_of_ones_own():
    class Negative(prune.BasePruningMethod):
        def compute_mask(self, t, default_mask):
            return default_mask * (t >= 0)

    m = linear()
    Negative.apply(m, "weight")
    assert m.weight_mask.tolist() == [[1, 0, 1], [0, 1, 1]]
    assert Negative().prune(lg.tensor([1.0, -1.0])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("amount", "error", "words"),
    [
        (-1, ValueError, "should either be a float in the range"),
        (1.5, ValueError, "should either be a float in the range"),
        (100, ValueError, "smaller than the number of parameters to prune=6"),
        ("a", TypeError, "Must be numeric"),
    ],
)
def test_wrong_amounts(amount, error, words):
    with pytest.raises(error, match=words):
        prune.l1_unstructured(linear(), "weight", amount)


def test_other_errors():
    with pytest.raises(AttributeError, match="Linear has no parameter 'missing'"):
        prune.identity(linear(), "missing")
    with pytest.raises(ValueError, match="should have the same shape"):
        prune.l1_unstructured(linear(), "weight", 1, importance_scores=lg.ones(2))
    with pytest.raises(NotImplementedError, match="define it"):
        prune.BasePruningMethod.apply(linear(), "weight")
