"""Module and the containers: registration, walking, state, conversion, hooks, printing."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections import OrderedDict

import pytest

import leafgrad as lg
from leafgrad import nn

TESTS = "nn.containers nn.notebook nn.state nn.tree"


class Net(nn.Module):
    def __init__(self, device="cpu"):
        super().__init__()
        self.first = nn.Linear(2, 3, device=device)
        self.rest = nn.Sequential(nn.Tanh(), nn.Linear(3, 1, device=device))
        self.register_buffer("scale", lg.ones(1, device=device))
        self.register_buffer("scratch", lg.zeros(1, device=device), persistent=False)

    def forward(self, x):
        return self.rest(self.first(x)) * self.scale


NAMES = ["first.weight", "first.bias", "rest.1.weight", "rest.1.bias"]


def values(module):
    return {name: t.tolist() for name, t in module.state_dict().items()}


# ---- registration -------------------------------------------------------------------------------------------------


def test_assignment_registers():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert [name for name, _ in net.named_buffers()] == ["scale", "scratch"]
    assert list(net.state_dict()) == ["scale", *NAMES]
    assert [name for name, _ in net.named_modules()] == ["", "first", "rest", "rest.0", "rest.1"]
    assert [name for name, _ in net.named_children()] == ["first", "rest"]
    assert "first" in dir(net)
    assert "scale" in dir(net)


def test_assignment_moves_a_name_between_tables():
    net = Net()
    net.scale = nn.Parameter(lg.ones(1))
    assert "scale" in dict(net.named_parameters())
    assert "scale" not in dict(net.named_buffers())
    net.first = None
    assert net.first is None
    assert NAMES[0] not in net.state_dict()
    del net.rest
    assert not hasattr(net, "rest")
    net.plain = 3
    assert net.plain == 3
    del net.plain
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'plain'"):
        _ = net.plain


def test_what_cannot_be_assigned():
    net = Net()
    with pytest.raises(TypeError, match=r"cannot assign 'Tensor' as parameter 'weight' \(nn.Parameter or None"):
        net.first.weight = lg.ones(3, 2)
    with pytest.raises(TypeError, match="cannot assign 'int' as child module 'first'"):
        net.first = 3
    with pytest.raises(TypeError, match="cannot assign 'str' as buffer 'scale'"):
        net.scale = "no"


def test_init_must_be_called_first():
    class Late(nn.Module):
        def __init__(self, value):
            self.value = value

    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__\(\) call"):
        Late(nn.Parameter(lg.ones(1)))
    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__\(\) call"):
        Late(nn.Identity())
    assert Late(3).value == 3
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = Late(3).missing


@pytest.mark.parametrize("register", ["register_buffer", "register_parameter", "add_module", "register_module"])
def test_names_are_checked(register):
    function = getattr(Net(), register)
    with pytest.raises(TypeError, match="name should be a string"):
        function(3, None)
    with pytest.raises(KeyError, match="t contain"):
        function("a.b", None)
    with pytest.raises(KeyError, match="t be empty"):
        function("", None)
    with pytest.raises(KeyError, match="attribute 'forward' already exists"):
        function("forward", None)


def test_registered_values_are_checked():
    module = nn.Module()
    with pytest.raises(TypeError, match=r"cannot assign 'int' object to buffer 'b' \(Tensor or None required\)"):
        module.register_buffer("b", 3)
    with pytest.raises(TypeError, match="cannot assign 'Tensor' object to parameter 'p'"):
        module.register_parameter("p", lg.ones(1))
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        module.add_module("m", 3)
    module.register_parameter("p", None)
    assert module.p is None
    assert list(module.parameters()) == []


def test_shared_parameters_count_once():
    a = nn.Linear(2, 2)
    b = nn.Linear(2, 2)
    b.weight = a.weight
    both = nn.Sequential(a, b, a)
    assert [name for name, _ in both.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert len(list(both.named_parameters(remove_duplicate=False))) == 6
    assert len(list(both.modules())) == 3
    assert [name for name, _ in both.named_modules(remove_duplicate=False)] == ["", "0", "1", "2"]
    assert len(both.state_dict()) == 6
    assert next(name for name, _ in both.named_parameters(prefix="net")) == "net.0.weight"
    assert list(both.parameters(recurse=False)) == []


def test_a_missing_forward_says_so():
    with pytest.raises(NotImplementedError, match=r'Module \[Module\] is missing the required "forward" function'):
        nn.Module()(3)


def test_get_by_path():
    net = Net()
    assert net.get_submodule("rest.1") is net.rest[1]
    assert net.get_submodule("") is net
    assert net.get_parameter("rest.1.bias") is net.rest[1].bias
    assert net.get_buffer("scale") is net.scale
    with pytest.raises(AttributeError, match="Sequential has no attribute `7`"):
        net.get_submodule("rest.7")
    with pytest.raises(AttributeError, match="`weight` is not an nn"):
        net.get_submodule("first.weight")
    with pytest.raises(AttributeError, match="`scale` is not an nn"):
        net.get_parameter("scale")
    with pytest.raises(AttributeError, match="Net has no attribute `x`"):
        net.get_buffer("x")


# ---- Parameter ----------------------------------------------------------------------------------------------------


def test_parameter_is_a_leaf_tensor():
    data = lg.ones(2)
    p = nn.Parameter(data)
    assert isinstance(p, lg.Tensor)
    assert p.requires_grad
    assert p.is_leaf
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert not nn.Parameter(lg.arange(3), requires_grad=False).requires_grad
    assert type(p * 2) is lg.Tensor
    with lg.no_grad():
        p.mul_(3)
    assert data.tolist() == [3, 3]
    (p * p).sum().backward()
    assert p.grad.tolist() == [6, 6]


def test_parameter_refuses():
    with pytest.raises(TypeError, match="Parameter: data: expected a Tensor, got list; wrap it"):
        nn.Parameter([1.0])
    with pytest.raises(RuntimeError, match=r"only Tensors of floating point.* dtype can require gradients"):
        nn.Parameter(lg.arange(3))


def test_parameter_from_a_recorded_tensor_is_cut_off():
    x = lg.ones(2, requires_grad=True)
    p = nn.Parameter(x * 2)
    assert p.is_leaf
    assert p.requires_grad


def test_new_data_of_another_shape():
    p = nn.Parameter(lg.ones(2))
    p.sum().backward()
    p.grad = None
    p.requires_grad_(False)
    p.data = lg.ones(3, dtype=lg.float64)
    p.requires_grad_()
    p.sum().backward()
    assert p.grad.tolist() == [1, 1, 1]


def test_copies_of_parameters():
    p = nn.Parameter(lg.ones(2))
    p.grad = lg.ones(2)
    q = copy.deepcopy(p)
    assert type(q) is nn.Parameter
    assert q.requires_grad
    assert q.grad is None
    assert p.grad.tolist() == [1, 1]
    with lg.no_grad():
        q.zero_()
    assert p.tolist() == [1, 1]
    again = pickle.loads(pickle.dumps(nn.Parameter(lg.ones(2), requires_grad=False)))
    assert type(again) is nn.Parameter
    assert not again.requires_grad


def test_deepcopy_of_a_module_shares_nothing_but_keeps_ties():
    a = nn.Linear(2, 2)
    b = nn.Linear(2, 2)
    b.weight = a.weight
    both = nn.Sequential(a, b)
    twin = copy.deepcopy(both)
    assert twin[0].weight is twin[1].weight
    assert twin[0].weight is not a.weight
    assert type(twin[0].weight) is nn.Parameter
    assert values(twin) == values(both)
    x = lg.ones(1, 2)
    assert twin(x).tolist() == both(x).tolist()


# ---- modes, gradients, conversion ---------------------------------------------------------------------------------


def test_train_and_eval_reach_every_module():
    net = Net()
    assert net.eval() is net
    assert not any(m.training for m in net.modules())
    net.train()
    assert all(m.training for m in net.modules())
    with pytest.raises(ValueError, match="training mode is expected to be boolean"):
        net.train("yes")


def test_zero_grad_and_requires_grad(device):
    net = Net(device)
    net(lg.ones(4, 2, device=device)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad(set_to_none=False)
    assert all(p.grad.abs().sum().item() == 0 for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    net.requires_grad_(False)
    assert not net(lg.ones(4, 2, device=device)).requires_grad


def test_apply_visits_children_first():
    seen = []
    Net().apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "Tanh", "Linear", "Sequential", "Net"]


def test_conversion_keeps_parameters_and_leaves_integers(device):
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    before = list(net.parameters())
    net(lg.randn(3, 2)).sum().backward()
    net.to(device, lg.float64)
    assert all(a is b for a, b in zip(net.parameters(), before, strict=True))
    assert {p.dtype for p in net.parameters()} == {lg.float64}
    assert {p.grad.dtype for p in net.parameters()} == {lg.float64}
    assert {p.device for p in net.parameters()} == {device}
    assert {p.grad.device for p in net.parameters()} == {device}
    assert net[1].num_batches_tracked.dtype is lg.int64
    assert net[1].running_mean.device == device
    assert net.float()[0].weight.dtype is lg.float32
    assert net.half()[0].weight.dtype is lg.float16
    assert net.double()[0].weight.dtype is lg.float64
    assert net.cpu()[0].weight.device == lg.device("cpu")
    with pytest.raises(TypeError, match=r"nn\.Module\.to only accepts floating point or complex dtypes"):
        net.to(lg.int64)


def test_a_converted_module_trains(device):
    net = nn.Linear(2, 1).double().to(device)
    net(lg.ones(3, 2, dtype=lg.float64, device=device)).sum().backward()
    assert net.weight.grad.tolist() == [[3, 3]]


# ---- state --------------------------------------------------------------------------------------------------------


def test_state_dict_is_detached_and_shares_memory():
    net = Net()
    state = net.state_dict()
    assert isinstance(state, OrderedDict)
    assert not any(t.requires_grad for t in state.values())
    assert net.state_dict(keep_vars=True)["first.weight"] is net.first.weight
    state["first.bias"].fill_(7)
    assert net.first.bias.tolist() == [7, 7, 7]
    assert next(iter(net.state_dict(prefix="net."))) == "net.scale"


def test_load_state_dict(device):
    net, other = Net(device), Net()
    before = list(net.parameters())
    result = net.load_state_dict(other.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    assert values(net) == values(other)
    assert all(a is b for a, b in zip(net.parameters(), before, strict=True))
    assert net.first.weight.device == device
    assert net.first.weight.requires_grad


def test_load_state_dict_changes_nothing_on_any_mismatch():
    net = Net()
    before = values(net)
    state = Net().state_dict()
    del state["first.bias"]
    state["extra"] = lg.ones(1)
    state["rest.1.weight"] = lg.ones(2, 3)
    with pytest.raises(RuntimeError) as error:
        net.load_state_dict(state)
    assert str(error.value) == (
        "Error(s) in loading state_dict for Net:\n"
        '\tMissing key(s) in state_dict: "first.bias". \n'
        '\tUnexpected key(s) in state_dict: "extra". \n'
        "\tsize mismatch for rest.1.weight: copying a param with shape leafgrad.Size([2, 3]) from checkpoint, the "
        "shape in current model is leafgrad.Size([1, 3])."
    )
    assert values(net) == before
    state["rest.1.weight"] = "text"
    with pytest.raises(RuntimeError, match=r'the parameter named "rest.1.weight", expected leafgrad.Tensor'):
        net.load_state_dict(state, strict=False)
    assert values(net) == before
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        net.load_state_dict([1])


def test_load_state_dict_not_strict():
    net = Net()
    result = net.load_state_dict({"scale": lg.tensor([5.0]), "extra": lg.ones(1)}, strict=False)
    assert result.missing_keys == NAMES
    assert result.unexpected_keys == ["extra"]
    assert "missing_keys=['first.weight'" in repr(result)
    assert net.scale.tolist() == [5]


def test_load_state_dict_assign():
    net = Net()
    state = Net().double().state_dict()
    net.load_state_dict(state, assign=True)
    assert net.first.weight.dtype is lg.float64
    assert isinstance(net.first.weight, nn.Parameter)
    assert net.first.weight.requires_grad
    assert "scale" in dict(net.named_buffers())
    state["first.bias"].fill_(2)
    assert net.first.bias.tolist() == [2, 2, 2]


# ---- containers ---------------------------------------------------------------------------------------------------


def test_sequential():
    a, b, c = nn.Tanh(), nn.Linear(2, 2), nn.ReLU()
    net = nn.Sequential(a, b)
    assert net.append(c) is net
    assert len(net) == 3
    assert list(net) == [a, b, c]
    assert net[-1] is c
    assert type(net[1:]) is nn.Sequential
    assert list(net[1:]) == [b, c]
    assert list(net[1:]._modules) == ["1", "2"]
    net[0] = nn.Identity()
    assert isinstance(net[0], nn.Identity)
    net.insert(1, a)
    assert [name for name, _ in net.named_children()] == ["0", "1", "2", "3"]
    assert net[1] is a
    del net[0]
    assert list(net) == [a, b, c]
    assert net.pop(-1) is c
    net += [c]
    assert list(net + nn.Sequential(a)) == [a, b, c, a]
    with pytest.raises(IndexError, match="index 9 is out of range"):
        net[9]
    with pytest.raises(ValueError, match="supports only objects of Sequential"):
        net.__add__([a])
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        nn.Sequential(3)


def test_sequential_of_names():
    net = nn.Sequential(OrderedDict(one=nn.Linear(1, 1), two=nn.Tanh()))
    assert [name for name, _ in net.named_children()] == ["one", "two"]
    assert net[0] is net.one
    assert [name for name, _ in net[1:].named_children()] == ["two"]


def test_module_list():
    layers = nn.ModuleList(nn.Linear(i + 1, 1) for i in range(3))
    assert [layer.in_features for layer in layers] == [1, 2, 3]
    layers.extend([nn.Tanh()])
    layers += [nn.Tanh()]
    layers.insert(0, nn.ReLU())
    assert len(layers) == 6
    assert isinstance(layers[1:3], nn.ModuleList)
    del layers[-2:]
    assert len(layers) == 4
    assert len(layers + nn.ModuleList([nn.Tanh()])) == 5
    with pytest.raises(NotImplementedError):
        layers(3)
    with pytest.raises(TypeError, match="expected an iterable of modules, got int"):
        layers.extend(3)


def test_module_dict():
    layers = nn.ModuleDict({"a": nn.Tanh()})
    layers["b"] = nn.ReLU()
    layers.update([("c", nn.Identity())])
    assert list(layers) == list(layers.keys()) == ["a", "b", "c"]
    assert "a" in layers
    assert len(layers) == 3
    assert isinstance(layers.pop("a"), nn.Tanh)
    del layers["b"]
    assert [name for name, _ in layers.items()] == ["c"]
    assert isinstance(next(iter(layers.values())), nn.Identity)
    layers.clear()
    assert len(layers) == 0
    with pytest.raises(TypeError, match="expected a mapping"):
        layers.update(3)


def test_parameter_list():
    params = nn.ParameterList([lg.ones(2), nn.Parameter(lg.zeros(3))])
    params.append(lg.ones(1))
    params += [lg.ones(1)]
    assert len(params) == 4
    assert all(isinstance(p, nn.Parameter) for p in params)
    assert [name for name, _ in params.named_parameters()] == ["0", "1", "2", "3"]
    params[0] = lg.zeros(5)
    assert params[0].shape == (5,)
    assert len(params[1:]) == 3
    with pytest.raises(IndexError, match="index 4 is out of range"):
        params[4]
    with pytest.raises(RuntimeError, match="should not be called"):
        params()
    with pytest.raises(TypeError, match="iterable"):
        params.extend(lg.ones(2))


# ---- hooks --------------------------------------------------------------------------------------------------------


def test_forward_hooks_see_and_replace():
    net = nn.Linear(2, 1)
    seen = []
    pre = net.register_forward_pre_hook(lambda m, args: (seen.append("pre"), (args[0] * 2,))[1])
    post = net.register_forward_hook(lambda m, args, out: (seen.append("post"), out + 1)[1])
    first = net.register_forward_hook(lambda m, args, out: seen.append("first"), prepend=True)
    x = lg.ones(1, 2)
    got = net(x).item()
    assert seen == ["pre", "first", "post"]
    for handle in (pre, post, first):
        handle.remove()
    assert got == pytest.approx(net(x * 2).item() + 1, rel=1e-6)
    assert len(seen) == 3


def test_hooks_with_keywords():
    class Scale(nn.Module):
        def forward(self, x, *, by):
            return x * by

    net = Scale()
    net.register_forward_pre_hook(lambda m, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True)
    seen = []
    net.register_forward_hook(lambda m, args, kwargs, out: seen.append(kwargs["by"]), with_kwargs=True)
    assert net(lg.ones(1), by=2).item() == 3
    assert seen == [3]
    net.register_forward_pre_hook(lambda m, args, kwargs: 5, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple of"):
        net(lg.ones(1), by=2)


def test_a_single_value_from_a_pre_hook_is_the_argument():
    net = nn.Identity()
    net.register_forward_pre_hook(lambda m, args: 7)
    assert net(3) == 7


def test_hooks_must_be_functions():
    with pytest.raises(TypeError, match="hook: expected a function, got int"):
        nn.Identity().register_full_backward_hook(3)


class Pair(nn.Module):
    def forward(self, x, y):
        return x * y, x + y


def test_full_backward_hook(device):
    net = Pair()
    seen = []
    net.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    x = lg.tensor([2.0], requires_grad=True, device=device)
    y = lg.tensor([5.0], device=device)
    product, total = net(x, y)
    (product * 3 + total).backward()
    ((gi, go),) = seen
    assert [g.tolist() for g in gi] == [[16], [0]]
    assert [g.tolist() for g in go] == [[3], [1]]
    assert x.grad.tolist() == [16]


def test_backward_hooks_replace_gradients():
    net = nn.Identity()
    net.register_full_backward_pre_hook(lambda m, go: (go[0] * 10,))
    handle = net.register_full_backward_hook(lambda m, gi, go: (gi[0] + 1,))
    x = lg.ones(1, requires_grad=True)
    net(x).backward()
    assert x.grad.tolist() == [11]
    handle.remove()
    x.grad = None
    net(x).backward()
    assert x.grad.tolist() == [10]
    net.register_full_backward_hook(lambda m, gi, go: (None, None))
    with pytest.raises(RuntimeError, match="returned an invalid number of grad_input, got 2, but expected 1"):
        net(x).backward()


def test_backward_hook_without_inputs_that_require_grad():
    net = nn.Linear(2, 1)
    seen = []
    net.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].tolist())))
    with pytest.warns(UserWarning, match="Full backward hook is firing when gradients are computed with respect to"):
        net(lg.ones(1, 2)).backward(lg.tensor([[4.0]]))
    assert seen == [((None,), [[4]])]
    assert net.weight.grad.tolist() == [[4, 4]]


def test_backward_hook_wants_tensors():
    class Text(nn.Module):
        def forward(self, x):
            return {"x": x}

    net = Text()
    net.register_full_backward_hook(lambda *_: None)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple of Tensors"):
        net(lg.ones(1, requires_grad=True))


def test_backward_hook_under_create_graph():
    net = nn.Tanh()
    seen = []
    net.register_full_backward_hook(lambda m, gi, go: seen.append(gi[0].requires_grad))
    x = lg.tensor(0.5, requires_grad=True)
    (first,) = lg.autograd.grad(net(x), x, create_graph=True)
    (second,) = lg.autograd.grad(first, x)
    y = lg.tensor(0.5, requires_grad=True)
    (plain,) = lg.autograd.grad(y.tanh(), y, create_graph=True)
    assert second.item() == pytest.approx(lg.autograd.grad(plain, y)[0].item())
    assert seen[0]


def test_hooks_make_no_reference_cycles():
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    net.register_full_backward_hook(lambda *_: None)
    net.register_forward_hook(lambda *_: None)
    gc.collect()
    gc.disable()
    try:
        x = lg.ones(1, 2, requires_grad=True)
        out = net(x)
        out.sum().backward()
        gone = [weakref.ref(x), weakref.ref(out), weakref.ref(out.grad_fn)]
        del x, out
        assert [ref() for ref in gone] == [None] * 3
    finally:
        gc.enable()


def test_no_hook_runs_without_grad():
    net = nn.Tanh()
    net.register_full_backward_hook(lambda *_: 1 / 0)
    with lg.no_grad():
        assert not net(lg.ones(1, requires_grad=True)).requires_grad


# ---- printing -----------------------------------------------------------------------------------------------------


def test_repr_is_a_tree():
    net = nn.ModuleDict({"a": nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Linear(1, 2)]), "b": nn.Sequential()})
    assert repr(net) == (
        "ModuleDict(\n"
        "  (a): ModuleList(\n"
        "    (0-1): 2 x ReLU()\n"
        "    (2): Linear(in_features=1, out_features=2, bias=True)\n"
        "  )\n"
        "  (b): Sequential()\n"
        ")"
    )


def test_a_compiled_module_is_no_part_of_another_one():
    outer = nn.Module()
    with pytest.raises(TypeError, match="cannot assign a compiled Linear as 'net': its parameters would be missing"):
        outer.net = lg.compile(nn.Linear(2, 2))
    outer.step = lg.compile(lambda x: x)
    assert "step" in vars(outer)
