"""Modules in PyTorch, where it is installed: reprs, state dict keys, outputs, gradients and buffers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import leafgrad as lg

torch = pytest.importorskip("torch")

SHAPES = {
    "flat": (6, 4),
    "1d": (3, 4, 5),
    "2d": (2, 4, 3, 2),
    "3d": (2, 4, 2, 3, 2),
    "one 1d": (4, 5),
    "one 2d": (4, 3, 2),
}

LAYERS = {
    "BatchNorm1d": ("1d", lambda nn: nn.BatchNorm1d(4, bias=False)),
    "BatchNorm2d": ("2d", lambda nn: nn.BatchNorm2d(4)),
    "BatchNorm2d average": ("2d", lambda nn: nn.BatchNorm2d(4, momentum=None)),
    "BatchNorm3d": ("3d", lambda nn: nn.BatchNorm3d(4, eps=0.1, momentum=0.3, affine=False)),
    "InstanceNorm1d": ("1d", lambda nn: nn.InstanceNorm1d(4)),
    "InstanceNorm1d alone": ("one 1d", lambda nn: nn.InstanceNorm1d(4, affine=True)),
    "InstanceNorm2d": ("2d", lambda nn: nn.InstanceNorm2d(4, affine=True, track_running_stats=True)),
    "InstanceNorm2d alone": ("one 2d", lambda nn: nn.InstanceNorm2d(4, track_running_stats=True)),
    "InstanceNorm3d": ("3d", lambda nn: nn.InstanceNorm3d(4, affine=True, bias=False)),
    "GroupNorm": ("2d", lambda nn: nn.GroupNorm(2, 4)),
    "GroupNorm bare": ("flat", lambda nn: nn.GroupNorm(2, 4, affine=False)),
    "GroupNorm without bias": ("1d", lambda nn: nn.GroupNorm(1, 4, bias=False)),
    "RMSNorm": ("flat", lambda nn: nn.RMSNorm(4)),
    "RMSNorm bare": ("2d", lambda nn: nn.RMSNorm((3, 2), 1e-3, elementwise_affine=False)),
    "LocalResponseNorm": ("2d", lambda nn: nn.LocalResponseNorm(3, 0.3, 0.6, 2.0)),
    "RReLU": ("flat", lambda nn: nn.RReLU(0.2, 0.2)),
    "Softmax2d": ("2d", lambda nn: nn.Softmax2d()),
    "Softmax2d alone": ("one 2d", lambda nn: nn.Softmax2d()),
    "Dropout1d": ("1d", lambda nn: nn.Dropout1d(0.0)),
    "Dropout2d": ("2d", lambda nn: nn.Dropout2d(0.0)),
    "Dropout3d": ("3d", lambda nn: nn.Dropout3d(0.0)),
    "AlphaDropout": ("flat", lambda nn: nn.AlphaDropout(0.0)),
    "FeatureAlphaDropout": ("flat", lambda nn: nn.FeatureAlphaDropout(0.0)),
    "repeated": ("flat", lambda nn: nn.Sequential(nn.Linear(4, 4), nn.Tanh()) * 2),
    "weight norm": ("flat", lambda nn: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))),
    "weight norm of columns": ("flat", lambda nn: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3), dim=1)),
    "weight norm of all": ("flat", lambda nn: nn.utils.weight_norm(nn.Linear(4, 3), dim=None)),
    "weight norm of old": ("flat", lambda nn: nn.utils.weight_norm(nn.Linear(4, 3))),
    "spectral norm": ("flat", lambda nn: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3))),
    "spectral norm of old": ("flat", lambda nn: nn.utils.spectral_norm(nn.Linear(4, 3), n_power_iterations=2)),
    "orthogonal": ("flat", lambda nn: nn.utils.parametrizations.orthogonal(nn.Linear(4, 4))),
    "tall": ("flat", lambda nn: nn.utils.parametrizations.orthogonal(nn.Linear(4, 6))),
    "wide": ("flat", lambda nn: nn.utils.parametrizations.orthogonal(nn.Linear(4, 3))),
    "cayley": ("flat", lambda nn: nn.utils.parametrizations.orthogonal(nn.Linear(4, 3), orthogonal_map="cayley")),
    "exponential": (
        "flat",
        lambda nn: nn.utils.parametrizations.orthogonal(nn.Linear(4, 4), use_trivialization=False),
    ),
    "reflections": (
        "flat",
        lambda nn: nn.utils.parametrizations.orthogonal(nn.Linear(4, 3), use_trivialization=False),
    ),
}  # fmt: skip

REPRS = {
    **{name: make for name, (_, make) in LAYERS.items()},
    "Embedding": lambda nn: nn.Embedding(4, 3, padding_idx=-1, max_norm=1.0, norm_type=3, scale_grad_by_freq=True),
    "EmbeddingBag": lambda nn: nn.EmbeddingBag(4, 3),
    "EmbeddingBag with all": lambda nn: nn.EmbeddingBag(
        4, 3, max_norm=2.0, norm_type=1, scale_grad_by_freq=True, mode="sum", padding_idx=-1
    ),
    "RReLU in place": lambda nn: nn.RReLU(inplace=True),
    "SyncBatchNorm": lambda nn: nn.SyncBatchNorm(3),
    "Dropout2d in place": lambda nn: nn.Dropout2d(inplace=True),
    "LazyLinear": lambda nn: nn.LazyLinear(3),
    "LazyConv2d": lambda nn: nn.LazyConv2d(3, 2, bias=False),
    "LazyConvTranspose1d": lambda nn: nn.LazyConvTranspose1d(3, 2, output_padding=1, stride=2),
    "LazyBatchNorm2d": lambda nn: nn.LazyBatchNorm2d(bias=False),
    "LazyInstanceNorm1d": lambda nn: nn.LazyInstanceNorm1d(),
    "AdaptiveLogSoftmaxWithLoss": lambda nn: nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10], 2.0, head_bias=True),
    "LinearCrossEntropyLoss": lambda nn: nn.LinearCrossEntropyLoss(3, 4, out_features=(2,), bias=True),
    "losses": lambda nn: nn.ModuleList(
        [
            *(nn.TripletMarginLoss(), nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance())),
            *(nn.GaussianNLLLoss(), nn.PoissonNLLLoss(), nn.CosineSimilarity(), nn.MultiMarginLoss()),
            nn.SoftMarginLoss(),
        ]
    ),
    "objects in a list": lambda nn: nn.ParameterList([nn.Parameter(nn.Linear(1, 1).weight), 3, "text"]),
}


def array(t):
    return t.detach().numpy()


def pair(make):
    """A PyTorch module, and ours with the same values; both float64."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        theirs, ours = make(torch.nn).double(), make(lg.nn).double()
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    ours.load_state_dict({name: lg.from_numpy(array(t).copy()) for name, t in theirs.state_dict().items()})
    return theirs, ours


def check(ours, theirs, tolerance=1e-9):
    if theirs is None:
        assert ours is None
        return
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(array(ours), array(theirs), tolerance, tolerance)


@pytest.mark.parametrize("name", REPRS)
def test_reprs(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        assert repr(REPRS[name](lg.nn)).replace("leafgrad.", "torch.") == repr(REPRS[name](torch.nn))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, training):
    shape, make = LAYERS[name]
    theirs, ours = pair(make)
    theirs.train(training)
    ours.train(training)
    x = np.random.default_rng(3).standard_normal(SHAPES[shape]) * 2
    a, b = lg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    for _ in range(2):
        out, expected = ours(a), theirs(b)
        check(out, expected)
        out.sin().sum().backward()
        expected.sin().sum().backward()
    check(a.grad, b.grad)
    for (key, p), (other, q) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert key == other
        check(p.grad, q.grad)
    for p, q in zip(ours.buffers(), theirs.buffers(), strict=True):
        check(p, q)


@pytest.mark.parametrize("kind", ["adaptive", "linear"])
def test_losses_with_parameters(kind):
    makes = {
        "adaptive": lambda nn: nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10], 2.0, head_bias=True),
        "linear": lambda nn: nn.LinearCrossEntropyLoss(16, 20, bias=True, label_smoothing=0.1),
    }
    theirs, ours = pair(makes[kind])
    x, y = np.random.default_rng(1).standard_normal((6, 16)), np.array([0, 4, 5, 9, 10, 19])
    results = theirs(torch.tensor(x), torch.tensor(y)), ours(lg.tensor(x), lg.tensor(y))
    if kind == "adaptive":
        check(results[1].output, results[0].output)
        check(ours.log_prob(lg.tensor(x)), theirs.log_prob(torch.tensor(x)))
        check(ours.predict(lg.tensor(x)), theirs.predict(torch.tensor(x)))
        results = [r.loss for r in results]
    check(results[1], results[0])
    for loss in results:
        loss.backward()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        check(p.grad, q.grad)


@pytest.mark.parametrize("name", ["orthogonal", "tall", "wide", "reflections"])
def test_orthogonal_weights_are_written_alike(name):
    theirs, ours = pair(LAYERS[name][1])
    new = np.linalg.qr(np.random.default_rng(5).standard_normal(theirs.weight.shape[::-1]))[0].T
    if theirs.weight.shape[0] > theirs.weight.shape[1]:
        new = np.linalg.qr(np.random.default_rng(5).standard_normal(theirs.weight.shape))[0]
    theirs.weight, ours.weight = torch.tensor(new), lg.tensor(new)
    check(ours.weight, theirs.weight)
    np.testing.assert_allclose(array(ours.weight), new, atol=1e-12)


def test_gradients_clipped_alike():
    results = []
    for t in (torch, lg):
        parts = [t.nn.Parameter(t.arange(4.0) if t is torch else t.arange(4).float()) for _ in range(2)]
        for p in parts:
            p.grad = p.detach() * 2
        total = t.nn.utils.get_total_norm([p.grad for p in parts], 3.0)
        t.nn.utils.clip_grads_with_norm_(parts, 1.5, total)
        again = t.nn.utils.clip_grad_norm_(parts, 1.0, norm_type=1, foreach=False)
        results.append([total, again, *[p.grad for p in parts]])
    for e, a in zip(*results, strict=True):
        check(a, e, 1e-6)


def test_errors_of_load_state_dict_read_alike():
    def message(t, case):
        net = t.nn.Sequential(t.nn.Linear(2, 3), t.nn.BatchNorm1d(3), t.nn.ModuleDict({"a": t.nn.Linear(3, 1)}))
        state = net.state_dict()
        if case == "keys":
            state["0.what.x"] = state["2.a.b.c"] = state["zz"] = state["1.running_mean.x"] = t.ones(1)
            del state["1.running_var"], state["2.a.weight"]
        else:
            state["0.weight"], state["2.a.bias"], state["1.weight"] = t.ones(2, 2), t.ones(5), 3
        with pytest.raises(RuntimeError) as error:
            net.load_state_dict(state)
        return str(error.value).replace("torch.", "leafgrad.")

    for case in ("keys", "values"):
        assert message(lg, case) == message(torch, case)


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_hooks_are_called_in_the_same_order(order):
    def run(t):
        seen = []
        every = t.nn.modules.module
        net = t.nn.Sequential(t.nn.Linear(2, 2), t.nn.Tanh())
        handles = [
            every.register_module_forward_pre_hook(lambda m, a: seen.append(("all pre", type(m).__name__))),
            every.register_module_forward_hook(lambda m, a, o: seen.append(("all", type(m).__name__))),
            every.register_module_full_backward_hook(lambda m, gi, go: seen.append(("all back", type(m).__name__))),
        ]
        for i in order:
            net[0].register_forward_pre_hook(lambda m, a, i=i: seen.append(("pre", i)), prepend=i == 2)
            net[0].register_forward_hook(lambda m, a, o, i=i: seen.append(("post", i)), prepend=i == 2)
            net[1].register_full_backward_hook(lambda m, gi, go, i=i: seen.append(("back", i)), prepend=i == 2)
            net[0].register_forward_hook(lambda m, a, o, i=i: seen.append(("always", i)), always_call=True)
        net(t.ones(1, 2, requires_grad=True)).sum().backward()
        with pytest.raises((RuntimeError, TypeError)):
            net(t.ones(1, 3))
        for handle in handles:
            handle.remove()
        net(t.ones(1, 2))
        return seen

    assert run(lg) == run(torch)
