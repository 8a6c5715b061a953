"""Dropout and its kin: what is kept, how it is scaled, which elements go together."""

from __future__ import annotations

import math

import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.nn import functional as F

TESTS = "nn.functional.dropout"


@pytest.fixture(autouse=True)
def _seeded():
    lg.manual_seed(0)


CHANNELS = {
    "1d": (nn.Dropout1d, (50, 8, 6)),
    "1d alone": (nn.Dropout1d, (200, 6)),
    "2d": (nn.Dropout2d, (50, 8, 3, 2)),
    "3d": (nn.Dropout3d, (50, 8, 2, 2, 2)),
    "3d alone": (nn.Dropout3d, (200, 2, 2, 2)),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_whole_channels_go(name, device):
    kind, shape = CHANNELS[name]
    out = kind(0.25)(lg.ones(shape, device=device))
    first = out.flatten(1 if "alone" in name else 2)[..., :1]
    assert bool((out.flatten(1 if "alone" in name else 2) == first).all())
    assert first.reshape(-1).unique().tolist() == pytest.approx([0, 4 / 3])
    assert (first != 0).float().mean().item() == pytest.approx(0.75, abs=0.1)
    x = lg.ones(shape, device=device)
    assert kind(0.25).eval()(x) is x


@pytest.mark.parametrize("kind", [nn.AlphaDropout, nn.FeatureAlphaDropout])
@pytest.mark.parametrize("p", [0.2, 0.6])
def test_alpha_dropout_keeps_mean_and_variance(kind, p, device):
    x = lg.randn(100, 300, device=device)
    out = kind(p)(x)
    assert out.mean().item() == pytest.approx(0, abs=0.05)
    assert out.var().item() == pytest.approx(1, abs=0.05)
    assert kind(p).eval()(x) is x
    saturated = -1.7580993408473766
    scale = 1 / math.sqrt((saturated**2 * p + 1) * (1 - p))
    lost = out[(out - scale * saturated * (1 - p)).abs() < 1e-5]
    assert lost.numel() / out.numel() == pytest.approx(p, abs=0.02)


@pytest.mark.parametrize("kind", [nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout])
def test_in_place_and_edges(kind):
    shape = {nn.Dropout2d: (2, 3, 4, 5), nn.Dropout3d: (2, 3, 4, 5, 1)}.get(kind, (2, 3, 4))
    x = lg.ones(shape)
    made = kind(0.5, inplace=True)(x)
    assert made.tolist() == x.tolist()
    assert x.tolist() != lg.ones(shape).tolist()
    assert kind(1.0)(lg.ones(shape)).abs().sum().item() == 0
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1, but got"):
        kind(1.5)


def test_dimensions():
    with pytest.raises(RuntimeError, match="dropout1d: Expected 2D or 3D input, but received a 4D input"):
        F.dropout1d(lg.ones(1, 1, 1, 1))
    with pytest.warns(UserWarning, match="dropout2d: Received a 3D input to dropout2d"):
        F.dropout2d(lg.ones(2, 2, 2))
    with pytest.warns(UserWarning, match="dropout3d: Received a 2-D input"):
        F.dropout3d(lg.ones(2, 2))
    with pytest.raises(RuntimeError, match="Feature dropout requires at least 2 dimensions"):
        F.feature_alpha_dropout(lg.ones(2), training=True)


def test_random_slopes(device):
    x = lg.randn(400, device=device, requires_grad=True)
    out = nn.RReLU(0.1, 0.3)(x)
    slopes = (out / x)[x < 0]
    assert bool(((slopes >= 0.1) & (slopes < 0.3 + 1e-6)).all())
    assert slopes.std().item() > 0.03
    assert bool((out[x > 0] == x[x > 0]).all())
    out.sum().backward()
    assert (x.grad[x < 0] - slopes).abs().max().item() < 1e-6
    assert nn.RReLU(0.1, 0.3).eval()(lg.tensor([-1.0], device=device)).item() == pytest.approx(-0.2)
    with pytest.raises(RuntimeError, match="Lower bound should be less than or equal to the upper bound"):
        F.rrelu(x, 0.5, 0.1)


def test_gumbel_softmax_chooses_with_the_odds(device):
    logits = lg.tensor([0.0, 1.0, 2.0], device=device).expand(4000, 3)
    hard = F.gumbel_softmax(logits, hard=True)
    assert bool((hard.sum(1) == 1).all())
    assert set(hard.reshape(-1).unique().tolist()) <= {0.0, 1.0}
    assert (hard.mean(0) - lg.softmax(logits[0], 0)).abs().max().item() < 0.04
    x = logits.clone().requires_grad_()
    soft = F.gumbel_softmax(x, tau=0.5)
    assert (soft.sum(1) - 1).abs().max().item() < 1e-5
    (F.gumbel_softmax(x, hard=True) * lg.tensor([1.0, 2.0, 3.0], device=device)).sum().backward()
    assert x.grad.abs().sum().item() > 0
    with pytest.warns(UserWarning, match="`eps` parameter is deprecated"):
        F.gumbel_softmax(logits, eps=1e-5)


def test_softmax_of_pixels():
    x = lg.randn(2, 3, 4, 5)
    assert (nn.Softmax2d()(x).sum(1) - 1).abs().max().item() < 1e-6
    assert (nn.Softmax2d()(x[0]).sum(0) - 1).abs().max().item() < 1e-6
    with pytest.raises(ValueError, match="expected input to be 3D or 4D, got 2D instead"):
        nn.Softmax2d()(x[0, 0])
