"""Whole modules in files: the names of their classes and their attributes, made again only where they are trusted."""

from __future__ import annotations

import dataclasses
import enum
import random
import re

import pytest
from leafgrad.serialization import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

import leafgrad as lg
from leafgrad import nn
from leafgrad.utils import structure, trust
from leafgrad.utils.bounds import Bounds
from leafgrad.utils.serialization import load, save

TESTS = "utils.pickles utils.trust utils.unloaded"


class Rule(enum.Enum):
    FAST = 1


@dataclasses.dataclass
class Config:
    width: int
    rule: Rule


class Slotted:
    __slots__ = ("value",)


def halved(x):
    return x / 2


class Net(nn.Module):
    """What a model may have as attributes."""

    def __init__(self, width=3):
        super().__init__()
        self.config, self.slotted = Config(width, Rule.FAST), Slotted()
        self.slotted.value = {"dtype": lg.float64, "device": lg.device("cpu")}
        self.first = nn.Sequential(nn.Linear(2, width), nn.BatchNorm1d(width), nn.Dropout(0.5))
        self.tied = nn.Linear(2, width)
        self.tied.weight = self.first[0].weight
        self.heads = nn.ModuleDict({"a": nn.Linear(width, 1), "b": nn.Linear(width, 1).requires_grad_(False)})
        self.scale = nn.Parameter(lg.full((), 2.0))
        self.register_buffer("mask", lg.tensor([1.0, 0.0, 1.0]), persistent=False)
        self.act, self.norm, self.end = nn.functional.gelu, lg.tanh, halved

    def forward(self, x):
        h = self.norm(self.act(self.first(x)) + self.tied(x)) * self.mask
        return self.end(self.heads["a"](h) * self.scale + self.heads["b"](h))


TRUSTED = [Net, Config, Rule, Slotted, halved]


@pytest.fixture(autouse=True)
def nobody_is_trusted_after():
    yield
    assert get_safe_globals() == []


@pytest.fixture
def path(tmp_path):
    return tmp_path / "net.safetensors"


def test_a_module_with_all_kinds_of_attributes(path):
    net, x = Net(), lg.randn(5, 2)
    net(x)
    save({"net": net.eval(), "epoch": 7}, path)
    with safe_globals(TRUSTED):
        again = load(path)["net"]
    assert repr(again) == repr(net)
    assert not again.training
    assert (again(x) == net(x)).all()
    assert again.tied.weight is again.first[0].weight
    assert type(again.scale) is nn.Parameter
    assert [p.requires_grad for p in again.parameters()] == [p.requires_grad for p in net.parameters()]
    assert (again.act, again.norm, again.end) == (nn.functional.gelu, lg.tanh, halved)
    assert (again.config, again.slotted.value) == (net.config, net.slotted.value)
    assert list(again.state_dict()) == list(net.state_dict())
    again.train()(x).sum().backward()
    lg.optim.SGD(again.parameters(), lr=0.1).step()


def test_tensors_have_their_names_of_the_state_dict(path):
    from safetensors.numpy import load_file

    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    save(net, path)
    assert set(load_file(path)) == set(net.state_dict())


def test_classes_that_nobody_trusts_are_refused_all_at_once(path):
    save([Net()], path)
    names = [f"{__name__}.{trusted.__name__}" for trusted in sorted(TRUSTED, key=lambda t: t.__name__)]
    expected = f"it has {', '.join(names)} in it, .*add_safe_globals.*Config, '{names[0]}'"
    with pytest.raises(RuntimeError, match=expected):
        load(path)
    with (
        safe_globals([Net]),
        pytest.raises(RuntimeError, match=f"it has {', '.join(n for n in names if 'Net' not in n)}"),
    ):
        load(path)


def test_modules_may_be_trusted_wherever_they_were_imported(path, monkeypatch):
    class Plain(nn.Module):
        pass

    monkeypatch.setitem(globals(), "Plain", Plain)
    Plain.__qualname__ = "Plain"
    save(Plain(), path)
    with pytest.raises(RuntimeError, match="weights_only=False"):
        load(path)
    assert type(load(path, weights_only=False)) is Plain
    monkeypatch.delitem(globals(), "Plain")
    with pytest.raises(RuntimeError, match=rf"it has {__name__}.Plain in it"):
        load(path, weights_only=False)


def test_a_class_under_another_name(path):
    save(Slotted(), path)
    with safe_globals([(Config, f"{__name__}.Slotted")]):
        assert type(load(path)) is Config


def test_the_list_of_trusted_classes():
    add_safe_globals([Net, Net, (Config, "other.Config")])
    assert get_safe_globals() == [Net, (Config, "other.Config")]
    with safe_globals([Rule]):
        assert get_safe_globals() == [Net, (Config, "other.Config"), Rule]
    clear_safe_globals()
    assert get_safe_globals() == []
    for wrong in (3, "Net", (Net, 3), ("Net", Net)):
        with pytest.raises(TypeError, match=r"safe_globals: expected classes, functions or pairs \(class, name\), got"):
            add_safe_globals([Rule, wrong])


LAYERS = [
    nn.Linear(3, 2), nn.Bilinear(2, 3, 4), nn.Conv2d(2, 4, 3, padding="same"), nn.ConvTranspose1d(2, 3, 3),
    nn.BatchNorm2d(3), nn.LayerNorm((2, 3)), nn.GroupNorm(2, 4), nn.RMSNorm(3), nn.InstanceNorm1d(2),
    nn.LSTM(2, 3, 2, bidirectional=True), nn.GRUCell(2, 3), nn.MultiheadAttention(4, 2), nn.Transformer(4, 2, 1, 1, 8),
    nn.Embedding(5, 2, padding_idx=0), nn.EmbeddingBag(4, 2), nn.LazyLinear(3), nn.LazyBatchNorm1d(), nn.PReLU(),
    nn.ParameterList([lg.ones(2)]), nn.ParameterDict({"a": lg.ones(1)}), nn.ModuleList([nn.ReLU()]), nn.MaxPool2d(2),
    nn.AdaptiveLogSoftmaxWithLoss(4, 8, [3]), nn.CrossEntropyLoss(lg.ones(3)), nn.TripletMarginWithDistanceLoss(),
    nn.Upsample(scale_factor=2.0), nn.Unflatten(1, (2, 2)), nn.CosineSimilarity(), nn.Softmax(1), nn.Fold((4, 4), 2),
]  # fmt: skip


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)
def test_layers_need_no_trust(layer, path):
    save(layer, path)
    again = load(path)
    assert type(again) is type(layer)
    assert repr(again) == repr(layer)
    assert vars(again).keys() == vars(layer).keys()
    state = again.state_dict()
    assert list(state) == list(layer.state_dict())
    for name, value in layer.state_dict().items():
        assert type(state[name]) is type(value)
        assert isinstance(value, nn.UninitializedParameter | nn.UninitializedBuffer) or (state[name] == value).all()


def test_what_makes_objects_must_be_a_trusted_class():
    def unpack(*rows):
        return structure.unpack({"rows": list(rows), "root": {"row": len(rows) - 1}}, {}, Bounds(1000), trust.found)

    def row(**parts):
        return ["object", [[key, value] for key, value in parts.items()]]

    linear, arguments = {"name": "leafgrad.nn.Linear"}, ["tuple", [10**9, 10**9]]
    for names in (
        "leafgrad.load",
        "leafgrad.save",
        "leafgrad.Tensor",
        "leafgrad.nn.Module.train",
        "os.system",
        "builtins.eval",
        "leafgrad.__main__",
        "leafgrad.nn.init.os",
        "leafgrad.op",
        "leafgrad._sys",
        "",
        ".",
    ):
        with pytest.raises(trust.UntrustedError, match=re.escape(f"it has {names} in it")):
            unpack(row(new={"name": names}))
    for rows in (
        [arguments, row(call=linear, arguments={"row": 0})],
        [row(new={"name": "leafgrad.nn.Parameter"})],
        [row(new={"name": "leafgrad.tanh"})],
        [row(call={"name": "leafgrad.nn.functional.relu"})],
        [row(new=3)],
        [row(new=linear, arguments=3)],
        [row(new=linear, state=3)],
        [row(new={"name": "leafgrad.float32"})],
        [["tuple", ["x"]], row(call={"name": "leafgrad.nn.UninitializedParameter"}, arguments={"row": 0}, state=3)],
        [row()],
    ):
        with pytest.raises(ValueError, match="its structure has"):
            unpack(*rows)


def test_random_structures_of_objects_make_no_others(path):
    draw = random.Random(0)
    names = ["leafgrad.nn.Linear", "leafgrad.nn.Parameter", "leafgrad.tanh", "leafgrad.float32", "leafgrad.device"]
    made = 0
    for _ in range(500):
        rows = []
        for i in range(draw.randrange(1, 6)):
            values = [3, None, "x", {"name": draw.choice(names)}, {"tensor": "t"}, *[{"row": j} for j in range(i)]]
            keys = draw.sample(["new", "call", "arguments", "state", "_modules", "training"], 3)
            kind = draw.choice(["object", "dict", "tuple"])
            items = [draw.choice(values) for _ in keys]
            rows.append([kind, items if kind == "tuple" else [list(pair) for pair in zip(keys, items, strict=True)]])
        data = {"rows": rows, "root": {"row": len(rows) - 1}}
        try:
            structure.unpack(data, {"t": lg.ones(2)}, Bounds(1000), trust.found)
            made += 1
        except ValueError:
            continue
    assert made > 20


def test_an_object_in_itself_is_refused(path):
    net = nn.Linear(1, 1)
    vars(net)["own"] = [net]
    with pytest.raises(ValueError, match=r"save: obj at 'own.0': expected a tree, got a Linear in itself"):
        save(net, path)
