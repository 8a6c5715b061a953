"""Optimizers: groups, state, saving, hooks and the flat buckets behind them; and that training leaks nothing."""

from __future__ import annotations

import copy
import gc
import math
import tracemalloc

import pytest

import leafgrad
from leafgrad import nn, optim

TESTS = "optim.hooks"

MAKERS = [
    lambda params: optim.SGD(params, lr=0.1),
    lambda params: optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    lambda params: optim.Adam(params, lr=0.1, amsgrad=True),
    lambda params: optim.AdamW(params, lr=0.1),
]


def leaves(device="cpu", dtype=leafgrad.float32):
    data = [[1.0, -2.0], [[0.5], [3.0], [0.25]], 2.0]
    return [leafgrad.tensor(d, device=device, dtype=dtype, requires_grad=True) for d in data]


def loss_of(params):
    return sum(((p - 1) ** 2 * (i + 1)).sum() for i, p in enumerate(params))


def train(optimizer, params, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(params).backward()
        optimizer.step()
    return [p.detach().cpu().numpy().copy() for p in params]


# ---- steps --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", MAKERS)
def test_training_goes_downhill_on_every_device(make, device):
    params = leaves(device)
    start = loss_of(params).item()
    train(make(params), params, 20)
    assert loss_of(params).item() < 0.5 * start
    assert all(p.device == device and p.dtype is leafgrad.float32 and p.is_leaf for p in params)


def test_half_precision_counts_steps_in_single():
    params = leaves(dtype=leafgrad.float16)
    optimizer = optim.Adam(params, lr=0.1)
    train(optimizer, params, 3)
    assert optimizer.state[params[0]]["step"].dtype is leafgrad.float32
    assert optimizer.state[params[0]]["exp_avg"].dtype is params[0].dtype is leafgrad.float16


def test_adams_first_step_has_the_size_of_lr():
    p = leafgrad.tensor([3.0, -0.001], requires_grad=True)
    p.grad = leafgrad.tensor([100.0, -1e-3])
    optim.Adam([p], lr=0.5).step()
    assert p.tolist() == pytest.approx([2.5, 0.499], rel=1e-4)


def test_parameters_keep_their_memory():
    p = leafgrad.tensor([1.0, 2.0], requires_grad=True)
    memory = p.detach().numpy()
    train(optim.Adam([p]), [p], 2)
    assert p.detach().numpy() is memory or p.detach().numpy().base is memory
    assert memory.tolist() == p.tolist()


def test_parameters_may_lie_in_memory_as_they_like():
    matrix = leafgrad.zeros(2, 3).t().detach().requires_grad_()
    part = leafgrad.zeros(5)[1:3].detach().requires_grad_()
    number = leafgrad.zeros(()).requires_grad_()
    params = [matrix, part, number]
    for i, p in enumerate(params):
        p.grad = leafgrad.arange(p.numel(), dtype=leafgrad.float32).reshape(p.shape) + i
    optim.SGD(params, lr=1.0).step()
    assert [p.tolist() for p in params] == [[[0, -1], [-2, -3], [-4, -5]], [-1, -2], -2]
    repeated = leafgrad.zeros(1).expand(3).detach().requires_grad_()
    repeated.grad = leafgrad.ones(3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        optim.SGD([number, repeated], lr=1.0).step()


def test_a_step_is_seen_by_the_version_check():
    p = leafgrad.tensor([1.0, 2.0], requires_grad=True)
    loss = (p * p).sum()
    p.grad = leafgrad.tensor([1.0, 1.0])
    optim.SGD([p], lr=0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_the_closure_runs_with_recording_on_and_its_loss_is_returned():
    p = leafgrad.tensor([2.0], requires_grad=True)
    optimizer = optim.SGD([p], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with leafgrad.no_grad():
        loss = optimizer.step(closure)
    assert (loss.item(), p.item()) == (4.0, 1.0)


def test_groups_have_options_of_their_own_and_may_be_added():
    a, b, c = leaves()
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 1.0}], lr=0.5)
    optimizer.add_param_group({"params": [c], "momentum": 0.9})
    assert [g["lr"] for g in optimizer.param_groups] == [0.5, 1.0, 0.5]
    assert [g["momentum"] for g in optimizer.param_groups] == [0, 0, 0.9]
    for p in (a, b, c):
        p.grad = leafgrad.ones_like(p)
    optimizer.step()
    assert a.tolist() == [0.5, -2.5]
    assert b.tolist() == [[-0.5], [2.0], [-0.75]]
    assert c.item() == 1.5
    assert "momentum_buffer" in optimizer.state[c]
    assert "momentum_buffer" not in optimizer.state[a]


def test_options_may_change_between_steps():
    p = leafgrad.tensor([1.0], requires_grad=True)
    optimizer = optim.SGD([p], lr=0.5)
    for lr in (0.5, 0.25):
        optimizer.param_groups[0]["lr"] = lr
        p.grad = leafgrad.tensor([1.0])
        optimizer.step()
    assert p.item() == 0.25


def test_zero_grad_sets_none_or_zero_in_place():
    p = leafgrad.tensor([1.0], requires_grad=True)
    optimizer = optim.SGD([p])
    p.grad = kept = leafgrad.tensor([1.0])
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is kept
    assert kept.item() == 0.0
    optimizer.zero_grad()
    assert p.grad is None


# ---- state --------------------------------------------------------------------------------------------------------


def test_state_is_per_parameter_and_shares_memory_with_what_is_updated():
    params = leaves()
    optimizer = optim.Adam(params, lr=0.1)
    train(optimizer, params, 2)
    for p in params:
        entry = optimizer.state[p]
        assert list(entry) == ["exp_avg", "exp_avg_sq", "step"] or set(entry) == {"exp_avg", "exp_avg_sq", "step"}
        assert entry["exp_avg"].shape == entry["exp_avg_sq"].shape == p.shape
        assert entry["step"].item() == 2
    optimizer.state[params[0]]["exp_avg"].zero_()
    for p in params:
        p.grad = leafgrad.zeros_like(p)
    optimizer.step()
    assert optimizer.state[params[0]]["exp_avg"].tolist() == [0.0, 0.0]
    assert optimizer.state[params[2]]["exp_avg"].item() != 0.0


def test_state_replaced_by_the_user_is_used():
    params = leaves()
    optimizer = optim.SGD(params, lr=1.0, momentum=1.0)
    train(optimizer, params, 1)
    optimizer.state[params[0]]["momentum_buffer"] = leafgrad.tensor([10.0, 20.0])
    before = params[0].tolist()
    for p in params:
        p.grad = leafgrad.zeros_like(p)
    optimizer.step()
    assert params[0].tolist() == [before[0] - 10.0, before[1] - 20.0]
    optimizer.state.clear()
    optimizer.step()
    assert optimizer.state[params[0]]["momentum_buffer"].tolist() == [0.0, 0.0]


def test_a_state_that_is_none_is_made_anew():
    params = leaves()
    optimizer = optim.SGD(params, lr=1.0, momentum=0.5)
    train(optimizer, params, 1)
    kept = optimizer.state[params[2]]["momentum_buffer"].tolist()
    optimizer.state[params[0]]["momentum_buffer"] = None
    for p in params:
        p.grad = leafgrad.ones_like(p)
    optimizer.step()
    assert optimizer.state[params[0]]["momentum_buffer"].tolist() == [1.0, 1.0]
    assert optimizer.state[params[2]]["momentum_buffer"].tolist() == (leafgrad.tensor(kept) * 0.5 + 1).tolist()


def test_a_parameter_without_gradient_keeps_its_state_and_its_count():
    params = leaves()
    optimizer = optim.Adam(params, lr=0.1)
    train(optimizer, params, 2)
    kept = optimizer.state[params[1]]["exp_avg"].tolist()
    optimizer.zero_grad()
    loss_of(params[:1]).backward()
    optimizer.step()
    assert optimizer.state[params[1]]["exp_avg"].tolist() == kept
    assert [optimizer.state[p]["step"].item() for p in params] == [3, 2, 2]
    train(optimizer, params, 1)
    assert [optimizer.state[p]["step"].item() for p in params] == [4, 3, 3]


@pytest.mark.parametrize("make", MAKERS)
def test_saving_and_loading_goes_on_where_it_was(make):
    params = leaves()
    optimizer = make(params)
    train(optimizer, params, 3)
    saved = copy.deepcopy(optimizer.state_dict())
    others = [p.detach().clone().requires_grad_() for p in params]
    expected = train(optimizer, params, 3)
    restored = make(others)
    restored.load_state_dict(saved)
    for a, b in zip(train(restored, others, 3), expected, strict=True):
        assert a == pytest.approx(b, rel=1e-6)


def test_loading_copies_and_converts_to_the_parameters_dtype():
    params = leaves()
    optimizer = optim.Adam(params)
    train(optimizer, params, 2)
    doubles = leaves(dtype=leafgrad.float64)
    other = optim.Adam(doubles, lr=9.0)
    other.load_state_dict(optimizer.state_dict())
    entry = other.state[doubles[0]]
    assert entry["exp_avg"].dtype is entry["step"].dtype is leafgrad.float64
    assert other.param_groups[0]["lr"] == 1e-3
    train(other, doubles, 1)
    assert optimizer.state[params[0]]["step"].item() == 2


def test_groups_that_share_a_learning_rate_share_that_which_is_loaded(t):
    a, b = t.ones(1, requires_grad=True), t.ones(1, requires_grad=True)
    lr = t.tensor(0.05)
    optimizer = t.optim.Adam([{"params": [a]}, {"params": [b], "eps": 0.1}], lr=lr)
    optimizer.load_state_dict(optimizer.state_dict())
    first, second = (group["lr"] for group in optimizer.param_groups)
    assert first is second is not lr
    assert [group["eps"] for group in optimizer.param_groups] == [1e-8, 0.1]


def test_the_layout_of_a_state_dict():
    a, b, c = leaves()
    optimizer = optim.SGD([{"params": [a, b]}, {"params": [c], "lr": 0.5}], lr=0.1, momentum=0.9)
    train(optimizer, [a, c], 1)
    saved = optimizer.state_dict()
    assert [g["params"] for g in saved["param_groups"]] == [[0, 1], [2]]
    assert saved["param_groups"][1]["lr"] == 0.5
    assert {i: set(entry) for i, entry in saved["state"].items()} == {0: {"momentum_buffer"}, 2: {"momentum_buffer"}}
    assert saved["state"][0]["momentum_buffer"] is optimizer.state[a]["momentum_buffer"]


def broken_state_dicts():
    a, b, c = leaves()
    optimizer = optim.Adam([a, b, c], lr=0.25)
    train(optimizer, [a, b, c], 1)
    saved = optimizer.state_dict()
    group = saved["param_groups"][0]
    yield {**saved, "param_groups": [group, group]}, "different number of parameter groups"
    yield {**saved, "param_groups": [{**group, "params": [0]}]}, "doesn't match the size"
    state = {**saved["state"], 2: {**saved["state"][2], "exp_avg": leafgrad.zeros(7)}}
    yield {**saved, "state": state}, r"'exp_avg' of parameter 2: expected shape \[\], got \[7\]"


@pytest.mark.parametrize("case", range(3))
def test_loading_is_all_or_nothing(case):
    broken, message = list(broken_state_dicts())[case]
    params = leaves()
    optimizer = optim.Adam(params, lr=9.0)
    with pytest.raises(ValueError, match=message):
        optimizer.load_state_dict(broken)
    assert optimizer.param_groups[0]["lr"] == 9.0
    assert not optimizer.state


def test_a_deep_copy_is_independent():
    params = leaves()
    optimizer = optim.Adam(params, lr=0.1)
    train(optimizer, params, 2)
    twin = copy.deepcopy(optimizer)
    theirs = twin.param_groups[0]["params"]
    expected = train(twin, theirs, 2)
    assert optimizer.state[params[0]]["step"].item() == 2
    for a, b in zip(train(optimizer, params, 2), expected, strict=True):
        assert a.tolist() == b.tolist()


# ---- hooks, printing, subclasses ----------------------------------------------------------------------------------


def test_hooks_run_around_each_step_in_order_and_may_replace_its_arguments():
    p = leafgrad.tensor([1.0], requires_grad=True)
    optimizer = optim.SGD([p])
    calls = []
    first = optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append(("before", o, args, kwargs)))
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((lambda: "other",), kwargs))
    optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append(("after", args[0]())))
    assert optimizer.step() == "other"
    assert calls == [("before", optimizer, (), {}), ("after", "other")]
    first.remove()
    optimizer.step()
    assert len(calls) == 3
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 1)
    with pytest.raises(RuntimeError, match=r"expected None or a tuple \(args, kwargs\)"):
        optimizer.step()


def test_the_text_of_an_optimizer():
    assert repr(optim.SGD(leaves(), lr=0.5)) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n"
        "    lr: 0.5\n    maximize: False\n    momentum: 0\n    nesterov: False\n    weight_decay: 0\n)"
    )


def test_names_are_kept_with_the_parameters():
    a, b, c = leaves()
    optimizer = optim.SGD([("a", a), ("b", b)])
    assert optimizer.param_groups[0]["param_names"] == ["a", "b"]
    assert "\n    param_names: ['a', 'b']\n" in repr(optimizer)
    with pytest.raises(ValueError, match="with/without names"):
        optimizer.add_param_group({"params": [c]})
    with pytest.raises(ValueError, match="names are missing"):
        optim.SGD([("a", a), b])


def test_an_optimizer_of_ones_own_needs_only_update_or_step():
    class Sign(optim.Optimizer):
        def update(self, group, bucket):
            bucket.add(bucket.gradient().sign() * -group["lr"])

    class Reset(optim.Optimizer):
        def step(self, closure=None):
            with leafgrad.no_grad():
                for p in self.param_groups[0]["params"]:
                    p.zero_()

    params = leaves()
    train(Sign(params, {"lr": 0.5}), params, 1)
    assert params[0].tolist() == [1.0, -1.5]
    calls = []
    reset = Reset(params, {})
    reset.register_step_post_hook(lambda *_: calls.append(1))
    reset.step()
    assert params[0].tolist() == [0.0, 0.0]
    assert calls == [1]
    params[0].grad = leafgrad.tensor([1.0, 1.0])
    with pytest.raises(NotImplementedError, match="define update"):
        optim.Optimizer(params, {}).step()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda a: optim.SGD([]), ValueError, "empty parameter list"),
        (lambda a: optim.SGD(a), TypeError, "iterable of Tensors or dicts"),
        (lambda a: optim.SGD([3]), TypeError, "one of the params is int"),
        (lambda a: optim.SGD([a * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda a: optim.SGD([{"params": {a}}]), TypeError, "use a list"),
        (lambda a: optim.SGD([{"params": [a]}, {"params": [a]}]), ValueError, "more than one parameter group"),
        (lambda a: optim.SGD([a]).add_param_group([a]), TypeError, "must be a dict, but got list"),
        (lambda a: optim.SGD([a]).add_param_group({"lr": 1}), KeyError, "expected a key 'params'"),
        (lambda a: optim.SGD([a], lr=-1), ValueError, "Invalid learning rate: -1; expected it to be at least 0"),
        (lambda a: optim.SGD([a], lr=math.nan), ValueError, "Invalid learning rate: nan"),
        (lambda a: optim.Adam([a], betas=(0.9, 1)), ValueError, r"index 1: 1; expected it to be in \[0, 1\)"),
        (lambda a: optim.LBFGS([a]).step(), TypeError, "needs a closure"),
        (lambda a: optim.LBFGS([a], history_size=0), ValueError, "history_size: 0; expected it to be at least 1"),
    ],
)
def test_errors_say_what_was_expected(make, error, message):
    with pytest.raises(error, match=message):
        make(leafgrad.tensor([1.0], requires_grad=True))


def test_a_parameter_twice_in_a_group_is_stepped_once_with_a_warning():
    p = leafgrad.tensor([1.0], requires_grad=True)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = optim.SGD([p, p], lr=0.5)
    p.grad = leafgrad.tensor([1.0])
    optimizer.step()
    assert p.item() == 0.5


# ---- memory -------------------------------------------------------------------------------------------------------


def test_training_without_the_collector_does_not_grow():
    """Nothing in a step forms a reference cycle, so memory stays flat over three thousand steps."""
    weight = leafgrad.tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)
    x = leafgrad.tensor([[1.0, 2.0]])
    optimizer = optim.Adam([weight], lr=1e-3)

    def steps(n):
        for _ in range(n):
            optimizer.zero_grad()
            ((x @ weight).tanh() ** 2).sum().backward()
            optimizer.step()

    gc.collect()
    gc.disable()
    try:
        steps(100)
        objects = len(gc.get_objects())
        tracemalloc.start()
        steps(100)
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        steps(2_700)
        tracemalloc.start()
        steps(100)
        after, _ = tracemalloc.get_traced_memory()
        assert len(gc.get_objects()) <= objects + 10
        assert after <= before + 10_000
    finally:
        tracemalloc.stop()
        gc.enable()


def test_a_chain_of_a_hundred_thousand_operations():
    """Runs backward, and is freed, without recursion, whether a backward pass went through it or not."""
    x = leafgrad.tensor([1.0, 2.0], requires_grad=True)
    for run_backward in (True, False):
        y = x
        for _ in range(100_000):
            y = y * 1.0
        if run_backward:
            y.sum().backward()
            assert x.grad.tolist() == [1.0, 1.0]
        del y


def test_parameters_that_were_not_called():
    with pytest.raises(TypeError, match=r"got Linear\.parameters itself; call it: parameters\(\)"):
        optim.Adam(nn.Linear(2, 2).parameters)
