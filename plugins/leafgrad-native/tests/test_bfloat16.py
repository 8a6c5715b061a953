"""bfloat16 in C: float32, rounded where eager execution rounds."""

from __future__ import annotations

import numpy as np

import leafgrad as lg

bf16 = lg.bfloat16


def bits(t):
    return np.ascontiguousarray(t.detach().view(lg.int16).numpy())


def test_every_rounding_is_that_of_eager_execution():
    """Halves, their neighbours and what overflows, beside each of the 65536 numbers; nan stays nan."""
    upper = np.arange(2**16, dtype=np.uint32)[:, None] << 16
    x = lg.from_numpy((upper + np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)).view(np.float32))

    def step(x):
        y = x.to(bf16)
        return y, -y * 3 + y.abs().sqrt()

    for found, want in zip(lg.compile(step, executor="native")(x), step(x), strict=True):
        assert found.dtype is want.dtype is bf16
        np.testing.assert_array_equal(found.isnan().numpy(), want.isnan().numpy())
        same = bits(found) == bits(want)
        assert np.all(same | want.isnan().numpy())


def test_a_training_step_in_chunks():
    rng = np.random.default_rng(0)
    x, y = (lg.from_numpy(rng.normal(size=s)).to(bf16) for s in ((3000, 8), (3000, 1)))
    found = []
    for compiled in (False, True):
        lg.manual_seed(0)
        model = lg.nn.Sequential(lg.nn.Linear(8, 16), lg.nn.Tanh(), lg.nn.Linear(16, 1)).bfloat16()

        def step(x, y, model=model):
            model.zero_grad()
            loss = ((model(x.T.contiguous().T) - y) ** 2).mean()
            loss.backward()
            return loss

        run = lg.compile(step, executor="native") if compiled else step
        run(x, y)
        found.append([run(x, y), *(p.grad for p in model.parameters())])
    for eager, native in zip(*found, strict=True):
        assert eager.dtype is native.dtype is bf16
        np.testing.assert_allclose(
            native.detach().float().numpy(), eager.detach().float().numpy(), rtol=0.02, atol=2e-3
        )
