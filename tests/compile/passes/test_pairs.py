"""Graphs of complex numbers as graphs of real ones: the same numbers, and no complex values where rules know how."""

import numpy as np
import pytest
from typecheck import check

import leafgrad
from leafgrad import nn
from leafgrad.compile.ir.replay import ReplayProgram
from leafgrad.compile.passes import optimize
from leafgrad.compile.passes.pairs import has_complex, pairs
from leafgrad.ops.pairs import by_parts, rule_of

Z = leafgrad.tensor(np.random.default_rng(0).standard_normal((4, 4, 2)).view("complex128")[..., 0])
X = leafgrad.tensor(np.random.default_rng(1).standard_normal((4, 4)))


def reals(a):
    return a[..., None].view(a.real.dtype) if a.dtype.kind == "c" else a


def complexes(graph):
    return [e.name for e in graph.equations if has_complex((*e.values, *e.outputs))]


def ran(step, *args):
    """The graph in pairs, after comparing what it gives with what the graph gives."""
    graph = leafgrad.trace(step, *args)
    made = check(pairs(graph))
    given = {id(a): a.detach()._data for a in args}
    inputs = [given[id(args[s.index])] for s in graph.inputs.values()]
    for program in (made, optimize(made)):
        found = ReplayProgram(program)([reals(a) for a in inputs])
        for got, want in zip(found, ReplayProgram(graph)(inputs), strict=True):
            np.testing.assert_allclose(got, reals(want), rtol=1e-12, atol=1e-12)
    return optimize(made)


PROGRAMS = {
    "arithmetic": lambda z, x: (z * x + 2j - z / (x + 3) + 1 / (z + 4) - 2.5 * z, z - x, -z),
    "functions": lambda z, x: leafgrad.tanh(z * 0.5) + leafgrad.exp(z) * leafgrad.sqrt(z) + leafgrad.log(z + 3),
    "parts": lambda z, x: (z.real + z.imag, z.conj(), z.abs(), z.angle(), leafgrad.sgn(z), leafgrad.polar(x * x, x)),
    "products": lambda z, x: (z @ z.mH, z @ x.to(leafgrad.complex128), nn.functional.linear(z, z, z[0])),
    "shapes": lambda z, x: (z.mT[1:].flip(0), z.reshape(2, 8), leafgrad.cat([z, z * x], 1), z.cumsum(1), z.tril()),
    "sums": lambda z, x: (z.sum(), z.mean(0), z.sum(1, keepdim=True) * z),
    "views": lambda z, x: (leafgrad.view_as_real(z) * 2, leafgrad.view_as_complex(leafgrad.stack([x, x * x], -1))),
    "choices": lambda z, x: (leafgrad.where(x > 0, z, 0), z.masked_fill(x > 0, 1), z == z.mT, leafgrad.isnan(z).any()),
    "indices": lambda z, x: (z[leafgrad.tensor([2, 0])], z.gather(1, leafgrad.tensor([[0, 1]] * 4))),
    "real results": lambda z, x: (z.abs() ** 2).sum(),
    "windows": lambda z, x: nn.functional.conv1d(z[None], z[:, :3].reshape(1, 4, 3), z[0, :1], padding=1),
    "transposed windows": lambda z, x: nn.functional.conv_transpose1d(z[None], z[:, :3].reshape(4, 1, 3), z[0, :1]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_complex_numbers_are_left(name):
    assert complexes(ran(PROGRAMS[name], Z, X)) == []


def test_derivatives():
    def step(z, x):
        loss = (leafgrad.tanh(z @ z * 0.3).abs() * x).sum() + (z * z.conj()).real.mean()
        return leafgrad.autograd.grad(loss, z)[0]

    assert complexes(ran(step, Z.clone().requires_grad_(), X)) == []


def test_ops_without_a_rule_are_given_complex_numbers():
    left = complexes(ran(lambda z, x: leafgrad.linalg.inv(leafgrad.exp(z)) * z, Z, X))
    assert left == ["join", "inv", "real", "imag"]


def test_the_traits_of_plugins_say_nothing_of_parts():
    """A linear op may make complex numbers of real ones, or conjugate."""
    turned = leafgrad.op("linear", "complex", name="turned")(lambda xp, x: xp.fft.fft(x.conj()))
    turned.shape(lambda x: x.shape)
    assert complexes(ran(lambda z, x: turned(z) + z, Z, X)) == ["join", "turned", "real", "imag"]
    fft = pytest.importorskip("leafgrad_fft")
    assert "fft_complex" in complexes(ran(lambda z, x: fft.fft(z * 2) + z, Z, X))


def test_an_op_that_makes_complex_numbers_of_real_ones_is_left():
    turned = leafgrad.op("elementwise", "linear", "complex", name="turned")(lambda xp, x: x * 1j)
    assert "turned" in complexes(ran(lambda z, x: turned(z) + z, Z, X))


def test_graphs_of_real_numbers_stay():
    graph = leafgrad.trace(lambda x: x.exp(), X)
    assert pairs(graph) is graph


def test_a_rule_of_a_plugin():
    spun = leafgrad.op("complex", name="spun")(lambda xp, x: xp.conj(x)[::-1])
    spun.shape(lambda x: x.shape)
    assert rule_of(spun) is None
    spun.lower(
        "pairs", lambda x: by_parts(leafgrad.ops.shape.flip, (leafgrad.ops.pairs.Pair(x.re, -x.im),), {"dims": (0,)})
    )
    assert complexes(ran(lambda z, x: spun(z), Z, X)) == []
