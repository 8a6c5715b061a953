"""Arguments that come in several lengths: one program serves them, and does what the step does uncompiled."""

import json
import math
import types
from dataclasses import replace
from typing import NamedTuple

import pytest

import leafgrad
import leafgrad.nn.functional as F
from leafgrad import nn, optim
from leafgrad.autograd import grad
from leafgrad.compile.ir.lengths import resized
from leafgrad.compile.ir.sources import Argument
from leafgrad.compile.run import misses

pytestmark = pytest.mark.filterwarnings("ignore:.*has been traced again")

LENGTHS = (6, 6, 9, 9, 12, 12, 33, 7, 9, 6, 33, 11)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """No length waits until it has come often."""
    monkeypatch.setattr(misses, "EARLY", 1000)


class Pair(NamedTuple):
    """What steps may keep."""

    a: int
    b: int


class World:
    """What steps work on, made anew for each."""

    def __init__(self):
        leafgrad.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.LayerNorm(8), nn.Dropout(0.2), nn.Linear(8, 4))
        self.norm = nn.BatchNorm1d(4)
        self.table = nn.Embedding(5, 4)
        self.places = leafgrad.rand(64, 4)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        parts = self.net, self.norm, self.table, self.attention
        self.adam = optim.Adam([p for part in parts for p in part.parameters()])
        self.total, self.seen, self.names, self.last, self.shape = 0, [], {}, None, None

    def state(self):
        tensors = [*self.net.state_dict().values(), *self.norm.state_dict().values()]
        return self.total, self.seen, self.names, self.shape, [t.tolist() for t in tensors]


def batch(n):
    x = leafgrad.arange(n * 4, dtype=leafgrad.float32).reshape(n, 4) / (4 * n) - 0.4
    return x, x[:, :1].clone(), leafgrad.arange(n) % 5


def train(w, loss):
    w.adam.zero_grad()
    loss.backward()
    w.adam.step()
    return loss.detach()


def mean_error(w, x, y, k):
    return train(w, ((w.net(x) - y) ** 2).mean())


def error_of_each(w, x, y, k):
    return train(w, (w.net(x) - y).square().sum() / x.shape[0])


def classes(w, x, y, k):
    return train(w, F.cross_entropy(w.net(x), k % 4))


def second_derivatives(w, x, y, k):
    a, b = (x[:, i : i + 1].detach().requires_grad_() for i in range(2))
    u = w.net(leafgrad.cat([a, b, a * b, y], 1)).sum(1, keepdim=True)
    u_a, u_b = grad(u.sum(), (a, b), create_graph=True)
    (u_aa,) = grad(u_a.sum(), a, create_graph=True)
    return train(w, (u_b + u * u_a - 0.1 * u_aa).square().mean())


def over_the_batch(w, x, y, k):
    h = x - x.mean(0)
    h = h / (h.std(0) + 1) + F.softmax(x, 0) + x.cumsum(0) + x.flip(0).roll(1, 0) + x.sort(0).values
    return (h @ h.T / h.shape[0]) @ h, h[1:] - h[:-1], h[: h.shape[0] // 2].sum()


def rearranged(w, x, y, k):
    h = x.reshape(x.shape[0], 2, 2).transpose(1, 2).reshape(-1, 4).unflatten(0, (-1, 1)).flatten(0, 1)
    return leafgrad.cat([h, x]).view(2 * x.shape[0], -1), leafgrad.stack([h, x], 1).sum(1), h.expand(3, *h.shape).sum(0)


def merged(w, x, y, k):
    return x.T.reshape(-1, 4) * 2, x[:, :2].reshape(-1) + 1, x.unsqueeze(2).transpose(1, 2).reshape(x.shape).exp()


def made_of_sizes(w, x, y, k):
    n = x.shape[0]
    places = leafgrad.arange(n).unsqueeze(1) * 0.1
    return x + leafgrad.zeros(x.shape) + leafgrad.ones(n, 1) + places + leafgrad.rand(n, 4) + leafgrad.ones_like(x), n


def looked_up(w, x, y, k):
    return train(w, (w.table(k) + F.one_hot(k, 5)[:, :4] - x).square().mean())


def normalized(w, x, y, k):
    return train(w, (w.norm(x) - y).square().sum() / x.numel())


def attended(w, x, y, k):
    return train(w, w.attention(x[None], x[None], x[None])[0].square().mean())


def padded(w, x, y, k):
    mask = leafgrad.zeros(1, x.shape[0], dtype=leafgrad.bool)
    h = w.attention(x[None], x[None], x[None], key_padding_mask=mask)[0][0] + w.places[: x.shape[0]]
    return train(w, h.square().mean())


def numbers_of_sizes(w, x, y, k):
    n = x.shape[0]
    return x * (n / 7) + n**0.5 + x.numel() * 0.01 + sum(x.shape), [n, n // 2], {"n": (n, 1.0)}


GENERAL = [
    mean_error, error_of_each, classes, second_derivatives, over_the_batch, rearranged, merged, made_of_sizes,
    looked_up, normalized, attended, padded, numbers_of_sizes,
]  # fmt: skip


def counted(w, x, y, k):
    w.total += x.shape[0]
    w.seen.append(x.shape[0])
    w.names["n"] = x.shape[0] / 2
    return x.sum()


def shape_kept(w, x, y, k):
    w.shape = x.shape
    return x.sum()


def named_tuple_kept(w, x, y, k):
    w.shape = Pair(x.shape[0], 2)
    return x.sum()


def object_returned(w, x, y, k):
    return types.SimpleNamespace(n=x.shape[0], x=x, sizes={x.shape[0]})


def size_as_a_key(w, x, y, k):
    w.names[x.shape[0]] = w.names.get(x.shape[0], 0) + 1
    return x * len(w.names)


def argument_kept(w, x, y, k):
    w.last = x
    return x * 2


def argument_returned(w, x, y, k):
    return x, y * 2, {"x": x}


def argument_returned_within(w, x, y, k):
    return {"b": (x, x.shape[0]), "n": tuple(x.shape), "l": float(x.sum())}


def shape_returned(w, x, y, k):
    return x.shape, x.sum()


def argument_written(w, x, y, k):
    x.mul_(2)
    return x.sum()


def branches(w, x, y, k):
    return x * 2 if x.shape[0] > 8 else x * 3


def loop(w, x, y, k):
    return sum(row * i for i, row in enumerate(x))


def read_by_python(w, x, y, k):
    return x * len(x) + math.sqrt(x.shape[0]) + len(str(x.shape[0])) + x.shape[0].bit_length() + (x.shape[0] & 3)


def read_in_c(w, x, y, k):
    w.seen.append(json.dumps({"n": x.shape[0]}))
    return x.sum()


def asked_for_its_type(w, x, y, k):
    return x * 2 if type(x.shape[0]) is int else x


def memory_given(w, x, y, k):
    x.data = x * 2
    return x.sum()


def shape_given(w, x, y, k):
    x.unsqueeze_(0)
    return x.sum()


def made_to_require_grad(w, x, y, k):
    x.requires_grad_()
    return x.sum().detach()


def attribute_given(w, x, y, k):
    x.length = x.shape[0]
    return x.sum()


def result_with_gradient(w, x, y, k):
    return w.net[0](x).tanh()


def error_at_a_length(w, x, y, k):
    w.total += 1
    if x.shape[0] == 12:
        raise ValueError("twelve")
    return x.sum()


OTHERS = [
    counted, shape_kept, named_tuple_kept, object_returned, size_as_a_key, argument_kept, argument_returned,
    argument_returned_within, shape_returned, argument_written, branches, loop, read_by_python, read_in_c,
    asked_for_its_type, memory_given, shape_given, made_to_require_grad, attribute_given, result_with_gradient,
    error_at_a_length,
]  # fmt: skip


def plain(value):
    """Tensors as lists, with their dtypes, and the types of all numbers."""
    if isinstance(value, leafgrad.Tensor):
        return value.dtype, value.tolist(), value.requires_grad
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value), [plain(v) for v in value]
    return type(value), value


def same(a, b):
    if type(a) is not type(b):
        return a == b
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) if type(a) is float else a == b


def lives(step, executor, lengths=LENGTHS):
    """What the step returns and leaves at each of these lengths, compiled or, without an executor, as it is."""
    world, found = World(), []

    def called(x, y, k):
        return step(world, x, y, k)

    compiled = leafgrad.compile(called, executor=executor) if executor else called
    for i, n in enumerate(lengths):
        leafgrad.manual_seed(i)
        args = batch(n)
        try:
            result = compiled(*args)
        except ValueError as error:
            result = str(error)
        own = [result[0] is args[0], result[2]["x"] is args[0]] if step is argument_returned else []
        own += [result["b"][0] is args[0]] if step is argument_returned_within else []
        if step is object_returned:
            own, result = [result.x is args[0]], [plain(part) for part in (result.n, result.x, [*result.sizes])]
        held = world.last is args[0], plain(args[0]), plain(vars(args[0])), leafgrad.rand(1).item()
        found.append((plain(result), plain(world.state()), held, own))
    return found, compiled


@pytest.mark.every(2)
@pytest.mark.parametrize("executor", ["numpy", "native"])
@pytest.mark.parametrize("step", GENERAL, ids=lambda step: step.__name__)
def test_one_program_serves_all_lengths(step, executor):
    expected, _ = lives(step, None)
    found, compiled = lives(step, executor)
    for n, a, b in zip(LENGTHS, found, expected, strict=True):
        assert same(a, b), n
    assert compiled._calls.misses.total <= 1
    (lengths,) = [call.lengths for call in compiled._calls.programs if call.lengths is not None]
    assert len(lengths.runners) == len({*LENGTHS[2:]})


@pytest.mark.parametrize("step", OTHERS, ids=lambda step: step.__name__)
def test_what_asks_for_a_length_or_keeps_it_does_what_it_does_uncompiled(step):
    expected, _ = lives(step, None)
    found, _ = lives(step, "numpy")
    for n, a, b in zip(LENGTHS, found, expected, strict=True):
        assert same(a, b), n


def arguments_first(graph):
    pairs = graph.inputs.items()
    given = sorted([(v, s) for v, s in pairs if isinstance(s, Argument)], key=lambda pair: pair[1].index)
    return replace(graph, inputs=dict([*given, *[(v, s) for v, s in pairs if not isinstance(s, Argument)]]))


@pytest.mark.every(2)
@pytest.mark.parametrize("step", GENERAL, ids=lambda step: step.__name__)
def test_the_program_of_a_length_is_the_one_that_is_recorded_there(step):
    _, compiled = lives(step, "numpy")
    (call,) = [call for call in compiled._calls.programs if call.lengths is not None]
    n = 7
    graph = resized(call.lengths.graph, call.lengths.at(call.sizes(batch(n))))
    _, alone = lives(step, "numpy", [n] * 4)
    recorded, graph = arguments_first(alone._calls.programs[0].graph), arguments_first(graph)
    if len(recorded.inputs) == len(graph.inputs):  # else a number of the length is an input, where it is known alone
        assert recorded == graph


def test_a_test_of_the_length_is_a_guard():
    _, compiled = lives(branches, "numpy")
    several = [call.lengths for call in compiled._calls.programs if call.lengths is not None]
    assert sorted(len(lengths.runners) for lengths in several) == [2, 4]  # 6 and 7, and those from 9 on
    assert "for any x.shape[0], y.shape[0], k.shape[0]: made for 4 so far" in compiled.explain()


def test_arguments_that_are_equally_long_at_some_calls():
    @leafgrad.compile
    def step(x, y):
        return x.sum() * y.mean(0)

    for n, m in ((3, 3), (3, 3), (4, 4), (4, 4), (5, 5), (6, 5), (6, 5), (7, 5), (8, 9)):
        x, y = leafgrad.rand(n, 2), leafgrad.rand(m, 2)
        assert leafgrad.allclose(step(x, y), x.sum() * y.mean(0))
    (call,) = [call for call in step._calls.programs if call.lengths is not None]
    assert len(call.lengths.runners) == 5


def test_the_same_program_for_another_signature():
    w = World()

    @leafgrad.compile
    def step(x, scale=None, *, hard=False):
        return train(w, (w.net(x) * 1.0).square().mean())

    for i, n in enumerate((6, 6, 9, 9, 12, 7, 8, 6, 11)):
        x, _, _ = batch(n)
        given = [((x,), {}), ((x, 2.0), {}), ((x,), {"hard": True})][i % 3 if i > 3 else 0]
        assert math.isfinite(step(*given[0], **given[1]).item())


def test_an_argument_that_shows_another_one():
    compiled = leafgrad.compile(lambda x, y: x.sum() + y.sum())
    for n in LENGTHS:
        x, _, _ = batch(n)
        for y in (x.view(-1, 2), x[:3], x[: n // 2]):
            assert compiled(x, y).item() == pytest.approx((x.sum() + y.sum()).item(), rel=1e-5)


def test_what_fails_for_a_symbolic_number_alone():
    def step(x):
        n = x.shape[0]
        try:
            y = x * math.ldexp(1.0, n)
        except TypeError:
            y = -x
        try:
            y = y + int.bit_length(n)
        except TypeError:
            y = -x
        return y * (2 if (2).__lt__(n) is True else 3)

    compiled = leafgrad.compile(step)
    for n in LENGTHS:
        assert leafgrad.equal(compiled(leafgrad.ones(n)), step(leafgrad.ones(n)))


def test_memory_that_depends_on_a_size_made_of_the_length():
    def step(x):
        z = x * 1.0
        z[: x.shape[0] // 4, :2].reshape(-1).mul_(10)  # which is a view where that is one row
        return z.sum() * (2 if z[: x.shape[0] // 4].T.is_contiguous() else 1)

    compiled = leafgrad.compile(step)
    for n in (8, 8, 9, 9, 12, 10, 4, 7, 5, 16):
        assert compiled(leafgrad.ones(n, 4)).item() == step(leafgrad.ones(n, 4)).item()


def test_lengths_at_which_a_view_is_in_the_memory_of_another_are_recorded_for_themselves():
    def step(x):
        z = x * 1.0
        z.T.reshape(-1, 4).mul_(10)  # which is a view where x is a square
        return z.sum()

    compiled = leafgrad.compile(step)
    for n in (6, 6, 9, 9, 12, 7, 4, 4, 8, 4):
        assert compiled(leafgrad.ones(n, 4)).item() == (40 if n == 4 else 4) * n
    several = [call.lengths for call in compiled._calls.programs if call.lengths is not None]
    assert sorted(len(lengths.runners) for lengths in several) == [1, 4]


def test_any_dimension_and_named_arguments():
    net = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)

    @leafgrad.compile
    def step(x, *, mask):
        return (net(x) * mask).square().mean().detach()

    for b, t in ((2, 5), (2, 5), (3, 7), (3, 7), (4, 9), (5, 5), (2, 6)):
        x, mask = leafgrad.rand(b, t, 8), leafgrad.ones(b, t, 1)
        expected = (net(x) * mask).square().mean()
        assert step(x, mask=mask).item() == pytest.approx(expected.item(), rel=1e-4)
    (lengths,) = [call.lengths for call in step._calls.programs if call.lengths is not None]
    assert len(lengths.runners) == 4


CONTAINERS = {
    "a list": (lambda x, y: [x, y], lambda batch: (batch[0], batch[1])),
    "a tuple": (lambda x, y: (x, y), lambda batch: (batch[0], batch[1])),
    "a dict": (lambda x, y: {"x": x, "y": y}, lambda batch: (batch["x"], batch["y"])),
    "nested": (lambda x, y: {"a": [x, {"y": y}], "b": (1, "s")}, lambda batch: (batch["a"][0], batch["a"][1]["y"])),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_arguments_in_containers(kind):
    make, parts = CONTAINERS[kind]
    found = []
    for wrap in (lambda step: step, leafgrad.compile):
        w, losses = World(), []

        def step(batch, w=w):
            x, y = parts(batch)
            return train(w, (w.net(x) - y).square().sum() / x.shape[0])

        called = wrap(step)
        for n in LENGTHS:
            leafgrad.manual_seed(n)
            x, y, _ = batch(n)
            given = make(x, y)
            losses.append(called(given).item())
            assert all(a is b for a, b in zip(parts(given), (x, y), strict=True))
        found.append(losses)
    assert found[1] == pytest.approx(found[0], rel=1e-5)
    (lengths,) = [call.lengths for call in called._calls.programs if call.lengths is not None]
    assert len(lengths.runners) == 6


@pytest.mark.parametrize("change", ["b['n'] = b['x'].shape[0]", "b['z'] = b['x'] * 2", "b.pop('y')", "b['x'] = b['y']"])
def test_a_dict_that_the_step_changes(change):
    def step(b):
        exec(change, {"b": b})
        return sum(leafgrad.as_tensor(value).sum() for value in b.values())

    compiled = leafgrad.compile(step)
    for n in LENGTHS:
        ours, theirs = ({"x": x, "y": y} for x, y, _ in (batch(n), batch(n)))
        assert compiled(ours).item() == pytest.approx(step(theirs).item())
        assert same(plain(ours), plain(theirs))


@pytest.mark.parametrize(
    "make",
    [
        lambda n: leafgrad.rand(n, 4)[:, ::2],
        lambda n: leafgrad.rand(2, n).T,
        lambda n: leafgrad.rand(n, 2, requires_grad=True),
        lambda n: leafgrad.rand(1, 2).expand(n, 2),
    ],
    ids=["a slice of columns", "transposed", "requires grad", "expanded"],
)
def test_other_arguments_have_a_program_for_each_length(make):
    compiled = leafgrad.compile(lambda x: (x * x.shape[0]).detach().sum(0))
    for n in LENGTHS:
        x = make(n)
        assert leafgrad.allclose(compiled(x), (x * n).sum(0))
    assert all(call.lengths is None for call in compiled._calls.programs)


def test_a_tensor_that_is_found_elsewhere_too_is_not_any():
    held = types.SimpleNamespace(x=None)
    compiled = leafgrad.compile(lambda x: x * (2 if x is held.x else 3))
    for n in LENGTHS:
        held.x = leafgrad.ones(n)
        assert compiled(held.x).tolist() == [2.0] * n
        assert compiled(leafgrad.ones(n)).tolist() == [3.0] * n


def test_a_length_waits_until_its_program_is_repaid(monkeypatch):
    monkeypatch.setattr(misses, "EARLY", 3)
    calls = []
    compiled = leafgrad.compile(lambda x: (calls.append(0), x.sum())[1])
    for n in (3, 3, 4, 4, 5, 5, 6, 6, 6, 6, 6, 6):
        compiled(leafgrad.ones(n))
    ran = compiled._calls.misses.waited
    assert ran == 4
    compiled(leafgrad.ones(6))
    assert compiled._calls.misses.waited == ran


@pytest.mark.parametrize("vary", [1, 2, 4])
def test_what_a_step_of_many_lengths_leaves_is_computed_by_its_program(vary):
    """It was read at the end of the call, so that the step was open if lengths vary from its second call on."""
    left, weight = {"last": 0.0, "sum": 0.0}, leafgrad.ones(3)

    @leafgrad.compile(closed=True)
    def step(x):
        loss = (x * weight).square().mean()
        weight.mul_(0.9)
        left["last"] = loss.item()
        left["sum"] = left["sum"] + loss.item() * len(x)

    total = 0.0
    for i in range(12):
        n = 4 if i < vary else 4 + i % 3
        step(leafgrad.full((n, 3), float(i)))
        expected = i**2 * 0.9 ** (2 * i)
        total += expected * n
        assert (left["last"], left["sum"]) == (pytest.approx(expected), pytest.approx(total))
