"""Recurrent layers, attention and transformers in PyTorch, where it is installed: reprs, keys, results, gradients."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import leafgrad as lg

torch = pytest.importorskip("torch")

LIBRARIES = torch, lg
RECURRENT = [
    {},
    {"num_layers": 2, "bidirectional": True},
    {"bias": False, "batch_first": True},
    {"num_layers": 2, "dropout": 0.0, "bidirectional": True, "batch_first": True},
]
LAYERS = [
    *((kind, options) for kind in ("RNN", "GRU", "LSTM") for options in RECURRENT),
    ("RNN", {"nonlinearity": "relu"}),
    ("LSTM", {"proj_size": 2, "num_layers": 2, "bidirectional": True}),
    ("LSTM", {"proj_size": 2, "bias": False}),
]
HEADS = [
    {},
    {"bias": False},
    {"add_bias_kv": True, "add_zero_attn": True},
    {"kdim": 5, "vdim": 6},
    {"batch_first": True, "add_bias_kv": True, "add_zero_attn": True},
]


@pytest.fixture(autouse=True)
def _no_nested_tensors(recwarn):
    """PyTorch warns of what its TransformerEncoder does without."""


def pair(make):
    theirs, ours = (make(library.nn).double() for library in LIBRARIES)
    assert repr(theirs) == repr(ours)
    assert list(theirs.state_dict()) == list(ours.state_dict())
    state = {name: lg.from_numpy(t.detach().numpy().copy()) for name, t in theirs.state_dict().items()}
    assert {n: tuple(t.shape) for n, t in state.items()} == {n: tuple(t.shape) for n, t in ours.state_dict().items()}
    ours.load_state_dict(state)
    return theirs, ours


class Draw:
    """The same random tensors in both libraries."""

    def __init__(self):
        self.rng = np.random.default_rng(5)

    def numbers(self, *shape):
        array = self.rng.standard_normal(shape)
        return [library.tensor(array, requires_grad=True) for library in LIBRARIES]

    def mask(self, *shape):
        """True in some places, but not in the first of the last dimension."""
        array = self.rng.random(shape) < 0.3
        array[..., 0] = False
        return [library.tensor(array) for library in LIBRARIES]


def flat(result):
    if isinstance(result, (tuple, list)):
        return [t for part in result for t in flat(part)]
    return [] if result is None else [result]


def agree(theirs, ours, tolerance=1e-9):
    theirs, ours = flat(theirs), flat(ours)
    assert len(theirs) == len(ours)
    for e, a in zip(theirs, ours, strict=True):
        assert tuple(e.shape) == tuple(a.shape)
        np.testing.assert_allclose(a.detach().numpy(), e.detach().numpy(), rtol=tolerance, atol=tolerance)


def agree_with_gradients(results, inputs):
    agree(*results)
    found = [
        library.autograd.grad(sum(t.sin().sum() for t in flat(r)), list(i), allow_unused=True)
        for library, r, i in zip(LIBRARIES, results, inputs, strict=True)
    ]
    assert [g is None for g in found[0]] == [g is None for g in found[1]]
    agree(*found)


@pytest.mark.parametrize(("kind", "options"), LAYERS, ids=[f"{kind} {options}" for kind, options in LAYERS])
def test_recurrent_layers(kind, options):
    draw = Draw()
    layers = pair(lambda nn: getattr(nn, kind)(3, 4, **options))
    parts = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    size = options.get("proj_size", 4)

    def states(batch):
        h, c = draw.numbers(parts, batch, size), draw.numbers(parts, batch, 4)
        return h, [(a, b) if kind == "LSTM" else a for a, b in zip(h, c, strict=True)]

    x, short = draw.numbers(5, 2, 3), draw.numbers(6, 3)
    h, state = states(5 if options.get("batch_first") else 2)
    own = [list(layer.parameters()) for layer in layers]
    results = [layer(i, s) for layer, i, s in zip(layers, x, state, strict=True)]
    agree_with_gradients(results, [[i, s, *p] for i, s, p in zip(x, h, own, strict=True)])
    agree(*[layer(i) for layer, i in zip(layers, short, strict=True)])
    for lengths, ordered in (([5, 2], True), ([2, 5], False), ([3, 3], True)):
        h, state = states(2)
        results = []
        for library, layer, i, s in zip(LIBRARIES, layers, x, state, strict=True):
            rnn = library.nn.utils.rnn
            packed = rnn.pack_padded_sequence(i, lengths, enforce_sorted=ordered)
            output, after = layer(packed, s)
            results.append([list(packed), list(output), after, rnn.pad_packed_sequence(output, padding_value=2.0)])
        agree(*results)
        inputs = [[i, s, *p] for i, s, p in zip(x, h, own, strict=True)]
        agree_with_gradients([[r[1][0], r[2]] for r in results], inputs)


@pytest.mark.parametrize(
    ("kind", "options"),
    [("RNN", {}), ("GRU", {"num_layers": 2, "bidirectional": True}), ("LSTM", {}), ("LSTM", {"proj_size": 2})],
)
def test_complex_recurrent_layers(kind, options):
    rng = np.random.default_rng(0)
    theirs = getattr(torch.nn, kind)(3, 4, dtype=torch.complex128, **options)
    ours = getattr(lg.nn, kind)(3, 4, dtype=lg.complex128, **options)
    ours.load_state_dict({name: lg.from_numpy(t.detach().numpy()) for name, t in theirs.state_dict().items()})
    array = rng.standard_normal((5, 2, 3)) + 1j * rng.standard_normal((5, 2, 3))
    found = []
    for library, layer in zip(LIBRARIES, (theirs, ours), strict=True):
        x = library.tensor(array, requires_grad=True)
        output, state = layer(x)
        loss = (output.abs() ** 2).sum() + sum(
            (part * 1j).real.sum() for part in (state if kind == "LSTM" else [state])
        )
        leaves = [x, *layer.parameters()]
        slopes = library.autograd.grad(loss, leaves, create_graph=True)
        found.append([output, *slopes, *library.autograd.grad((slopes[0].abs() ** 2).sum(), leaves)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b.detach().numpy(), a.detach().resolve_conj().numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell"])
def test_cells(kind):
    draw = Draw()
    for options in ({}, {"bias": False}, *([{"nonlinearity": "relu"}] if kind == "RNNCell" else [])):
        cells = pair(lambda nn, o=options: getattr(nn, kind)(3, 4, **o))
        for lead in ((2,), ()):
            x, h, c = draw.numbers(*lead, 3), draw.numbers(*lead, 4), draw.numbers(*lead, 4)
            state = [(a, b) if kind == "LSTMCell" else a for a, b in zip(h, c, strict=True)]
            agree(*[cell(i) for cell, i in zip(cells, x, strict=True)])
            agree_with_gradients(
                [cell(i, s) for cell, i, s in zip(cells, x, state, strict=True)], list(zip(x, h, strict=True))
            )


SHAPES = [
    ((5, 3), (4, 3), (4, 6)),
    ((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 2)),
    ((2, 8, 4, 3), (1, 8, 4, 3), (1, 1, 4, 3)),
    ((300, 8), (400, 8), (400, 8)),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_scaled_dot_product_attention(shapes):
    draw = Draw()
    inputs = list(zip(*[draw.numbers(*shape) for shape in shapes], strict=True))
    queries, keys = shapes[0][-2], shapes[1][-2]
    masks = [draw.mask(queries, keys), draw.numbers(queries, keys)]
    if len(shapes[0]) == 4:
        masks += [draw.mask(2, 1, 1, keys), draw.mask(1, shapes[0][1], queries, keys)]
    calls = [({}, [None, None]), ({"is_causal": True, "scale": 0.3}, [None, None]), *(({}, mask) for mask in masks)]
    for options, mask in calls:
        results = [
            library.nn.functional.scaled_dot_product_attention(*given, m, **options)
            for library, given, m in zip(LIBRARIES, inputs, mask, strict=True)
        ]
        learned = mask[0] is not None and mask[0].requires_grad
        wanted = [[*given, *([m] if learned else [])] for given, m in zip(inputs, mask, strict=True)]
        agree_with_gradients(results, wanted)


@pytest.mark.parametrize("options", HEADS, ids=str)
def test_multi_head_attention(options):
    draw = Draw()
    layers = pair(lambda nn: nn.MultiheadAttention(8, 2, **options))
    first = options.get("batch_first", False)

    def inputs(length, size):
        return draw.numbers(3, length, size) if first else draw.numbers(length, 3, size)

    given = list(zip(inputs(4, 8), inputs(5, options.get("kdim", 8)), inputs(5, options.get("vdim", 8)), strict=True))
    nothing = [None, None]
    paddings, masks = (nothing, draw.mask(3, 5)), (nothing, draw.mask(4, 5), draw.mask(6, 4, 5), draw.numbers(4, 5))
    for padding, mask, need, average in itertools.product(paddings, masks, (True, False), (True, False)):
        results = []
        for i, layer in enumerate(layers):
            m = mask[i] if mask[i] is None or need else mask[i].detach()
            p = padding[i]
            if p is not None and m is not None and m.dtype != p.dtype:
                p = p.double() * -5
            results.append(layer(*given[i], p, need, m, average))
        assert (results[0][1] is None) == (results[1][1] is None)
        agree(*results)
    wanted = [[*g, *layer.parameters()] for g, layer in zip(given, layers, strict=True)]
    agree_with_gradients([r[0] for r in results], wanted)
    if "kdim" not in options:
        x, y = draw.numbers(6, 8), draw.numbers(4, 8)
        agree(*[layer(i, i, i) for layer, i in zip(layers, x, strict=True)])
        agree(*[layer(i, j, j) for layer, i, j in zip(layers, x, y, strict=True)])


@pytest.mark.parametrize(
    "options", [{}, {"norm_first": True, "activation": "gelu"}, {"batch_first": True, "bias": False}]
)
def test_transformers(options):
    draw = Draw()
    models = pair(lambda nn: nn.Transformer(8, 2, 2, 2, 16, dropout=0.0, **options))
    shapes = [(3, 4, 8), (3, 5, 8)] if options.get("batch_first") else [(4, 3, 8), (5, 3, 8)]
    src, tgt = (draw.numbers(*shape) for shape in shapes)
    padding = draw.mask(3, 4)
    masks = [library.nn.Transformer.generate_square_subsequent_mask(5, dtype=library.float64) for library in LIBRARIES]
    agree(*masks)
    for training, causal in itertools.product((True, False), (True, False, None)):
        results = []
        for model, s, t, m, p in zip(models, src, tgt, masks, padding, strict=True):
            model.train(training)
            padded = {"src_key_padding_mask": p, "memory_key_padding_mask": p} if causal is not None else {}
            results.append(model(s, t, tgt_mask=m, tgt_is_causal=causal, **padded))
        agree(*results)
    agree_with_gradients(results, [[s, t, *m.parameters()] for s, t, m in zip(src, tgt, models, strict=True)])
