"""Hooks of every kind, of one module and of all; and the note by which an error names its layer."""

from __future__ import annotations

import copy
import pickle

import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.nn.modules import module as every

TESTS = "nn.hooked"


class Fails(nn.Module):
    def forward(self, x):
        raise ValueError("no")


def tell(module, args):
    module.told = True


# ---- around the forward -------------------------------------------------------------------------------------------


def test_a_hook_that_is_always_called():
    net = Fails()
    seen = []
    net.register_forward_hook(lambda m, a, out: seen.append("never"))
    net.register_forward_hook(lambda m, a, k, out: seen.append((k, out)), with_kwargs=True, always_call=True)
    with pytest.raises(ValueError, match="no"):
        net(x=3)
    assert seen == [({"x": 3}, None)]
    net.register_forward_hook(lambda m, a, out: 1 / 0, always_call=True)
    with (
        pytest.raises(ValueError, match="no"),
        pytest.warns(UserWarning, match="that was silenced as another error was raised in forward: division by zero"),
    ):
        net(x=3)
    fine = nn.Identity()
    fine.register_forward_hook(lambda m, a, out: out + 1, always_call=True)
    assert fine(1) == 2


def test_hooks_of_all_modules():
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    seen = []
    handles = [
        every.register_module_forward_pre_hook(lambda m, a: seen.append(f"pre {type(m).__name__}")),
        every.register_module_forward_hook(lambda m, a, out: seen.append(f"post {type(m).__name__}")),
    ]
    net[1].register_forward_hook(lambda m, a, out: seen.append("own"))
    net(lg.ones(1, 2))
    assert seen == ["pre Sequential", "pre Linear", "post Linear", "pre Tanh", "post Tanh", "own", "post Sequential"]
    for handle in handles:
        handle.remove()
    seen.clear()
    net(lg.ones(1, 2))
    assert seen == ["own"]


def test_backward_hooks_of_all_modules():
    net = nn.Tanh()
    handles = [
        every.register_module_full_backward_pre_hook(lambda m, go: (go[0] * 2,)),
        every.register_module_full_backward_hook(lambda m, gi, go: (gi[0] + 1,)),
    ]
    x = lg.zeros(1, requires_grad=True)
    net(x).backward()
    for handle in handles:
        handle.remove()
    assert x.grad.tolist() == [3]
    x.grad = None
    net(x).backward()
    assert x.grad.tolist() == [1]


def test_hooks_of_registration():
    seen = []
    handles = [
        every.register_module_parameter_registration_hook(lambda m, name, p: seen.append(name)),
        every.register_module_buffer_registration_hook(lambda m, name, b: b * 0),
        every.register_module_module_registration_hook(lambda m, name, child: nn.Identity()),
    ]
    net = nn.Module()
    net.p = nn.Parameter(lg.ones(1))
    net.register_buffer("b", lg.ones(1))
    net.child = nn.Tanh()
    for handle in handles:
        handle.remove()
    assert seen == ["p"]
    assert net.b.item() == 0
    assert isinstance(net.child, nn.Identity)


def test_hooks_are_copied_and_pickled_with_the_module():
    net = nn.Linear(1, 1)
    net.register_forward_pre_hook(tell)
    for again in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        again(lg.ones(1, 1))
        assert again.told
    assert not hasattr(net, "told")


def test_a_compiled_step_sees_hooks_come_and_go():
    net = nn.Linear(2, 1)
    step = lg.compile(lambda x: net(x).sum())
    x = lg.ones(1, 2)
    plain = step(x).item()
    for register in (net.register_forward_hook, every.register_module_forward_hook):
        handle = register(lambda m, a, out: out + 1)
        assert step(x).item() == pytest.approx(plain + 1, rel=1e-6)
        handle.remove()
        assert step(x).item() == pytest.approx(plain, rel=1e-6)


# ---- around the state ---------------------------------------------------------------------------------------------


def test_hooks_of_state_dict():
    net = nn.Sequential(nn.Linear(1, 1))
    seen = []
    net[0].register_state_dict_pre_hook(lambda m, prefix, keep_vars: seen.append((prefix, keep_vars)))
    handle = net[0].register_state_dict_post_hook(lambda m, state, prefix, meta: state.__delitem__(f"{prefix}bias"))
    assert list(net.state_dict()) == ["0.weight"]
    assert seen == [("0.", False)]
    handle.remove()
    net._register_state_dict_hook(lambda m, state, prefix, meta: {"renamed": state["0.weight"]})
    assert list(net.state_dict()) == ["renamed"]


def test_hooks_after_state_dict_return_nothing(t):
    net = t.nn.Linear(1, 1)
    net.register_state_dict_post_hook(lambda m, state, prefix, meta: state)
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        net.state_dict()


def test_hooks_of_load_state_dict():
    net = nn.Sequential(nn.Linear(1, 1))

    def rename(module, state, prefix, *report):
        state[f"{prefix}weight"] = state.pop(f"{prefix}old")

    net[0].register_load_state_dict_pre_hook(rename)
    seen = []
    net[0]._register_load_state_dict_pre_hook(lambda state, prefix, *report: seen.append(prefix))
    net.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    net.load_state_dict({"0.old": lg.tensor([[5.0]])})
    assert net[0].weight.item() == 5
    assert seen == ["0."]
    with pytest.raises(RuntimeError, match="size mismatch"):
        net.load_state_dict({"0.old": lg.ones(3)})
    net.register_load_state_dict_post_hook(lambda m, keys: keys)
    with pytest.raises(RuntimeError, match="in place and return None"):
        net.load_state_dict({"0.old": lg.tensor([[5.0]])})


def test_the_order_of_hooks_of_load_state_dict():
    """PyTorch's: each module's after those below it, and before those of the next."""
    net, seen = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Sequential(nn.Linear(1, 1, bias=False))), []
    for name, module in net.named_modules():
        module.register_load_state_dict_pre_hook(lambda m, state, prefix, *_, name=name: seen.append(f"before {name}"))
        module.register_load_state_dict_post_hook(lambda m, keys, name=name: seen.append(f"after {name}"))
    net[0].register_load_state_dict_post_hook(lambda m, keys: seen.append(m.weight.item()))
    net.load_state_dict({"0.weight": lg.full((1, 1), 2.0), "1.0.weight": lg.full((1, 1), 3.0)})
    assert seen == ["before ", "before 0", "after 0", 2.0, "before 1", "before 1.0", "after 1.0", "after 1", "after "]
    assert net[1][0].weight.item() == 3


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("wrong", [{"1.weight": lg.ones(3)}, {}, {"1.weight": lg.ones(1, 1), "more": lg.ones(1)}])
def test_an_error_undoes_what_a_hook_had_to_see(assign, wrong):
    net, seen = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)), []
    net[1].weight = net[0].weight  # shared: written twice
    before, weight = net[0].weight.item(), net[0].weight
    for module in net:
        module.register_load_state_dict_post_hook(lambda m, keys: seen.append(m.weight.item()))
    with pytest.raises(RuntimeError, match="in loading state_dict"):
        net.load_state_dict({"0.weight": lg.full((1, 1), 2.0), **wrong}, assign=assign)
    assert seen[0] == 2
    assert net[0].weight is weight
    assert weight.item() == before


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state):
        self.count = state["count"]


def test_extra_state():
    net = nn.Sequential(Counter(), nn.Linear(1, 1))
    net[0].count = 7
    state = net.state_dict()
    assert state["0._extra_state"] == {"count": 7}
    other = nn.Sequential(Counter(), nn.Linear(1, 1))
    other.load_state_dict(state)
    assert other[0].count == 7
    other[0].count = 0
    with pytest.raises(RuntimeError, match=r"size mismatch for 1\.bias"):
        other.load_state_dict({**state, "1.bias": lg.ones(3)})
    assert other[0].count == 0
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0\._extra_state"'):
        other.load_state_dict({k: v for k, v in state.items() if "extra" not in k})
    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "_extra_state"'):
        nn.Linear(1, 1).load_state_dict({**nn.Linear(1, 1).state_dict(), "_extra_state": 3})


def test_versions_of_modules_are_in_the_state():
    class Newer(nn.Linear):
        _version = 3

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *report):
            seen.append(local_metadata.get("version"))
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *report)

    seen = []
    net = nn.Sequential(Newer(1, 1))
    net.load_state_dict(net.state_dict())
    net.load_state_dict(dict(net.state_dict()))
    assert seen == [3, None]


# ---- which layer an error comes from ------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1 = nn.Linear(2, 2)
        self.linear2 = nn.Linear(3, 2)

    def forward(self, x):
        return self.linear2(self.linear1(x))


class Net(nn.Module):
    def __init__(self, **outside):
        super().__init__()
        self.layers = nn.ModuleList([nn.Tanh(), Block()])
        self.__dict__.update(outside)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def notes(call, *args):
    with pytest.raises((RuntimeError, ValueError, ZeroDivisionError)) as error:
        call(*args)
    return getattr(error.value, "__notes__", [])


def test_an_error_names_the_layer_by_its_path(device):
    net = nn.Sequential(nn.Identity(), Net()).to(device)
    x = lg.ones(5, 2, device=device)
    assert notes(net, x) == ["In 1.layers.1.linear2 (Linear) of Sequential, given float32 (5, 2)"]
    assert notes(net[1], x) == ["In layers.1.linear2 (Linear) of Net, given float32 (5, 2)"]
    assert notes(nn.Linear(3, 2), lg.ones(5, 2)) == ["In Linear, given float32 (5, 2)"]


def test_errors_of_forwards_and_hooks_are_named_too():
    net = nn.Sequential(nn.ModuleDict({"a": Fails()})["a"])
    assert notes(net, 3) == ["In 0 (Fails) of Sequential"]
    net = nn.Sequential(nn.Tanh())
    net[0].register_forward_pre_hook(lambda m, a: 1 / 0)
    assert notes(net, lg.ones(2)) == ["In 0 (Tanh) of Sequential, given float32 (2,)"]


def test_a_layer_outside_the_tree_keeps_the_path_that_is_known():
    block = Block()

    class Outside(nn.Module):
        def forward(self, x):
            return block(x)

    assert notes(Outside(), lg.ones(1, 2)) == ["In linear2 (Linear) of Block, given float32 (1, 2)"]


def test_an_error_in_a_compiled_function_names_the_layer():
    net = nn.Sequential(Block())
    assert "In 0.linear2 (Linear) of Sequential, given float32 (1, 2)" in notes(lg.compile(net), lg.ones(1, 2))


def test_the_note_is_printed(capsys):
    import traceback

    try:
        Net()(lg.ones(4, 2))
    except RuntimeError as error:
        traceback.print_exception(error)
    assert "In layers.1.linear2 (Linear) of Net, given float32 (4, 2)" in capsys.readouterr().err
