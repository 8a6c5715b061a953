"""Drawings of graphs: what stands in them, and that pictures are sound."""

from __future__ import annotations

import itertools
import random
import shutil
import xml.etree.ElementTree as ET

import pytest

import leafgrad
from leafgrad import nn
from leafgrad.pictures.drawing import Box, Drawing, tree
from leafgrad.pictures.layout import lay_out, layers_of
from leafgrad.utils import graph

TESTS = "pictures.drawing pictures.layout"

NEED_DOT = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


def model():
    return nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))


def loss_of(net):
    return net(leafgrad.ones(4, 2)).T.square().mean()


def kinds(drawing):
    return {" ".join(box.lines): box.kind for box in drawing.boxes}


def test_names_shapes_and_kinds():
    net = model()
    h = net[0](leafgrad.ones(4, 2))
    h.retain_grad()
    drawing = graph(net[2](net[1](h)).T.square().mean(), net)
    assert kinds(drawing) == {
        "MeanBackward0 ()": "output",
        "PowBackward0 (1, 4)": "op",
        "PermuteBackward0 (1, 4)": "view",
        "AddmmBackward0 (4, 1)": "op",
        "TanhBackward0 (4, 8)": "op",
        "AddmmBackward0 (4, 8)": "retained",
        **{f"{name} leaf {tuple(p.shape)}": "leaf" for name, p in net.named_parameters()},
    }
    assert not any(box.freed for box in drawing.boxes)


def test_what_a_backward_pass_freed():
    net = model()
    loss = loss_of(net)
    loss.backward()
    freed = [box.lines[0].split()[0] for box in graph(loss, net).boxes if box.freed]
    assert sorted(freed) == ["AddmmBackward0", "AddmmBackward0", "PowBackward0", "TanhBackward0"]
    assert "freed by a backward pass" in graph(loss).svg(graphviz=False)
    assert ">freed by a backward pass</td>" in graph(loss).dot()


def test_names_of_results_and_a_dict_of_names():
    x = leafgrad.ones(2, requires_grad=True)
    y = x * 2
    drawing = graph({"loss": (y * y).sum(), "other": y.exp()}, {"x": x, "y": y})
    assert {box.lines[0] for box in drawing.boxes if len(box.lines) == 2} == {"loss", "other", "x", "y"}
    assert len(drawing.ends) == 2


def test_graphs_of_gradients():
    x = leafgrad.ones(2, requires_grad=True)
    (g,) = leafgrad.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = leafgrad.autograd.grad(g.sum(), x, create_graph=True)
    first, second = graph(g), graph(h)
    assert sum(box.kind == "leaf" for box in second.boxes) == 1
    assert len(first.boxes) >= 3
    assert len(second.boxes) >= 3


def test_functions_and_several_outputs():
    class Twice(leafgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b * 3

    x = leafgrad.ones(2, requires_grad=True)
    a, b = Twice.apply(x)
    text = str(graph((a * b).sum()))
    assert "TwiceBackward" in text
    values, _ = leafgrad.sort(x)
    assert "SortBackward0" in str(graph(values.sum()))


def test_long_graphs_are_cut():
    x = leafgrad.ones(2, requires_grad=True)
    y = x
    for _ in range(5000):
        y = y * 1.0
    drawing = graph(y, limit=20)
    assert len(drawing.boxes) == 21
    assert drawing.boxes[-1].lines == ["4,981 more"]
    ET.fromstring(drawing.svg(graphviz=False))


# ---- compiled programs -----------------------------------------------------------------------------------------------


def test_programs():
    net = model()

    def step(x):
        loss = net(x).square().mean()
        loss.backward()
        return loss

    traced = graph(leafgrad.trace(step, leafgrad.ones(256, 2)))
    found = kinds(traced)
    assert found["x float32 (256, 2)"] == "input"
    assert found["net.0.weight float32 (8, 2)"] == "parameter"
    assert any(name.startswith("net.0.weight.grad written") or "net.0.weight.grad" in name for name in found)
    compiled = leafgrad.compile(step)
    with pytest.raises(RuntimeError, match="has no program: calls are recorded"):
        graph(compiled)
    for _ in range(3):
        compiled(leafgrad.ones(256, 2))
    assert "for each chunk of a batch" in graph(compiled).title
    assert "loop" in kinds(graph(compiled)).values()
    assert "more" in kinds(graph(compiled, limit=5)).values()


# ---- layout ----------------------------------------------------------------------------------------------------------


def dags(seed):
    rng = random.Random(seed)
    n = rng.randrange(1, 40)
    pairs = [(a, b) for a, b in itertools.combinations(range(n), 2) if rng.random() < 2.5 / n]
    return [(rng.uniform(20, 200), rng.uniform(15, 50)) for _ in range(n)], pairs


@pytest.mark.parametrize("seed", range(40))
def test_boxes_do_not_overlap_and_edges_lead_down(seed):
    sizes, edges = dags(seed)
    at, paths = lay_out(sizes, edges)
    assert len(at) == len(sizes)
    for i, j in itertools.combinations(range(len(sizes)), 2):
        (x, y), (u, v) = at[i], at[j]
        apart = abs(x - u) >= (sizes[i][0] + sizes[j][0]) / 2 - 1e-6 or abs(y - v) >= (sizes[i][1] + sizes[j][1]) / 2
        assert apart
    for path, (a, b) in zip(paths, edges, strict=True):
        assert path[0] == pytest.approx((at[a][0], at[a][1] + sizes[a][1] / 2))
        assert path[-1] == pytest.approx((at[b][0], at[b][1] - sizes[b][1] / 2))
        assert all(p[1] <= q[1] + 1e-6 for p, q in itertools.pairwise(path))
        for x, y in path[1:-1]:  # it passes no box
            assert not any(
                abs(x - u) < w / 2 and abs(y - v) < h / 2 - 1 for (u, v), (w, h) in zip(at, sizes, strict=True)
            )


def test_layers_and_crossings():
    assert layers_of(4, [(0, 1), (1, 2), (0, 2), (3, 2)]) == [0, 1, 2, 1]
    sizes = [(20.0, 10.0)] * 6
    _, paths = lay_out(sizes, [(0, 5), (1, 4), (2, 3)])
    starts, ends = [p[0][0] for p in paths], [p[-1][0] for p in paths]
    assert sorted(range(3), key=starts.__getitem__) == sorted(range(3), key=ends.__getitem__)


def test_svg_is_well_formed_and_escaped(tmp_path):
    drawing = Drawing([Box(["a<b", '"&"'], "leaf", "tip <x>"), Box(["end"], "output")], [(0, 1)], [1], "a & b")
    root = ET.fromstring(drawing.svg(graphviz=False))
    texts = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a<b", '"&"', "end", "a & b"} <= set(texts)
    for ending, start in {"svg": "<svg", "dot": "digraph", "gv": "digraph", "txt": "a & b\nend"}.items():
        drawing.save(tmp_path / f"picture.{ending}")
        assert (tmp_path / f"picture.{ending}").read_text().startswith(start)
    with pytest.raises(ValueError, match=r"ends in \.svg, \.dot"):
        drawing.save("picture.png")


@NEED_DOT
def test_graphviz():
    drawing = graph(loss_of(model()))
    assert ET.fromstring(drawing.svg(graphviz=True)).tag.endswith("svg")
    assert "<svg" in drawing._repr_svg_()


def test_without_graphviz(monkeypatch):
    monkeypatch.setenv("PATH", "")
    drawing = graph(loss_of(model()))
    assert "arrow" in drawing._repr_svg_()
    with pytest.raises(FileNotFoundError):
        drawing.svg(graphviz=True)


def test_trees():
    drawing = Drawing([Box([c], "op") for c in "abcd"], [(0, 1), (0, 2), (1, 3), (2, 3)], [3])
    assert list(tree(drawing)) == ["d", "├─ b", "│  a  (1)", "└─ c", "   a  (see 1)"]
    assert str(Drawing([], [], [])) == ""


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: graph(3), TypeError, "graph: of: expected tensors or a compiled function, got int"),
        (lambda: graph([1]), TypeError, "got int"),
        (lambda: graph(leafgrad.ones(1)), RuntimeError, "does not require grad"),
        (lambda: graph(leafgrad.ones(1, requires_grad=True), 3), TypeError, "names: expected a module or a dict"),
        (lambda: graph(leafgrad.ones(1, requires_grad=True), {"a": 3}), TypeError, "names: 'a': expected a Tensor"),
    ],
)
def test_misuse(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_summaries():
    net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
    assert "made at the first call" in net.summary()
    assert "parameters" in net._repr_html_()
    net(leafgrad.ones(2, 1, 8, 8))
    net[0].requires_grad_(False)
    lines = net.summary().splitlines()
    assert lines[0].split() == ["module", "class", "parameters", "bytes"]
    assert lines[1].split() == ["0", "Conv2d", "80", "320"]
    assert lines[-1] == ("2,986 parameters in 11,944 bytes, 80 of them frozen; buffers: 17 numbers in 72 bytes")
