"""bfloat16 in compiled programs: the numbers of eager execution, on each executor of the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad as lg
from leafgrad.compile.passes import widen
from leafgrad.nn import functional as F

bf16 = lg.bfloat16

PROGRAMS = {
    "chain": lambda x, y: ((x * y + 0.1).tanh() * x.exp() / (y * y + 1)).sum(0),
    "products": lambda x, y: F.gelu(x @ y.T).softmax(-1) @ y,
    "views": lambda x, y: x.T.reshape(-1)[3:].flip(0) + y.reshape(-1)[3:],
    "conversions": lambda x, y: (x.float() * 2).to(bf16) + y.to(lg.float32).mean(),
    "choice": lambda x, y: lg.where(x > y, x, y * 0.3).clamp(-0.7, 0.7),
    "reductions": lambda x, y: lg.cat([x.mean(0), y.std(0), x.logsumexp(0), x.amax(0), y.cumsum(0)[-1]]),
    "integers": lambda x, y: x.argmax(0).to(bf16) + (y > 0).sum(0),
    "creation": lambda x, y: x + lg.full((1,), 0.1, dtype=bf16) + lg.arange(x.shape[-1], dtype=bf16) * y * 0.3,
    "its own numbers": lambda x, y: lg.nextafter(x, y) + lg.nan_to_num(x / (y * 0)),
    "bits": lambda x, y: x.view(lg.int16).float().to(bf16) + x.view(lg.int16).view(bf16),
    "in place": lambda x, y: x.clone().add_(y).mul_(0.1).clamp_(min=0),
    "order": lambda x, y: x.sort(0)[0] + x.topk(2, 0)[0].sum(0),
    "parts": lambda x, y: x[lg.tensor([0, 1, 1])] * y[1] + x[:3, :1],
    "a number": lambda x, y: (x + 0.1) * 0.1 - y // 0.3,
}


def steps(found, want):
    """How many numbers of bfloat16 apart two tensors are, at most."""
    assert found.dtype is want.dtype is bf16
    assert type(found._data) is type(want._data)
    ordered = []
    for t in (found, want):
        bits = np.ascontiguousarray(t.detach().view(lg.int16).numpy()).astype(np.int32)
        ordered.append(np.where(bits < 0, -(bits & 0x7FFF), bits))
    return int(np.abs(ordered[0] - ordered[1]).max(initial=0))


def drawn(*shape):
    return lg.from_numpy(np.random.default_rng(sum(shape)).normal(size=shape)).to(bf16)


@pytest.mark.parametrize("executor", ["numpy", "replay"])
@pytest.mark.parametrize("rows", [6, 300])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_as_in_eager(name, rows, executor):
    x, y = drawn(rows, 8), drawn(rows, 8).flip(0)
    function = PROGRAMS[name]
    program = lg.compile(function, executor=executor)
    want = function(x, y)
    for _ in range(2):
        assert steps(program(x, y), want) <= (0 if rows < 100 else 1)


@pytest.mark.parametrize("executor", ["numpy", "replay"])
def test_a_training_step(executor):
    parameters = []
    for compiled in (False, True):
        lg.manual_seed(0)
        model = lg.nn.Sequential(lg.nn.Linear(8, 16), lg.nn.Tanh(), lg.nn.Linear(16, 1)).bfloat16()
        optimizer = lg.optim.Adam(model.parameters(), lr=0.01)

        def step(x, y, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        run = lg.compile(step, executor=executor) if compiled else step
        losses = [run(drawn(64, 8), drawn(64, 1)).item() for _ in range(5)]
        parameters.append([*model.parameters(), *(p.grad for p in model.parameters()), lg.tensor(losses)])
    for found, want in zip(*parameters, strict=True):
        assert found.dtype is want.dtype
        np.testing.assert_allclose(found.detach().float().numpy(), want.detach().float().numpy(), atol=0.02)


def test_only_conversions_are_left_of_it():
    graph = lg.trace(lambda x: (x * 2).tanh().sum(), drawn(4, 3))
    wide = widen(graph)
    assert {v.dtype for e in graph.equations for v in e.outputs} == {"bfloat16"}
    left = {e.name for e in wide.equations if "bfloat16" in {v.dtype for v in (*e.values, *e.outputs)}}
    assert left == {"to_dtype"}
    assert sum(e.name == "nearest_bfloat16" for e in wide.equations) == 3
    plain = lg.trace(lambda x: (x * 2).tanh().sum(), lg.ones(4, 3))
    assert widen(plain) is plain


def test_transforms_are_as_in_eager():
    x, y = drawn(5, 7), drawn(5, 7) * 0.5
    assert steps(lg.func.vmap(lambda a, b: (a * b).tanh().softmax(-1))(x, y), (x * y).tanh().softmax(-1)) == 0
    out, tangent = lg.func.jvp(lambda a: (a * a).tanh(), (x,), (y,))
    a = x.clone().requires_grad_()
    made = (a * a).tanh()
    (g,) = lg.autograd.grad(made, a, lg.ones_like(made))
    assert steps(out, made) == 0
    np.testing.assert_allclose(tangent.float().numpy(), (g.float() * y.float()).numpy(), rtol=0.03, atol=1e-3)
    assert steps(lg.func.grad(lambda a: (a * a).tanh().sum())(x), g) == 0


def test_meta_tensors_know_it():
    x = lg.empty(2, 3, dtype=bf16, device="meta")
    for made in (x @ x.T, x + 1, x.sum(), x.T.exp(), x.softmax(0), x.to(lg.float32).to(bf16), drawn(2, 3).to("meta")):
        assert (made.dtype, made.device.type) == (bf16, "meta")
    assert (x + lg.ones(3, device="meta")).dtype is lg.float32
    assert (x > 0).dtype is lg.bool
