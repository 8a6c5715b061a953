"""``torch.amp.GradScaler``, on leafgrad and on PyTorch."""

from __future__ import annotations

import pickle

import pytest

TESTS = "compat.torch.grad_scaler"


def test_a_step_without_gradients_is_an_error(t):
    used, unused = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
    first, second = t.optim.SGD([used], lr=0.1), t.optim.SGD([unused], lr=0.1)
    scaler = t.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(used.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        scaler.step(second)
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called on this optimizer since"):
        scaler.unscale_(second)
    scaler.step(first)
    scaler.update()
    assert (used.tolist(), unused.tolist()) == ([pytest.approx(0.9)] * 2, [1.0, 1.0])


def test_a_refused_or_failed_step_changes_nothing(t):
    whole, half = t.ones(1, requires_grad=True), t.ones(1, dtype=t.float16, requires_grad=True)
    scaler = t.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(whole.sum() + half.sum()).backward()
    with pytest.raises(ValueError, match="FP16"):
        scaler.unscale_(t.optim.SGD([whole, half], lr=0.1))
    assert whole.grad.tolist() == [8.0]
    sgd = t.optim.SGD([whole], lr=0.1)
    with pytest.raises(TypeError):
        scaler.step(sgd, 1, 2)
    with pytest.raises(AssertionError, match="only be pickled"):
        pickle.dumps(scaler)
    scaler.step(sgd)
    assert (whole.tolist(), whole.grad.tolist()) == ([pytest.approx(0.9)], [1.0])
    scaler.update()
    assert pickle.loads(pickle.dumps(scaler)).state_dict() == scaler.state_dict()


def test_factors_of_a_scale_are_taken_in_float64(t):
    p = t.ones(1, requires_grad=True)
    sgd, scaler = t.optim.SGD([p], lr=0.0), t.amp.GradScaler("cpu", init_scale=3.25)
    for factor in (0.7, 0.3, 0.9):
        scaler.set_backoff_factor(factor)
        scaler.scale(p.sum()).backward()
        p.grad.fill_(float("inf"))
        scaler.step(sgd)
        scaler.update()
    assert scaler.get_scale() == 0.6142500042915344
    scaler.set_growth_interval(1)
    scaler.set_growth_factor(1.1)
    sgd.zero_grad()
    scaler.scale(p.sum()).backward()
    scaler.step(sgd)
    scaler.update()
    assert scaler.get_scale() == 0.6756750345230103
