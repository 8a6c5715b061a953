"""Layers and losses in compiled training steps: losses, parameters and buffers as in eager ones."""

from __future__ import annotations

import copy

import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.nn import functional as F


class Ends(nn.Module):
    """A linear layer, and what is done with its output and further tensors."""

    def __init__(self, last, *more):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.last = last
        self.more = more

    def forward(self, x):
        return self.last(self.first(x), *self.more)


class Holders(nn.Module):
    def __init__(self):
        super().__init__()
        self.many = nn.ParameterList([lg.ones(4), lg.ones(4) * 2])
        self.named = nn.ParameterDict({"a": lg.ones(4)})

    def forward(self, x):
        return x * self.many[0] + self.many[1] * self.named["a"]


def drawn(*shape):
    return lg.randn(*shape, generator=lg.Generator().manual_seed(len(shape)))


X, Y = drawn(6, 4), drawn(2, 12).reshape(6, 4)
SIGN = lg.where(Y > 0, 1.0, -1.0)
PIXELS = drawn(2, 4, 3, 3)
AT = lg.tensor([[1, 2], [3, 3]])

CASES = {
    "BatchNorm1d": (lambda: Ends(nn.BatchNorm1d(4, momentum=None)), X),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4), PIXELS),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4, affine=True, track_running_stats=True), PIXELS),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), PIXELS),
    "RMSNorm": (lambda: nn.RMSNorm(4), X),
    "LocalResponseNorm": (lambda: nn.Sequential(nn.BatchNorm2d(4), nn.LocalResponseNorm(3)), PIXELS),
    "Dropout2d": (lambda: nn.Sequential(nn.BatchNorm2d(4), nn.Dropout2d()), PIXELS),
    "AlphaDropout": (lambda: Ends(nn.AlphaDropout(0.3)), X),
    "RReLU": (lambda: Ends(nn.RReLU()), X),
    "gumbel": (lambda: Ends(lambda x: F.gumbel_softmax(x, hard=True) * lg.arange(4)), X),
    "Embedding": (lambda: nn.Embedding(5, 3, padding_idx=1, scale_grad_by_freq=True), AT),
    "Embedding, shortened": (lambda: nn.Embedding(5, 3, max_norm=0.5), AT),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(5, 3, padding_idx=1), AT),
    "EmbeddingBag, largest": (lambda: nn.EmbeddingBag(5, 3, mode="max"), AT.reshape(4), lg.tensor([0, 2, 2])),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], 2.0),
        *(drawn(3, 8), lg.tensor([1, 7, 19])),
    ),
    "LinearCrossEntropyLoss": (lambda: nn.LinearCrossEntropyLoss(4, 3), X, lg.tensor([0, 1, 2, 0, 1, 2])),
    "holders": (Holders, X),
    "hinge": (lambda: Ends(nn.HingeEmbeddingLoss(), SIGN), X),
    "soft margin": (lambda: Ends(nn.SoftMarginLoss(), SIGN), X),
    "ranking": (lambda: Ends(nn.MarginRankingLoss(), Y, SIGN), X),
    "cosine": (lambda: Ends(nn.CosineEmbeddingLoss(), Y, SIGN[:, 0]), X),
    "gauss": (lambda: Ends(nn.GaussianNLLLoss(full=True), Y, Y.abs()), X),
    "poisson": (lambda: Ends(nn.PoissonNLLLoss(full=True), Y.abs() * 3), X),
    "triplet": (lambda: Ends(nn.TripletMarginLoss(swap=True), Y, Y * 2), X),
    "multi margin": (lambda: Ends(nn.MultiMarginLoss(), lg.tensor([0, 1, 2, 3, 0, 1])), X),
    "multilabel margin": (lambda: Ends(nn.MultiLabelMarginLoss(), lg.tensor([[0, 1, -1, 2]] * 6)), X),
    "multilabel soft margin": (lambda: Ends(nn.MultiLabelSoftMarginLoss(), (SIGN > 0).float()), X),
    "pdist": (lambda: Ends(F.pdist), X),
}  # fmt: skip


def step_of(net, inputs):
    sgd = lg.optim.SGD(net.parameters(), lr=0.05)

    def step():
        sgd.zero_grad()
        out = net(*inputs)
        loss = out.loss if hasattr(out, "loss") else out.square().sum()
        loss.backward()
        sgd.step()
        return loss

    return step


@pytest.mark.parametrize("name", CASES)
def test_a_compiled_step_is_the_eager_step(name):
    make, *inputs = CASES[name]
    lg.manual_seed(1)
    net = make()
    twin = copy.deepcopy(net)
    compiled, eager = lg.compile(step_of(net, inputs)), step_of(twin, inputs)
    for _ in range(3):
        state = lg.get_rng_state()
        loss = compiled().item()
        lg.set_rng_state(state)
        assert eager().item() == pytest.approx(loss, rel=1e-4, abs=1e-5)
    for (key, ours), theirs in zip(net.state_dict().items(), twin.state_dict().values(), strict=True):
        assert (ours - theirs).abs().max().item() < 1e-4, key
