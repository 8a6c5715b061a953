"""L-BFGS: why it stops, where its two loops lead, and how it goes on."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import leafgrad
from leafgrad import optim


def leaves(device="cpu", dtype=leafgrad.float32):
    data = [[1.0, -2.0], [[0.5], [3.0], [0.25]], 2.0]
    return [leafgrad.tensor(d, device=device, dtype=dtype, requires_grad=True) for d in data]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"tolerance_grad": 10.0}, "tolerance_grad"),
        ({"max_iter": 1}, "max_iter"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_eval": 2}, "max_eval"),
        ({"max_iter": 100, "tolerance_grad": 0.0, "tolerance_change": 1e-3}, "tolerance_change"),
    ],
)
@pytest.mark.parametrize("line_search_fn", [None, "strong_wolfe"])
def test_lbfgs_remembers_why_it_stopped(options, reason, line_search_fn):
    a, b, _ = leaves()
    optimizer = optim.LBFGS([a, b], lr=0.1 if line_search_fn is None else 1, line_search_fn=line_search_fn, **options)

    def closure():
        optimizer.zero_grad()
        loss = ((a - 1) ** 4).sum() + 0.1 * ((b - 1) ** 2).sum()
        if reason == "tolerance_grad":
            loss = loss * 0.01
        loss.backward()
        return loss

    optimizer.step(closure)
    assert optimizer.state[a]["stop_reason"] == reason


def test_lbfgs_solves_a_quadratic_and_resumes_from_a_state_dict(device):
    runs = []
    for resume in (False, True):
        p = leafgrad.tensor([4.0, -3.0, 2.0], device=device, requires_grad=True)
        scale = leafgrad.tensor([1.0, 10.0, 100.0], device=device)

        def closure(p=p, scale=scale):
            p.grad = None
            loss = (p * p * scale).sum()
            loss.backward()
            return loss

        options = {"max_iter": 8, "line_search_fn": "strong_wolfe"}
        optimizer = optim.LBFGS([p], **options)
        optimizer.step(closure)
        if resume:
            saved = copy.deepcopy(optimizer.state_dict())
            optimizer = optim.LBFGS([p], **options)
            optimizer.load_state_dict(saved)
        optimizer.step(closure)
        runs.append(p.tolist())
    assert runs[0] == runs[1]
    assert runs[0] == pytest.approx([0.0, 0.0, 0.0], abs=1e-3)


def stiff(n, **options):
    """An optimizer of n float64 parameters that remembers the last 7 pairs, and its closure."""
    p = leafgrad.zeros(n, dtype=leafgrad.float64, requires_grad=True)
    scale = leafgrad.logspace(0, 3, n, dtype=leafgrad.float64)
    pull = leafgrad.linspace(-1, 1, n, dtype=leafgrad.float64)
    options = {"max_iter": 9, "max_eval": 1000, "tolerance_grad": 0, "tolerance_change": 0, **options}
    optimizer = optim.LBFGS([p], history_size=7, line_search_fn="strong_wolfe", **options)

    def closure():
        optimizer.zero_grad()
        loss = (scale * p * p / 2 + leafgrad.cos(3 * p) / 9 - pull * p).sum()
        loss.backward()
        return loss

    return p, optimizer, closure


def two_loops(g, steps, changes, scale):
    """Nocedal and Wright, algorithm 7.4, on NumPy arrays."""
    q, shares = -g, []
    for s, y in zip(reversed(steps), reversed(changes), strict=True):
        shares.append(s @ q / (y @ s))
        q = q - shares[-1] * y
    r = scale * q
    for s, y, share in zip(steps, changes, reversed(shares), strict=True):
        r = r + s * (share - y @ r / (y @ s))
    return r


@pytest.mark.parametrize("iterations", [2, 5, 8, 9, 40])
def test_lbfgs_goes_where_the_two_loops_lead(iterations):
    p, optimizer, closure = stiff(50, max_iter=iterations)
    optimizer.step(closure)
    state = optimizer.state[p]
    steps, changes = ([row.numpy() for row in state[name]] for name in ("old_stps", "old_dirs"))
    assert len(steps) == len(changes) == len(state["ro"]) == min(iterations - 1, 7)
    assert state["ro"] == pytest.approx([1 / (y @ s) for s, y in zip(steps, changes, strict=True)], rel=1e-12)
    assert state["H_diag"].item() == pytest.approx(changes[-1] @ steps[-1] / (changes[-1] @ changes[-1]), rel=1e-12)
    expected = two_loops(state["prev_flat_grad"].numpy(), steps, changes, state["H_diag"].item())
    assert np.linalg.norm(state["d"].numpy() - expected) < 1e-12 * np.linalg.norm(expected)


@pytest.mark.parametrize("path", ["the state dict", "a copy of it", "a file", "PyTorch's names alone"])
def test_lbfgs_goes_on_with_a_full_memory(path, tmp_path):
    runs = []
    for resume in (False, True):
        p, optimizer, closure = stiff(201)
        for steps in range(3):
            if resume and steps:
                saved = optimizer.state_dict()
                if path == "a copy of it":
                    saved = copy.deepcopy(saved)
                elif path == "a file":
                    leafgrad.save(saved, tmp_path / "state")
                    saved = leafgrad.load(tmp_path / "state")
                elif path == "PyTorch's names alone":
                    del saved["state"][0]["inverse"]
                optimizer.load_state_dict(saved)
            optimizer.step(closure)
        runs.append(p.detach().numpy())
    if path == "PyTorch's names alone":
        assert runs[1] == pytest.approx(runs[0], rel=1e-6, abs=1e-12)
    else:
        assert runs[1].tobytes() == runs[0].tobytes()


def test_lbfgs_drops_pairs_without_curvature(device):
    p = leafgrad.tensor([1.0, 2.0], device=device, requires_grad=True)
    optimizer = optim.LBFGS([p], lr=0.5, max_iter=4, tolerance_grad=0, tolerance_change=0)

    def closure():
        optimizer.zero_grad()
        loss = p.sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert optimizer.state[p]["old_dirs"] == optimizer.state[p]["ro"] == []
    assert p.tolist() == [-0.75, 0.25]  # steps of 1/4, then 1/2 along the gradient


def test_lbfgs_parameters_without_gradient_stay():
    a, b, _ = leaves()
    optimizer = optim.LBFGS([a, b])
    before = b.tolist()

    def closure():
        optimizer.zero_grad()
        loss = ((a - 1) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert b.tolist() == before
    assert a.tolist() == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("line_search_fn", [None, "strong_wolfe"])
def test_lbfgs_takes_complex_parameters_as_pairs(line_search_fn):
    """It goes where it goes with their parts as parameters, beside a real one."""

    def trained(parameters, value):
        optimizer = optim.LBFGS(parameters, max_iter=6, line_search_fn=line_search_fn)

        def closure():
            optimizer.zero_grad()
            z, x = value(*parameters)
            loss = ((z * z - leafgrad.tensor([1j, -2.0])).abs() ** 2).sum() + ((x - z.real) ** 2).sum()
            loss.backward()
            return loss

        for _ in range(3):
            loss = optimizer.step(closure)
        return [t.detach().numpy() for t in value(*parameters)], float(loss)

    z = leafgrad.tensor([1 + 0.5j, 0.3 + 1j], dtype=leafgrad.complex128)
    x = leafgrad.tensor([2.0, 0.5], dtype=leafgrad.float64)
    ours, loss = trained([z.clone().requires_grad_(), x.clone().requires_grad_()], lambda z, x: (z, x))
    pairs = leafgrad.view_as_real(z).clone().requires_grad_()
    theirs, _ = trained([pairs, x.clone().requires_grad_()], lambda p, x: (leafgrad.view_as_complex(p), x))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7)
    assert loss < 1e-3
