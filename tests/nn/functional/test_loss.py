"""Losses against their definitions, written as loops over numbers; gradients against differences."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.autograd import gradcheck, gradgradcheck
from leafgrad.nn import functional as F

TESTS = """
nn.functional.classification nn.functional.distance nn.functional.margin nn.functional.reduction
nn.margin_loss
"""

RNG = np.random.default_rng(2)
X = RNG.standard_normal((4, 3))
Y = RNG.standard_normal((4, 3))
Z = RNG.standard_normal((4, 3))
SIGN = np.where(RNG.standard_normal((4, 3)) > 0, 1.0, -1.0)
COUNTS = RNG.uniform(0.2, 4.0, (4, 3))
CLASSES = np.array([0, 2, 1, 2])
WEIGHT = np.array([0.5, 1.0, 2.0])


def hinge(v):
    return max(0.0, v)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def cos(u, v):
    return float(u @ v) / math.sqrt((u @ u + 1e-12) * (v @ v + 1e-12))


def distance(u, v, p=2.0):
    return float((np.abs(u - v + 1e-6) ** p).sum() ** (1 / p))


def each(function):
    """The elementwise loss of X and a target."""
    return lambda target: [[function(x, t) for x, t in zip(*rows, strict=True)] for rows in zip(X, target, strict=True)]


def stirling(t):
    return t * math.log(t) - t + 0.5 * math.log(2 * math.pi * t) if t > 1 else 0.0


def multi_margin(x, y):
    return [
        sum(WEIGHT[t] * hinge(0.7 - row[t] + v) ** 2 for j, v in enumerate(row) if j != t) / 3
        for row, t in zip(x, y, strict=True)
    ]


LABELS = np.array([[2, 0, -1], [-1, 1, 1], [0, 1, 2], [1, -1, 0]])


def labels_of(row):
    return list(row[: list(row).index(-1)] if -1 in row else row)


def multilabel_margin(x):
    return [
        sum(hinge(1 - row[t] + row[o]) for t in labels_of(y) for o in range(3) if o not in labels_of(y)) / 3
        for row, y in zip(x, LABELS, strict=True)
    ]


# name: the loss of float tensors, their values, what it is for each element, whether it has a second derivative
CASES = {
    "hinge embedding": (
        lambda x, r: F.hinge_embedding_loss(x, lg.tensor(SIGN, device=x.device), 0.6, reduction=r),
        [X],
        each(lambda x, t: x if t == 1 else hinge(0.6 - x))(SIGN),
    ),
    "soft margin": (
        lambda x, r: nn.SoftMarginLoss(reduction=r)(x, lg.tensor(SIGN, device=x.device)),
        [X],
        each(lambda x, t: math.log1p(math.exp(-t * x)))(SIGN),
    ),
    "poisson": (
        lambda x, t, r: nn.PoissonNLLLoss(reduction=r)(x, t),
        [X, COUNTS],
        each(lambda x, t: math.exp(x) - t * x)(COUNTS),
    ),
    "poisson in full": (
        lambda x, t, r: nn.PoissonNLLLoss(full=True, reduction=r)(x, t),
        [X, COUNTS],
        each(lambda x, t: math.exp(x) - t * x + stirling(t))(COUNTS),
    ),
    "gauss": (
        lambda x, t, v, r: nn.GaussianNLLLoss(full=True, reduction=r)(x, t, v),
        [X, Y, COUNTS],
        [
            [0.5 * (math.log(v) + (x - t) ** 2 / v + math.log(2 * math.pi)) for x, t, v in zip(*rows, strict=True)]
            for rows in zip(X, Y, COUNTS, strict=True)
        ],
    ),
    "ranking": (
        lambda x, y, r: nn.MarginRankingLoss(0.2, reduction=r)(x, y, lg.tensor(SIGN, device=x.device)),
        [X, Y],
        [[hinge(-s * (x - y) + 0.2) for x, y, s in zip(*rows, strict=True)] for rows in zip(X, Y, SIGN, strict=True)],
    ),
    "cosine": (
        lambda x, y, r: nn.CosineEmbeddingLoss(0.1, reduction=r)(x, y, lg.tensor(SIGN[:, 0], device=x.device)),
        [X, Y],
        [
            1 - cos(x, y) if s == 1 else hinge(cos(x, y) - 0.1)
            for x, y, s in zip(X, Y, SIGN[:, 0], strict=True)
        ],
    ),
    "triplet": (
        lambda x, y, z, r: nn.TripletMarginLoss(2.0, p=3.0, swap=True, reduction=r)(x, y, z),
        [X, Y, Z],
        [
            hinge(2 + distance(x, y, 3.0) - min(distance(x, z, 3.0), distance(y, z, 3.0)))
            for x, y, z in zip(X, Y, Z, strict=True)
        ],
    ),
    "triplet of any distance": (
        lambda x, y, z, r: nn.TripletMarginWithDistanceLoss(margin=2.0, reduction=r)(x, y, z),
        [X, Y, Z],
        [hinge(2 + distance(x, y) - distance(x, z)) for x, y, z in zip(X, Y, Z, strict=True)],
    ),
    "multi margin": (
        lambda x, r: nn.MultiMarginLoss(2, 0.7, lg.tensor(WEIGHT), reduction=r).to(x.device)(
            x, lg.tensor(CLASSES, device=x.device)
        ),
        [X],
        multi_margin(X, CLASSES),
    ),
    "multilabel margin": (
        lambda x, r: nn.MultiLabelMarginLoss(reduction=r)(x, lg.tensor(LABELS, device=x.device)),
        [X],
        multilabel_margin(X),
    ),
    "multilabel soft margin": (
        lambda x, r: nn.MultiLabelSoftMarginLoss(lg.tensor(WEIGHT), reduction=r).to(x.device)(
            x, lg.tensor(SIGN > 0, device=x.device).double()
        ),
        [X],
        [
            -sum(w * math.log(sigmoid(s * x)) for x, s, w in zip(*rows, WEIGHT, strict=True)) / 3
            for rows in zip(X, SIGN, strict=True)
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name, device):
    loss, inputs, expected = CASES[name]
    tensors = [lg.tensor(a, device=device) for a in inputs]
    expected = np.array(expected)
    for reduction, value in (("none", expected), ("sum", expected.sum()), ("mean", expected.mean())):
        np.testing.assert_allclose(loss(*tensors, reduction).cpu().numpy(), value, rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_both_orders(name):
    loss, inputs, _ = CASES[name]
    tensors = [lg.tensor(a, requires_grad=True) for a in inputs]
    assert gradcheck(lambda *a: loss(*a, "none"), tensors)
    assert gradgradcheck(lambda *a: loss(*a, "sum"), tensors)


@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.smooth_l1_loss])
def test_a_target_without_dimensions_promotes_as_others_do(loss):
    x, one = lg.zeros(3), lg.tensor(1.0, dtype=lg.float64)
    with pytest.warns(UserWarning, match="Using a target size"):
        assert loss(x, one).dtype is loss(one, x).dtype is lg.float64


def test_the_batchmean_of_one_number_and_many_is_a_sum():
    x, t = lg.tensor(-1.0), lg.tensor([0.25, 0.75])
    assert F.kl_div(x, t, reduction="batchmean").item() == F.kl_div(x, t, reduction="sum").item()


def test_weights_of_elements():
    x, t, w = (lg.tensor(a) for a in (X, Y, COUNTS))
    for loss, power in ((F.mse_loss, 2), (F.l1_loss, 1)):
        error = np.abs(X - Y) ** power
        assert loss(x, t, weight=w).item() == pytest.approx((error * COUNTS).sum() / COUNTS.sum())
        assert loss(x, t, weight=w, reduction="sum").item() == pytest.approx((error * COUNTS).sum())
    with pytest.raises(ValueError, match="Weights and input must have the same size"):
        F.huber_loss(x, t, weight=w[0])


def test_flags_of_old():
    x, t = lg.tensor(X), lg.tensor(Y)
    for flags, reduction in (
        ({"size_average": False}, "sum"),
        ({"reduce": False}, "none"),
        ({"size_average": True, "reduce": False}, "none"),
        ({"reduce": True}, "mean"),
    ):
        with pytest.warns(UserWarning, match=f"please use reduction='{reduction}' instead"):
            old = F.mse_loss(x, t, **flags)
        assert old.tolist() == F.mse_loss(x, t, reduction=reduction).tolist()
        with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
            assert nn.CrossEntropyLoss(**flags).reduction == reduction
    with pytest.raises(TypeError, match="mse_loss: size_average, reduce: expected bools"):
        F.mse_loss(x, t, lg.ones(3))
    with pytest.warns(FutureWarning, match="`NLLLoss2d` has been deprecated"):
        nn.NLLLoss2d()


def test_variances():
    x, t = lg.tensor(X), lg.tensor(Y)
    for shape in ((4,), (4, 1), (1, 3)):
        full = np.broadcast_to(COUNTS[:, :1] if shape[0] == 4 else COUNTS[:1], (4, 3))
        var = full[:, 0] if shape == (4,) else full[: shape[0], : shape[1]]
        expected = F.gaussian_nll_loss(x, t, lg.tensor(full.copy()))
        assert F.gaussian_nll_loss(x, t, lg.tensor(var.copy())).item() == pytest.approx(expected.item())
    small = lg.tensor([1e-9], dtype=lg.float64, requires_grad=True)
    F.gaussian_nll_loss(lg.tensor([1.0]).double(), lg.tensor([1.0]).double(), small, eps=0.5).backward()
    assert small.grad.item() == pytest.approx(1)  # as if it were 0.5
    with pytest.raises(ValueError, match="var is of incorrect size"):
        F.gaussian_nll_loss(x, t, lg.ones(2))
    with pytest.raises(ValueError, match="var has negative entry/entries"):
        F.gaussian_nll_loss(x, t, -1.0)


def test_distances(device):
    x, y = lg.tensor(X, device=device), lg.tensor(Y, device=device)
    expected = [distance(u, v) for u, v in zip(X, Y, strict=True)]
    assert nn.PairwiseDistance()(x, y).tolist() == pytest.approx(expected)
    assert nn.PairwiseDistance(keepdim=True)(x, y).shape == (4, 1)
    assert nn.CosineSimilarity(1)(x, y).tolist() == pytest.approx([cos(u, v) for u, v in zip(X, Y, strict=True)])
    pairs = [np.linalg.norm(X[i] - X[j]) for i in range(4) for j in range(i + 1, 4)]
    assert F.pdist(x).tolist() == pytest.approx(pairs)
    assert F.pdist(x[:1]).shape == (0,)
    with pytest.raises(RuntimeError, match="pdist only supports 2D tensors, got: 1D"):
        F.pdist(x[0])


def test_linear_cross_entropy_is_what_it_says():
    x, w, b = lg.tensor(X), lg.tensor(Y), lg.tensor(WEIGHT.repeat(2)[:4])
    target = lg.tensor(CLASSES)
    expected = F.cross_entropy(F.linear(x, w, b), target, label_smoothing=0.1)
    assert F.linear_cross_entropy(x, w, target, linear_bias=b, label_smoothing=0.1).item() == expected.item()
    with pytest.raises(RuntimeError, match="ignore_index cannot be specified when target contains probabilities"):
        F.linear_cross_entropy(x, w, lg.softmax(x @ w.t(), 1), ignore_index=1)


def test_adaptive_softmax_is_a_distribution(device):
    lg.manual_seed(0)
    loss = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], 2.0, device=device)
    x = lg.randn(5, 8, device=device)
    everything = loss.log_prob(x)
    assert (everything.exp().sum(1) - 1).abs().max().item() < 1e-6
    target = lg.tensor([0, 3, 5, 6, 11], device=device)
    output, mean = loss(x, target)
    assert (output - everything[lg.arange(5, device=device), target]).abs().max().item() < 1e-5
    assert mean.item() == pytest.approx(-output.mean().item())
    assert loss(x[0], target[0]).output.item() == pytest.approx(output[0].item(), abs=1e-5)
    assert loss.predict(x).tolist() == everything.argmax(1).tolist()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: nn.TripletMarginLoss(margin=0), ValueError, "expected margin to be greater than 0, got 0"),
        (lambda x: F.triplet_margin_loss(x, x, x[0]), RuntimeError, "the same number of dimensions"),
        (lambda x: F.triplet_margin_loss(x, x, x, margin=-1), ValueError, "margin must be greater than 0"),
        (lambda x: F.margin_ranking_loss(x, x[0], x), RuntimeError, "All input tensors should have same dimension"),
        (lambda x: F.cosine_embedding_loss(x, x, x), RuntimeError, "0D or 1D target tensor expected"),
        (lambda x: F.cosine_embedding_loss(x[0], x[0], x[0]), RuntimeError, "1D target tensor expects 2D input"),
        (lambda x: F.multi_margin_loss(x, lg.tensor([0, 1])), RuntimeError, r"Expected target size \[4\]"),
        (lambda x: F.multi_margin_loss(x, lg.zeros(4)), RuntimeError, "expected class numbers of dtype int64"),
        (lambda x: F.multi_margin_loss(x, lg.tensor([0, 1, 2, 5])), RuntimeError, "out of bounds"),
        (lambda x: nn.MultiMarginLoss(p=3), ValueError, "only p == 1 and p == 2 supported"),
        (lambda x: F.multilabel_margin_loss(x, lg.tensor([1])), RuntimeError, "inconsistent target size"),
        (lambda x: nn.AdaptiveLogSoftmaxWithLoss(3, 9, [5, 4]), ValueError, "cutoffs should be a sequence of unique"),
        (lambda x: nn.AdaptiveLogSoftmaxWithLoss(3, 9, []), ValueError, "length larger than 0"),
        (
            lambda x: nn.AdaptiveLogSoftmaxWithLoss(3, 9, [5], 1.0)(x.float(), lg.tensor([1, 2, 3, 9])),
            *(RuntimeError, r"Target values should be in \[0, 8\]"),
        ),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(lg.tensor(X))


def test_margin_losses_of_one_sample():
    scores = lg.tensor([0.1, 0.8, 0.3])
    alone = F.multi_margin_loss(scores, lg.tensor(1), reduction="none")
    in_a_list = F.multi_margin_loss(scores, lg.tensor([1]), reduction="none")
    assert alone.shape == ()
    assert in_a_list.shape == (1,)
    assert in_a_list.item() == alone.item() == pytest.approx((0.3 + 0.5) / 3)
    for target in (0, -1):
        assert F.multilabel_margin_loss(lg.tensor(0.7), lg.tensor(target), reduction="none").tolist() == 0.0


def test_a_multilabel_margin_compares_with_targets_alone():
    scores, target = lg.randn(4, 3000, requires_grad=True), lg.full((4, 3000), -1)
    target[:, :3] = lg.tensor([7, 1999, 3])
    tracemalloc.start()
    try:
        F.multilabel_margin_loss(scores, target).backward()
        assert tracemalloc.get_traced_memory()[1] < 3e6  # all pairs of classes have 36e6 scores
    finally:
        tracemalloc.stop()
    step = lg.compile(lambda x: F.multilabel_margin_loss(x, target))
    assert step(scores).item() == pytest.approx(F.multilabel_margin_loss(scores, target).item())


def test_each_loss_of_an_ignored_target_is_plus_zero():
    scores, ignored = lg.zeros(2, 3), lg.tensor([-100, -100])
    for loss in (F.cross_entropy, F.nll_loss):
        assert not loss(scores, ignored, reduction="none").signbit().any().item()


@pytest.mark.parametrize("how", ["eager", "compiled", "batched"])
def test_a_batch_whose_targets_are_all_ignored_changes_nothing(how):
    scores, ignored = lg.arange(6.0).reshape(2, 3), lg.tensor([-100, -100])

    def slope(scores, targets):
        return lg.func.grad(F.cross_entropy)(scores, targets)

    if how == "batched":
        scores, ignored = lg.stack([scores, scores]), lg.stack([ignored, lg.tensor([0, -100])])
        found = lg.func.vmap(slope)(scores, ignored)[0]
    else:
        step = lg.compile(slope) if how == "compiled" else slope
        for _ in range(3):
            found = step(scores, ignored)
    assert lg.equal(found, lg.zeros(2, 3))


@pytest.mark.parametrize(("rows", "classes"), [(5, 3), (64, 1), (200, 5), (200, 25), (1, 40)])
@pytest.mark.parametrize("ignored", [-100, 0, -1])
def test_the_mean_cross_entropy_is_that_of_the_logarithms(rows, classes, ignored):
    scores = RNG.standard_normal((rows, classes)) * 5
    target = RNG.integers(0, classes, rows)
    target[:: 4 if ignored != -100 else rows + 1] = ignored
    target[-1] = classes - 1
    x = lg.tensor(scores).requires_grad_()
    loss = F.cross_entropy(x, lg.tensor(target), ignore_index=ignored)
    (loss * 2).backward()
    kept = target != ignored
    p = np.exp(scores - np.log(np.exp(scores).sum(1, keepdims=True)))
    hot = np.eye(classes)[np.where(kept, target, 0)]
    count = kept.sum()
    if not count:
        assert math.isnan(loss.item())
        return
    assert loss.item() == pytest.approx(-np.log(p[hot == 1])[kept].mean(), rel=1e-12)
    expected = 2 * (p - hot) * kept[:, None] / count
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-10, atol=1e-15)
    assert x.grad.is_contiguous()


@pytest.mark.parametrize("wrong", [-1, 5, -101, 2**61])
def test_one_target_among_many_that_is_no_class_is_an_error(wrong):
    target = RNG.integers(0, 5, 200)
    target[100] = wrong
    with pytest.raises(IndexError, match="is out of bounds: expected classes from 0 to 4"):
        F.cross_entropy(lg.zeros(200, 5), lg.tensor(target))


def test_poisson_loss_of_integers_is_float32():
    x = lg.tensor([1, 2, 3])
    loss = F.poisson_nll_loss(x, x, full=True)
    assert loss.dtype is lg.float32
    assert loss.item() == pytest.approx(6.2029, rel=1e-4)


def test_a_variance_of_another_size_and_unbatched_input_of_several_places_are_refused():
    for shape in ((10, 2, 2), (1, 1, 3), (5, 2, 3)):
        with pytest.raises(ValueError, match="var is of incorrect size"):
            F.gaussian_nll_loss(lg.ones(10, 2, 3), lg.ones(10, 2, 3), lg.ones(shape))
    with pytest.raises(RuntimeError, match=r"input: expected \(in,\) or \(batch, in\)"):
        F.linear_cross_entropy(lg.ones(3), lg.ones(2, 4, 3), lg.zeros(4, dtype=lg.int64))


@pytest.mark.parametrize(
    ("loss", "curvature"), [(F.huber_loss, 1.0), (lambda *x, **p: F.smooth_l1_loss(*x, **p, beta=2.0), 0.5)]
)
def test_bent_losses_are_smooth_at_zero(loss, curvature):
    def total(x):
        return loss(x, lg.zeros(2), reduction="sum")

    def derivative(f):
        return lambda x: lg.func.jvp(f, (x,), (lg.ones(2),))[1]

    x = lg.tensor([0.0, 0.5])
    for hessian in (lg.func.hessian(total), lg.compile(lg.func.hessian(total))):
        assert hessian(x).tolist() == [[curvature, 0], [0, curvature]]
    assert derivative(derivative(total))(x).item() == 2 * curvature
    assert lg.func.jet(total, (x,), ([lg.ones(2), None],))[1][1].item() == 2 * curvature


@pytest.mark.parametrize("loss", [F.huber_loss, F.smooth_l1_loss])
def test_slopes_at_infinity_are_finite_in_both_modes(loss):
    x = lg.tensor([math.inf, -math.inf])

    def each(x):
        return loss(x, lg.zeros(2), reduction="none")

    assert lg.func.jvp(each, (x,), (lg.ones(2),))[1].tolist() == [1, -1]
    assert lg.func.grad(lambda x: each(x).sum())(x).tolist() == [1, -1]


@pytest.mark.parametrize("loss", [F.nll_loss, F.cross_entropy])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_one_target_may_have_a_dimension(loss, reduction):
    x, weight = lg.tensor([0.1, 0.2], requires_grad=True), lg.tensor([1.0, 3.0])
    found = loss(x, lg.tensor([1]), weight, reduction=reduction)
    expected = loss(x, lg.tensor(1), weight, reduction=reduction)
    assert found.shape == ()
    assert found.item() == expected.item()
    with pytest.raises(RuntimeError, match=r"expected size \[\]"):
        loss(x, lg.tensor([[1]]))


@pytest.mark.parametrize("loss", [F.nll_loss, F.cross_entropy])
def test_ignored_targets_need_no_classes(loss):
    x, ignored = lg.zeros(2, 0, 3, requires_grad=True), lg.full((2, 3), -100)
    assert math.isnan(loss(x, ignored).item())
    assert loss(x, ignored, reduction="none").tolist() == [[0, 0, 0]] * 2
    loss(x, ignored, reduction="sum").backward()
    assert x.grad.shape == x.shape
    with pytest.raises(IndexError, match="Target 0 is out of bounds"):
        loss(x, lg.zeros(2, 3, dtype=lg.int64))


@pytest.mark.parametrize("p", [0, 1, 2, math.inf])
def test_distances_of_rows_without_numbers(p, t):
    assert t.nn.functional.pdist(t.zeros(3, 0), p).tolist() == [0, 0, 0]
    assert t.nn.functional.pdist(t.zeros(1, 0), p).tolist() == []
