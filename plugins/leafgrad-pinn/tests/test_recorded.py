"""Functions in files are what they were, and those that cannot be are refused."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.codec import encode
from leafgrad_pinn.decoding import Decoder

HELD, MODULE = lg.tensor([0.5, 0.25], dtype=lg.float64), lg.nn.Linear(1, 1, dtype=lg.float64)
SINGLE, TURN = lg.nn.Linear(1, 1), lg.tensor(0.6 + 0.8j, dtype=lg.complex128)
EPOCH = lg.tensor([1.7e9], dtype=lg.float64)
TABLE = pinn.Table({"x": np.linspace(0, 1, 400)}, np.sin(np.linspace(0, 1, 400)))


class Sine(lg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return lg.sin(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * lg.cos(ctx.saved_tensors[0])


class Rounded(lg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return lg.round(3 * x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


@pytest.mark.parametrize(
    "function",
    [
        lambda: 3,
        lambda x: 3,
        lambda x: lg.where(x < 0.4, lg.full_like(x, 0.1), lg.zeros_like(x)),
        lambda x: lg.maximum(x, lg.tensor(0.5, dtype=lg.float64)),
        lambda x, t, k=2: lg.exp(-k * t) * lg.sin(math.pi * x).abs() + lg.ones_like(t),
        lambda x: lg.exp(1j * x).real,
        lambda x: (x * (1 + 2j)).abs() * True,
        lambda x: lg.clip(x, HELD[0], None),
        lambda x: lg.ones(len(x), dtype=x.dtype) * x,
        lambda x: (x[:, None] * HELD).sum(1),
        lambda x: lg.stack([lg.ones_like(x), x, x * x], -1)[..., 0:2].max(-1)[0],
        lambda x: MODULE(x[:, None].to(lg.float64))[:, 0],
        lambda x: TABLE(x.abs()),
        lambda x: lg.isnan(x),
        lambda x: lg.cat([x, -x]).exp()[: len(x)],
        lambda x: (x > 0.5) * x,
        lambda x: ((x + 1j) ** 2).imag,
        lambda x: (x * TURN).imag.to(x.dtype),
        lambda x: x * lg.tensor(0.1) + lg.full((len(x),), 3),
        lambda x: SINGLE(x[:, None].float())[:, 0].to(x.dtype),
        lambda x: pinn.d(x**3, x),
        lambda x: lg.where(x > 0.5, math.nan, x),
        lambda x: Sine.apply(x),
    ],
)
@pytest.mark.parametrize("dtype", [lg.float64, lg.float32])
def test_functions_are_read_as_they_were_saved(function, dtype):
    read = Decoder()(encode(function), "function")
    points = [lg.tensor([-0.3, 0.2, 0.7], dtype=dtype, requires_grad=True) for _ in inspect.signature(read).parameters]
    like = lg.zeros(3, dtype=dtype)
    expected, found = function(*points) + like, read(*points) + like
    near = {"rtol": 4 * lg.finfo(dtype).eps, "atol": 0, "equal_nan": True}
    assert found.dtype == dtype
    assert np.allclose(found.detach().numpy(), expected.detach().numpy(), **near)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x - x.mean(), "treats each point alike"),
        (lambda x: lg.sort(x)[0], "treats each point alike"),
        (lambda x: x.flip(0), "treats each point alike"),
        (lambda x: x * len(x), "treats each point alike"),
        (lambda x: x * lg.ones(16, dtype=x.dtype), "treats each point alike"),
        (
            lambda x: lg.cat([x, -x]).exp()[len(x) :],
            "treats each point alike.*: slice takes 32 at 16 points, and 34 at 17",
        ),
        (lambda x: lg.full((2 * len(x),), 1.0)[: len(x)] * x, "treats each point alike.*: full takes 32"),
        (lambda x: x * min(len(x), 20), "treats each point alike"),
        (lambda x: 1e-15 * (x - x.mean()), "treats each point alike"),
        (lambda x: x if len(x) > 1 else 2 * x, "treats each point alike"),
        (lambda x: x - 1e-8 * x.mean(), "differ by .*make its tensors float64"),
        (lambda x: x.clone().mul_(2).index_put_((x > 0.5,), x), "got write_view, .* written in place; make another"),
        (lambda x: x * HELD[0].item(), r"save: .*: item\(\) needs a value"),
        (lambda x: x.detach() * x, "derivatives are those of its operations, got others, as of detach"),
        (lambda x: pinn.d(x**3, x).detach(), "derivatives are those of its operations"),
        (lambda x: Rounded.apply(x), "derivatives are those of its operations"),
        (lambda x: lg.sqrt(-1 - x), "expected numbers, got nan at each of 37 points"),
        (lambda x: x + lg.rand_like(x), "of its parameters alone; it uses uniform"),
        (lambda x: (x[:, None] * lg.arange(4.0)).sum(1), "it uses arange; .* made before"),
        (lambda x: (x[:, None] * lg.ones(300, dtype=x.dtype)).sum(1), "save: .*: expected at most 4096 numbers"),
    ],
)
def test_functions_that_cannot_be_saved(function, message):
    with pytest.raises(ValueError, match=message):
        encode(function)


def test_functions_are_tried_where_they_are_asked(recwarn):
    domain = pinn.Interval("x", 2, 3) * pinn.Time("t", 0, 1)

    def hard(function, **more):
        return pinn.Field("u", domain, pinn.MLP(3, 1, **more), initial=pinn.Hard(function))

    encode(hard(lambda x: lg.sqrt(x - 1.5), enrich=lambda x: lg.log(x - 1.9)))
    encode(pinn.Field("u", domain, pinn.MLP(3, 1), history=lambda t: lg.sqrt(-t)))
    encode(pinn.SignedDistance(lambda x: lg.log(x / 3) * lg.log(x / 2), x=(1, 4)))
    assert not recwarn.list
    with pytest.raises(ValueError, match="treats each point alike"):
        encode(hard(lambda x: lg.sqrt(x - 1.5) - lg.sqrt(x - 1.5).mean()))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x + EPOCH) - EPOCH,
        lambda x: ((x.double() + 1e8) - 1e8).float(),
        lambda x: lg.sin(x.double() * 1e6),
        lambda x: TABLE(x) * lg.full_like(x, 2.0) * (x > 0.5),
    ],
)
def test_what_is_float64_on_purpose_stays_so_beside_a_network_in_float32(function, tmp_path):
    u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(3, 1), boundary=pinn.Hard(function))
    sol = pinn.Problem(u, [pinn.Interior(lambda u: u - 1, n=8)]).solve(pinn.Adam(1), dtype=lg.float32)
    sol.save(tmp_path / "u.safetensors")
    x = np.linspace(0, 1, 9)
    assert sol(x).dtype == np.float32
    assert np.array_equal(sol(x), pinn.Solution.load(tmp_path / "u.safetensors")(x))
    assert not np.allclose(sol(x)[1:-1], 0)


def test_a_program_in_float32_runs_in_any_dtype():
    at = {"x": np.linspace(0, 1, 37, dtype=np.float32)}
    read = Decoder()(encode(lambda x: (lg.exp(1j * x) * lg.full_like(x, 2.0)).real, at), "function")
    for dtype in (lg.float32, lg.float64):
        found = read(lg.tensor([0.5], dtype=dtype))
        assert found.dtype == dtype
        assert abs(found.item() - 2 * math.cos(0.5)) < 4 * lg.finfo(dtype).eps
