"""Softmax over clusters of classes: which clusters are computed, and what they get."""

import copy
import math

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad.func import functional_call, grad, vmap

NAMES = ("tail.0.0.weight", "tail.0.1.weight", "tail.1.0.weight", "tail.1.1.weight")


def made():
    leafgrad.manual_seed(0)
    return nn.AdaptiveLogSoftmaxWithLoss(6, 12, [3, 6], 2.0, dtype=leafgrad.float64)


X = leafgrad.randn(4, 6, dtype=leafgrad.float64, generator=leafgrad.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("targets", "without"), [([0, 1, 2, 0], NAMES), ([0, 3, 5, 4], NAMES[2:]), ([6, 2, 2, 11], NAMES[:2]), ([7], NAMES)]
)
def test_clusters_without_targets_have_no_gradient(targets, without):
    loss = made()
    if len(targets) == 1:
        loss(X[0], leafgrad.tensor(targets[0])).loss.backward()
        without = NAMES[:2]
    else:
        loss(X, leafgrad.tensor(targets)).loss.backward()
    assert tuple(name for name, p in loss.named_parameters() if p.grad is None) == without


def test_a_cluster_is_given_the_inputs_of_its_targets():
    loss, seen = made(), []
    for cluster in loss.tail:
        cluster.register_forward_pre_hook(lambda module, given: seen.append(given[0].tolist()))
    loss(X, leafgrad.tensor([0, 7, 2, 11]))
    assert seen == [X[[1, 3]].tolist()]


@pytest.mark.parametrize("executor", [None, "numpy", "replay"])
def test_clusters_without_targets_stay_as_they_are(executor):
    loss = made()
    twin = copy.deepcopy(loss)

    def step_of(loss):
        sgd = leafgrad.optim.SGD(loss.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)

        def step(x, target):
            sgd.zero_grad()
            out = loss(x, target)
            out.loss.backward()
            sgd.step()
            return out

        return step

    step, other = step_of(loss), step_of(twin)
    if executor is not None:
        step = leafgrad.compile(step, executor=executor, closed=True)
    before = loss.tail[1][0].weight.tolist()
    batches = ([0, 4, 2, 5], [0, 1, 2, 0], [3, 3, 3, 3])
    for i in range(9):
        target = leafgrad.tensor(batches[i % 3])
        got, want = step(X + i, target), other(X + i, target)
        assert leafgrad.allclose(got.output, want.output)
        assert leafgrad.allclose(got.loss, want.loss)
    assert loss.tail[1][0].weight.tolist() == before
    for p, q in zip(loss.parameters(), twin.parameters(), strict=True):
        assert (p.grad is None) == (q.grad is None)
        assert leafgrad.allclose(p, q)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("target", [[0, 4, 5, 3], [0, 1, 0, 2]])
def test_what_is_infinite_in_a_cluster_without_the_target_stays_there(compiled, target):
    loss = made()
    with leafgrad.no_grad():
        loss.head.weight.zero_()
        for cluster in loss.tail:
            cluster[0].weight.abs_()
            cluster[1].weight[0] *= 1e200
    x, target = X.clone(), leafgrad.tensor(target)
    x[0] = 1e200

    def step(x):
        x = x.requires_grad_()
        output, mean = loss(x, target)
        mean.backward()
        return output, x.grad

    output, gradient = (leafgrad.compile(step, executor="numpy") if compiled else step)(x)
    assert output[0].item() == pytest.approx(-math.log(5))
    assert output.isfinite().all()
    assert gradient.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in loss.parameters())


def test_targets_that_are_mapped_over_leave_zeros():
    loss, target = made(), leafgrad.tensor([0, 4, 1, 5])
    values = {name: p.detach() for name, p in loss.named_parameters()}

    def of(values, x, target):
        return functional_call(loss, values, (x, target)).loss

    each = vmap(grad(of), in_dims=(None, 0, 0))(values, X, target)
    together = grad(of)(values, X, target)
    for name, found in each.items():
        assert leafgrad.allclose(found.mean(0), together[name])
    assert not each[NAMES[-1]].any()
    assert not each[NAMES[0]][0].any()
    several = {name: leafgrad.stack([value, 2 * value]) for name, value in values.items()}
    losses = vmap(of, in_dims=(0, None, None))(several, X, target)  # targets that are known
    assert leafgrad.allclose(losses[0], of(values, X, target))


def test_what_the_head_predicts_depends_on_no_cluster():
    loss = made()
    with leafgrad.no_grad():
        loss.tail[0][1].weight.fill_(math.inf)
        loss.head.weight.zero_()
        loss.head.weight[2, 0], loss.head.weight[4, 0] = 1.0, -1.0
    x = leafgrad.ones(2, 6, dtype=leafgrad.float64)
    x[1] = -1
    assert loss.predict(x[0]).item() == 2
    assert loss.predict(x).tolist()[0] == 2


def test_cutoffs_may_be_integers_of_numpy(t):
    layer = t.nn.AdaptiveLogSoftmaxWithLoss(16, 10, np.array([3, 5]))
    assert layer(t.ones(2, 16), t.tensor([1, 7])).output.shape == (2,)
    assert layer.cutoffs == [3, 5, 10]
