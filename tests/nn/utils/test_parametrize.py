"""Parametrizations: registered, removed, cached, copied, written; and those that come with the package."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.autograd import gradcheck, gradgradcheck
from leafgrad.nn.utils import parametrizations, parametrize

TESTS = """
nn.utils.derived nn.utils.norms nn.utils.orthogonal nn.utils.parametrizations nn.utils.skip_init
nn.utils.weight_norm
"""


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, a):
        return a.triu()


class Scaled(nn.Module):
    def forward(self, x):
        return x * 3


class OfTwo(nn.Module):
    def forward(self, a, b):
        return a @ b

    def right_inverse(self, w):
        return w[:, :1].clone(), w[:1].clone()


class Counting(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return x + 0


@pytest.fixture(autouse=True)
def _seeded():
    lg.manual_seed(0)


def old(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return function(*args, **kwargs)


def test_registered_and_removed(device):
    layer = nn.Linear(3, 3, device=device)
    weight = layer.weight
    start = weight.triu().tolist()
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    assert parametrize.is_parametrized(layer)
    assert parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias")
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert isinstance(layer, nn.Linear)
    assert type(layer).__name__ == "ParametrizedLinear"
    assert layer.parametrizations.weight.original is weight  # so that optimizers keep it
    assert weight.tolist() == start
    assert layer.weight.tolist() == layer.weight.mT.tolist()
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    layer(lg.ones(2, 3, device=device)).sum().backward()
    assert weight.grad.tril(-1).abs().sum().item() == 0
    now = layer.weight.tolist()
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert layer.weight is weight
    assert weight.tolist() == now


def test_several_on_one_tensor_and_on_several():
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    before = layer.weight
    parametrize.register_parametrization(layer, "weight", Scaled())
    assert layer.weight.tolist() == (before * 3).tolist()
    parametrize.register_parametrization(layer, "bias", Scaled())
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert type(layer).__name__ == "ParametrizedLinear"
    assert isinstance(layer.weight, nn.Parameter)
    parametrize.remove_parametrizations(layer, "bias")
    assert type(layer) is nn.Linear


def test_assignment():
    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    layer.weight = lg.tensor([[1.0, 2.0], [2.0, 5.0]])
    assert layer.weight.tolist() == [[1, 2], [2, 5]]
    assert layer.parametrizations.weight.original.tolist() == [[1, 2], [0, 5]]
    with pytest.raises(ValueError, match="dtype"):
        layer.weight = lg.ones(2, 2, dtype=lg.float64)
    state = layer.state_dict()
    layer.weight = lg.zeros(2, 2)
    layer.load_state_dict(state)  # which is that of before
    assert layer.weight.tolist() == [[1, 2], [2, 5]]
    parametrize.register_parametrization(layer, "bias", Scaled())
    with pytest.raises(RuntimeError, match="Scaled does not implement right_inverse"):
        layer.bias = lg.ones(2)


def test_from_several_originals():
    layer = nn.Linear(3, 2)
    parametrize.register_parametrization(layer, "weight", OfTwo())
    assert list(layer.state_dict())[1:] == [f"parametrizations.weight.original{i}" for i in range(2)]
    layer(lg.ones(1, 3)).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    value = layer.weight.tolist()
    with pytest.raises(ValueError, match="Cannot leave unparametrized"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(layer, "weight")
    assert layer.weight.tolist() == value
    assert layer.weight.requires_grad


def test_of_a_buffer():
    norm = nn.BatchNorm1d(2)
    parametrize.register_parametrization(norm, "running_mean", Scaled())
    assert norm.running_mean.tolist() == [0, 0]
    assert "parametrizations.running_mean.original" in norm.state_dict()
    parametrize.remove_parametrizations(norm, "running_mean")
    assert "running_mean" in dict(norm.named_buffers())


def test_cached():
    layer = nn.Linear(2, 2)
    counting = Counting()
    parametrize.register_parametrization(layer, "weight", counting)
    start = counting.calls
    with parametrize.cached():
        assert layer.weight is layer.weight
        with parametrize.cached():
            layer(lg.ones(1, 2))
    assert counting.calls == start + 1
    assert layer.weight is not layer.weight


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda x: x[0], "may not change the shape of the tensor"),
        (lambda x: x.double(), "may not change the dtype of the tensor"),
        (lambda x: 3, "A parametrization must return a tensor. Got int."),
    ],
)
def test_what_does_not_fit_is_refused(change, text):
    class Wrong(nn.Module):
        def forward(self, x):
            return change(x)

    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match=text):
        parametrize.register_parametrization(layer, "weight", Wrong())
    assert type(layer) is nn.Linear
    assert layer(lg.ones(1, 2)).shape == (1, 2)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    with pytest.raises(ValueError, match=text):
        parametrize.register_parametrization(layer, "weight", Wrong())
    parametrize.register_parametrization(nn.Linear(2, 2), "weight", Wrong(), unsafe=True)


def test_errors():
    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="does not have a parameter, a buffer, or a parametrized element"):
        parametrize.register_parametrization(layer, "wait", Symmetric())
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        parametrize.remove_parametrizations(layer, "weight")

    class Typo(nn.Module):
        def forward(self, x):
            return x.flip_it()

    parametrize.register_parametrization(layer, "weight", Typo(), unsafe=True)
    with pytest.raises(RuntimeError, match=r"computing weight of ParametrizedLinear: .*flip_it"):
        _ = layer.weight


# ---- norms and orthogonal matrices --------------------------------------------------------------------------------

MADE = {
    "weight norm": lambda: parametrizations.weight_norm(nn.Linear(4, 3, dtype=lg.float64)),
    "weight norm of old": lambda: old(nn.utils.weight_norm, nn.Linear(4, 3, dtype=lg.float64)),
    "weight norm of all": lambda: old(nn.utils.weight_norm, nn.Linear(4, 3, dtype=lg.float64), dim=None),
    "spectral norm": lambda: parametrizations.spectral_norm(nn.Linear(4, 3, dtype=lg.float64)),
    "spectral norm of old": lambda: nn.utils.spectral_norm(nn.Linear(4, 3, dtype=lg.float64)),
    **{
        f"{kind} {shape}": lambda kind=kind, shape=shape: parametrizations.orthogonal(
            nn.Linear(*shape, dtype=lg.float64), orthogonal_map=kind
        )
        for kind in ("matrix_exp", "cayley", "householder")
        for shape in ((3, 3), (4, 3), (3, 4))
    },
    "reflections": lambda: parametrizations.orthogonal(nn.Linear(3, 4, dtype=lg.float64), use_trivialization=False),
}


@pytest.mark.parametrize("name", MADE)
def test_copies_pickles_and_state(name):
    layer = MADE[name]()
    x = lg.randn(2, layer.in_features, dtype=lg.float64)
    layer.eval()
    expected = layer(x).tolist()
    assert copy.deepcopy(layer)(x).tolist() == expected
    assert pickle.loads(pickle.dumps(layer))(x).tolist() == expected
    other = MADE[name]().eval()
    other.load_state_dict(layer.state_dict())
    assert other(x).tolist() == expected


@pytest.mark.every(2)
@pytest.mark.parametrize("name", MADE)
def test_a_compiled_step_trains_as_an_eager_one(name):
    layer = MADE[name]()
    twin = copy.deepcopy(layer)
    x = lg.randn(5, layer.in_features, dtype=lg.float64)

    def step_of(net):
        sgd = lg.optim.SGD(net.parameters(), lr=0.1)

        def step():
            sgd.zero_grad()
            loss = (net(x) ** 2).sum() + net.weight.sum()
            loss.backward()
            sgd.step()
            return loss

        return step

    compiled, eager = lg.compile(step_of(layer)), step_of(twin)
    for _ in range(3):
        assert compiled().item() == pytest.approx(eager().item(), rel=1e-9)
    for a, b in zip(layer.state_dict().values(), twin.state_dict().values(), strict=True):
        assert (a - b).abs().max().item() < 1e-9


@pytest.mark.parametrize("name", [name for name in MADE if "norm" not in name])
def test_orthogonal(name):
    layer = MADE[name]()
    sgd = lg.optim.SGD(layer.parameters(), lr=0.3)
    for _ in range(3):
        weight = layer.weight if layer.in_features <= layer.out_features else layer.weight.mT
        assert (weight.mT @ weight - lg.eye(weight.shape[1], dtype=lg.float64)).abs().max().item() < 1e-12
        before = layer.weight.detach().clone()
        sgd.zero_grad()
        (layer.weight * lg.arange(layer.weight.numel()).reshape(layer.weight.shape)).sum().backward()
        sgd.step()
        assert (layer.weight - before).abs().max().item() > 1e-3


@pytest.mark.parametrize("name", MADE)
def test_gradients_of_both_orders(name):
    layer = MADE[name]().eval()
    weights = [p for n, p in layer.named_parameters() if n != "bias"]

    def weight(*_):
        return layer.weight

    assert gradcheck(weight, weights)
    assert gradgradcheck(weight, weights)


def test_weight_norm_divides_direction_and_length():
    layer = old(nn.utils.weight_norm, nn.Linear(4, 3))
    assert list(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
    with lg.no_grad():
        layer.weight_g.fill_(2)
    assert layer.weight.norm(2, 1).tolist() == pytest.approx([2, 2, 2])
    value = layer.weight.tolist()
    assert nn.utils.remove_weight_norm(layer).weight.tolist() == value
    assert list(layer.state_dict()) == ["bias", "weight"]
    assert type(layer) is nn.Linear


@pytest.mark.parametrize("make", [parametrizations.weight_norm, lambda *a, **k: old(nn.utils.weight_norm, *a, **k)])
def test_dimensions_of_weight_norm(make):
    """As in PyTorch they count from the end, too, but for -1, which is all of it."""
    shapes = {None: (), -1: (), -3: (2, 1, 1), -2: (1, 3, 1), 0: (2, 1, 1), 1: (1, 3, 1), 2: (1, 1, 4)}
    for dim, shape in shapes.items():
        layer = nn.Conv1d(3, 2, 4)
        before = layer.weight.tolist()
        make(layer, dim=dim)
        (length,) = [p for name, p in layer.named_parameters() if name.endswith(("_g", "original0"))]
        assert length.shape == shape
        assert lg.allclose(layer.weight, lg.tensor(before))
    for dim in (-4, 3, 5):
        with pytest.raises(IndexError, match=rf"expected to be in range of \[-3, 2\], but got {dim}"):
            make(layer := nn.Conv1d(3, 2, 4), dim=dim)
        assert list(layer.state_dict()) == ["weight", "bias"]
    layer = make(nn.Linear(3, 2), "bias")
    (length,) = [p for name, p in layer.named_parameters() if name.endswith(("_g", "original0"))]
    assert length.tolist() == layer.bias.abs().tolist()


def test_the_state_of_old_weight_norm_loads_into_the_new():
    before = old(nn.utils.weight_norm, nn.Linear(4, 3))
    after = parametrizations.weight_norm(nn.Linear(4, 3))
    after.load_state_dict(before.state_dict())
    assert after.weight.tolist() == before.weight.tolist()


@pytest.mark.parametrize("name", ["spectral norm", "spectral norm of old"])
def test_spectral_norm_finds_the_largest_singular_value(name):
    layer = MADE[name]()
    x = lg.randn(2, 4, dtype=lg.float64)
    for _ in range(50):
        layer(x)
    assert lg.linalg.svdvals(layer.weight)[0].item() == pytest.approx(1, abs=1e-4)
    layer.eval()
    before = {k: v.tolist() for k, v in layer.state_dict().items()}
    layer(x)
    assert {k: v.tolist() for k, v in layer.state_dict().items()} == before
    value = layer.weight.tolist()
    if "old" in name:
        nn.utils.remove_spectral_norm(layer)
        layer.train()(x)
    else:
        parametrize.remove_parametrizations(layer, "weight")
    assert layer.weight.tolist() == value


def test_two_forwards_before_one_backward():
    layer = parametrizations.spectral_norm(nn.Linear(3, 2))
    (layer(lg.ones(1, 3)) - layer(lg.zeros(1, 3))).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda m: nn.utils.spectral_norm(nn.utils.spectral_norm(m)),
            RuntimeError,
            "Cannot register two spectral_norm",
        ),
        (lambda m: nn.utils.spectral_norm(m, "x"), AttributeError, "Linear has no parameter 'x'"),
        (lambda m: nn.utils.spectral_norm(m, n_power_iterations=0), ValueError, "n_power_iterations to be positive"),
        (lambda m: nn.utils.remove_spectral_norm(m), ValueError, "spectral_norm of 'weight' not found in Linear"),
        (lambda m: nn.utils.remove_weight_norm(m), ValueError, "weight_norm of 'weight' not found in Linear"),
        (lambda m: parametrizations.spectral_norm(m, "x"), ValueError, "has no parameter or buffer with name 'x'"),
        (lambda m: parametrizations.spectral_norm(m, dim=2), IndexError, "Dimension out of range"),
        (lambda m: parametrizations.orthogonal(m, "bias"), ValueError, "Expected a matrix or batch of matrices"),
        (lambda m: parametrizations.orthogonal(m, orthogonal_map="x"), ValueError, "orthogonal_map has to be one of"),
    ],
)
def test_errors_of_norms(call, error, text):
    with pytest.raises(error, match=text):
        call(nn.Linear(3, 2))


def test_what_weight_norm_computes_is_not_written():
    layer = old(nn.utils.weight_norm, nn.Linear(3, 2))
    with pytest.raises(AttributeError, match="is computed by weight_norm: write to the parameters"):
        layer.weight = lg.ones(2, 3)
    with pytest.warns(FutureWarning, match="is deprecated in favor of"):
        nn.utils.weight_norm(nn.Linear(1, 1))


# ---- gradients clipped, values skipped ----------------------------------------------------------------------------


def test_norms_of_gradients(device):
    parts = [lg.tensor([3.0, 4.0], device=device), lg.tensor([12.0], device=device)]
    assert nn.utils.get_total_norm(parts).item() == pytest.approx(13)
    assert nn.utils.get_total_norm(parts, float("inf")).item() == 12
    assert nn.utils.get_total_norm([]).item() == 0
    weights = [nn.Parameter(p) for p in parts]
    for w in weights:
        w.grad = w.detach().clone()
    nn.utils.clip_grads_with_norm_(weights, 1.3, lg.tensor(13.0, device=device))
    assert weights[1].grad.item() == pytest.approx(1.2)
    assert nn.utils.clip_grad_norm_(weights, 5.0, norm_type=1, foreach=True).item() == pytest.approx(1.9)
    assert weights[1].grad.item() == pytest.approx(1.2)
    weights[0].grad.fill_(float("nan"))
    with pytest.raises(RuntimeError, match="The total norm of order"):
        nn.utils.clip_grad_norm_(weights, 1.0, error_if_nonfinite=True)
    with pytest.warns(FutureWarning, match="clip_grad_norm"):
        nn.utils.clip_grad_norm(weights, 1.0)


def test_skip_init_draws_nothing():
    state = lg.get_rng_state().tolist()
    layer = nn.utils.skip_init(nn.Linear, 3, 2, dtype=lg.float64)
    assert lg.get_rng_state().tolist() == state
    assert (layer.weight.shape, layer.weight.dtype) == ((2, 3), lg.float64)
    assert nn.Linear(3, 2).weight.abs().sum().item() > 0
    with pytest.raises(RuntimeError, match="Module must support a 'device' arg"):
        nn.utils.skip_init(nn.Tanh)
    with pytest.raises(RuntimeError, match="Expected a Module; got"):
        nn.utils.skip_init(dict)
