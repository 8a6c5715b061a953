"""The tests of ``test_fx.py``, in a process of their own: Proxies make functions ask, which no other test pays for."""

from __future__ import annotations

import copy
import operator
import pickle

import pytest
from leafgrad.fx.proxy import GraphAppendingTracer, TraceError, Tracer

import leafgrad
from leafgrad import fx, nn
from leafgrad.nn import functional as F


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
        self.scale = nn.Parameter(leafgrad.full((3,), 2.0))
        self.register_buffer("shift", leafgrad.ones(3))

    def forward(self, x, power=2):
        y = self.inner(x) * self.scale + self.shift
        z = leafgrad.relu(y).sum(dim=-1) - y.mean(1)
        first, second = z[0], z[1]
        return {"a": 2 - z**power, "b": (first, -second)}, y.shape[0], leafgrad.cat([y, y], 1)


def by_hand():
    """A graph that has each kind of Node."""
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y", default_value=2.0)
    added = graph.call_function(leafgrad.add, (x, y))
    flat = graph.call_method("view", (added, -1))
    scaled = graph.call_function(operator.mul, (flat, graph.get_attr("inner.weight")))
    linear = graph.call_module("lin.first", (scaled,))
    size = graph.call_function(getattr, (linear, "shape"))
    total = graph.call_function(leafgrad.sum, (linear,), {"dtype": leafgrad.float64})
    graph.call_function(operator.iadd, (total, 1))
    graph.output((total, [size, {"scaled": graph.call_function(operator.getitem, (scaled, slice(None, 2)))}]))
    return graph, {"inner.weight": leafgrad.full((3,), 2.0), "lin.first": nn.Linear(3, 2)}


CODE = """def forward(self, x, y = 2.0):
    add = leafgrad.add(x, y);  x = y = None
    view = add.view(-1);  add = None
    inner_weight = self.inner.weight
    mul = view * inner_weight;  view = inner_weight = None
    lin_first = self.lin.first(mul)
    getattr_1 = lin_first.shape
    sum_1 = leafgrad.sum(lin_first, dtype = leafgrad.float64);  lin_first = None
    sum_1 += 1;  iadd = sum_1;  iadd = None
    getitem = mul[slice(None, 2, None)];  mul = None
    return (sum_1, [getattr_1, {'scaled': getitem}])"""


def test_a_graph_by_hand():
    graph, root = by_hand()
    graph.lint()
    module = fx.GraphModule(root, graph, "ByHand")
    assert module.code.strip() == CODE
    assert type(module).__name__ == "ByHand"
    assert isinstance(module, fx.GraphModule)
    total, (size, rest) = module(leafgrad.tensor([[1.0, 2.0, 3.0]]))
    expected = root["lin.first"](leafgrad.tensor([6.0, 8.0, 10.0]))
    assert total.item() == pytest.approx(expected.sum().item() + 1)
    assert total.dtype is leafgrad.float64
    assert size == (2,)
    assert rest["scaled"].tolist() == [6, 8]
    assert str(graph).splitlines()[3] == (
        "    %add : [num_users=1] = call_function[target=leafgrad.add](args = (%x, %y), kwargs = {})"
    )
    assert {"inner.weight", "lin.first.weight", "lin.first.bias"} >= {n for n, _ in module.named_parameters()}


def test_graphs_are_changed():
    graph, root = by_hand()
    mul = graph.find_nodes(op="call_function", target=operator.mul)[0]
    with graph.inserting_after(mul):
        halved = graph.call_function(operator.truediv, (mul, 2))
        doubled = graph.call_function(operator.mul, (halved, 2))
    assert [n.name for n in graph.nodes][5:8] == ["mul", "truediv", "mul_1"]
    assert mul.replace_all_uses_with(doubled, delete_user_cb=lambda user: user.op == "placeholder") == []
    mul.replace_all_uses_with(doubled)
    halved.args = (mul, 2)
    assert set(mul.users) == {halved}
    assert mul.all_input_nodes[0].name == "view"
    module = fx.GraphModule(root, graph)
    before = module(leafgrad.ones(3))[0]
    doubled.target = operator.add
    module.recompile()
    assert module(leafgrad.ones(3))[0] != before
    with pytest.raises(RuntimeError, match="Tried to erase Node mul but it still had 1 users"):
        graph.erase_node(mul)
    unused = graph.call_function(leafgrad.exp, (doubled,))
    assert graph.eliminate_dead_code()
    assert unused not in [*graph.nodes]
    for node in graph.nodes:  # erased on the way
        if node.name == "iadd":
            graph.erase_node(node)
    assert "iadd" not in str(graph)
    other = fx.Graph()
    found = other.graph_copy(graph, {})
    other.output(found)
    assert str(other) == str(graph)
    other.output(mul)
    with pytest.raises(RuntimeError, match="Argument 'mul' of Node 'output_1' does not belong to this Graph"):
        other.lint()
    late = fx.Graph()
    x = late.placeholder("x")
    with late.inserting_before(x):
        late.call_function(leafgrad.exp, (x,))
    with pytest.raises(RuntimeError, match="Argument 'x' of Node 'exp' was used before it has been defined"):
        late.lint()
    with pytest.raises(RuntimeError, match=r"inner.weight but that was not provided in root"):
        fx.GraphModule({}, graph)


def test_tracing():
    block, x = Block(), leafgrad.rand(2, 3)
    traced = fx.symbolic_trace(block)
    assert [n.op for n in traced.graph.nodes][:4] == ["placeholder", "placeholder", "call_module", "call_module"]
    for power in (2, 3):
        assert repr(traced(x, power)) == repr(block(x, power))
    traced(x)[2].sum().backward()
    assert block.scale.grad is traced.scale.grad is not None
    assert set(traced.state_dict()) == set(block.state_dict())
    for again in (copy.deepcopy(traced), pickle.loads(pickle.dumps(traced)), fx.Transformer(traced).transform()):
        assert again.code == traced.code
        assert repr(again(x)) == repr(block(x))
    assert copy.deepcopy(traced).scale is not traced.scale
    assert repr(fx.Interpreter(traced).run(x)) == repr(block(x))
    whole = fx.symbolic_trace(block, {"power": 2})
    assert repr(whole(x)) == repr(block(x))

    class Within(Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    graph = Within().trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert [n.name for n in graph.nodes] == ["input_1", "_0_weight", "_0_bias", "linear", "relu", "output"]


@fx.wrap
def awkward(x):
    return x * len(x) if x.sum() > 0 else x


def test_what_is_not_traced():
    assert "awkward" in fx.symbolic_trace(lambda x: awkward(x) + 1).code
    assert fx.symbolic_trace(lambda x: awkward(x) + 1)(leafgrad.ones(3)).tolist() == [4, 4, 4]
    for function, error, text in (
        (lambda x: x if x > 0 else -x, TraceError, "cannot be used as inputs to control flow"),
        (lambda x: [*x], TraceError, "Proxy object cannot be iterated"),
        (lambda x: len(x), RuntimeError, "'len' is not supported in symbolic tracing"),
        (lambda x: [0][x], TypeError, "cannot be interpreted as an integer"),
        (lambda *x: x[0], NotImplementedError, r"\*x: how many there are is not known"),
    ):
        with pytest.raises(error, match=text):
            fx.symbolic_trace(function)
    assert nn.Linear(1, 1)(leafgrad.ones(1)).shape == (1,)


def test_proxies_in_a_graph_by_hand():
    graph = fx.Graph()
    tracer = GraphAppendingTracer(graph)
    x = fx.Proxy(graph.placeholder("x", leafgrad.Tensor), tracer)
    y = leafgrad.einsum("i,j", (x, x.new_ones(2))).reshape(-1)[1:] @ x.exp().repeat(2)[1:] + leafgrad.zeros(1).to(
        x.dtype
    )
    graph.output(F.relu(-y, inplace=False).node)
    value = leafgrad.tensor([1.0, 2.0])
    expected = leafgrad.relu(-(leafgrad.outer(value, leafgrad.ones(2)).reshape(-1)[1:] @ value.exp().repeat(2)[1:]))
    assert fx.GraphModule(nn.Module(), graph)(-value).tolist() != expected.tolist()
    assert fx.GraphModule(nn.Module(), graph)(value).tolist() == [expected.item()]
