"""Time grows with what there is to do, not with its square."""

from __future__ import annotations

import time

import pytest

import leafgrad as lg

FEW, MANY = 1_000, 16_000


def joined(join):
    def act(count):
        parts = [lg.ones(1, requires_grad=True) for _ in range(count)]
        start = time.process_time()
        join(parts).sum().backward()
        return time.process_time() - start

    return act


def taken_apart(split):
    def act(count):
        x = lg.ones(count, 3, requires_grad=True)
        start = time.process_time()
        lg.cat(split(x)).sum().backward()
        return time.process_time() - start

    return act


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "act",
    [joined(lg.cat), joined(lg.stack), taken_apart(lambda x: x.split(1)), taken_apart(lambda x: x.unbind(0))],
    ids=["cat", "stack", "split", "unbind"],
)
def test_many_parts(act):
    few, many = min(act(FEW) for _ in range(3)), min(act(MANY) for _ in range(2))
    assert many / few < 6 * MANY / FEW  # 16 if time grows with the number, 256 if with its square
