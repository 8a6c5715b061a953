"""Recurrent layers and cells, packed sequences, and their gradients of both orders."""

from __future__ import annotations

import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.autograd import grad, gradcheck, gradgradcheck
from leafgrad.errors import TraceError
from leafgrad.nn.recurrent_scan import SCANS
from leafgrad.nn.utils import rnn as sequences
from leafgrad.ops import recurrent as ops

TESTS = "nn.recurrent_cells nn.recurrent_scan nn.utils.rnn"

KINDS = ("RNN", "GRU", "LSTM")
F64 = {"dtype": lg.float64}


@pytest.fixture(autouse=True)
def _seeded():
    lg.manual_seed(0)


def flat(result):
    return [t for part in result for t in flat(part)] if isinstance(result, tuple) else [result]


def close(ours, expected, tolerance=1e-12):
    assert len(flat(ours)) == len(flat(expected))
    for a, b in zip(flat(ours), flat(expected), strict=True):
        assert a.shape == b.shape
        assert bool((a - b).abs().max() <= tolerance * max(1.0, float(b.abs().max())))


def state_of(kind, *shape, **where):
    parts = tuple(lg.randn(*shape, **F64, **where) for _ in range(2 if kind == "LSTM" else 1))
    return parts if kind == "LSTM" else parts[0]


def total(result):
    return sum(t.sin().sum() for t in flat(result))


# ---- layers against cells -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_is_a_cell_at_every_step(kind, bias, device):
    layer = getattr(nn, kind)(3, 4, bias=bias, device=device, **F64)
    cell = getattr(nn, kind + "Cell")(3, 4, bias=bias, device=device, **F64)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    x = lg.randn(5, 2, 3, device=device, **F64)
    state, found = None, []
    for step in x:
        state = cell(step, state)
        found.append(state[0] if kind == "LSTM" else state)
    output, last = layer(x)
    close(output, lg.stack(found))
    close(last, tuple(s.unsqueeze(0) for s in state) if kind == "LSTM" else state.unsqueeze(0))
    for first in (layer(x[:, 0])[0], layer(x[:, :1])[0].squeeze(1)):
        close(first, output[:, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_layers_and_directions(kind):
    both = getattr(nn, kind)(3, 4, num_layers=2, bidirectional=True, batch_first=True, **F64)
    x, state = lg.randn(2, 5, 3, **F64), state_of(kind, 4, 2, 4)
    own = state if kind == "LSTM" else (state,)
    seen, last = x, []
    for k, weights in enumerate(both.all_weights):
        one = getattr(nn, kind)(len(weights[0][0]), 4, batch_first=True, **F64)
        one.load_state_dict(dict(zip(one.state_dict(), weights, strict=True)))
        before = tuple(part[k : k + 1] for part in own)
        y, after = one(seen.flip(1) if k % 2 else seen, before if kind == "LSTM" else before[0])
        last.append(after)
        if k % 2 == 0:
            forward = y
        else:
            seen = lg.cat([forward, y.flip(1)], -1)
    output, after = both(x, state)
    close(output, seen)
    expected = tuple(lg.cat(parts) for parts in zip(*[flat(part) for part in last], strict=True))
    close(after, expected if kind == "LSTM" else expected[0])


def test_projection():
    layer = nn.LSTM(3, 4, proj_size=2, bidirectional=True, **F64)
    assert {name: tuple(value.shape) for name, value in layer.state_dict().items() if "reverse" not in name} == {
        "weight_ih_l0": (16, 3),
        "weight_hh_l0": (16, 2),
        "bias_ih_l0": (16,),
        "bias_hh_l0": (16,),
        "weight_hr_l0": (2, 4),
    }
    output, (h, c) = layer(lg.randn(5, 2, 3, **F64))
    assert (output.shape, h.shape, c.shape) == ((5, 2, 4), (2, 2, 2), (2, 2, 4))
    close(output[-1, :, :2], h[0])


def test_dropout_between_layers_in_training_only():
    layer = nn.RNN(3, 4, num_layers=2, dropout=1.0)
    x = lg.randn(5, 2, 3)
    with lg.no_grad():
        blind = layer(x)[0]
        close(blind, layer(lg.zeros(5, 2, 3))[0])  # nothing of the first layer arrives
        layer.eval()
        assert not bool((layer(x)[0] == blind).all())
    with pytest.warns(UserWarning, match="num_layers greater than 1, but got dropout=0.5"):
        nn.GRU(3, 4, dropout=0.5)


# ---- gradients ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "RNN relu"])
def test_gradients_of_both_orders(kind):
    extra = {"nonlinearity": "relu"} if "relu" in kind else {}
    kind = kind.split()[0]
    layer = getattr(nn, kind)(1, 2, **extra, **F64)
    x, h = (lg.randn(*shape, requires_grad=True, **F64) for shape in ((2, 2, 1), (1, 2, 2)))

    def function(x, h, *_):
        return tuple(flat(layer(x, (h, h) if kind == "LSTM" else h)))

    inputs = (x, h, *layer.parameters())
    assert gradcheck(function, inputs, fast_mode=True)
    assert gradgradcheck(function, inputs, fast_mode=True)


def test_gradients_of_a_projected_lstm():
    layer = nn.LSTM(2, 3, proj_size=1, **F64)
    x = lg.randn(3, 2, 2, requires_grad=True, **F64)
    inputs = (x, *layer.parameters())
    assert gradcheck(lambda x, *_: layer(x)[0], inputs, fast_mode=True)
    assert gradgradcheck(lambda x, *_: layer(x)[0], inputs, fast_mode=True)


@pytest.mark.parametrize("kind", SCANS)
def test_fast_gradients_are_those_of_the_definition(kind, device):
    """``rnn_gates``, ``gru_gates`` and ``lstm_gates`` of ``ops/recurrent.py``."""
    count, states = {"GRU": (3, 1), "LSTM": (4, 2)}.get(kind, (1, 1))
    shapes = [(4, 2, 3), (count * 5, 3), (count * 5, 5), (count * 5,), (count * 5,), *[(2, 5)] * states]
    args = [lg.randn(*shape, device=device, requires_grad=True, **F64) for shape in shapes]
    relu = kind == "RNN_RELU"
    fast, slow = SCANS[kind].apply(relu, *args), SCANS[kind].definition(relu, *args)
    close(fast, slow)
    close(grad(total(fast), args), grad(total(slow), args))
    if states == 2:  # only c is read
        fast, slow = SCANS[kind].apply(relu, *args)[1], SCANS[kind].definition(relu, *args)[1]
        close(grad(total(fast), args), grad(total(slow), args))
    assert all(hasattr(ops, f"{name}_gates") for name in ("rnn", "gru", "lstm"))


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_steps_are_those_of_the_eager_layer(kind):
    def train(wrap):
        lg.manual_seed(1)
        layer, head = getattr(nn, kind)(3, 4, bidirectional=True, num_layers=2), nn.Linear(8, 1)
        adam = lg.optim.Adam([*layer.parameters(), *head.parameters()], lr=0.01)

        @wrap
        def step(x):
            adam.zero_grad()
            y = head(layer(x)[0])
            loss = (y * y).mean()
            loss.backward()
            adam.step()
            return loss

        return [step(lg.randn(5, 2, 3)).item() for _ in range(4)]

    assert train(lg.compile) == pytest.approx(train(lambda f: f), rel=1e-5)


def test_compiled_with_packed_sequences():
    layer = nn.LSTM(3, 4, bidirectional=True)

    def call(x):
        packed = sequences.pack_padded_sequence(x, [2, 5, 1], enforce_sorted=False)
        output, (h, _) = layer(packed)
        return sequences.pad_packed_sequence(output)[0], h

    x = lg.randn(5, 3, 3)
    compiled = lg.compile(call)
    for _ in range(3):
        close(compiled(x), call(x), 1e-6)


def test_lengths_are_no_part_of_a_program():
    layer = nn.GRU(3, 4)
    compiled = lg.compile(layer)
    for lengths in ([4, 1], [4, 1], [3, 2], [2, 2], [4, 1]):
        packed = sequences.pack_padded_sequence(lg.randn(4, 2, 3), lengths)
        close(compiled(packed)[0].data, layer(packed)[0].data)
    assert "open, since tolist()" in compiled.explain()
    closed = lg.compile(layer, closed=True)
    closed(packed)
    with pytest.raises(TraceError, match="tolist"):  # pack where the function is compiled
        closed(packed)


# ---- packed sequences ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [[3, 5, 1], [5, 3, 1], [4, 4, 4]])
@pytest.mark.parametrize("kind", KINDS)
def test_packed_sequences_run_each_for_itself(kind, lengths, device):
    layer = getattr(nn, kind)(3, 4, num_layers=2, bidirectional=True, device=device, **F64)
    parts = [lg.randn(n, 3, device=device, requires_grad=True, **F64) for n in lengths]
    state = state_of(kind, 4, 3, 4, device=device)
    packed = sequences.pack_sequence(parts, enforce_sorted=False)
    output, after = layer(packed, state)
    found = sequences.unpack_sequence(output)
    alone = []
    for n, part in enumerate(parts):
        own = tuple(s[:, n] for s in state) if kind == "LSTM" else state[:, n]
        alone.append(layer(part, own))
        close(found[n], alone[n][0])
        close(tuple(t[:, n] for t in flat(after)), tuple(flat(alone[n][1])))
    inputs = [*parts, *layer.parameters()]
    expected = grad(sum(total(one) for one in alone), inputs)
    close(grad(sum(map(total, found)) + total(after), inputs), expected, 1e-10)


def test_packing_and_padding(device):
    x = lg.arange(12, device=device).reshape(4, 3)
    packed = sequences.pack_padded_sequence(x, [1, 4, 2], enforce_sorted=False)
    assert packed.data.tolist() == [1, 2, 0, 4, 5, 7, 10]
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1]
    assert (packed.sorted_indices.tolist(), packed.unsorted_indices.tolist()) == ([1, 2, 0], [2, 0, 1])
    assert packed.batch_sizes.device.type == "cpu"
    assert packed.data.device == packed.sorted_indices.device == device
    full, lengths = sequences.pad_packed_sequence(packed, padding_value=-1, total_length=5)
    assert full.t().tolist() == [[0, -1, -1, -1, -1], [1, 4, 7, 10, -1], [2, 5, -1, -1, -1]]
    assert lengths.tolist() == [1, 4, 2]
    assert [s.tolist() for s in sequences.unpack_sequence(packed)] == [[0], [1, 4, 7, 10], [2, 5]]
    again = sequences.PackedSequence(packed.data, packed.batch_sizes, packed.sorted_indices)
    rows, _ = sequences.pad_packed_sequence(again, batch_first=True)
    assert rows.tolist()[2] == [2, 5, 0, 0]
    assert rows.is_contiguous()  # so that view(-1, ...) takes it
    assert packed.to(lg.float64).data.dtype is lg.float64
    assert packed.to(device) is packed


def test_packed_sequence_is_a_tuple_that_prints():
    packed = sequences.pack_sequence([lg.ones(2), lg.ones(1)])
    data, sizes, *order = packed
    assert (data.tolist(), sizes.tolist(), order) == ([1, 1, 1], [2, 1], [None, None])
    assert repr(packed).startswith("PackedSequence(data=tensor([1., 1., 1.]), batch_sizes=tensor([2, 1]), sorted")
    assert packed.double().data.dtype is lg.float64
    assert not packed.is_cuda


def test_pad_sequence(device):
    parts = [lg.ones(1, 2, device=device), 2 * lg.ones(3, 2, device=device)]
    assert sequences.pad_sequence(parts, padding_value=9).tolist() == [
        [[1, 1], [2, 2]],
        [[9, 9], [2, 2]],
        [[9, 9], [2, 2]],
    ]
    left = sequences.pad_sequence(parts, batch_first=True, padding_side="left")
    assert left[0].tolist() == [[0, 0], [0, 0], [1, 1]]
    assert [len(s) for s in sequences.unpad_sequence(left, lg.tensor([2, 3]), batch_first=True)] == [2, 3]


@pytest.mark.parametrize("lengths", [[3, 3], [3, 2]])
def test_sequences_have_memory_of_their_own(lengths):
    x = lg.ones(3, 2, 4)
    sequences.pack_padded_sequence(x, lengths).data.zero_()
    for s in sequences.unpad_sequence(x, lengths):
        s.zero_()
    assert x.all()


# ---- what goes wrong ----------------------------------------------------------------------------------------------

X = lg.ones(4, 3, 2)
ONE = lg.ones
LAYER_ERRORS = [
    (lambda: nn.RNN(3, 4, dropout=2), ValueError, "dropout should be a number in range"),
    (lambda: nn.RNN(3, 4, nonlinearity="sine"), ValueError, "Select from 'tanh' or 'relu'"),
    (lambda: nn.GRU(3, 4, proj_size=2), ValueError, "only supported for LSTM"),
    (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "smaller than hidden_size"),
    (lambda: nn.LSTM(3, 0), ValueError, "hidden_size must be greater than zero"),
    (lambda: nn.LSTM(3, 4.0), TypeError, "hidden_size should be of type int, got: float"),
    (lambda: nn.LSTM(3, 4, batch_first=1), TypeError, "batch_first should be of type bool, got: int"),
    (lambda: nn.RNN(2, 4)(X[..., :1]), RuntimeError, "Expected 2, got 1"),
    (lambda: nn.RNN(2, 4)(X[0, 0]), ValueError, "RNN: Expected input to be 2D or 3D, got 1D"),
    (lambda: nn.RNN(2, 4)(X[:0]), RuntimeError, "Expected sequence length to be larger than 0"),
    (lambda: nn.RNN(2, 4)(X.double()), ValueError, r"input.to\(leafgrad.float32\)"),
    (lambda: nn.RNN(2, 4)(3), TypeError, "input"),
    (lambda: nn.RNN(2, 4)(X[:, 0], ONE(1, 1, 4)), RuntimeError, "unbatched 2-D input, hx should also be 2-D but got 3"),
    (lambda: nn.GRU(2, 4)(X, ONE(2, 3, 4)), RuntimeError, r"Expected hidden size \(1, 3, 4\), got \[2, 3, 4\]"),
    (lambda: nn.LSTM(2, 4)(X, ONE(1, 3, 4)), TypeError, "tuple of two tensors"),
    (lambda: nn.LSTM(2, 4)(X, (ONE(1, 3, 4), ONE(1, 3, 5))), RuntimeError, r"Expected hidden\[1\] size \(1, 3, 4\)"),
    (lambda: nn.LSTM(2, 4)(X, (ONE(3, 4), ONE(1, 3, 4))), RuntimeError, r"hx and cx should also be 3-D but got \(2-D"),
    (lambda: nn.RNNCell(2, 4)(X), ValueError, "RNNCell: Expected input to be 1D or 2D, got 3D"),
    (lambda: nn.GRUCell(2, 4)(ONE(3, 3)), RuntimeError, "inconsistent input_size: got 3 expected 2"),
    (lambda: nn.GRUCell(2, 4)(ONE(3, 2), ONE(2, 4)), RuntimeError, "batch size 3 doesn't match hidden0 batch size 2"),
    (lambda: nn.LSTMCell(2, 4)(ONE(3, 2), (ONE(3, 4), ONE(3, 5))), RuntimeError, "hidden1 has inconsistent"),
    (lambda: nn.LSTMCell(2, 4)(ONE(3, 2), ONE(3, 4)), TypeError, "tuple of two tensors"),
    (lambda: nn.RNNCell(2, 4, nonlinearity="sine")(ONE(3, 2)), RuntimeError, "Unknown nonlinearity: sine"),
]
PACK = sequences.pack_padded_sequence
PACKING_ERRORS = [
    (lambda: PACK(X, [1, 4, 2]), RuntimeError, "sorted in decreasing order"),
    (lambda: PACK(X, [4, 2, 0]), RuntimeError, "has to be greater than 0"),
    (lambda: PACK(X, [4, 2]), RuntimeError, r"got 2 \(batch_size=3\)"),
    (lambda: PACK(X, [5, 2, 1]), RuntimeError, "at most 4, the length of the padded input, got 5"),
    (lambda: PACK(X, lg.ones(1, 3)), RuntimeError, "1D int64 tensor, but got 2D"),
    (lambda: PACK(3, [1]), TypeError, "input"),
    (lambda: sequences.pad_packed_sequence(PACK(X, [4, 2, 1]), total_length=3), ValueError, "total_length=3"),
    (lambda: sequences.pad_packed_sequence(X), TypeError, "expected a PackedSequence"),
    (lambda: sequences.pad_sequence([]), RuntimeError, "empty list"),
    (lambda: sequences.pad_sequence(3), RuntimeError, "Expected iterable"),
    (lambda: sequences.pad_sequence([1, 2]), TypeError, r"sequences\[0\]"),
    (lambda: sequences.pad_sequence([X], padding_side="top"), RuntimeError, "one of left or right, but got top"),
]


@pytest.mark.parametrize(("call", "error", "words"), [*LAYER_ERRORS, *PACKING_ERRORS])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_batch_goes_back(kind):
    m, x = getattr(nn, kind)(3, 4, 2), lg.zeros(5, 0, 3, requires_grad=True)
    m(x)[0].sum().backward()
    assert x.grad.shape == (5, 0, 3)
    assert all(p.grad.abs().sum() == 0 for p in m.parameters())


# ---- autocast -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [lg.bfloat16, lg.float16])
@pytest.mark.parametrize("kind", [*KINDS, "relu"])
def test_layers_train_under_autocast(kind, dtype):
    """Gradients of weights, input and first state are float32, and near those without; within it and compiled too."""
    make = {"relu": lambda: nn.RNN(6, 3, nonlinearity="relu")}.get(kind, lambda: getattr(nn, kind)(6, 3))
    net, x = make(), lg.randn(5, 2, 6, requires_grad=True)
    h = lg.randn(1, 2, 3, requires_grad=True)
    targets = [*net.parameters(), x, h]

    def gradients(on=True, within=False):
        with lg.autocast("cpu", dtype=dtype, enabled=on):
            out, _ = net(x, (h, h) if kind == "LSTM" else h)
            assert out.dtype is (dtype if on else lg.float32)
            loss = out.float().square().sum()
            if within:
                return grad(loss, targets)
        return grad(loss, targets)

    want = gradients(False)
    for found in (gradients(), gradients(within=True), lg.compile(gradients)()):
        for a, b in zip(found, want, strict=True):
            assert a.dtype is lg.float32
            assert float((a - b).abs().max()) <= 0.05 * max(1.0, float(b.abs().max()))


@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives_under_autocast(kind):
    net, x = getattr(nn, kind)(6, 3), lg.randn(5, 2, 6, requires_grad=True)

    def second(on):
        with lg.autocast("cpu", enabled=on):
            out, _ = net(x)
        (first,) = grad(out.float().square().sum(), x, create_graph=True)
        return grad(first.square().sum(), x)[0]

    found, want = second(True), second(False)
    assert found.dtype is lg.float32
    assert float((found - want).abs().max()) <= 0.1 * float(want.abs().max())
