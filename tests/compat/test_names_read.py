"""Names that packages read beside the documented ones, on the stand-in."""

from __future__ import annotations

import itertools

import pytest

import leafgrad as lg
from leafgrad.compat import as_torch

TESTS = "compat.checks"


@pytest.fixture
def torch():
    with as_torch():
        import torch as stand_in

        yield stand_in


N, SIZE, HIDDEN = 3, 4, 5


def test_steps_of_recurrent_layers_are_those_of_the_cells(torch):
    for name, kind in (
        ("gru_cell", torch.nn.GRUCell),
        ("lstm_cell", torch.nn.LSTMCell),
        ("rnn_tanh_cell", torch.nn.RNNCell),
    ):
        layer, x, h = kind(SIZE, HIDDEN), torch.randn(N, SIZE), torch.randn(N, HIDDEN)
        state = (h, torch.randn(N, HIDDEN)) if name == "lstm_cell" else h
        given = layer.weight_ih, layer.weight_hh, layer.bias_ih, layer.bias_hh
        found, expected = getattr(torch, name)(x, state, *given), layer(x, state)
        for a, b in zip(*[v if isinstance(v, tuple) else (v,) for v in (found, expected)], strict=True):
            torch.testing.assert_close(a, b)


def test_derivatives_of_softmax(torch):
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    for forward, backward in (
        (torch.softmax, torch._softmax_backward_data),
        (torch.log_softmax, torch._log_softmax_backward_data),
    ):
        y, g = forward(x, 1), torch.randn(3, 4, dtype=torch.float64)
        (expected,) = torch.autograd.grad(y, x, g)
        torch.testing.assert_close(backward(g, y.detach(), 1, x.dtype), expected)


def test_indices_of_sparse_matrices(torch):
    rows, columns = torch.tensor([0, 0, 2, 3, 3]), torch.tensor([1, 2, 0, 1, 3])
    starts = torch._convert_indices_from_coo_to_csr(rows, 5)
    assert starts.tolist() == [0, 2, 2, 3, 5, 5]
    assert torch._convert_indices_from_csr_to_coo(starts, columns).tolist() == [rows.tolist(), columns.tolist()]
    turned = torch._convert_indices_from_csr_to_coo(starts, columns, out_int32=True, transpose=True)
    assert (turned.tolist(), turned.dtype) == ([columns.tolist(), rows.tolist()], torch.int32)


def test_dropout_in_place(torch):
    for name in ("dropout_", "alpha_dropout_", "feature_dropout_", "feature_alpha_dropout_"):
        x = torch.ones(3, 8, 2, 2)
        assert getattr(torch, name)(x, 0.5, True) is x, name
        assert x.unique().numel() > 1, name
        assert getattr(torch, name)(torch.ones(2, 3, 4, 4), 0.5, False).unique().tolist() == [1]


def test_checks_of_conditions(torch):
    errors = {"_check": RuntimeError, "_check_index": IndexError, "_check_value": ValueError, "_check_type": TypeError}
    for name, error in errors.items():
        getattr(torch, name)(True, lambda: 1 / 0)
        with pytest.raises(error, match=r"^width is 3$"):
            getattr(torch, name)(False, lambda: "width is 3")
        with pytest.raises(error, match="Expected cond to be True"):
            getattr(torch, name)(False)
        with pytest.raises(TypeError, match="cond must be a bool, but got"):
            getattr(torch, name)(1)
    torch._check_tensor_all(torch.tensor([True, True]))
    with pytest.raises(RuntimeError, match="not all"):
        torch._check_tensor_all(torch.tensor([True, False]), "not all")
    with pytest.raises(TypeError, match="cond must be a tensor with dtype"):
        torch._check_tensor_all(torch.ones(2))
    torch._check_is_size(3)
    with pytest.raises(RuntimeError):
        torch._check_is_size(-1)
    torch._assert_async(torch.tensor(1))
    with pytest.raises(RuntimeError, match="it is zero"):
        torch._assert_async(torch.tensor(0), "it is zero")
    assert (torch.sym_int(-2.7), torch.sym_max(2, 1.5), torch.sym_min(2, 3), torch.sym_not(0)) == (-2, 2.0, 2, True)
    assert isinstance(torch.sym_max(2, 1.5), float)
    assert (torch.sym_ite(True, 1, 2), torch.sym_sum([1, 2]), torch.sym_float(3)) == (1, 3, 3.0)


def test_modes_of_determinism(torch):
    try:
        for number, word in enumerate(("default", "warn", "error")):
            torch.set_deterministic_debug_mode(word)
            assert torch.get_deterministic_debug_mode() == number
            assert torch.are_deterministic_algorithms_enabled() == (number > 0)
        with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
            torch.set_deterministic_debug_mode("sometimes")
    finally:
        torch.use_deterministic_algorithms(False)


def test_fused_normalization(torch):
    from torch.nn.utils import fuse_conv_bn_eval, fuse_linear_bn_eval

    nn = torch.nn
    layers = (
        (nn.Conv2d(2, 4, 3, groups=2), nn.BatchNorm2d(4), (3, 2, 6, 6), False),
        (nn.Conv1d(2, 4, 3, bias=False), nn.BatchNorm1d(4, affine=False), (3, 2, 6), False),
        (nn.ConvTranspose2d(2, 3, 2), nn.BatchNorm2d(3), (3, 2, 4, 4), True),
    )
    for conv, norm, shape, transposed in layers:
        for _ in range(3):
            norm(conv(torch.randn(shape)))
        x = torch.randn(shape)
        fused = fuse_conv_bn_eval(conv.eval(), norm.eval(), transposed)
        torch.testing.assert_close(fused(x), norm(conv(x)), rtol=1e-4, atol=1e-5)
        assert isinstance(fused.bias, nn.Parameter)
    linear, norm = nn.Linear(3, 4), nn.BatchNorm1d(4)
    norm(linear(torch.randn(9, 3)))
    x = torch.randn(5, 3)
    with pytest.raises(AssertionError, match="only for eval"):
        fuse_linear_bn_eval(linear, norm)
    torch.testing.assert_close(
        fuse_linear_bn_eval(linear.eval(), norm.eval())(x), norm(linear(x)), rtol=1e-4, atol=1e-5
    )
    with pytest.raises(AssertionError, match="To fuse"):
        fuse_linear_bn_eval(linear, nn.BatchNorm1d(3).eval())
    with pytest.raises(ValueError, match="running statistics"):
        fuse_linear_bn_eval(linear, nn.BatchNorm1d(4, track_running_stats=False).eval())


def test_paths_of_trees(torch):
    from torch.utils import _pytree

    Point = __import__("collections").namedtuple("Point", "x y")
    tree = {"a": [1, (2, 3)], "b": Point(4, None)}
    paths = [_pytree.keystr(path) for path, _ in _pytree.tree_leaves_with_path(tree)]
    assert paths == ["['a'][0]", "['a'][1][0]", "['a'][1][1]", "['b'].x", "['b'].y"]
    named = _pytree.tree_map_with_path(lambda path, leaf, other: (_pytree.keystr(path[:1]), leaf == other), tree, tree)
    assert named == {
        "a": [("['a']", True), (("['a']", True), ("['a']", True))],
        "b": Point(("['b']", True), ("['b']", True)),
    }
    assert _pytree.tree_map_with_path(lambda path, leaf: leaf, []) == []
    assert [_pytree.tree_is_leaf(t) for t in (1, [], (), Point(1, 2))] == [True, False, False, False]


def test_context_managers_as_decorators(torch):
    from torch.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager

    seen = []

    class Noted(_DecoratorContextManager):
        def __enter__(self):
            seen.append("in")

        def __exit__(self, *_):
            seen.append("out")

    class Bare(_NoParamDecoratorContextManager, Noted):
        pass

    assert Noted()(lambda x: x + 1)(1) == 2
    assert Bare(lambda x: x + 1)(1) == 2
    with Bare():
        seen.append("body")
    assert seen == ["in", "out", "in", "out", "in", "body", "out"]


def test_numbers_of_devices(torch):
    from torch._utils import _get_all_device_indices, _get_device_index

    assert [_get_device_index(d) for d in (2, "cuda:1", torch.device("cuda", 3))] == [2, 1, 3]
    assert (_get_device_index("cuda", optional=True), _get_device_index("cpu", allow_cpu=True)) == (0, -1)
    for wrong in ("cpu", "cuda", None):
        with pytest.raises(ValueError, match="Expected a"):
            _get_device_index(wrong)
    assert _get_all_device_indices() == list(range(torch.cuda.device_count()))


def test_what_can_only_be_named(torch):
    for kind, name in itertools.product((8, 1), ("float{}_e4m3fn", "uint{}", "int{}", "qint{}")):
        found = getattr(torch, name.format(kind), None)
        if found not in (torch.uint8, torch.int8, None):
            with pytest.raises(TypeError, match="which leafgrad does not provide"):
                torch.ones(2, dtype=found)
    assert torch.float8_e5m2.is_floating_point
    assert not torch.quint8.is_floating_point
    with pytest.raises(NotImplementedError, match="one after the other"):
        torch.Stream()
    with torch.cuda.device(-1), torch.cuda.device(None):
        assert isinstance(MemoryError(), torch.OutOfMemoryError)
    assert torch.get_device_module("cpu") is torch.cpu
    assert torch.random.default_generator is lg.default_generator
    assert torch.distributions.constraints._Real is type(torch.distributions.constraints.real)
