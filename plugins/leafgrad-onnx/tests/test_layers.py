"""Each layer of nn leaves, runs in onnxruntime with leafgrad's numbers, and comes back."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad import nn


def x(*shape):
    return leafgrad.randn(*shape)


def classes(n, *shape):
    return leafgrad.randint(0, n, shape)


def signs(*shape):
    return leafgrad.randint(0, 2, shape) * 2.0 - 1


def probabilities(*shape):
    return leafgrad.rand(*shape)


LINE, IMAGE, CUBE = (2, 4, 11), (2, 4, 9, 8), (2, 4, 5, 6, 7)
ACTIVATIONS = (
    "CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish PReLU ReLU ReLU6 SELU SiLU "
    "Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink RReLU Identity"
).split()
LAYERS = {
    **{name: (lambda name=name: getattr(nn, name)(), lambda: (x(3, 4) * 3,)) for name in ACTIVATIONS},
    "AdaptiveAvgPool1d": (lambda: nn.AdaptiveAvgPool1d(4), lambda: (x(*LINE),)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((4, 3)), lambda: (x(*IMAGE),)),
    "AdaptiveAvgPool3d": (lambda: nn.AdaptiveAvgPool3d((2, 3, 4)), lambda: (x(*CUBE),)),
    "AdaptiveMaxPool1d": (lambda: nn.AdaptiveMaxPool1d(4), lambda: (x(*LINE),)),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d((4, 3)), lambda: (x(*IMAGE),)),
    "AdaptiveMaxPool3d": (lambda: nn.AdaptiveMaxPool3d((2, 3, 4)), lambda: (x(*CUBE),)),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(32, 20, [5, 12]).log_prob,
        lambda: (x(3, 32),),
    ),
    "AlphaDropout": (nn.AlphaDropout, lambda: (x(3, 4),)),
    "AvgPool1d": (lambda: nn.AvgPool1d(3, 2, 1), lambda: (x(*LINE),)),
    "AvgPool2d": (lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False), lambda: (x(*IMAGE),)),
    "AvgPool3d": (lambda: nn.AvgPool3d(2), lambda: (x(*CUBE),)),
    "BCELoss": (nn.BCELoss, lambda: (probabilities(3, 4), probabilities(3, 4))),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss, lambda: (x(3, 4), probabilities(3, 4))),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), lambda: (x(*LINE),)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4), lambda: (x(*IMAGE),)),
    "BatchNorm3d": (lambda: nn.BatchNorm3d(4), lambda: (x(*CUBE),)),
    "Bilinear": (lambda: nn.Bilinear(3, 4, 5), lambda: (x(2, 3), x(2, 4))),
    "CTCLoss": (nn.CTCLoss, lambda: (leafgrad.log_softmax(x(7, 2, 5), -1), classes(4, 2, 3) + 1, (7, 6), (3, 2))),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), lambda: (x(*IMAGE),)),
    "CircularPad1d": (lambda: nn.CircularPad1d(2), lambda: (x(*LINE),)),
    "CircularPad2d": (lambda: nn.CircularPad2d((1, 2, 0, 3)), lambda: (x(*IMAGE),)),
    "CircularPad3d": (lambda: nn.CircularPad3d(1), lambda: (x(*CUBE),)),
    "ConstantPad1d": (lambda: nn.ConstantPad1d(2, 1.5), lambda: (x(*LINE),)),
    "ConstantPad2d": (lambda: nn.ConstantPad2d((1, 2, -1, 3), 1.5), lambda: (x(*IMAGE),)),
    "ConstantPad3d": (lambda: nn.ConstantPad3d(1, -2.0), lambda: (x(*CUBE),)),
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3, 2, 1, 2, 2), lambda: (x(*LINE),)),
    "Conv2d": (lambda: nn.Conv2d(4, 6, (3, 2), (2, 3), 1), lambda: (x(*IMAGE),)),
    "Conv3d": (lambda: nn.Conv3d(4, 6, 2, bias=False), lambda: (x(*CUBE),)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 6, 3, 2, 1, 1), lambda: (x(*LINE),)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 6, 3, (2, 3), 1, groups=2), lambda: (x(*IMAGE),)),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(4, 6, 2, dilation=2), lambda: (x(*CUBE),)),
    "CosineEmbeddingLoss": (nn.CosineEmbeddingLoss, lambda: (x(3, 4), x(3, 4), signs(3))),
    "CosineSimilarity": (nn.CosineSimilarity, lambda: (x(3, 4), x(3, 4))),
    "CrossEntropyLoss": (nn.CrossEntropyLoss, lambda: (x(3, 5), classes(5, 3))),
    "Dropout": (nn.Dropout, lambda: (x(3, 4),)),
    "Dropout1d": (nn.Dropout1d, lambda: (x(*LINE),)),
    "Dropout2d": (nn.Dropout2d, lambda: (x(*IMAGE),)),
    "Dropout3d": (nn.Dropout3d, lambda: (x(*CUBE),)),
    "Embedding": (lambda: nn.Embedding(10, 4), lambda: (classes(10, 3, 2),)),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(10, 4, mode="sum"), lambda: (classes(10, 3, 2),)),
    "FeatureAlphaDropout": (nn.FeatureAlphaDropout, lambda: (x(*IMAGE),)),
    "Flatten": (nn.Flatten, lambda: (x(*IMAGE),)),
    "Fold": (lambda: nn.Fold((5, 6), (2, 3), padding=1, stride=2), lambda: (x(2, 18, 9),)),
    "GLU": (nn.GLU, lambda: (x(3, 4),)),
    "GRU": (lambda: nn.GRU(3, 4, 2, bidirectional=True), lambda: (x(5, 2, 3),)),
    "GRUCell": (lambda: nn.GRUCell(3, 4), lambda: (x(2, 3), x(2, 4))),
    "GaussianNLLLoss": (nn.GaussianNLLLoss, lambda: (x(3, 4), x(3, 4), probabilities(3, 4))),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), lambda: (x(*IMAGE),)),
    "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss, lambda: (x(3, 4), signs(3, 4))),
    "HuberLoss": (nn.HuberLoss, lambda: (x(3, 4) * 2, x(3, 4))),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(4, affine=True), lambda: (x(*LINE),)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4, track_running_stats=True), lambda: (x(*IMAGE),)),
    "InstanceNorm3d": (lambda: nn.InstanceNorm3d(4), lambda: (x(*CUBE),)),
    "KLDivLoss": (lambda: nn.KLDivLoss(reduction="batchmean"), lambda: (x(3, 4), probabilities(3, 4))),
    "L1Loss": (nn.L1Loss, lambda: (x(3, 4), x(3, 4))),
    "LPPool1d": (lambda: nn.LPPool1d(2, 3, 2), lambda: (x(*LINE),)),
    "LPPool2d": (lambda: nn.LPPool2d(2, 3, 2), lambda: (x(*IMAGE),)),
    "LPPool3d": (lambda: nn.LPPool3d(3, 2), lambda: (x(*CUBE).abs(),)),
    "LSTM": (lambda: nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True), lambda: (x(2, 5, 3),)),
    "LSTMCell": (lambda: nn.LSTMCell(3, 4), lambda: (x(2, 3), (x(2, 4), x(2, 4)))),
    "LayerNorm": (lambda: nn.LayerNorm((9, 8)), lambda: (x(*IMAGE),)),
    "Linear": (lambda: nn.Linear(8, 3), lambda: (x(*IMAGE),)),
    "LinearCrossEntropyLoss": (lambda: nn.LinearCrossEntropyLoss(4, 6), lambda: (x(3, 4), classes(6, 3))),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(3), lambda: (x(*IMAGE),)),
    "LogSoftmax": (lambda: nn.LogSoftmax(1), lambda: (x(3, 4),)),
    "MSELoss": (nn.MSELoss, lambda: (x(3, 4), x(3, 4))),
    "MarginRankingLoss": (nn.MarginRankingLoss, lambda: (x(3), x(3), signs(3))),
    "MaxPool1d": (lambda: nn.MaxPool1d(3, 2, 1), lambda: (x(*LINE),)),
    "MaxPool2d": (lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True, return_indices=True), lambda: (x(*IMAGE),)),
    "MaxPool3d": (lambda: nn.MaxPool3d(2, dilation=2, stride=1), lambda: (x(*CUBE),)),
    "MaxPool2d of wide padding": (lambda: nn.MaxPool2d(3, 3, 1, 2, ceil_mode=True), lambda: (x(2, 4, 9, 7),)),
    "MaxUnpool1d": (lambda: nn.MaxUnpool1d(2), lambda: nn.MaxPool1d(2, return_indices=True)(x(*LINE))),
    "MaxUnpool2d": (lambda: nn.MaxUnpool2d(2), lambda: nn.MaxPool2d(2, return_indices=True)(x(*IMAGE))),
    "MaxUnpool3d": (lambda: nn.MaxUnpool3d(2), lambda: nn.MaxPool3d(2, return_indices=True)(x(2, 4, 4, 6, 6))),
    "ModuleDict": (lambda: Dict(), lambda: (x(3, 4),)),
    "ModuleList": (lambda: List(), lambda: (x(3, 4),)),
    "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss, lambda: (x(1, 4), leafgrad.tensor([[3, 0, -1, 1]]))),
    "MultiLabelSoftMarginLoss": (nn.MultiLabelSoftMarginLoss, lambda: (x(3, 4), probabilities(3, 4))),
    "MultiMarginLoss": (nn.MultiMarginLoss, lambda: (x(3, 4), classes(4, 3))),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(8, 2, batch_first=True), lambda: (x(2, 5, 8),) * 3),
    "NLLLoss": (nn.NLLLoss, lambda: (x(3, 5), classes(5, 3))),
    "PairwiseDistance": (nn.PairwiseDistance, lambda: (x(3, 4), x(3, 4))),
    "ParameterDict": (lambda: Weights(), lambda: (x(3, 4),)),
    "ParameterList": (lambda: Weights(), lambda: (x(3, 4),)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), lambda: (x(*IMAGE),)),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), lambda: (x(2, 3, 4, 6),)),
    "PoissonNLLLoss": (nn.PoissonNLLLoss, lambda: (x(3, 4), probabilities(3, 4) * 5)),
    "RMSNorm": (lambda: nn.RMSNorm(8), lambda: (x(*IMAGE),)),
    "RNN": (lambda: nn.RNN(3, 4, nonlinearity="relu"), lambda: (x(5, 2, 3), x(1, 2, 4))),
    "RNNCell": (lambda: nn.RNNCell(3, 4), lambda: (x(2, 3), x(2, 4))),
    "ReflectionPad1d": (lambda: nn.ReflectionPad1d(2), lambda: (x(*LINE),)),
    "ReflectionPad2d": (lambda: nn.ReflectionPad2d((1, 2, 0, 3)), lambda: (x(*IMAGE),)),
    "ReflectionPad3d": (lambda: nn.ReflectionPad3d(1), lambda: (x(*CUBE),)),
    "ReplicationPad1d": (lambda: nn.ReplicationPad1d(2), lambda: (x(*LINE),)),
    "ReplicationPad2d": (lambda: nn.ReplicationPad2d((1, 2, 0, 3)), lambda: (x(*IMAGE),)),
    "ReplicationPad3d": (lambda: nn.ReplicationPad3d(1), lambda: (x(*CUBE),)),
    "Sequential": (lambda: nn.Sequential(nn.Linear(4, 5), nn.ReLU()), lambda: (x(3, 4),)),
    "SmoothL1Loss": (nn.SmoothL1Loss, lambda: (x(3, 4), x(3, 4))),
    "SoftMarginLoss": (nn.SoftMarginLoss, lambda: (x(3, 4), signs(3, 4))),
    "Softmax": (lambda: nn.Softmax(1), lambda: (x(3, 4),)),
    "Softmax2d": (nn.Softmax2d, lambda: (x(*IMAGE),)),
    "Softmin": (lambda: nn.Softmin(1), lambda: (x(3, 4),)),
    "SyncBatchNorm": (lambda: nn.SyncBatchNorm(4), lambda: (x(*IMAGE),)),
    "Threshold": (lambda: nn.Threshold(0.2, 3.0), lambda: (x(3, 4),)),
    "Transformer": (lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True), lambda: (x(2, 5, 8), x(2, 3, 8))),
    "TransformerDecoder": (
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2),
        lambda: (x(5, 2, 8), x(3, 2, 8)),
    ),
    "TransformerDecoderLayer": (lambda: nn.TransformerDecoderLayer(8, 2, 16), lambda: (x(5, 2, 8), x(3, 2, 8))),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2),
        lambda: (x(5, 2, 8),),
    ),
    "TransformerEncoderLayer": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", norm_first=True),
        lambda: (x(5, 2, 8),),
    ),
    "TripletMarginLoss": (nn.TripletMarginLoss, lambda: (x(3, 4), x(3, 4), x(3, 4))),
    "TripletMarginWithDistanceLoss": (nn.TripletMarginWithDistanceLoss, lambda: (x(3, 4), x(3, 4), x(3, 4))),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 2)), lambda: (x(3, 4),)),
    "Unfold": (lambda: nn.Unfold((2, 3), padding=1, stride=2), lambda: (x(2, 3, 5, 6),)),
    "Upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), lambda: (x(*IMAGE),)),
    "UpsamplingBilinear2d": (lambda: nn.UpsamplingBilinear2d(scale_factor=2), lambda: (x(*IMAGE),)),
    "UpsamplingNearest2d": (lambda: nn.UpsamplingNearest2d(scale_factor=2), lambda: (x(*IMAGE),)),
    "ZeroPad1d": (lambda: nn.ZeroPad1d(2), lambda: (x(*LINE),)),
    "ZeroPad2d": (lambda: nn.ZeroPad2d((1, 2, 0, 3)), lambda: (x(*IMAGE),)),
    "ZeroPad3d": (lambda: nn.ZeroPad3d(1), lambda: (x(*CUBE),)),
}
NO_LAYERS = set(
    "Buffer DataParallel NLLLoss2d LazyModuleMixin Module Parameter RNNBase RNNCellBase UninitializedBuffer "
    "UninitializedParameter".split()
)  # NLLLoss2d is NLLLoss under an old name, and warns
CANNOT = {
    "FractionalMaxPool2d": "where its windows lie is drawn at each call",
    "FractionalMaxPool3d": "where its windows lie is drawn at each call",
}


class Dict(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Tanh()})

    def forward(self, x):
        return self.parts["b"](self.parts["a"](x))


class List(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 2)])

    def forward(self, x):
        return self.parts[1](self.parts[0](x))


class Weights(nn.Module):
    def __init__(self):
        super().__init__()
        self.named = nn.ParameterDict({"a": nn.Parameter(leafgrad.randn(4))})
        self.listed = nn.ParameterList([nn.Parameter(leafgrad.randn(4))])

    def forward(self, x):
        return x * self.named["a"] + self.listed[0]


def test_every_layer_is_in_the_table():
    there = {name for name in dir(nn) if isinstance(getattr(nn, name), type) and not name.startswith("Lazy")}
    assert there - NO_LAYERS == {*(name.split()[0] for name in LAYERS), *CANNOT}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_agrees(name, agrees):
    leafgrad.manual_seed(0)
    make, inputs = LAYERS[name]
    layer = make()
    with leafgrad.no_grad():
        given = inputs()
        agrees(layer, *given, tolerance=2e-5 if name == "Transformer" else 1e-5)


def test_gradients_of_multilabel_margins(agrees):
    target = leafgrad.tensor([[3, 0, -1, 1], [-1, 0, 0, 0], [0, 1, 2, 3]])
    loss = nn.MultiLabelMarginLoss()
    agrees(lambda x, t: leafgrad.autograd.grad(loss(x, t), x)[0], x(3, 4).requires_grad_(), target)
