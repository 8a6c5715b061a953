"""Norms, losses, look-ups and distances in PyTorch, where it is installed: values and gradients of both orders."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from parity import agree, flat, gradients

import leafgrad

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(11)


def normal(*shape):
    return RNG.standard_normal(shape)


def compare(call, *arrays, order=2, rtol=1e-9):
    """As ``parity.compare``; but what PyTorch computes in one piece may be recorded, or left out, in another way."""
    inputs = [[t.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays] for t in (torch, leafgrad)]
    results = [flat(call(t, *given)) for t, given in zip((torch, leafgrad), inputs, strict=True)]
    for e, a in zip(*results, strict=True):
        agree(e, a, rtol)
    left, right = [[r[0] if r[0].requires_grad else None] for r in results]
    theirs, ours = [[x for x in given if x.requires_grad] for given in inputs]
    for _ in range(order if left[0] is not None else 0):
        expected, actual = gradients(torch, left, theirs), gradients(leafgrad, right, ours)
        for e, a, x in zip(expected, actual, theirs, strict=True):
            agree(
                torch.zeros_like(x) if e is None else e,
                leafgrad.zeros(x.shape, dtype=leafgrad.float64) if a is None else a,
                rtol * 10,
            )
        pairs = [(e, a) for e, a in zip(expected, actual, strict=True) if None not in (e, a)]
        pairs = [pair for pair in pairs if pair[0].requires_grad and pair[1].requires_grad]
        if not pairs:
            return
        left, right = zip(*pairs, strict=True)


def F(t):
    return t.nn.functional


NORMS = {
    "batch": lambda t, x, w, b: F(t).batch_norm(x, None, None, w, b, True, eps=1e-3),
    "batch without affine": lambda t, x, w, b: F(t).batch_norm(x, None, None, training=True),
    "instance": lambda t, x, w, b: F(t).instance_norm(x, None, None, w, b),
    "instance without affine": lambda t, x, w, b: F(t).instance_norm(x),
    "one group": lambda t, x, w, b: F(t).group_norm(x, 1, w, b),
    "two groups": lambda t, x, w, b: F(t).group_norm(x, 2, w, eps=1e-2),
    "groups of one": lambda t, x, w, b: F(t).group_norm(x, 4, w, b),
    "layer": lambda t, x, w, b: F(t).layer_norm(x, x.shape[2:]),
    "rms": lambda t, x, w, b: F(t).rms_norm(x, x.shape[-1:]),
    "rms of two": lambda t, x, w, b: F(t).rms_norm(x, x.shape[-2:], eps=0.1),
    "local response": lambda t, x, w, b: F(t).local_response_norm(x, 3, 0.5, 0.6, 2.0),
    "local response, even": lambda t, x, w, b: F(t).local_response_norm(x, 2),
    "local response of one": lambda t, x, w, b: F(t).local_response_norm(x, 1, alpha=0.3),
    "normalize": lambda t, x, w, b: F(t).normalize(x, 3.0, 2),
}


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 4, 3, 2)])
@pytest.mark.parametrize("name", NORMS)
def test_norms(name, shape):
    compare(NORMS[name], normal(*shape), normal(4), normal(4), rtol=1e-7)


def test_norms_with_running_averages():
    def run(t, x):
        mean, var = t.full((4,), 0.3, dtype=t.float64), t.full((4,), 2.0, dtype=t.float64)
        moved = F(t).instance_norm(x, mean, var, momentum=0.2)
        fixed = F(t).instance_norm(x, mean, var, use_input_stats=False)
        return moved, fixed, mean, var

    compare(run, normal(3, 4, 5), rtol=1e-8)


def test_weighted_layer_norm_and_rms_norm():
    compare(lambda t, x, w, b: F(t).layer_norm(x, (3, 2), w, b), normal(4, 3, 2), normal(3, 2), normal(3, 2), rtol=1e-8)
    compare(lambda t, x, w: F(t).rms_norm(x, (2,), w), normal(4, 2), normal(2), rtol=1e-8)


def test_rms_norm_of_float16():
    compare(lambda t, x: F(t).rms_norm(x, (3,)), np.array([[1e-3, 2e-3, 3e-3]], dtype="float16"), order=0)


# ---- losses -----------------------------------------------------------------------------------------------------

SIGNS = np.where(normal(5, 3) > 0, 1.0, -1.0)
POSITIVE = RNG.uniform(0.2, 3.0, (5, 3))

OF_PAIRS = {
    "soft_margin_loss": (SIGNS, {}),
    "hinge_embedding_loss": (SIGNS, {"margin": 0.7}),
    "mse_loss": (normal(5, 3), {}),
    "l1_loss": (normal(5, 3), {}),
    "huber_loss": (normal(5, 3), {"delta": 0.4}),
    "poisson_nll_loss": (POSITIVE, {}),
    "poisson_nll_loss full": (POSITIVE, {"full": True}),
    "multilabel_soft_margin_loss": (np.where(SIGNS > 0, 1.0, 0.0), {}),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", OF_PAIRS)
def test_losses_of_pairs(name, reduction):
    target, options = OF_PAIRS[name]

    def call(t, x):
        return getattr(F(t), name.split()[0])(x, t.tensor(target), **options, reduction=reduction)

    compare(call, normal(5, 3))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss", "multilabel_soft_margin_loss"])
def test_losses_with_weights(name, reduction):
    weight = POSITIVE[0] if "soft" in name else POSITIVE

    def call(t, x, y):
        return getattr(F(t), name)(x, y, weight=t.tensor(weight), reduction=reduction)

    compare(call, normal(5, 3), normal(5, 3))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(5, 3), (5, 1), (5,), (1, 3)])
def test_gaussian_nll_loss(shape, full, reduction):
    var = RNG.uniform(0.1, 2.0, shape)
    var.flat[0] = 1e-9  # counts as eps, which the gradient ignores

    def call(t, x, y, v):
        return F(t).gaussian_nll_loss(x, y, v, full, 1e-2, reduction)

    compare(call, normal(5, 3), normal(5, 3), var)


def test_likelihoods_with_other_arguments():
    compare(lambda t, x, y: F(t).gaussian_nll_loss(x, y, 0.3), normal(4), normal(4))
    compare(lambda t, x, y: F(t).poisson_nll_loss(x, y, False, True, eps=1e-3), POSITIVE, POSITIVE.copy() * 1.5)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_of_several_inputs(reduction):
    x, y, z = normal(6, 4), normal(6, 4), normal(6, 4)
    sign = np.where(normal(6) > 0, 1, -1)
    for margin in (0.0, 0.3):
        compare(
            lambda t, a, b, s, m=margin: F(t).margin_ranking_loss(a, b, s, m, reduction=reduction),
            *(x[:, 0], y[:, 0], sign.astype(float)),
        )
        compare(lambda t, a, b, s, m=margin: F(t).cosine_embedding_loss(a, b, s, m, reduction=reduction), x, y, sign)
    compare(lambda t, a, b: F(t).cosine_embedding_loss(a, b, t.tensor(-1), reduction=reduction), x[0], y[0])
    for p in (1.0, 2.0, 3.0):
        for swap in (False, True):
            compare(
                lambda t, a, b, c, p=p, s=swap: F(t).triplet_margin_loss(a, b, c, 2.0, p, swap=s, reduction=reduction),
                *(x, y, z),
            )

    def far(t, a, b, c):
        return F(t).triplet_margin_with_distance_loss(
            a, b, c, distance_function=lambda u, v: (u - v).abs().sum(-1), margin=3.0, swap=True, reduction=reduction
        )

    compare(far, x, y, z)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_margins_of_classes(reduction):
    x, w = normal(4, 5), RNG.uniform(0.5, 2, 5)
    target = np.array([0, 4, 2, 2])
    for p in (1, 2):
        for weight in (None, w):

            def call(t, a, p=p, weight=weight):
                given = None if weight is None else t.tensor(weight)
                return F(t).multi_margin_loss(a, t.tensor(target), p, 0.8, given, reduction=reduction)

            # PyTorch has no second derivative of it
            compare(call, x, order=1)
    labels = np.array([[1, 0, -1, 2, 3], [-1, 0, 1, 1, 1], [4, 3, 2, 1, 0], [2, 2, -1, -1, 0]])
    compare(lambda t, a: F(t).multilabel_margin_loss(a, t.tensor(labels), reduction=reduction), x, order=1)
    compare(lambda t, a: F(t).multi_margin_loss(a, t.tensor(3), reduction=reduction), x[0], order=1)
    compare(lambda t, a: F(t).multilabel_margin_loss(a, t.tensor(labels[0]), reduction=reduction), x[0], order=1)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "soft_margin_loss", "kl_div"])
@pytest.mark.parametrize("flags", [(False, None), (None, False), (True, True), (True, False)])
def test_flags_of_old(name, flags):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare(lambda t, x: getattr(F(t), name)(x, t.tensor(POSITIVE[:3, :2]), *flags), normal(3, 2))


def test_linear_cross_entropy():
    places = RNG.integers(0, 4, (5, 2))
    compare(lambda t, x, w: F(t).linear_cross_entropy(x, w, t.tensor(places[:, 0])), normal(5, 3), normal(4, 3))

    def of_places(t, x, w, b):
        return F(t).linear_cross_entropy(
            x, w, t.tensor(places), linear_bias=b, ignore_index=2, label_smoothing=0.1, reduction="sum"
        )

    compare(of_places, normal(5, 3), normal(4, 2, 3), normal(4, 2))


# ---- distances and look-ups ---------------------------------------------------------------------------------------


def test_distances():
    x, y = normal(4, 3), normal(4, 3)
    for p in (1.0, 2.0, 2.5, float("inf")):
        compare(lambda t, a, b, p=p: F(t).pairwise_distance(a, b, p, 1e-3), x, y)
    for p in (1.0, 2.0, 3.0):
        compare(lambda t, a, p=p: F(t).pdist(a, p), x, order=1)
    compare(lambda t, a, b: F(t).pairwise_distance(a, b, keepdim=True), x, y)
    compare(lambda t, a, b: F(t).cosine_similarity(a, b, dim=-1), x, y)
    compare(lambda t, a, b: F(t).cosine_similarity(a, b, dim=0), x, y[:, :1])


INDEX = np.array([[1, 3, 1], [0, 2, 3]])
LOOKUPS = {
    "plain": {},
    "padding": {"padding_idx": 3},
    "negative padding": {"padding_idx": -1},
    "by frequency": {"scale_grad_by_freq": True},
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_embedding(name):
    order = 1 if "freq" in name else 2
    compare(lambda t, w: F(t).embedding(t.tensor(INDEX), w, **LOOKUPS[name]), normal(4, 3), order=order)


@pytest.mark.parametrize("norm_type", [1.0, 2.0])
def test_embedding_shortens_rows(norm_type):
    def call(t, w):
        table = w.detach().clone()
        rows = F(t).embedding(t.tensor(INDEX), table, max_norm=0.7, norm_type=norm_type)
        return rows, table

    compare(call, normal(5, 3), order=0)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 1])
def test_embedding_bag(mode, padding):
    offsets = np.array([0, 2, 2, 5])
    flat = np.array([1, 3, 1, 0, 2, 4])
    compare(lambda t, w: F(t).embedding_bag(t.tensor(INDEX), w, mode=mode, padding_idx=padding), normal(5, 3), order=1)

    def of_offsets(t, w, last=False):
        starts = t.tensor(np.append(offsets, 6) if last else offsets)
        return F(t).embedding_bag(
            t.tensor(flat), w, starts, mode=mode, padding_idx=padding, include_last_offset=last
        )  # fmt: skip

    compare(of_offsets, normal(5, 3), order=1)
    compare(lambda t, w: of_offsets(t, w, True), normal(5, 3), order=1)


def test_embedding_bag_with_weights():
    compare(
        lambda t, w, s: F(t).embedding_bag(t.tensor(INDEX), w, mode="sum", per_sample_weights=s),
        *(normal(5, 3), normal(2, 3)),
        order=1,
    )


@pytest.mark.parametrize("name", ["rrelu", "gumbel", "softmax", "log_softmax", "softmin"])
def test_activations(name):
    calls = {
        "rrelu": lambda t, x: F(t).rrelu(x),
        "gumbel": lambda t, x: F(t).gumbel_softmax(x, hard=True, dim=1).sum(1),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare(calls.get(name, lambda t, x: getattr(F(t), name)(x)), normal(3, 4), order=0 if name == "gumbel" else 2)
        compare(lambda t, x: F(t).softmax(x), normal(2, 3, 2))


@pytest.mark.parametrize("name", ["relu_", "leaky_relu_", "elu_", "selu_", "celu_", "hardtanh_", "threshold_"])
def test_activations_in_place(name):
    more = (0.1, 5.0) if name == "threshold_" else ()
    compare(lambda t, x: getattr(F(t), name)(x * 1.0, *more), normal(3, 4), rtol=1e-7)
