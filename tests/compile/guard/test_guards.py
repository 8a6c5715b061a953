"""Guards: whatever changes outside is seen at the next call, and the log says what it was."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import inspect
import re
import sys
import threading
import types

import numpy as np
import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.batching.pytree import flatten
from leafgrad.compile.guard.conditions import Condition, first_to_fail
from leafgrad.compile.record.watch import Watch, watching

TESTS = "compile.guard.* compile.ir.log"

SCALE = 2.0
TABLE = {"a": [1.0, 2.0], "b": {"c": 3}}
CONFIG = types.SimpleNamespace(power=2)


def warm(function, *args):
    """The function compiled and traced."""
    compiled = leafgrad.compile(function)
    for _ in range(3):
        compiled(*args)
    assert "traced again 0 times" in compiled.explain()
    return compiled


def reasons(compiled):
    return [miss.path for miss in compiled._calls.misses]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda x: leafgrad.ones(4), "x"),
        (lambda x: x.double(), "x"),
        (lambda x: x.clone().requires_grad_(), "x"),
        (lambda x: x.clone().requires_grad_() * 2, "x"),
        (lambda x: nn.Parameter(x), "x"),
    ],
)
def test_what_a_tensor_is(change, reason):
    x = leafgrad.ones(3)
    f = warm(lambda x: x * 2, x)
    other = change(x)
    assert (f(other) == other * 2).all()
    assert reasons(f) == [reason]
    f(x)  # the first program is still there
    assert len(f._calls.misses) == 1


def test_the_device():
    leafgrad.testing.fake.register()
    f = warm(lambda x: x * 2, leafgrad.ones(3))
    assert f(leafgrad.ones(3, device="fake:0")).device == leafgrad.device("fake:0")
    assert [miss.now for miss in f._calls.misses] == ["float32 (3,) on fake:0"]


@pytest.mark.parametrize("values", [(2, 3), (2, 2.0), (1, True), (None, 2), ("mul", "add"), (0.0, float("inf"))])
def test_python_values_among_the_arguments(values):
    def f(x, how):
        if how is None:
            return x
        if isinstance(how, str):
            return getattr(x, how)(x)
        return x * how

    x = leafgrad.full((2,), 3)
    compiled = warm(f, x, values[0])
    result, expected = compiled(x, values[1]), f(x, values[1])
    assert result.dtype is expected.dtype
    assert result.tolist() == expected.tolist()
    assert reasons(compiled) == ["how"]


def test_structure_and_keywords():
    f = warm(lambda **k: sum(k.values()), *())
    compiled = leafgrad.compile(lambda batch, scale=1.0: batch[0] * scale)
    x = leafgrad.ones(2)
    for _ in range(2):
        compiled([x])
    assert compiled((x,)).tolist() == [1, 1]
    assert compiled([x], scale=3.0).tolist() == [3, 3]
    assert reasons(compiled) == ["the arguments"] * 2
    assert f() == 0


def test_the_mode_and_the_default_dtype():
    f = warm(lambda x: x * leafgrad.zeros(1), leafgrad.ones(2, requires_grad=True))
    x = leafgrad.ones(2, requires_grad=True)
    with leafgrad.no_grad():
        assert not f(x).requires_grad
    leafgrad.set_default_dtype(leafgrad.float64)
    try:
        assert f(x).dtype is leafgrad.float64
    finally:
        leafgrad.set_default_dtype(leafgrad.float32)
    assert reasons(f) == ["the mode", "the default dtype"]


def test_arguments_that_are_one_tensor():
    def f(x, y):
        with leafgrad.no_grad():
            x.add_(1)
            return y * 1

    x, y = leafgrad.zeros(2), leafgrad.zeros(2)
    compiled = warm(f, x, y)
    assert compiled(x, y).tolist() == [0, 0]
    z = leafgrad.zeros(2)
    assert compiled(z, z).tolist() == [1, 1]
    assert compiled(x, y).tolist() == [0, 0]


def test_globals(monkeypatch):
    def f(x):
        return x * SCALE + TABLE["a"][1] + TABLE["b"]["c"] ** CONFIG.power

    x = leafgrad.zeros(1)
    compiled = warm(f, x)
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert compiled(x + 1).item() == f(x + 1).item() == 16
    TABLE["a"][1] = 7.0
    assert compiled(x).item() == 16
    TABLE["a"][1] = 2.0
    monkeypatch.setitem(TABLE["b"], "c", 1)
    assert compiled(x).item() == 3
    monkeypatch.setattr(CONFIG, "power", 3)
    compiled(x)
    assert reasons(compiled) == ["SCALE", "TABLE['a'][1]", "TABLE['b']['c']", "CONFIG.power"]


def test_closures_defaults_partials_and_helpers():
    factor, add = 2.0, leafgrad.tensor(1.0)

    def helper(x, *, power=2):
        return x**power * factor

    def f(x, offset, extra=(1.0, [2.0])):
        return helper(x) + add + offset + extra[1][0]

    given = functools.partial(f, offset=1.0)
    x = leafgrad.ones(1)
    compiled = warm(given, x)
    for change in ("factor", "power", "add", "extra"):
        match change:
            case "factor":
                factor = 3.0
            case "power":
                helper.__kwdefaults__["power"] = 0
            case "add":
                add = leafgrad.tensor(10.0)
            case "extra":
                f.__defaults__[0][1][0] = 20.0
        assert compiled(x * 2).item() == given(x * 2).item(), change
    assert len(compiled._calls.misses) == 4


@dataclasses.dataclass(slots=True)
class Options:
    width: int
    weight: leafgrad.Tensor


class Settings:
    gain = 1.0
    depth = 1


def test_attributes_slots_and_classes():
    options, settings = Options(2, leafgrad.ones(2)), Settings()

    def f(x):
        return x * options.width * settings.gain * Settings.depth + options.weight

    x = leafgrad.ones(2)
    compiled = warm(f, x)
    options.width = 3
    assert compiled(x).tolist() == [4, 4]
    settings.gain = 2.0  # an attribute of the object in front of the class's
    assert compiled(x).tolist() == [7, 7]
    Settings.depth = 2
    try:
        assert compiled(x).tolist() == [13, 13]
    finally:
        Settings.depth = 1
    options.weight = leafgrad.zeros(2)
    assert compiled(x).tolist() == [6, 6]
    assert reasons(compiled)[0] == "options.width"


def test_attributes_by_computed_names():
    class Holder:
        def __init__(self):
            self.layer0, self.layer1 = leafgrad.ones(1), 2.0

        def __call__(self, x):
            for i in range(2):
                x = x * getattr(self, f"layer{i}")
            return x

    holder = Holder()
    compiled = warm(holder, leafgrad.ones(1))
    holder.layer1 = 5.0
    assert compiled(leafgrad.ones(1)).item() == 5
    holder.layer0 = leafgrad.zeros(1)
    assert compiled(leafgrad.ones(1)).item() == 0


def test_compiled_functions_inside():
    factor = 2.0
    inner = leafgrad.compile(lambda x: x * factor)
    cached = functools.lru_cache(lambda: factor + 1)
    compiled = warm(lambda x: inner(x) + cached(), leafgrad.ones(1))
    factor = 5.0
    assert compiled(leafgrad.ones(1)).item() == 8


def test_methods_that_are_replaced(monkeypatch):
    class Net(nn.Module):
        def forward(self, x):
            return self.scaled(x)

        def scaled(self, x):
            return x * 2

    net = Net()
    compiled = warm(net, leafgrad.ones(1))
    monkeypatch.setattr(Net, "scaled", lambda self, x: x * 3)
    assert compiled(leafgrad.ones(1)).item() == 3
    net.scaled = lambda x: x * 4
    assert compiled(leafgrad.ones(1)).item() == 4
    assert reasons(compiled)[0] == "Net.scaled"


class Mode(enum.Enum):
    ADD = 1
    MUL = 2


def test_other_kinds_of_values():
    order = {"a": 2.0, "b": 3.0}
    rate, names, mode, seen = np.float64(0.5), {"x"}, Mode.ADD, collections.deque([1.0])

    def f(x):
        for step, number in order.items():
            x = x + number if step == "a" else x * number
        x = x * float(rate) if "x" in names else x
        return x + seen[0] if mode is Mode.ADD else x

    x = leafgrad.ones(1)
    compiled = warm(f, x)
    for change in range(5):
        match change:
            case 0:
                order["a"] = order.pop("a")
            case 1:
                rate = np.float64(2.0)
            case 2:
                seen[0] = 10.0
            case 3:
                names.discard("x")
            case 4:
                mode = Mode.MUL
        assert compiled(x).item() == f(x).item(), change
    assert reasons(compiled) == ["the keys of order", "rate", "seen[0]", "names", "mode"]


def test_no_string_stands_for_what_is_not_there():
    names = types.SimpleNamespace(mode="nothing")

    def f(x):
        return x * 2 if names.mode == "nothing" else x * 3

    x = leafgrad.ones(1)
    compiled = warm(f, x)
    names.mode = "something"
    assert compiled(x).item() == 3
    del names.mode
    with pytest.raises(AttributeError):
        compiled(x)


def test_state_that_is_made_later():
    """New parameters: the optimizer makes state for them at a call that runs as it is; then it is traced again."""
    v, w = (nn.Parameter(leafgrad.ones(1, dtype=leafgrad.float64)) for _ in range(2))
    optimizer = optim.SGD([v], lr=1.0, momentum=0.5)

    def step():
        optimizer.zero_grad()
        (v + w).sum().backward()
        optimizer.step()

    compiled = warm(step)
    assert (v.item(), w.item()) == (1 - 1 - 1.5 - 1.75, 1)
    w.grad = None
    optimizer.add_param_group({"params": [w]})
    for _ in range(3):
        compiled()
    assert w.item() == 1 - 1 - 1.5 - 1.75
    state = optimizer.state_dict()
    state["param_groups"][1]["lr"] = 0.0
    optimizer.load_state_dict(state)
    for _ in range(3):
        compiled()
    assert w.item() == 1 - 1 - 1.5 - 1.75
    assert v.item() < -10


def test_a_learning_rate_that_is_a_tensor():
    w = nn.Parameter(leafgrad.zeros(1))
    optimizer = optim.SGD([w], lr=leafgrad.tensor(1.0))

    def step():
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()

    compiled = warm(step)
    optimizer.param_groups[0]["lr"].fill_(2.0)
    compiled()
    assert w.item() == -5
    optimizer.param_groups[0]["lr"] = 3.0
    compiled()
    compiled()
    assert w.item() == -11


def test_anomaly_detection_runs_eagerly():
    w = leafgrad.zeros(1, requires_grad=True)
    compiled = warm(lambda: (w.sqrt() * 0).sum())
    with pytest.warns(UserWarning, match="Anomaly"):
        anomaly = leafgrad.autograd.detect_anomaly()
    with anomaly, pytest.raises(RuntimeError, match="SqrtBackward0"):
        compiled().backward()


def test_objects_among_the_arguments():
    compiled = warm(lambda net, x: net(x), nn.Linear(2, 1), leafgrad.ones(2))
    net = nn.Linear(2, 1)
    assert compiled(net, leafgrad.ones(2)).item() == net(leafgrad.ones(2)).item()
    assert reasons(compiled) == ["net"]


def test_modules():
    leafgrad.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    x = leafgrad.ones(1, 2)
    compiled = warm(net, x)
    net.eval()
    assert compiled(x).item() == net(x).item()
    net[2].weight.requires_grad_(False)
    assert compiled(x).item() == net(x).item()
    net[0].bias = nn.Parameter(leafgrad.zeros(4))
    assert compiled(x).item() == net(x).item()
    net.append(nn.Tanh())
    assert compiled(x).item() == net(x).item()
    net.to(leafgrad.float64)
    assert compiled(x.double()).item() == net(x.double()).item()
    handle = net[0].register_forward_hook(lambda module, args, out: out * 2)
    assert compiled(x.double()).item() == net(x.double()).item()
    handle.remove()
    assert compiled(x.double()).item() == net(x.double()).item()
    assert len(reasons(compiled)) >= 5
    assert reasons(compiled)[0] in ("self.training", "self.0.training", "self.1.training")


def test_memory_of_a_captured_tensor_may_change_freely():
    w = nn.Parameter(leafgrad.ones(2))
    compiled = warm(lambda: w * 2)
    with leafgrad.no_grad():
        w.add_(1)
    assert compiled().tolist() == [4, 4]
    w.data = leafgrad.zeros(2)
    assert compiled().tolist() == [0, 0]
    w.data = leafgrad.ones(3)
    assert compiled().tolist() == [2, 2, 2]
    assert reasons(compiled) == ["w"]


def test_a_view_of_memory_that_its_base_lost():
    base = leafgrad.zeros(4)
    view = base[:2]
    compiled = warm(lambda: view + 1)
    base.data = leafgrad.ones(4)
    assert compiled().tolist() == [1, 1]
    with leafgrad.no_grad():
        view.add_(1)
    assert compiled().tolist() == [2, 2]
    assert base.tolist() == [1, 1, 1, 1]
    view = base[:2]
    assert compiled().tolist() == [2, 2]
    base = leafgrad.zeros(4, requires_grad=True)
    view = base[:2]
    base.data = leafgrad.ones(4)
    assert compiled().tolist() == [1, 1]


def test_gradients_that_are_there_or_not():
    w = nn.Parameter(leafgrad.ones(2))
    compiled = leafgrad.compile(lambda: (w * 3).sum().backward())
    for n in range(1, 5):  # None, traced with one, again
        compiled()
        assert w.grad.tolist() == [3 * n, 3 * n]
    w.grad = None
    compiled()
    assert w.grad.tolist() == [3, 3]
    assert reasons(compiled) == ["w.grad"]


def test_numbers_that_optimizers_read_anew_make_no_trace():
    w = nn.Parameter(leafgrad.zeros(1, dtype=leafgrad.float64))
    optimizer = optim.SGD([w], lr=1.0)

    @leafgrad.compile
    def step():
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()

    for lr in (1.0, 2.0, 4.0, 8.0):
        optimizer.param_groups[0]["lr"] = lr
        step()
    assert w.item() == -15
    assert not step._calls.misses
    optimizer.param_groups[0]["weight_decay"] = 1.0
    step()
    assert w.item() == -15 - 8 * (1 - 15)


def test_an_optimizer_whose_options_the_user_reads_is_guarded():
    w = nn.Parameter(leafgrad.zeros(1))
    optimizer = optim.SGD([w], lr=1.0)
    compiled = warm(lambda x: x * optimizer.param_groups[0]["lr"], leafgrad.ones(1))
    optimizer.param_groups[0]["lr"] = 3.0
    assert compiled(leafgrad.ones(1)).item() == 3


def test_log_explain_and_the_warning(monkeypatch, capsys):
    monkeypatch.setenv("LEAFGRAD_LOG", "compile")

    @leafgrad.compile
    def step(x, factor):
        return x * factor

    for shape in ((1,), (1,), (2, 2), (3, 3, 3)):
        step(leafgrad.ones(shape), 2.0)
    with pytest.warns(
        UserWarning, match=r"traced again 2 times, mostly because of x .* is float32 \(3, 3, 3\)"
    ) as caught:
        step(leafgrad.ones(4, 4, 4, 4), 2.0)
    assert caught[0].filename == __file__
    step(leafgrad.ones(()), 2.0)  # said once
    log = capsys.readouterr().err
    assert "step: traced in" in log
    assert "step: recorded again, since x was float32 (2, 2) on cpu and is float32 (3, 3, 3) on cpu" in log
    assert "x was float32 (2, 2) on cpu and became float32 (3, 3, 3) on cpu" in step.explain()


def test_a_number_that_keeps_changing_is_computed_anew_by_one_program():
    @leafgrad.compile
    def step(x, factor):
        return (x * factor).sin() * (1 + factor)

    x = leafgrad.ones(3)
    for factor in range(20):
        assert step(x, factor / 7).tolist() == pytest.approx(((x * (factor / 7)).sin() * (1 + factor / 7)).tolist())
    assert "1 program, traced again 0 times" in step.explain().summary
    assert any(
        line.startswith("factor: 0.142857") and line.endswith("another one") for line in step.explain().guards[0]
    )


def test_guards_look_at_objects_without_functions_between():
    net = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(12)])
    optimizer = optim.Adam(net.parameters())
    x = leafgrad.ones(2, 4)

    @leafgrad.compile
    def step(x):
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()

    for _ in range(3):
        step(x)
    guards = step._calls.programs[0].guards
    assert len(guards.conditions) > 200
    leaves, _ = flatten(((x,), {}))
    assert guards.accepts(leaves)

    calls = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, arg: calls.append(event))
    try:
        guards.accepts(leaves)
    finally:
        sys.setprofile(before)
    functions = [event for event in calls if event in ("call", "c_call")]
    assert len(functions) < len(guards.conditions)  # a few hundred, for some 900


def test_all_code_that_runs_in_this_thread_is_noted():
    def numbers():
        yield from map(doubled, range(3))

    def doubled(i):
        return 2 * i

    def elsewhere():
        return doubled(1)

    class Holder:
        @property
        def value(self):
            return sorted(numbers(), key=lambda v: -v)

    def run():
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return Holder().value

    for _ in range(2):  # code that told the first time tells again
        watch = Watch()
        with watching(watch):
            run()
        doubled(1)
        codes = watch.codes
        assert {"run", "numbers", "doubled", "value", "<lambda>"} <= {code.co_name for code, _ in codes}
        assert "elsewhere" not in {code.co_name for code, _ in codes}
        assert all(scope is globals() for code, scope in codes if code.co_filename == __file__)


def test_numpy_arrays_are_compared():
    """Small ones by their elements; what a step writes into one, or a large one, opens it."""
    x = leafgrad.ones(3)
    a = np.array([2.0, 3.0])
    scale = warm(lambda x: x * float(a[0]), x)
    assert not scale._calls.reason
    assert scale(x).tolist() == [2, 2, 2]
    a[0] = 5
    assert scale(x).tolist() == [5, 5, 5]
    a[0] = 2
    assert scale(x).tolist() == [2, 2, 2]
    a = np.array([7.0])
    assert scale(x).tolist() == [7, 7, 7]

    count = np.zeros(1)

    def step(x):
        count[0] += 1
        return x * count[0]

    counted = leafgrad.compile(step)
    assert [counted(x)[0].item() for _ in range(5)] == [1, 2, 3, 4, 5]
    assert "count" in counted._calls.reason

    for large, why in ((np.zeros(200_000), "1600000 bytes"), (np.array([object(), 1.0]), "of object")):
        read = leafgrad.compile(lambda x, large=large: x * large[1])
        for _ in range(4):
            read(x)
        assert why in read._calls.reason


@pytest.mark.parametrize("count", [0, 1, 16, 17, 256, 257, 300])
def test_the_first_condition_to_fail_is_found_among_any_number(count):
    tests = [f"(p{i} := a0[{i}]) == {i}" if i % 3 else f"a0[{i}] == {i} and p == 7" for i in range(count)]
    listed = [Condition(test, "", "", str, "state", covered=False) for test in tests]
    for wrong in {0, 1, 5, 15, 16, 17, 255, 256, 257, count - 1} & {*range(count)}:
        for values in ([*range(wrong), -1, *range(wrong + 1, count)], [*range(wrong)]):  # another; or gone
            assert first_to_fail(listed, [values], {"p": 7}) == wrong
    assert first_to_fail(listed, [[*range(count)]], {"p": 7}) == count


def test_an_op_whose_kernel_has_a_signature_of_its_own_closes():
    @leafgrad.op("elementwise")
    def doubled(xp, x, *, by):
        return x * by

    def kernel(*args, **params):
        raise AssertionError("no array is on such a device")

    kernel.__signature__ = inspect.signature(doubled.forward)
    doubled.kernel("cupy")(kernel)
    step = leafgrad.compile(lambda x: doubled(x, by=2.0) + 1, closed=True)
    assert [step(leafgrad.ones(1)).item() for _ in range(3)] == [3.0] * 3


def test_tensors_made_in_inference_mode_are_others():
    compiled = leafgrad.compile(lambda x: x.add_(1.0))
    with leafgrad.inference_mode():
        inference = leafgrad.zeros(3)
    for _ in range(4):
        compiled(leafgrad.zeros(3))
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        compiled(inference)
    assert inference.tolist() == [0.0] * 3


def test_views_that_must_not_be_written_are_others():
    leaf = leafgrad.zeros(3, requires_grad=True)
    with leafgrad.no_grad():
        view = leaf[:]

    def step(x):
        x.add_(1.0)
        return x * 2

    def tried(x):
        try:
            return step(x)
        except RuntimeError:
            return x * 5

    for function in (step, tried):
        compiled = leafgrad.compile(function)
        for k in range(8):
            x = view if k % 2 else leafgrad.zeros(3)
            if x is view and function is step:
                with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
                    compiled(x)
            else:
                assert compiled(x).tolist() == [0.0 if x is view else 2.0] * 3
    assert leaf.tolist() == [0.0] * 3


def test_a_write_into_such_a_view_is_the_same_error_in_every_trace():
    leaf = leafgrad.zeros(3, requires_grad=True)
    with leafgrad.no_grad():
        view = leaf[:]
    cases = [
        (lambda x: x.add_(1.0), "A view was created in no_grad"),
        (lambda _: leaf[1:].add_(1.0), "a view of a leaf"),
    ]
    for function, message in cases:
        closed = leafgrad.compile(function, closed=True)
        for run in (function, closed, closed, closed, lambda x, function=function: leafgrad.trace(function, x)):
            with pytest.raises(RuntimeError, match=message):
                run(view)


def test_what_changes_is_told_in_words():
    box, names, array = {}, {}, np.zeros(3)

    def keys(x, n):
        box[n] = 1
        return x * n

    def strings(x, n):
        names[f"k{n}"] = 1
        return x * n

    def items(x, n):
        array[0] += 1
        return x * float(array[0])

    told = {
        keys: "from 3 to 4",
        strings: "from 3, the last 'k2', to 4, the last 'k3',",
        items: r"an array of shape \(3,\)",
    }
    for function, words in told.items():
        step = leafgrad.compile(function)
        for n in range(6):
            step(leafgrad.ones(2), n)
        assert re.search(words, step.explain().summary)
