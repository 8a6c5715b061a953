"""The same modules in PyTorch, where it is installed: reprs, state dict keys, outputs, losses and gradients."""

from __future__ import annotations

import pytest

import leafgrad as lg

torch = pytest.importorskip("torch")

LAYERS = {
    "Linear": lambda nn: nn.Linear(4, 3),
    "Linear without bias": lambda nn: nn.Linear(4, 3, bias=False),
    "Identity": lambda nn: nn.Identity(),
    "Flatten": lambda nn: nn.Flatten(0),
    "Unflatten": lambda nn: nn.Unflatten(1, (2, 2)),
    "BatchNorm1d": lambda nn: nn.BatchNorm1d(4),
    "BatchNorm1d bare": lambda nn: nn.BatchNorm1d(4, affine=False, track_running_stats=False),
    "BatchNorm1d average": lambda nn: nn.BatchNorm1d(4, momentum=None, bias=False),
    "LayerNorm": lambda nn: nn.LayerNorm(4),
    "LayerNorm of two": lambda nn: nn.LayerNorm((6, 4), bias=False),
    "CELU": lambda nn: nn.CELU(0.7),
    "ELU": lambda nn: nn.ELU(0.7),
    "GELU": lambda nn: nn.GELU(),
    "GELU tanh": lambda nn: nn.GELU("tanh"),
    "GLU": lambda nn: nn.GLU(),
    "Hardshrink": lambda nn: nn.Hardshrink(),
    "Hardsigmoid": lambda nn: nn.Hardsigmoid(),
    "Hardswish": lambda nn: nn.Hardswish(),
    "Hardtanh": lambda nn: nn.Hardtanh(-0.5, 0.25),
    "LeakyReLU": lambda nn: nn.LeakyReLU(0.2),
    "LogSigmoid": lambda nn: nn.LogSigmoid(),
    "LogSoftmax": lambda nn: nn.LogSoftmax(1),
    "Mish": lambda nn: nn.Mish(),
    "PReLU": lambda nn: nn.PReLU(4),
    "ReLU": lambda nn: nn.ReLU(),
    "ReLU6": lambda nn: nn.ReLU6(),
    "SELU": lambda nn: nn.SELU(),
    "SiLU": lambda nn: nn.SiLU(),
    "Sigmoid": lambda nn: nn.Sigmoid(),
    "Softmax": lambda nn: nn.Softmax(dim=0),
    "Softmin": lambda nn: nn.Softmin(dim=1),
    "Softplus": lambda nn: nn.Softplus(2, 1),
    "Softshrink": lambda nn: nn.Softshrink(),
    "Softsign": lambda nn: nn.Softsign(),
    "Tanh": lambda nn: nn.Tanh(),
    "Tanhshrink": lambda nn: nn.Tanhshrink(),
    "Threshold": lambda nn: nn.Threshold(0.1, 20),
    "Dropout": lambda nn: nn.Dropout(0.0),
    "Sequential": lambda nn: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Sequential(nn.Linear(5, 2)), nn.ReLU(False)),
}

REPRS = {
    **LAYERS,
    "ReLU in place": lambda nn: nn.ReLU(inplace=True),
    "ELU in place": lambda nn: nn.ELU(inplace=True),
    "Bilinear": lambda nn: nn.Bilinear(2, 3, 4),
    "Embedding": lambda nn: nn.Embedding(3, 4, padding_idx=-1),
    "Softmax without dim": lambda nn: nn.Softmax(),
    "empty": lambda nn: nn.Sequential(nn.Sequential(), nn.ModuleList(), nn.ModuleDict(), nn.ParameterList()),
    "list": lambda nn: nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Sequential(nn.Tanh()), nn.Sequential(nn.Tanh())]),
    "dict": lambda nn: nn.ModuleDict({"a": nn.ModuleList([nn.Tanh()]), "b": nn.Linear(1, 1)}),
    "losses": lambda nn: nn.ModuleList(
        [nn.MSELoss(), nn.CrossEntropyLoss(), nn.HuberLoss(), nn.BCEWithLogitsLoss(), nn.KLDivLoss()]
    ),
}


def array(t):
    return t.detach().numpy()


def pair(make):
    """A PyTorch module, and ours with the same values; both float64."""
    theirs, ours = make(torch.nn).double(), make(lg.nn).double()
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({name: lg.from_numpy(array(t)) for name, t in theirs.state_dict().items()})
    return theirs, ours


# PyTorch computes these in float64 with constants rounded to float32.
ROUNDED = ("CELU", "Hardsigmoid", "bce ")


def check(ours, theirs, tolerance=1e-12):
    a, b = (None if t is None else t.detach().double() for t in (ours, theirs))
    if b is None:
        assert a is None
        return
    assert tuple(a.shape) == tuple(b.shape)
    assert a.reshape(-1).tolist() == pytest.approx(b.reshape(-1).tolist(), rel=tolerance, abs=tolerance, nan_ok=True)


@pytest.mark.parametrize("name", REPRS)
def test_reprs(name):
    assert repr(REPRS[name](lg.nn)) == repr(REPRS[name](torch.nn))


def test_repr_of_parameters():
    theirs, ours = (
        repr(t.nn.ParameterList([t.zeros(2, 3), t.nn.Parameter(t.ones(1))])) for t in (torch, lg)
    )  # fmt: skip
    assert ours.replace("leafgrad", "torch") == theirs


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, training):
    theirs, ours = pair(LAYERS[name])
    tolerance = 1e-7 if name.startswith(ROUNDED) else 1e-12
    theirs.train(training)
    ours.train(training)
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64) * 2
    a = lg.from_numpy(array(x).copy()).requires_grad_()
    b = x.requires_grad_()
    for _ in range(2):
        out, expected = ours(a), theirs(b)
        check(out, expected, tolerance)
        out.sin().sum().backward()
        expected.sin().sum().backward()
    check(a.grad, b.grad, tolerance)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        check(p.grad, q.grad)
    for p, q in zip(ours.buffers(), theirs.buffers(), strict=True):
        check(p, q)


def losses():
    """(name, function of a library, input, target, further tensors)"""
    g = torch.Generator().manual_seed(7)
    double = {"generator": g, "dtype": torch.float64}
    x, t = torch.randn(5, 3, **double), torch.randn(5, 3, **double)
    p, q = torch.rand(5, 3, **double), torch.rand(5, 3, **double)
    p[0, 0], p[0, 1], q[0, 0], q[0, 1] = 0, 1, 1, 0
    for reduction in ("mean", "sum", "none"):
        r = {"reduction": reduction}
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
            yield f"{name} {reduction}", lambda F, x, t, n=name, r=r: getattr(F, n)(x, t, **r), x, t
        yield f"bce {reduction}", lambda F, x, t, w, r=r: F.binary_cross_entropy(x, t, w, **r), p, q, q
        yield (
            f"bce logits {reduction}",
            lambda F, x, t, w, v, r=r: F.binary_cross_entropy_with_logits(x, t, w, pos_weight=v, **r),
            *(x, q, p, q),
        )
        if reduction != "mean":
            yield f"kl {reduction}", lambda F, x, t, r=r: F.kl_div(x, t, **r), x, q
            yield f"kl log {reduction}", lambda F, x, t, r=r: F.kl_div(x, t, log_target=True, **r), x, t
        yield from classes(reduction, double)
    yield "kl batchmean", lambda F, x, t: F.kl_div(x, t, reduction="batchmean"), x, q
    yield "smooth l1 beta", lambda F, x, t: F.smooth_l1_loss(x, t, beta=0.3), x, t
    yield "huber delta", lambda F, x, t: F.huber_loss(x, t, delta=0.3), x, t


def classes(reduction, double):
    weight = torch.tensor([0.5, 1.0, 2.0, 0.25], dtype=torch.float64)
    for name, size, target in (
        ("1-d", (4,), torch.tensor(2)),
        ("2-d", (5, 4), torch.tensor([0, 3, 1, 1, 2])),
        ("4-d", (2, 4, 2, 3), torch.randint(0, 4, (2, 2, 3), generator=double["generator"])),
    ):
        x = torch.randn(size, **double)
        for smoothing in (0.0, 0.2):
            for ignore in (-100, 1):
                o = {"reduction": reduction, "label_smoothing": smoothing, "ignore_index": ignore}
                label = f"{name} {reduction} {smoothing} {ignore}"
                yield f"cross_entropy {label}", lambda F, x, t, o=o: F.cross_entropy(x, t, **o), x, target
                yield (
                    f"weighted cross_entropy {label}",
                    lambda F, x, t, w, o=o: F.cross_entropy(x, t, w, **o),
                    *(x, target, weight),
                )
        o = {"reduction": reduction, "label_smoothing": 0.1}
        yield (
            f"probabilities {name} {reduction}",
            lambda F, x, t, w, o=o: F.cross_entropy(x, t, w, **o),
            *(x, torch.softmax(torch.randn(size, **double), 0), weight),
        )
        o = {"reduction": reduction, "ignore_index": 1}
        yield f"nll {name} {reduction}", lambda F, x, t, w, o=o: F.nll_loss(x, t, w, **o), x, target, weight


@pytest.mark.parametrize("case", [pytest.param(case, id=case[0]) for case in losses()])
def test_losses(case):
    name, function, x, *others = case
    tolerance = 1e-7 if name.startswith(ROUNDED) else 1e-12
    b = x.clone().requires_grad_()
    a = lg.from_numpy(array(x).copy()).requires_grad_()
    expected = function(torch.nn.functional, b, *others)
    out = function(lg.nn.functional, a, *(lg.from_numpy(array(t)) for t in others))
    check(out, expected, tolerance)
    out.sum().backward()
    expected.sum().backward()
    check(a.grad, b.grad, tolerance)


def test_a_small_network_trains_alike():
    theirs, ours = pair(lambda nn: nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Linear(8, 4)))
    x = torch.randn(16, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = torch.arange(16) % 4
    for library, net, a, b in ((torch, theirs, x, y), (lg, ours, lg.from_numpy(array(x)), lg.from_numpy(array(y)))):
        for _ in range(20):
            net.zero_grad()
            loss = library.nn.functional.cross_entropy(net(a), b)
            loss.backward()
            norm = library.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            with library.no_grad():
                for p in net.parameters():
                    p.sub_(p.grad, alpha=0.3)
        net.result = [loss, norm]
    for a, b in zip([*ours.result, *ours.parameters()], [*theirs.result, *theirs.parameters()], strict=True):
        check(a, b, 1e-9)


@pytest.mark.parametrize("inputs", [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("use", ["both", "first"])
def test_backward_hooks_see_the_same(inputs, use):
    def run(t):
        class Pair(t.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = t.nn.Parameter(t.tensor([3.0]))

            def forward(self, x, n, y):
                return x * self.w * n, y + self.w

        seen = []

        def show(gradients):
            return [None if g is None else g.tolist() for g in gradients]

        net = Pair()
        net.register_full_backward_pre_hook(lambda m, go: seen.append(show(go)))
        net.register_full_backward_hook(lambda m, gi, go: seen.append([show(gi), show(go)]))
        x, y = (t.tensor([v], requires_grad=r) for v, r in zip((2.0, 5.0), inputs, strict=True))
        first, second = net(x, 4, y)
        (first + second if use == "both" else first).backward()
        return seen, show([x.grad, y.grad, net.w.grad])

    if any(inputs):
        assert run(lg) == run(torch)
    else:
        with pytest.warns(UserWarning, match="Full backward hook is firing"):
            assert run(lg) == run(torch)


def test_errors_of_load_state_dict_read_alike():
    def message(t):
        net = t.nn.Sequential(t.nn.Linear(2, 3), t.nn.Linear(3, 1))
        state = {"0.weight": t.ones(2, 2), "1.bias": t.ones(1), "x": t.ones(1), "1.y": t.ones(1)}
        with pytest.raises(RuntimeError) as error:
            net.load_state_dict(state)
        return str(error.value).replace("torch.", "leafgrad.")

    assert message(lg) == message(torch)
