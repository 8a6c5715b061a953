"""Numbers that differ from call to call: steps with them close, and do what they do uncompiled."""

import collections
import itertools
import math
import random
import threading
import types

import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.errors import TraceError

X = [[0.5, -1.0], [2.0, 0.25]]
STATE = types.SimpleNamespace()


class Setting:
    """What the steps of this file work on, made anew for each."""

    def __init__(self):
        leafgrad.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
        self.adam = optim.Adam(self.net.parameters(), lr=0.01)
        self.count, self.last, self.best = 0, 0.0, math.inf
        self.table = {"beta": 0.5}
        self.items = [1.0, 2.0]

    def train(self, x, factor=1):
        self.adam.zero_grad()
        loss = self.net(x).square().mean() * factor
        loss.backward()
        self.adam.step()
        return loss

    def state(self):
        numbers = [self.count, self.last, self.best, *self.table.values(), *self.items]
        return numbers, [p.tolist() for p in self.net.parameters()], self.adam.param_groups[0]["lr"]


def epoch_in_arithmetic(s, x, epoch):
    return s.train(x, 1 + epoch * 0.1 + 1 / (epoch + 1))


def epoch_that_nobody_reads(s, x, epoch):
    return s.train(x)


def epoch_that_decides(s, x, epoch):
    return s.train(x, 2) if epoch % 4 == 3 else s.train(x)


def rate_set_by_hand(s, x, epoch):
    for group in s.adam.param_groups:
        group["lr"] = 0.01 * 0.9**epoch
    return s.train(x)


def counter(s, x, epoch):
    s.count += 1
    return s.train(x) * s.count


def number_in_a_dict(s, x, epoch):
    s.table["beta"] = s.table["beta"] * 0.9 + 0.1
    return s.train(x, s.table["beta"])


def numbers_in_a_list(s, x, epoch):
    s.items[0], s.items[1] = s.items[1], s.items[0] + s.items[1]
    return s.net(x) * s.items[0]


def returns_a_value(s, x, epoch):
    return s.train(x).item()


def returns_values(s, x, epoch):
    loss = s.train(x)
    return {"loss": loss.item(), "half": loss.item() / 2, "epoch": epoch + 1, "tensor": loss.detach()}


def keeps_a_value(s, x, epoch):
    s.last = s.train(x).item()
    return s.net(x)


def decides_by_a_value(s, x, epoch):
    loss = s.train(x)
    if loss.item() < 0.15:
        return loss * 100
    return loss


def keeps_the_best(s, x, epoch):
    loss = s.train(x).item()
    if loss < s.best:
        s.best = loss
    return s.best


def decides_by_a_tensor(s, x, epoch):
    loss = s.train(x)
    return loss if (loss > 0.15) & ~loss.isnan() else -loss


def value_as_operand(s, x, epoch):
    scale = s.net(x).abs().max().item()
    return s.net(x) / scale


CLOSE = [
    epoch_in_arithmetic, epoch_that_nobody_reads, epoch_that_decides, rate_set_by_hand, counter, number_in_a_dict,
    numbers_in_a_list, returns_a_value, returns_values, keeps_a_value, decides_by_a_value, keeps_the_best,
    decides_by_a_tensor, value_as_operand,
]  # fmt: skip


def plain(value):
    """Tensors as lists; other parts of a result as they are, with their types."""
    if isinstance(value, leafgrad.Tensor):
        return value.tolist(), value.requires_grad
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return [*map(plain, value)] if isinstance(value, (list, tuple)) else (type(value).__name__, value)


def same(a, b):
    """Whether two plain results are equal but for rounding."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (
        a == b or (type(a) is float and a == pytest.approx(b, rel=1e-4, abs=1e-5, nan_ok=True))
    )


def course(step, compiled, calls=14):
    setting = Setting()

    def bound(x, epoch):
        return step(setting, x, epoch)

    function = leafgrad.compile(bound, executor="numpy") if compiled else bound
    found = []
    for epoch in range(calls):
        result = function(leafgrad.tensor(X), epoch)
        found.append((plain(result), plain(setting.state())))
    return found, function


@pytest.mark.parametrize("step", CLOSE, ids=lambda step: step.__name__)
def test_steps_with_numbers_that_change_close(step):
    expected, _ = course(step, compiled=False)
    found, function = course(step, compiled=True)
    for call, pair in enumerate(zip(found, expected, strict=True)):
        assert same(*pair), (call, *pair)
    assert function._calls.programs, function.explain()
    assert sum(call.hits for call in function._calls.programs) >= 6, function.explain()


def test_a_number_is_of_its_own_type_wherever_it_is_left():
    found, _ = course(returns_values, compiled=True)
    assert all(type(value) is str or value for value in found)
    setting = Setting()
    step = leafgrad.compile(lambda x: counter(setting, x, 0))
    for _ in range(6):
        step(leafgrad.tensor(X))
        assert type(setting.count) is int


def test_an_error_leaves_numbers_as_the_call_left_them():
    setting, limit = Setting(), [100.0]

    def step(x):
        setting.count += 1
        if setting.count > limit[0]:
            raise ValueError("too often")
        return x * setting.count

    f = leafgrad.compile(step)
    x = leafgrad.ones(2)
    for n in range(1, 7):
        assert f(x).tolist() == [n, n]
    limit[0] = 6.0
    for n in (7, 8):
        with pytest.raises(ValueError, match="too often"):
            f(x)
        assert (type(setting.count), setting.count) == (int, n)


def test_code_that_asks_for_types_sees_numbers():
    @leafgrad.compile
    def step(x, n):
        return x * n if type(n) is int else x - n

    x = leafgrad.ones(2)
    assert [step(x, n).tolist()[0] for n in (1, 2, 3, 4)] == [1, 2, 3, 4]


def test_what_a_number_is_asked_for_is_guarded():
    @leafgrad.compile
    def step(x, n):
        rows = [10, 20, 30]
        return x * rows[n % 3] + round(n / 2) + math.floor(n / 3) + len(f"{n}") + {1: 5}.get(n, 0)

    x = leafgrad.zeros(1)
    for n in itertools.chain(range(6), range(98, 103), [1, 1, 3]):
        assert step(x, n).tolist() == [round(n / 2) + math.floor(n / 3) + len(str(n)) + {1: 5}.get(n, 0)]


@pytest.mark.parametrize("start", range(4))
def test_gradients_are_accumulated_by_three_programs(start):
    leafgrad.manual_seed(start)
    net = leafgrad.nn.Linear(3, 1)
    adam = leafgrad.optim.Adam(net.parameters())

    @leafgrad.compile
    def step(x, number):
        loss = net(x).square().mean() / 4
        loss.backward()
        if number % 4 == 3:
            adam.step()
            adam.zero_grad()
        return loss

    for number in range(start, 40):
        step(leafgrad.randn(5, 3), number)
    assert "closed; 3 programs" in step.explain().summary


def test_gradients_outside_follow_numbers():
    w = leafgrad.ones(3, requires_grad=True)

    @leafgrad.compile
    def f(x, n):
        return ((w * x) ** (n + 2)).sum() * n

    x = leafgrad.tensor([0.5, 1.0, 1.5])
    for n in range(1, 7):
        (g,) = leafgrad.autograd.grad(f(x, n), w, create_graph=True)
        expected = n * (n + 2) * x ** (n + 2)
        assert g.tolist() == pytest.approx(expected.tolist(), rel=1e-5)
        (h,) = leafgrad.autograd.grad(g.sum(), w)
        assert h.tolist() == pytest.approx(((n + 1) * expected).tolist(), rel=1e-5)
    assert len(f._calls.programs) == 1


def test_draws_are_the_same_where_a_value_decides_otherwise():
    def step(x):
        noise = leafgrad.rand(3)
        return noise * 2 if noise.sum() > 1.5 else leafgrad.rand(3)

    def draws(f):
        leafgrad.manual_seed(3)
        return [f(leafgrad.ones(3)).tolist() for _ in range(30)]

    assert draws(leafgrad.compile(step)) == draws(step)


def test_a_branch_that_is_taken_both_ways_has_a_program_for_each():
    f = leafgrad.compile(lambda x: x * 2 if x.sum() > 0 else x - 1)
    for n in range(60):
        sign = 1.0 if n % 2 else -1.0
        assert f(leafgrad.full((2,), sign)).tolist() == ([2, 2] if n % 2 else [-2, -2])
    assert "closed; 2 programs" in f.explain().summary


@pytest.mark.filterwarnings("ignore:.*has been traced again")
def test_a_loop_that_goes_ever_new_ways_has_few_programs():
    def step(x):
        count = 0
        while x.sum() < 100:
            x = x * 1.01 + 0.01
            count += 1
        return x, count

    f = leafgrad.compile(step)
    for n in range(60):
        x = leafgrad.full((2,), 48 - n / 10)
        (got, steps), (right, expected) = f(x), step(x)
        assert steps == expected
        assert got.tolist() == pytest.approx(right.tolist(), rel=1e-6)
    assert f._calls.misses.total < 15


def test_numbers_of_a_default_dict_are_followed_and_no_default_is_added():
    sums = collections.defaultdict(float)

    @leafgrad.compile
    def step(x):
        sums["all"] += x.sum().item()
        return x * 2

    for n in range(1, 9):
        step(leafgrad.ones(2))
        assert dict(sums) == {"all": 2.0 * n}
    assert "closed" in step.explain().summary
    sums.clear()
    step(leafgrad.ones(2))
    assert dict(sums) == {"all": 2.0}


def test_a_number_that_is_set_to_a_constant_is_set_at_each_call():
    state, table = types.SimpleNamespace(n=0), {None: 0}

    def step(x):
        y = x * state.n + table[None]
        state.n, table[None] = 5, 2.5
        return y

    f = leafgrad.compile(step)
    for n in [5, 1, 2, 5, 5, 5, 5, 7, 7.5, 8, 5]:
        state.n, table[None] = n, float(n)
        assert f(leafgrad.ones(2)).tolist() == [2 * n, 2 * n]
        assert (state.n, table[None]) == (5, 2.5)


def test_other_threads_see_numbers_and_count_right():
    setting, started, go_on = Setting(), threading.Event(), threading.Event()
    found = []

    def count(x, waits):
        setting.count += 1
        y = x * setting.count
        if waits:
            started.set()
            go_on.wait(10)
        return y

    def other():
        started.wait(10)
        found.append((leafgrad.ones(2) * setting.count).tolist())
        setting.count += 10
        go_on.set()

    f = leafgrad.compile(count)
    x = leafgrad.ones(2)
    f(x, False), f(x, False)
    thread = threading.Thread(target=other)
    thread.start()
    assert f(x, True).tolist() == [3, 3]
    thread.join()
    assert found == [[3, 3]]
    assert (type(setting.count), setting.count) == (int, 13)
    assert [f(x, False).tolist() for _ in range(3)] == [[n, n] for n in (14, 15, 16)]


def test_closed_is_an_error_only_where_following_did_not_help():
    setting = Setting()

    @leafgrad.compile(closed=True)
    def counts(x):
        setting.count += 1
        return x * setting.count

    assert [counts(leafgrad.ones(1)).item() for _ in range(5)] == [1, 2, 3, 4, 5]

    @leafgrad.compile(fullgraph=True)
    def floats(x):
        return x * float(x.sum())

    floats(leafgrad.ones(1))
    with pytest.raises(TraceError, match=r"float\(\)"):
        floats(leafgrad.ones(1))


# ---- random steps --------------------------------------------------------------------------------------------------

PLACES = ("e", "cfg.n", "c[0]", "d['k']", "k")


def expression(r, names, depth=0):
    if depth > 2 or r.random() < 0.4:
        return r.choice([*names, "2", "0.5", "-1", "3"])
    a, b = expression(r, names, depth + 1), expression(r, names, depth + 1)
    return r.choice(
        [f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} / (abs({b}) + 1))", f"({a} % (abs({b}) + 1))"]
    )


def statement(r, names, t):
    e = expression(r, names)
    return r.choice([
        f"{t} = {t} * {e}", f"{t} = {e} - {t}", f"{t} = lg.where({t} > {e}, {t}, x)",
        f"{t} = {t}.clone().add_(x, alpha={e})",
        f"{t} = {t} + lg.tensor({e} * 1.0)", f"{t} = lg.clamp({t}, -abs({e}) - 1, abs({e}) + 1)",
        f"if {e} > 1: {t} = {t} + 1", f"if int({e}) % 3 == 1: {t} = {t} * 0.5", f"if {t}.sum() > {e}: {t} = {t} - 1",
        f"if {t}.mean().item() < {e}: {t} = -{t}", f"{t} = {t} * {t}.abs().max().item()",
        f"cfg.last = {t}.sum().item()",
        *(f"{place} = {place} + 1" for place in PLACES[1:]), f"c[0] = {e}", f"cfg.n = {e}", f"{t} = {t} * lg.rand(2)",
        f"{t} = lg.vmap(lambda v: v * {e})({t})", f"for _ in range(int(abs({e})) % 3): {t} = {t} * 1.5",
    ])  # fmt: skip


def program(seed):
    """Source of ``make()``, which gives a step and what shows its state."""
    r = random.Random(seed)
    names = [*r.sample(PLACES, 2), "cfg.last"]
    lines = [statement(r, names, "t") for _ in range(r.randint(2, 6))]
    result = r.choice(["t", "(t, t.sum().item())", f"[t, {expression(r, names)}]", "t.mean().item()"])
    body = "\n        ".join(["nonlocal k", "t = x * w", *lines, f"return {result}"])
    return (
        f"def make():\n    cfg = Namespace(n={r.choice([0, 1.5])}, last=0.0)\n    c, d, k = [1], {{'k': 2.5}}, 3\n"
        f"    w = lg.ones(2, requires_grad={r.random() < 0.5})\n    def step(x, e):\n        {body}\n"
        "    return step, lambda: [cfg.n, cfg.last, c[0], d['k'], k]\n"
    )


def random_course(seed, compiled):
    space = {"lg": leafgrad, "Namespace": types.SimpleNamespace}
    exec(compile(program(seed), f"<step {seed}>", "exec"), space)
    step, state = space["make"]()
    f = leafgrad.compile(step, executor="numpy") if compiled else step
    r = random.Random(seed)
    leafgrad.manual_seed(seed)
    found = []
    for i in range(8):
        x = leafgrad.tensor([r.uniform(-2, 2), r.uniform(-2, 2)])
        try:
            found.append((plain(f(x, r.choice([i, i * 0.5, 3]))), plain(state())))
        except (ArithmeticError, RuntimeError, TypeError) as error:
            found.append(type(error).__name__)
            break
    return found


def check_random(seed):
    expected, found = random_course(seed, compiled=False), random_course(seed, compiled=True)
    for call, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert same(a, b), (call, program(seed), a, b)


@pytest.mark.parametrize("seed", range(25))
def test_random_steps(seed):
    check_random(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 3000, 100))
def test_many_random_steps(start):
    for seed in range(start, start + 100):
        check_random(seed)


def test_a_call_that_goes_another_way_is_no_contradiction(monkeypatch):
    monkeypatch.setenv("LEAFGRAD_COMPILE", "check")

    def run(wrap):
        world = types.SimpleNamespace(bad=0)

        @wrap
        def step(x):
            y = (x * x).mean()
            if not y.isfinite():
                world.bad += 1
                return None
            return y * 2

        found = [step(leafgrad.full((3,), math.nan if call in (4, 7) else float(call))) for call in range(10)]
        return [None if y is None else y.item() for y in found], world.bad

    assert run(leafgrad.compile) == run(lambda f: f)


def test_accumulated_gradients_are_no_contradiction(monkeypatch):
    monkeypatch.setenv("LEAFGRAD_COMPILE", "check")

    def run(wrap):
        leafgrad.manual_seed(0)
        net = nn.Linear(2, 1)
        opt = optim.Adam(net.parameters(), 0.01)
        schedule = optim.lr_scheduler.CosineAnnealingLR(opt, 10)

        @wrap
        def step(x, last):
            loss = net(x).pow(2).mean() / 3
            loss.backward()
            if last:
                opt.step()
                schedule.step()
                opt.zero_grad()
            return loss

        return [step(leafgrad.tensor(X), call % 3 == 2).item() for call in range(12)], opt.param_groups[0]["lr"]

    found, rate = run(leafgrad.compile)
    expected, its_rate = run(lambda f: f)
    assert found == pytest.approx(expected, rel=1e-5)
    assert rate == its_rate


def test_a_tensor_that_others_replace_once_numbers_are_not_followed_any_more():
    def run(wrap):
        box = types.SimpleNamespace(h=leafgrad.ones(2), n=1, kept=None)

        @wrap
        def step(x, keeps):
            if keeps:
                box.kept = {box.n}  # a set of numbers that change: they are not followed
                return x * box.n
            return x * box.h

        found = []
        for call in range(24):
            if call < 2:
                box.n = call
            if call in (14, 15, 18):
                box.h = leafgrad.full((2,), float(call))
            found.append((step(leafgrad.ones(2), call < 2).tolist(), box.kept))
        return found

    assert run(leafgrad.compile) == run(lambda step: step)


def test_tensors_among_the_arguments_are_no_numbers_that_differ():
    """So that the programs of other shapes are kept, and a step of one shape outlives a checkpoint."""
    compiled = leafgrad.compile(lambda x, k: x * k)
    for n in (4, 4, 4, 5, 4):
        compiled(leafgrad.ones(n), 2.0)
    assert not compiled._calls.following.taught
    assert len(compiled._calls.programs) == 2
    assert compiled._calls.misses.total == 1


@pytest.mark.parametrize(
    "divide", [lambda i: 1 / (i - 8), lambda i: 7 // (i - 8), lambda i: 5 % (i - 8), lambda i: (i - 8) ** -1]
)
def test_a_division_by_zero_whose_result_nobody_reads(divide):
    def step(x, i):
        try:
            divide(i)
        except ZeroDivisionError:
            return x * 5
        return x * 2

    compiled, x = leafgrad.compile(step), leafgrad.ones(2)
    for i in (3, 4, 5, 6, 7, 8, 9, 8, 10):
        assert compiled(x, i).tolist() == step(x, i).tolist()


@pytest.mark.parametrize(
    ("large", "numbers"),
    [
        ("2.0 ** n", (1.0, 2.0, 3.0, 5e5, 2.0, 5e5)),
        ("0.0 ** (3 - n)", (1, 2, 1, 5, 2, 6)),
        ("n ** 2", (1.0, 2.0, 3.0, 1e200, 2.0)),
        ("10 ** (n * 100) / 7", (1, 2, 1, 5, 2, 6)),
        ("10 ** (n * 100) * 1.0", (1, 2, 1, 5, 2, 6)),
    ],
)
def test_a_number_too_large_that_nobody_reads(large, numbers):
    space = {}
    text = f"def step(x, n):\n try: {large}\n except ArithmeticError as error: return x * len(type(error).__name__)\n"
    exec(text + " return x * 2", space)
    step, compiled, x = space["step"], leafgrad.compile(space["step"]), leafgrad.ones(2)
    for n in numbers:
        assert compiled(x, n).tolist() == step(x, n).tolist()
