"""Random training steps that need Python here and there do compiled, with graph breaks, what they do uncompiled."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest

import leafgrad
from leafgrad import nn

PYTHON = [
    "log.append(float(h.sum()))",
    "log.append('here')",
    "log.append(f'{float(h.detach().mean()):.4f}')",
    "Counted.calls += 1",
    "scale = draws.choice((1.0, 2.0))",
    "state['seen'] = state.get('seen', '') + '.'",
    "number = next(numbers)",
]
FORWARD = [
    "h = h.tanh()",
    "h = second(h)",
    "h = h * (draws.random() + 0.5)",
    "h = leafgrad.relu(h) if draws.random() < 0.5 else h.sin()",
    "h = dropout(h) + scale",
    "h = norm(h)",
    "h = h[h[:, 0] > -9]",
    "h = noted(h)",
    "z = h.sin(); h = z + h",
]
LOSSES = [
    "loss = ((out - y) ** 2).mean()",
    "loss = ((out - y) ** 2).mean() * draws.choice((1.0, 0.5))",
    "loss = nn.functional.mse_loss(out, y.expand_as(out)) * (1 + number % 3)",
    "loss = sum(((o - y.mean()) ** 2).mean() for o in (out, out.sin()))",
]
BACKWARD = [
    ["loss.backward()"],
    ["loss.backward(retain_graph=True)", "log.append('again')", "(loss * 0.5).backward()"],
    ["log.append(float(leafgrad.autograd.grad(loss, h, retain_graph=True)[0].sum()))", "loss.backward()"],
    [
        "found = leafgrad.autograd.grad(loss, parameters, allow_unused=True, create_graph=True)",
        "for p, g in zip(parameters, found, strict=True):",
        "    p.grad = None if g is None else g.detach()",
    ],
]
AFTER = [
    "nn.utils.clip_grad_norm_(parameters, 0.7)",
    "log.append(float(nn.utils.clip_grad_norm_(parameters, 0.7)))",
    "number += 1",
]
STEPS = ["optimizer.step()", "if float(loss.detach()) < 50: optimizer.step()"]
RESULTS = ["loss.detach()", "float(loss)", "loss.item()", "(loss.detach(), len(log))", "loss"]


def text_of(seed):
    """The source of a step."""
    choose = random.Random(seed)
    lines = ["scale, number = 1.0, 0", "optimizer.zero_grad()", "h = first(x)"]

    def add(*more):
        lines.extend(more)
        if choose.random() < 0.45:
            lines.append(choose.choice(PYTHON))

    for _ in range(choose.randint(1, 4)):
        add(choose.choice(FORWARD))
    add("out = third(h)")
    for chosen in (LOSSES, BACKWARD, AFTER, STEPS):
        line = choose.choice(chosen)
        add(*(line if isinstance(line, list) else [line]))
    lines.append(f"return {choose.choice(RESULTS)}")
    return "\n    ".join(["def step(x, y):", *lines]) + "\n"


def training(seed, folder):
    """A step, and what it reads and changes."""
    leafgrad.manual_seed(seed)
    calls = []

    def noted(h):
        calls.append(len(calls))
        return h * 1.1

    layers = {"first": nn.Linear(3, 4), "second": nn.Linear(4, 4), "third": nn.Linear(4, 1), "norm": nn.BatchNorm1d(4)}
    layers = {name: layer.double() for name, layer in layers.items()}
    parameters = [p for layer in layers.values() for p in layer.parameters()]
    optimizer = (
        leafgrad.optim.Adam(parameters, 0.01) if seed % 2 else leafgrad.optim.SGD(parameters, 0.02, momentum=0.9)
    )
    scope = {
        **layers, "leafgrad": leafgrad, "nn": nn, "parameters": parameters, "optimizer": optimizer,
        "dropout": nn.Dropout(0.3), "noted": noted, "calls": calls, "log": [], "state": {},
        "Counted": type("Counted", (), {"calls": 0}), "draws": random.Random(seed), "numbers": iter(range(10**6)),
    }  # fmt: skip
    file = folder / f"step{seed}.py"  # breaks are found by the source
    file.write_text(text_of(seed))
    exec(compile(file.read_text(), str(file), "exec"), scope)
    return SimpleNamespace(**scope)


def run(seed, folder, compiles, calls):
    """All that can be seen of a training."""
    made = training(seed, folder)
    step = leafgrad.compile(made.step, executor="numpy") if compiles else made.step
    inputs = np.random.default_rng(seed)
    found = []
    for i in range(calls):
        rows = 5 if i % 13 == 12 else 6
        leafgrad.manual_seed(100 * seed + i)
        result = step(leafgrad.tensor(inputs.normal(size=(rows, 3))), leafgrad.tensor(inputs.normal(size=(1, 1))))
        found += [float(r) for r in (result if isinstance(result, tuple) else (result,))]
        found += [float(p.sum()) for p in made.parameters]
        found += [0.0 if p.grad is None else float(p.grad.sum()) for p in made.parameters]
    found += [entry for entry in made.log if isinstance(entry, float)]
    words = [entry for entry in made.log if isinstance(entry, str)]
    return found, (words, made.calls, made.state, made.Counted.calls, made.draws.getstate(), next(made.numbers))


def compare(seed, folder, calls):
    (found, left), (expected, right) = run(seed, folder, True, calls), run(seed, folder, False, calls)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9, err_msg=text_of(seed))
    assert left == right, text_of(seed)


@pytest.mark.parametrize("seed", range(4))
def test_a_random_step(seed, tmp_path, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_COMPILE", "always")
    compare(seed, tmp_path, 14)


@pytest.mark.slow
@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("start", range(4, 304, 10))
def test_many_random_steps(start, always, tmp_path, monkeypatch):
    if always:
        monkeypatch.setenv("LEAFGRAD_COMPILE", "always")
    for seed in range(start, start + 10):
        compare(seed, tmp_path, 40)
