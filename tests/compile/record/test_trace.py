"""The trace: a function run once with Symbols, the program that it leaves, and the world it leaves as it was."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.compile.ir.graph import SetGrad, Write
from leafgrad.compile.ir.sources import Captured, Grad
from leafgrad.compile.record.trace import trace_call
from leafgrad.errors import TraceError
from leafgrad.ops.define import op

TESTS = "compile.ir.sources"


def test_prints_as_a_short_program_with_names_shapes_and_lines():
    def f(x, batch):
        return (x * batch["u"]).sum() * scale

    scale = leafgrad.tensor(2.0)
    text = str(leafgrad.trace(f, leafgrad.ones(3), {"u": leafgrad.ones(3)}))
    lines = text.splitlines()
    assert lines[0] == "program:"
    assert [line.split()[0] for line in lines[1:4]] == ["x:", "batch.u:", "scale:"]
    assert "f32[3] = mul(x, batch.u)" in text
    assert "test_trace.py" in text
    assert "return (x * batch" in text


def test_a_module_gives_its_parameters_names():
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    graph = leafgrad.trace(net, leafgrad.ones(4, 2))
    names = set(graph.named().values())
    assert {"self.0.weight", "self.0.bias", "self.2.weight", "self.2.bias"} <= names


def test_changes_nothing():
    net = nn.Linear(2, 1)
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    x = leafgrad.ones(3, 2)

    def step():
        optimizer.zero_grad()
        (net(x) + leafgrad.randn(3, 1)).sum().backward()
        optimizer.step()

    step()
    before = (
        [p.detach().clone() for p in net.parameters()],
        [p.grad for p in net.parameters()],
        leafgrad.get_rng_state(),
    )
    graph = leafgrad.trace(step)
    assert len(graph.effects) == 4
    assert all((p.detach() == old).all() for p, old in zip(net.parameters(), before[0], strict=True))
    assert all(p.grad is old for p, old in zip(net.parameters(), before[1], strict=True))
    assert (leafgrad.get_rng_state() == before[2]).all()


def test_changes_nothing_when_the_function_fails():
    w = leafgrad.ones(2, requires_grad=True)
    buffer = leafgrad.zeros(2)
    version = leafgrad.ones(2)

    def f(x):
        x.requires_grad_()
        (w * x).sum().backward()
        with leafgrad.no_grad():
            buffer.add_(1)
            w.mul_(version)
        leafgrad.randn(3)
        raise KeyError("on purpose")

    state = leafgrad.get_rng_state()
    data, x = w._data, leafgrad.ones(2)
    product = (w * w).sum()  # saves w: a write that remains would spoil its backward pass
    with pytest.raises(KeyError, match="on purpose"):
        leafgrad.trace(f, x)
    assert w._data is data
    assert w.tolist() == [1, 1]
    assert buffer.tolist() == [0, 0]
    assert w.grad is None
    assert not x.requires_grad
    assert (leafgrad.get_rng_state() == state).all()
    product.backward()
    assert w.grad.tolist() == [2, 2]


def test_effects_and_sources():
    w = leafgrad.ones(2, requires_grad=True)
    w.grad = leafgrad.ones(2)
    count = leafgrad.zeros(())

    def f(x):
        (w * x).sum().backward()
        count.add_(1)

    graph = trace_call(f, (leafgrad.ones(2),), {}).graph
    kinds = [(type(e), type(e.source)) for e in graph.effects]
    assert sorted(map(str, kinds)) == sorted(map(str, [(Write, Grad), (Write, Captured)]))
    w.grad = None
    graph = trace_call(f, (leafgrad.ones(2),), {}).graph
    assert {(type(e), type(e.source)) for e in graph.effects} == {(SetGrad, Captured), (Write, Captured)}


def test_third_party_ops_need_nothing():
    @leafgrad.op("elementwise")
    def cube_for_trace(xp, x):
        return x * x * x

    cube_for_trace.vjp(x=lambda g, x: g * 3 * x * x)

    def f(x):
        (g,) = leafgrad.autograd.grad(cube_for_trace(x).sum(), x, create_graph=True)
        (h,) = leafgrad.autograd.grad(g.sum(), x)
        return h

    x = leafgrad.tensor([1.0, 2.0], requires_grad=True)
    assert "cube_for_trace" in str(leafgrad.trace(f, x))
    step = leafgrad.compile(f)
    assert [step(x).tolist() for _ in range(3)] == [[6, 12]] * 3


def test_a_trace_computes_nothing():
    """Neither time nor memory grow with the batch: 10 TB of it are traced here."""
    many = 10**12
    x = leafgrad.zeros(1, 1).expand(many, 2).detach()
    net = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 3))

    def step(x):
        x.requires_grad_()
        u = net(x).log_softmax(1)
        (u_x,) = leafgrad.autograd.grad(u[:, :1].sum(), x, create_graph=True)
        loss = leafgrad.cat([u_x, u, u_x.tanh()], 1).clamp(min=0).square().mean()
        return leafgrad.autograd.grad(loss, list(net.parameters()))

    graph = leafgrad.trace(step, x)
    assert max(v.shape[0] for e in graph.equations for v in e.outputs if v.shape) == many
    typed = leafgrad.trace(step, leafgrad.ones(5, 2))
    assert [e.name for e in graph.equations] == [e.name for e in typed.equations]


def test_ops_that_only_a_run_understands_are_run_on_what_they_would_get():

    @op
    def positives(xp, x):
        return x[x > 4]

    x = leafgrad.arange(6.0)
    graph = leafgrad.trace(lambda x: positives(positives((x + 1) * 2)) - 1, x)
    assert [e.out.shape for e in graph.equations] == [(6,), (6,), (4,), (4,), (4,)]


def test_ops_with_state_are_refused():
    seen = []

    @op
    def noted(xp, x):
        seen.append(x)
        return x

    with pytest.raises(TraceError, match=r"op 'noted', at .*test_trace.py.* its forward has state, seen is a list"):
        leafgrad.trace(lambda x: noted(x), leafgrad.ones(2))


def test_shapes_that_do_not_fit_are_refused_while_tracing_as_they_are_outside():
    for f in (lambda x: x + leafgrad.ones(4), lambda x: x @ leafgrad.ones(4, 2), lambda x: x.reshape(5)):
        with pytest.raises(RuntimeError) as eager:
            f(leafgrad.ones(3))
        with pytest.raises(RuntimeError) as traced:
            leafgrad.trace(f, leafgrad.ones(3))
        assert str(eager.value) == str(traced.value)


def test_state_made_while_tracing_is_an_error_that_names_the_line():
    w = nn.Parameter(leafgrad.ones(2))
    w.grad = leafgrad.ones(2)
    optimizer = optim.Adam([w])
    with pytest.raises(TraceError, match="State that is made at a first call, such as an optimizer's") as info:
        leafgrad.trace(lambda: optimizer.step())
    assert "test_trace.py" in str(info.value)


def test_trace_of_a_matrix_is_pytorchs():
    assert leafgrad.trace(leafgrad.eye(3)).item() == 3


def test_symbols_do_not_outlive_the_trace():
    kept = []

    def f(x):
        kept.append(x * 2)
        return x

    with pytest.raises(TraceError, match="was kept outside of the function"):
        leafgrad.trace(f, leafgrad.ones(2))
    with pytest.raises(TraceError, match="made while tracing is used in another thread, or was kept"):
        kept[0] + 1
