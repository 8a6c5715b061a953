"""How tensors print."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leafgrad
from leafgrad.tensor import printing
from leafgrad.tensor.overrides import unwrapped


@pytest.fixture(autouse=True)
def default_options():
    yield
    leafgrad.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (2.5, "tensor(2.5000)"),
        (3, "tensor(3)"),
        (True, "tensor(True)"),
        ([], "tensor([])"),
        ([1.0, 2.0], "tensor([1., 2.])"),
        ([0.0, 0.0], "tensor([0., 0.])"),
        ([1.0, 2.5, -3.0], "tensor([ 1.0000,  2.5000, -3.0000])"),
        ([1e-5, 1.0], "tensor([1.0000e-05, 1.0000e+00])"),
        ([1e5, 1.0], "tensor([1.0000e+05, 1.0000e+00])"),
        ([1.0, math.nan, -math.inf], "tensor([1., nan, -inf])"),
        ([0.5, math.inf], "tensor([0.5000,    inf])"),
        ([1, -20, 300], "tensor([  1, -20, 300])"),
        ([True, False], "tensor([ True, False])"),
        ([[1, 2], [3, 4]], "tensor([[1, 2],\n        [3, 4]])"),
        ([[[1], [2]], [[3], [4]]], "tensor([[[1],\n         [2]],\n\n        [[3],\n         [4]]])"),
    ],
)
def test_values(data, text):
    assert repr(leafgrad.tensor(data)) == text


def test_what_is_not_default_is_said(device):
    place = "" if device.type == "cpu" else f", device='{device}'"
    t = leafgrad.ones(1, device=device, dtype=leafgrad.float64, requires_grad=True)
    assert repr(t) == f"tensor([1.]{place}, dtype=leafgrad.float64, requires_grad=True)"
    assert repr(t.detach().to(leafgrad.float32) * 1) == f"tensor([1.]{place})"
    assert repr(t * 2) == f"tensor([2.]{place}, dtype=leafgrad.float64, grad_fn=<MulBackward0>)"
    assert repr(leafgrad.zeros(0, 3, device=device)) == f"tensor([]{place}, size=(0, 3))"
    assert repr(leafgrad.zeros(0, dtype=leafgrad.int64, device=device)) == f"tensor([]{place}, dtype=leafgrad.int64)"


def test_long_lines_are_broken():
    lines = repr(leafgrad.arange(40)).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert [line[:8] for line in lines] == ["tensor([", "        ", "        "]
    wide = repr(leafgrad.full((26,), 1.5, dtype=leafgrad.float64))
    assert wide.endswith("1.5000, 1.5000],\n       dtype=leafgrad.float64)")


def test_only_the_ends_of_large_tensors_are_shown():
    assert repr(leafgrad.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    text = repr(leafgrad.zeros(100, 7, 2))
    assert text.count("...") == 1 + 6
    assert text.count("\n\n") == 6
    assert "..." not in repr(leafgrad.arange(1000))


def test_options():
    t = leafgrad.tensor([1.23456, 2.0])
    leafgrad.set_printoptions(precision=2)
    assert repr(t) == "tensor([1.23, 2.00])"
    leafgrad.set_printoptions(sci_mode=True)
    assert repr(t) == "tensor([1.23e+00, 2.00e+00])"
    leafgrad.set_printoptions(profile="short", threshold=3)
    assert repr(leafgrad.arange(6)) == "tensor([0, 1,  ..., 4, 5])"
    leafgrad.set_printoptions(profile="full")
    assert "..." not in repr(leafgrad.arange(2000))
    leafgrad.set_printoptions(profile="default", linewidth=20)
    assert repr(leafgrad.arange(5)) == "tensor([0, 1, 2, 3,\n        4])"
    with pytest.raises(ValueError, match="expected one of default, short, full"):
        leafgrad.set_printoptions(profile="long")


def arrays(rng):
    """Arrays of all kinds of contents, shapes and dtypes."""
    shapes = [(), (0,), (0, 3), (1,), (7,), (40,), (1000,), (1001,), (3, 1, 4), (30, 40), (7, 200), (12, 12, 12)]
    for shape in shapes:
        normal = rng.standard_normal(shape)
        holes = np.where(rng.random(shape) < 0.3, np.nan, normal)
        for a in (
            normal,
            rng.integers(-5, 100, shape).astype(float),
            normal * 10.0 ** rng.integers(-6, 6, shape),
            np.zeros(shape),
            np.where(rng.random(shape) < 0.2, -np.inf, holes),
            rng.integers(-5, 5, shape) * 1e9,
        ):
            for dtype in ("float32", "float64", "float16"):
                yield np.asarray(a).astype(dtype)
        yield rng.integers(-1000, 1000, shape).astype("int32")
        yield rng.random(shape) < 0.5


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"precision": 2},
        {"threshold": 5, "edgeitems": 1},
        {"linewidth": 40},
        {"sci_mode": True},
        {"sci_mode": False},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_parity_with_torch(options, request):
    torch = pytest.importorskip("torch")
    torch.set_printoptions(**options)
    request.addfinalizer(lambda: torch.set_printoptions(profile="default"))
    leafgrad.set_printoptions(**options)
    for a in arrays(np.random.default_rng(0)):
        theirs, ours = repr(torch.tensor(a)), repr(leafgrad.tensor(a))
        # "leafgrad." is longer than "torch.", which may break the last line
        assert ours.replace("leafgrad.", "torch.").replace(",\n       ", ", ") == theirs.replace(",\n       ", ", ")


def test_printing_does_not_bring_a_large_tensor_to_the_host(monkeypatch):
    sizes = []
    original = printing.corners
    monkeypatch.setattr(printing, "corners", lambda a, n: sizes.append(original(a, n).size) or original(a, n))
    repr(leafgrad.zeros(1000, 1000))
    assert sizes == [36]


def test_a_number_in_an_f_string():
    loss = leafgrad.tensor(1.5, requires_grad=True)
    assert f"{loss * 2} {loss} {loss:.2f} {leafgrad.tensor(True)}" == "3.0 1.5 1.50 True"
    assert f"{loss!s} {leafgrad.ones(1)}" == "tensor(1.5000, requires_grad=True) tensor([1.])"


class Image(leafgrad.Tensor):
    __torch_function__ = unwrapped


def test_classes_of_others_show_their_name():
    x = leafgrad.zeros(2, 2).as_subclass(Image)
    assert repr(x) == "Image([[0., 0.],\n       [0., 0.]])"
    assert repr(leafgrad.zeros(1, dtype=leafgrad.int32).as_subclass(Image)) == f"Image([0], dtype={leafgrad.int32})"
    assert repr(leafgrad.nn.Parameter(leafgrad.zeros(1))) == "Parameter containing:\ntensor([0.], requires_grad=True)"
