"""Results of programs lie in memory of their own."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad import optim
from leafgrad.testing import fake


@pytest.mark.parametrize("index", [0, 1])
def test_a_result_that_is_an_argument_is_copied_on_its_own_device(index):
    fake.register()
    x = leafgrad.ones(3).to(f"fake:{index}")
    run = leafgrad.compile(lambda x: (x.view(3), x * 2), executor="replay")
    for _ in range(3):
        same, twice = run(x)
        assert str(same.device) == str(twice.device) == f"fake:{index}"
        assert same.tolist() == [1.0] * 3


@pytest.mark.parametrize("executor", ["replay", "cuda-emulated"])
@pytest.mark.parametrize("index", [0, 1])
def test_state_is_written_on_its_own_device(index, executor):
    if executor not in leafgrad.compiler.list_backends():
        pytest.skip(f"{executor} is not installed")
    fake.register()
    state, w = leafgrad.zeros(3).to(f"fake:{index}"), leafgrad.ones(3).to(f"fake:{index}").requires_grad_()
    sgd = optim.SGD([w], 0.1, momentum=0.9)

    @leafgrad.compile(executor=executor)
    def step(x):
        state.add_(x)
        sgd.zero_grad()
        (w * x).sum().backward()
        sgd.step()
        return x.sum().item() if x.sum().item() > 2.5 else 0

    x = leafgrad.ones(3).to(f"fake:{index}")
    for n in range(1, 6):
        step(x)
        assert state.tolist() == [n] * 3
    assert str(w.device) == f"fake:{index}"
    assert w.tolist() == pytest.approx([1 - 0.1 * (1 + 1.9 + 2.71 + 3.439 + 4.0951)] * 3, rel=1e-5)
