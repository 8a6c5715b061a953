"""Padding, as NumPy pads."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.autograd import gradcheck
from leafgrad.nn import functional as F

TESTS = "nn.functional.padding"

NUMPY = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", NUMPY)
@pytest.mark.parametrize("pad", [(1, 2), (0, 3, 2, 1), (1, 0, 2, 1, 2, 2)])
@pytest.mark.parametrize("batch", [(2,), ()])
def test_as_numpy_pads(mode, pad, batch, device):
    n = len(pad) // 2
    shape = (*batch, 2, *(3, 5, 4)[-n:])
    x = lg.arange(math.prod(shape)).double().reshape(shape)
    widths = [(0, 0)] * (x.ndim - n) + [pad[2 * i : 2 * i + 2] for i in reversed(range(n))]
    padded = F.pad(x.to(device), pad, mode)
    np.testing.assert_array_equal(padded.cpu().numpy(), np.pad(x.numpy(), widths, NUMPY[mode]))
    if device.type == "cpu":
        assert gradcheck(lambda x: F.pad(x, pad, mode), x.clone().requires_grad_(), fast_mode=True)


@pytest.mark.parametrize("mode", NUMPY)
def test_margins_of_an_empty_batch(mode):
    assert F.pad(lg.ones(0, 2, 3), (1, 2), mode).shape == (0, 2, 6)
    assert F.pad(lg.ones(2, 0), (2, 1), value=5).tolist() == [[5, 5, 5]] * 2
    assert F.pad(lg.ones(0, 4), (-1, 1)).shape == (0, 4)


def test_negative_margins_cut_off():
    x = lg.arange(6.0).reshape(1, 6)
    assert F.pad(x, (-1, -2)).tolist() == [[1, 2, 3]]
    assert F.pad(x, (-1, 2), "reflect").tolist() == [[1, 2, 3, 4, 5, 4, 3]]
    assert F.pad(x, (2, -3), "replicate").tolist() == [[0, 0, 0, 1, 2]]
    assert F.pad(x, (3, -2), "circular").tolist() == [[1, 2, 3, 0, 1, 2, 3]]


def test_layers():
    x = lg.ones(1, 2, 3, 4)
    assert nn.ZeroPad2d((1, 2, 0, 1))(x).shape == (1, 2, 4, 7)
    assert nn.ConstantPad1d(1, 2.5)(x)[0, 0, 0].tolist() == [2.5, 1, 1, 1, 1, 2.5]
    assert nn.ReflectionPad2d(2)(x).shape == nn.ReplicationPad2d(2)(x).shape == nn.CircularPad2d(2)(x).shape
    assert repr(nn.ConstantPad2d(1, 0.5)) == "ConstantPad2d(padding=(1, 1, 1, 1), value=0.5)"
    assert repr(nn.ZeroPad1d(2)) == "ZeroPad1d((2, 2))"
    assert repr(nn.CircularPad3d(1)) == "CircularPad3d((1, 1, 1, 1, 1, 1))"


def test_a_compiled_pad():
    x = lg.randn(2, 3, 4, 5)
    for mode in NUMPY:
        compiled = lg.compile(lambda x, mode=mode: F.pad(x, (1, 2, 2, 0), mode).sin())
        for _ in range(2):
            assert lg.equal(compiled(x), F.pad(x, (1, 2, 2, 0), mode).sin())


@pytest.mark.parametrize(
    ("arguments", "error", "pattern"),
    [
        (((1, 1, 1),), RuntimeError, "Padding length must be divisible by 2"),
        (((1,) * 10,), RuntimeError, "less than or equal to two times the input dimension"),
        ((1,), TypeError, "argument 'pad' .*must be tuple of ints, not int"),
        (((1.5, 1),), TypeError, "must be tuple of ints"),
        (((-4, -4),), RuntimeError, "negative output size"),
        (((1, 1), "mirror"), NotImplementedError, "Unrecognised padding mode mirror; expected one of constant"),
        (((1, 1), "reflect"), NotImplementedError, "Padding size 2 is not supported for 4D input"),
        (((1, 1, 1, 1), "reflect", 2.0), RuntimeError, "doesn't take in value argument, got 2.0"),
        (((6, 0, 0, 0), "reflect"), RuntimeError, r"at most 5, .* got: padding \(6, 0\) at dimension 3"),
        (((7, 0, 0, 0), "circular"), RuntimeError, r"at most 6, .* got: padding \(7, 0\) at dimension 3"),
    ],
)
def test_errors(arguments, error, pattern):
    with pytest.raises(error, match=pattern):
        F.pad(lg.ones(2, 4, 6, 6), *arguments)


def test_a_circular_layer_names_the_dimensions_it_expects():
    with pytest.raises(ValueError, match=r"CircularPad1d: expected 2D or 3D input \(got 4D input\)"):
        nn.CircularPad1d(1)(lg.ones(2, 4, 6, 6))


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("pad", [(0, 0), (-1, -1), (-1, 0), (1, -1)])
def test_the_result_has_memory_of_its_own(mode, pad):
    x = lg.zeros(1, 3, 4)
    y = F.pad(x, pad, mode)
    assert y.is_contiguous()
    y.fill_(7)
    assert not x.any()


@pytest.mark.parametrize("kind", ["ConstantPad", "ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad"])
def test_one_margin_may_be_an_integer_of_numpy(t, kind):
    x, value = t.arange(6.0).reshape(1, 2, 3), (2.0,) if kind == "ConstantPad" else ()
    layer = getattr(t.nn, f"{kind}1d")
    assert layer(np.int64(1), *value)(x).tolist() == layer(1, *value)(x).tolist()
    assert layer(np.int64(1), *value).padding == (1, 1)
