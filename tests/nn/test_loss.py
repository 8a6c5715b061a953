"""Losses: values by hand, at the edges, and their errors."""

from __future__ import annotations

import math

import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.nn import functional as F


@pytest.fixture(autouse=True)
def _seeded():
    lg.manual_seed(0)


def close(a, b, tolerance=1e-6):
    return bool((a.double() - b.double()).abs().max() <= tolerance)


ELEMENTWISE = {
    nn.MSELoss: lambda x, t: (x - t) ** 2,
    nn.L1Loss: lambda x, t: abs(x - t),
    nn.SmoothL1Loss: lambda x, t: 0.5 * (x - t) ** 2 if abs(x - t) < 1 else abs(x - t) - 0.5,
    nn.HuberLoss: lambda x, t: 0.5 * (x - t) ** 2 if abs(x - t) < 1 else abs(x - t) - 0.5,
    nn.BCELoss: lambda x, t: -(t * math.log(x) + (1 - t) * math.log(1 - x)),
    nn.BCEWithLogitsLoss: lambda x, t: math.log1p(math.exp(x)) - t * x,
}


@pytest.mark.parametrize("kind", ELEMENTWISE)
def test_elementwise_losses(kind, device):
    x = [0.2, 0.9, 0.5, 0.01] if kind is nn.BCELoss else [-3.0, 0.2, 4.0, 0.6]
    t = [0.3, 1.0, 0.0, 0.6]
    each = [ELEMENTWISE[kind](*pair) for pair in zip(x, t, strict=True)]
    a, b = (lg.tensor(v, dtype=lg.float64, device=device) for v in (x, t))
    assert kind(reduction="none")(a, b).tolist() == pytest.approx(each)
    assert kind(reduction="sum")(a, b).item() == pytest.approx(sum(each))
    assert kind()(a, b).item() == pytest.approx(sum(each) / 4)
    with pytest.raises(ValueError, match="avg is not a valid value for reduction"):
        kind(reduction="avg")(a, b)


def test_shape_parameters_of_losses():
    x, t = lg.tensor([0.0, 3.0]), lg.zeros(2)
    assert F.smooth_l1_loss(x, t, beta=2, reduction="none").tolist() == [0, 2]
    assert F.smooth_l1_loss(x, t, beta=0, reduction="none").tolist() == [0, 3]
    assert F.huber_loss(x, t, delta=2, reduction="none").tolist() == [0, 4]
    with pytest.raises(RuntimeError, match="delta: expected a number > 0"):
        F.huber_loss(x, t, delta=0)
    with pytest.raises(ValueError, match="beta: expected a number >= 0"):
        F.smooth_l1_loss(x, t, beta=-1)


def test_a_loss_given_tensors_at_construction_says_how_to_use_it():
    for kind in (nn.L1Loss, nn.MSELoss, nn.SmoothL1Loss, nn.KLDivLoss):
        with pytest.raises(TypeError, match=rf"call it: nn\.{kind.__name__}\(\)\(input, target\)"):
            kind(lg.ones(1), lg.ones(1))


@pytest.mark.parametrize("function", [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss])
def test_sizes_that_broadcast_by_accident_warn(function):
    with pytest.warns(UserWarning, match="that is different to the input size") as caught:
        function(lg.ones(3), lg.ones(3, 1))
    assert caught[0].filename == __file__


def test_binary_losses_at_the_edges(device):
    x = lg.tensor([0.0, 1.0, 0.0], device=device, requires_grad=True)
    loss = F.binary_cross_entropy(x, lg.tensor([1.0, 0.0, 0.0], device=device), reduction="none")
    assert loss.tolist() == [100, 100, 0]
    loss.sum().backward()
    assert x.grad.tolist()[:2] == pytest.approx([-1e12, 1e12])
    with pytest.raises(RuntimeError, match="input should be between 0 and 1"):
        F.binary_cross_entropy(lg.tensor([2.0]), lg.zeros(1))
    z = lg.tensor([-500.0, 500.0], device=device)
    assert F.binary_cross_entropy_with_logits(z, 1 - lg.sigmoid(z), reduction="sum").item() == 1000
    with pytest.raises(ValueError, match="Target size"):
        F.binary_cross_entropy_with_logits(lg.ones(2), lg.ones(2, 1))
    with pytest.raises(ValueError, match="different to the input size"):
        F.binary_cross_entropy(lg.ones(2), lg.ones(2, 1))


def test_kl_divergence(device):
    p = lg.tensor([[0.2, 0.8], [1.0, 0.0]], device=device)
    q = lg.tensor([[0.5, 0.5], [0.25, 0.75]], device=device)
    expected = 0.2 * math.log(0.4) + 0.8 * math.log(1.6) + math.log(4)
    assert nn.KLDivLoss(reduction="sum")(q.log(), p).item() == pytest.approx(expected)
    assert nn.KLDivLoss(reduction="batchmean")(q.log(), p).item() == pytest.approx(expected / 2)
    twice = nn.KLDivLoss(reduction="sum", log_target=True)(q.log(), q.log())
    assert twice.item() == 0
    with pytest.warns(UserWarning, match="'batchmean'"):
        nn.KLDivLoss()(q.log(), q)


def test_cross_entropy_by_hand(device):
    logits = lg.tensor([[1.0, 2.0, 0.5], [0.0, 0.0, 3.0], [1.0, 1.0, 1.0]], device=device)
    target = lg.tensor([1, 0, -100], device=device)
    first = -(2 - math.log(math.e + math.e**2 + math.e**0.5))
    second = math.log(2 + math.e**3)
    none = nn.CrossEntropyLoss(reduction="none")(logits, target)
    assert none.tolist() == pytest.approx([first, second, 0], rel=1e-6)
    assert nn.CrossEntropyLoss()(logits, target).item() == pytest.approx((first + second) / 2, rel=1e-6)
    assert nn.CrossEntropyLoss(reduction="sum")(logits, target).item() == pytest.approx(first + second, rel=1e-6)
    same = nn.NLLLoss()(F.log_softmax(logits, 1), target)
    assert same.item() == pytest.approx((first + second) / 2, rel=1e-6)
    weight = lg.tensor([3.0, 1.0, 1.0], device=device)
    weighted = nn.CrossEntropyLoss(weight).to(device)(logits, target).item()
    assert weighted == pytest.approx((first + 3 * second) / 4, rel=1e-6)
    one = nn.CrossEntropyLoss()(logits[0], target[0])
    assert one.item() == pytest.approx(first, rel=1e-6)


@pytest.mark.parametrize("shape", [(5, 100), (100, 5), (80, 100), (2, 70, 3), (100,)])
@pytest.mark.parametrize("ignored", [False, True])
def test_gradients_of_cross_entropy_for_many_classes_and_many_rows(device, shape, ignored):
    x = lg.randn(shape, device=device, dtype=lg.float64, requires_grad=True)
    dim = min(1, x.ndim - 1)
    target = lg.randint(0, shape[dim], shape[:dim] + shape[dim + 1 :], device=device)
    if ignored and target.ndim:
        target[0] = -100
    counted = target != -100
    certain = F.one_hot(target.clamp_min(0), shape[dim]).movedim(-1, dim).double()
    loss = F.cross_entropy(x, target)
    loss.backward()
    assert close(loss, -(F.log_softmax(x, dim) * certain).sum(dim)[counted].mean(), 1e-12)
    assert close(x.grad, (F.softmax(x, dim) - certain) * counted.unsqueeze(dim) / counted.sum(), 1e-12)


def test_cross_entropy_of_classes_and_of_probabilities_agree(device):
    logits = lg.randn(6, 4, 2, device=device, dtype=lg.float64)
    target = lg.randint(0, 4, (6, 2), device=device)
    certain = F.one_hot(target, 4).transpose(1, 2).double()
    weight = lg.tensor([1.0, 2.0, 0.5, 1.5], device=device, dtype=lg.float64)
    for smoothing in (0.0, 0.3):
        for reduction in ("none", "sum"):
            options = {"reduction": reduction, "label_smoothing": smoothing}
            a = F.cross_entropy(logits, target, weight, **options)
            b = F.cross_entropy(logits, certain, weight, **options)
            assert close(a, b, 1e-12)
        a = F.cross_entropy(logits, target, label_smoothing=smoothing)
        assert close(a, F.cross_entropy(logits, certain, label_smoothing=smoothing), 1e-12)


def test_cross_entropy_errors():
    logits = lg.ones(2, 3)
    with pytest.raises(IndexError, match="is out of bounds: expected classes from 0 to 2"):
        F.cross_entropy(logits, lg.tensor([0, 3]))
    with pytest.raises(IndexError, match="is out of bounds"):
        F.cross_entropy(logits, lg.tensor([0, -1]))
    with pytest.raises(ValueError, match=r"Expected input batch_size \(2\) to match target batch_size \(3\)"):
        F.cross_entropy(logits, lg.tensor([0, 1, 2]))
    with pytest.raises(RuntimeError, match=r"target: expected size \[2\]"):
        F.nll_loss(logits, lg.tensor([[0], [1]]))
    with pytest.raises(RuntimeError, match=r"expected class numbers of dtype int64, got leafgrad\.float32"):
        F.cross_entropy(logits, lg.ones(2))
    with pytest.raises(RuntimeError, match="for all 3 classes or no classes"):
        F.cross_entropy(logits, lg.tensor([0, 1]), weight=lg.ones(2))
    with pytest.raises(RuntimeError, match="ignore_index is for targets that are classes"):
        F.cross_entropy(lg.ones(2, 3), lg.ones(2, 3), ignore_index=1)
    with pytest.raises(RuntimeError, match="label_smoothing must be between"):
        F.cross_entropy(logits, lg.tensor([0, 1]), label_smoothing=2)
    with pytest.raises(RuntimeError, match="Expected floating point type for target with class probabilities"):
        F.cross_entropy(logits, lg.ones(2, 3).long())
    with pytest.raises(ValueError, match="at least 1 dimension"):
        F.nll_loss(lg.tensor(1.0), lg.tensor(0))


@pytest.mark.parametrize(
    "name", ["mse_loss", "huber_loss", "kl_div", "binary_cross_entropy", "cross_entropy", "nll_loss"]
)
def test_losses_want_tensors(name):
    with pytest.raises(TypeError, match=rf"{name}\(\): argument 'input' must be Tensor, not float"):
        getattr(F, name)(1.0, lg.ones(1))
    with pytest.raises(TypeError, match=rf"{name}\(\): argument 'target' must be Tensor, not float"):
        getattr(F, name)(lg.ones(1), 1.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.cross_entropy(x, lg.tensor([1, 0, 2]), label_smoothing=0.1),
        lambda x: F.layer_norm(x, (4,)),
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: F.binary_cross_entropy_with_logits(x, lg.full((3, 4), 0.3, dtype=lg.float64)),
        lambda x: F.gelu(x) + F.silu(x) + F.mish(x) + F.softplus(x),
        lambda x: F.normalize(x),
        lambda x: F.bilinear(x, x, lg.ones(2, 4, 4, dtype=lg.float64)),
    ],
)
def test_second_derivatives(function):
    x = lg.randn(3, 4, dtype=lg.float64, requires_grad=True)
    assert lg.autograd.gradcheck(function, (x,))
    assert lg.autograd.gradgradcheck(function, (x,))
