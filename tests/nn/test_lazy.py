"""Layers that learn their sizes, buffers that are assigned, and what holds modules and parameters."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict

import pytest

import leafgrad as lg
from leafgrad import nn

TESTS = "nn.lazy_convolution nn.parameter nn.parameter_containers"

NORMS = {
    "LazyBatchNorm1d": (4, 3, 2),
    "LazyBatchNorm2d": (4, 3, 2, 2),
    "LazyBatchNorm3d": (4, 3, 2, 2, 2),
    "LazyInstanceNorm1d": (4, 3, 2),
    "LazyInstanceNorm2d": (4, 3, 2, 2),
    "LazyInstanceNorm3d": (4, 3, 2, 2, 2),
}


def test_a_linear_layer_learns_its_size(device):
    layer = nn.LazyLinear(3, device=device, dtype=lg.float64)
    assert repr(layer) == "LazyLinear(in_features=0, out_features=3, bias=True)"
    assert layer.has_uninitialized_params()
    weight = layer.weight
    out = layer(lg.ones(2, 5, device=device, dtype=lg.float64))
    assert out.shape == (2, 3)
    assert type(layer) is nn.Linear
    assert layer.weight is weight
    assert type(weight) is nn.Parameter
    assert (weight.shape, weight.dtype, weight.device) == ((3, 5), lg.float64, device)
    assert 0 < weight.abs().max().item() <= 5**-0.5
    out.sum().backward()
    assert weight.grad.shape == (3, 5)


@pytest.mark.parametrize("name", NORMS)
def test_norms_learn_their_size(name):
    norm = getattr(nn, name)()
    norm(lg.randn(NORMS[name]))
    assert type(norm).__name__ == name.removeprefix("Lazy")
    assert norm.num_features == 3
    assert norm.weight.tolist() == [1, 1, 1]
    assert norm.running_mean.shape == (3,)
    with pytest.raises(ValueError, match="expected"):
        getattr(nn, name)()(lg.ones(3))


CONVOLUTIONS = {
    "LazyConv1d": (6, 7),
    "LazyConv2d": (2, 6, 7, 8),
    "LazyConv3d": (2, 6, 4, 5, 4),
    "LazyConvTranspose1d": (2, 6, 7),
    "LazyConvTranspose2d": (6, 4, 4),
    "LazyConvTranspose3d": (2, 6, 3, 3, 3),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_learn_their_channels(name):
    kind = getattr(nn, name.removeprefix("Lazy"))
    layer = getattr(nn, name)(4, 3, groups=2, padding=1)
    assert repr(layer).startswith(f"{name}(0, 4, kernel_size=")
    x = lg.randn(CONVOLUTIONS[name])
    out = layer(x)
    assert type(layer) is kind
    known = kind(6, 4, 3, groups=2, padding=1)
    known.load_state_dict(layer.state_dict())
    assert known(x).tolist() == out.tolist()
    assert repr(known) == repr(layer)
    with pytest.raises(RuntimeError, match=rf"\(batched\) input to {name}, but got input of size: \[3\]"):
        getattr(nn, name)(4, 3)(lg.ones(3))
    with pytest.raises(ValueError, match="in_channels must be divisible by groups, got 6 and 4"):
        getattr(nn, name)(4, 3, groups=4)(x)


def test_an_optimizer_made_before_trains_the_layer():
    net = nn.Sequential(nn.LazyLinear(4), nn.Tanh(), nn.LazyLinear(1, bias=False))
    adam = lg.optim.Adam(net.parameters())
    x = lg.randn(8, 3)
    net(x)
    before = net[0].weight.tolist()
    net(x).sum().backward()
    adam.step()
    assert net[0].weight.tolist() != before


def test_what_waits_refuses_to_be_used():
    layer = nn.LazyLinear(3).double()
    assert repr(layer.weight) == "<UninitializedParameter>"
    assert layer.weight.dtype is lg.float64
    assert layer.weight.requires_grad
    for use in (lambda w: w.sum(), lambda w: w + 1, lambda w: w[0], lambda w: lg.ones(2) * w, lambda w: w.tolist()):
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
            use(layer.weight)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        _ = layer.weight.shape
    layer.requires_grad_(False)
    layer(lg.ones(1, 2, dtype=lg.float64))
    assert not layer.weight.requires_grad


def test_copies_and_state_of_what_waits():
    layer = nn.LazyLinear(3)
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert again(lg.ones(1, 2)).shape == (1, 3)
    assert list(layer.state_dict()) == ["weight", "bias"]
    nn.LazyLinear(3).load_state_dict(layer.state_dict())
    with pytest.raises(RuntimeError, match="weight of the checkpoint is an uninitialized parameter"):
        nn.Linear(2, 3).load_state_dict(layer.state_dict())
    known = nn.Linear(2, 3)
    layer.load_state_dict(known.state_dict())
    x = lg.randn(4, 2)
    assert layer(x).tolist() == known(x).tolist()
    assert layer.in_features == 2


def test_lazy_modules_of_ones_own():
    class Scale(nn.modules.lazy.LazyModuleMixin):
        def __init__(self):
            super().__init__()
            self.factor = nn.UninitializedParameter()
            self.offset = nn.UninitializedBuffer()

        def initialize_parameters(self, x):
            if self.has_uninitialized_params():
                self.factor.materialize(x.shape[-1:])
                self.offset.materialize(x.shape[-1:])
                nn.init.constant_(self.factor, 2.0)
                nn.init.zeros_(self.offset)

        def forward(self, x):
            return x * self.factor + self.offset

    net = Scale()
    assert net(lg.ones(1, 3)).tolist() == [[2, 2, 2]]
    assert net(lg.ones(1, 3)).tolist() == [[2, 2, 2]]
    assert [n for n, _ in net.named_buffers()] == ["offset"]

    class Forgets(nn.modules.lazy.LazyModuleMixin):
        def __init__(self):
            super().__init__()
            self.w = nn.UninitializedParameter()

    with pytest.raises(NotImplementedError, match="initialize_parameters is not implemented for Forgets"):
        Forgets()(lg.ones(1))


def test_a_lazy_layer_in_a_compiled_function():
    net = nn.LazyLinear(2)
    step = lg.compile(lambda x: net(x))
    x = lg.ones(1, 3)
    assert step(x).tolist() == step(x).tolist() == net(x).tolist()


# ---- buffers ------------------------------------------------------------------------------------------------------


def test_buffers_are_registered_by_assignment():
    net = nn.Module()
    net.a = nn.Buffer(lg.ones(2))
    net.b = nn.Buffer(lg.zeros(1), persistent=False)
    assert [name for name, _ in net.named_buffers()] == ["a", "b"]
    assert list(net.state_dict()) == ["a"]
    net.a = lg.ones(3)
    assert net.a.shape == (3,)
    net.double()
    assert net.b.dtype is lg.float64
    copied = copy.deepcopy(net)
    assert list(copied.state_dict()) == ["a"]
    with pytest.raises(TypeError, match="Buffer: data: expected a Tensor, got list"):
        nn.Buffer([1.0])
    with pytest.raises(AttributeError, match=r"cannot assign buffer before Module.__init__\(\) call"):
        nn.Module.__new__(nn.Module).b = nn.Buffer(lg.ones(1))


# ---- the tree -----------------------------------------------------------------------------------------------------


def test_set_submodule():
    net = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.Tanh()))
    net.set_submodule("1.0", nn.ReLU())
    assert isinstance(net[1][0], nn.ReLU)
    net.set_submodule("new", nn.Tanh())
    assert isinstance(net.new, nn.Tanh)
    for target, module, error, text in (
        ("", nn.Tanh(), ValueError, "Cannot set the submodule without a target name!"),
        ("1.x.y", nn.Tanh(), AttributeError, "Sequential has no attribute `x`"),
        ("0.weight", nn.Tanh(), AttributeError, "`weight` is not an nn.Module"),
        ("0", 3, TypeError, "expected a Module, got int"),
    ):
        with pytest.raises(error, match=text):
            net.set_submodule(target, module)
    with pytest.raises(AttributeError, match="Sequential has no attribute `2`"):
        net.set_submodule("2", nn.Tanh(), strict=True)


def test_duplicates_are_kept_on_request():
    layer = nn.Linear(1, 1)
    net = nn.Sequential(layer, layer)
    assert len(list(net.modules())) == 2
    assert len(list(net.modules(remove_duplicate=False))) == 3
    assert [n for n, _ in net.named_parameters(remove_duplicate=False)][2:] == ["1.weight", "1.bias"]


def test_type_and_to_empty(device):
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).to_empty(device=device)
    assert {t.device for t in net.state_dict().values()} == {device}
    assert net.type(lg.float64)[1].num_batches_tracked.dtype is lg.float64


# ---- containers ---------------------------------------------------------------------------------------------------


def test_sequentials_repeat():
    layer = nn.Linear(1, 1)
    net = nn.Sequential(layer)
    assert list(net * 2) == list(2 * net) == [layer, layer]
    net *= 3
    assert len(net) == 3
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0"):
        net.__mul__(0)
    with pytest.raises(TypeError, match="unsupported operand"):
        net.__mul__("a")


def test_parameter_dict():
    params = nn.ParameterDict({"a": lg.ones(2), "b": 3})
    params["c"] = nn.Parameter(lg.zeros(1))
    assert list(params) == list(params.keys()) == ["a", "b", "c"]
    assert isinstance(params["a"], nn.Parameter)
    assert [name for name, _ in params.named_parameters()] == ["a", "c"]
    assert params.get("x", 5) == 5
    assert params.setdefault("b", 9) == 3
    assert params.pop("b") == 3
    assert "b" not in params
    both = params | nn.ParameterDict([("d", lg.ones(1))])
    assert list(reversed(both)) == ["d", "c", "a"]
    assert both.popitem()[0] == "d"
    assert both.copy()["a"] is params["a"]
    assert list(params.fromkeys(["x", "y"], 1).values()) == [1, 1]
    both.update(OrderedDict(e=lg.ones(3)))
    assert dict(both.items())["e"].shape == (3,)
    del both["e"]
    both.clear()
    assert not len(both)
    with pytest.raises(KeyError):
        params["missing"]
    with pytest.raises(TypeError, match="as it is not a string"):
        params[3] = lg.ones(1)
    with pytest.raises(RuntimeError, match="ParameterDict should not be called"):
        params()
    assert repr(nn.ParameterDict({"a": lg.ones(2, 3), "n": 1})) == (
        "ParameterDict(\n"
        "    (a): Parameter containing: [leafgrad.FloatTensor of size 2x3]\n"
        "    (n): Object of type: int\n"
        ")"
    )


def test_a_parameter_list_holds_other_values():
    params = nn.ParameterList([lg.ones(1), "text", None])
    assert params[1] == "text"
    assert len(params) == 3
    params[1] = lg.ones(2)
    assert len(list(params.parameters())) == 2
    assert copy.deepcopy(params)[1].shape == (2,)


def test_a_plain_dict_gives_its_parameters_in_the_order_of_their_names():
    pairs = [("b", lg.ones(1)), ("a", lg.ones(1))]
    assert list(nn.ParameterDict(dict(pairs))) == ["a", "b"]
    assert list(nn.ParameterDict(OrderedDict(pairs))) == list(nn.ParameterDict(pairs)) == ["b", "a"]
    params = nn.ParameterDict(pairs)
    params.update({"d": lg.ones(1), "c": lg.ones(1)})
    assert list(params) == ["b", "a", "c", "d"]
    assert list(nn.ParameterDict(params)) == list(params)
