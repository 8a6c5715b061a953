"""Generated Python: variables that cannot be mistaken for each other, and arrays wherever arrays are due."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.compile.ir.replay import ReplayProgram
from leafgrad.compile.ir.sources import Argument, Captured
from leafgrad.compile.numpy.executor import NumpyProgram
from leafgrad.compile.record.trace import trace_call
from leafgrad.ops.elementwise import mul


class Key:
    """Keys of one name."""

    def __repr__(self):
        return "<K>"


ALIKE = {
    "keys with one repr": lambda: {Key(): 2.0, Key(): 3.0},
    "an attribute and a name": lambda: {"enc": {"w": 2.0}, "enc_w": 3.0},
    "words apart": lambda: {"a b": 2.0, "a-b": 3.0},
    "lines": lambda: {"a\nimport": 2.0, "a\rimport": 3.0},
}


@pytest.mark.parametrize("executor", ["numpy", "replay"])
@pytest.mark.parametrize("make", ALIKE.values(), ids=ALIKE)
def test_inputs_whose_names_are_alike_stay_apart(make, executor):
    def tensors(tree):
        return {k: tensors(v) if isinstance(v, dict) else leafgrad.tensor(v) for k, v in tree.items()}

    def function(given):
        first, second = given.values()
        return (first["w"] if isinstance(first, dict) else first) - second

    compiled = leafgrad.compile(function, executor=executor)
    for _ in range(3):
        assert compiled(tensors(make())).item() == -1.0


def test_each_parameter_has_its_own_count_of_steps():
    def train(wrap):
        leafgrad.manual_seed(0)
        first, second = nn.Linear(2, 1, bias=False), nn.Linear(2, 1, bias=False)
        adam = optim.Adam(first.parameters(), lr=0.1)

        @wrap
        def step(x):
            adam.zero_grad()
            (first(x) + second(x)).square().mean().backward()
            adam.step()

        x = leafgrad.rand(5, 2)
        for _ in range(4):
            step(x)
        adam.add_param_group({"params": second.parameters()})
        for _ in range(4):
            step(x)
        return np.concatenate([first.weight.detach().numpy(), second.weight.detach().numpy()])

    np.testing.assert_allclose(
        train(lambda f: leafgrad.compile(f, executor="numpy")), train(lambda f: f), rtol=1e-5, atol=1e-6
    )


def test_a_graph_names_no_two_inputs_alike():
    def function(given):
        return sum(given.values())

    graph = leafgrad.trace(function, {Key(): leafgrad.ones(2), Key(): leafgrad.ones(2)})
    names = list(graph.named().values())
    assert len(set(names)) == len(names)
    assert "given[<K>]#2: f32[2]" in str(graph)


def test_comments_tell_names_and_stay_on_their_line():
    compiled = leafgrad.compile(lambda given: given["a\nb"] * 2, executor="numpy")
    for _ in range(2):
        compiled({"a\nb": leafgrad.ones(2)})
    source = compiled.source()
    assert "# v0 is given['a\\nb']: f32[2]" in source
    assert "mul(given" in source


def test_numbers_of_numpy_are_constants_too():
    x = leafgrad.ones(3, dtype=leafgrad.float64)
    compiled = leafgrad.compile(
        lambda x: leafgrad.clamp(mul(x, np.float64(0.3)), max=np.float64(0.2)), executor="numpy"
    )
    for _ in range(3):
        assert compiled(x).tolist() == [0.2] * 3


def returns_scalars():
    """An op whose forward gives NumPy's scalars, as NumPy's own functions do, and one that gives several."""
    total = leafgrad.op("float", name="emit_total")(lambda xp, x: xp.add.reduce(x, axis=None))
    pair = leafgrad.op("float", name="emit_pair")(lambda xp, x: (x.sum(), x.max()))
    return total, pair


TOTAL, PAIR = returns_scalars()

NO_DIMENSIONS = {
    "a copy": lambda x, s: s.clone(),
    "a ufunc": lambda x, s: s * s,
    "a sum of a batch": lambda x, s: x.sum(),
    "a sum of squares": lambda x, s: (x * x).sum() * 2,
    "a maximum": lambda x, s: x.amax(),
    "a dot product": lambda x, s: x[:, 0] @ x[:, 1],
    "a norm": lambda x, s: x.norm(),
    "an element": lambda x, s: x[1, 2],
    "a reshape": lambda x, s: x[:1, :1].reshape(()),
    "a comparison": lambda x, s: s > 0,
    "a clamp": lambda x, s: s.clamp(min=0.1),
    "a choice": lambda x, s: leafgrad.where(s > 0, s, 2.0),
    "a dtype": lambda x, s: s.to(leafgrad.float32),
    "a constant": lambda x, s: leafgrad.tensor(3.0),
    "a random number": lambda x, s: leafgrad.rand(()) * 0,
    "an op's own forward": lambda x, s: TOTAL(x),
    "several": lambda x, s: PAIR(x),
    "a mean of a mean": lambda x, s: x.mean(0).mean(),
    "a sum of what was expanded": lambda x, s: s.expand(7).sum(),
    "a product": lambda x, s: x[0].prod(),
    "an index": lambda x, s: x[0].argmax(),
}


@pytest.mark.parametrize("program", [NumpyProgram, ReplayProgram, lambda graph: NumpyProgram(graph, 64)])
@pytest.mark.parametrize("function", NO_DIMENSIONS.values(), ids=NO_DIMENSIONS)
def test_results_without_dimensions_are_arrays(function, program):
    x = leafgrad.randn(130, 3, dtype=leafgrad.float64)
    s = leafgrad.tensor(0.5, dtype=leafgrad.float64)
    graph = trace_call(function, (x, s), {}).graph
    sources = graph.inputs.values()
    arrays = [((x, s)[i.index] if isinstance(i, Argument) else i.tensor)._data for i in sources]
    assert all(isinstance(i, (Argument, Captured)) for i in sources)
    expected = function(x, s)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for got, want in zip(program(graph)(arrays), expected, strict=True):
        assert type(got) is np.ndarray
        assert (got.shape, got.dtype.name) == ((), str(want.dtype).rpartition(".")[2])
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-12)
        assert not any(np.may_share_memory(got, a) for a in arrays)


def test_ops_of_bools_keep_their_dtype():
    x = leafgrad.tensor([True, False])
    for function in (leafgrad.square, leafgrad.abs, lambda x: x * x, lambda x: x + x, lambda x: x * True):
        graph = trace_call(lambda x, f=function: f(x), (x,), {}).graph
        (got,) = NumpyProgram(graph)([x.numpy()])
        want = function(x).numpy()
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
