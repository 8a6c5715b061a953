"""``torch.utils.flop_counter``: products, forward and backward, by module."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad import nn
from leafgrad.compat.torch.utils.flop_counter import FlopCounterMode

TESTS = "compat.torch.utils.flop_counter"


def counted(function, **options):
    with FlopCounterMode(display=False, **options) as counter:
        function()
    return counter


def test_by_module_forward_and_backward():
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.Flatten(), nn.Linear(256, 5))
    counter = counted(lambda: net(leafgrad.ones(2, 3, 8, 8)).sum().backward())
    convolution, linear = 2 * 2 * 4 * 8 * 8 * 3 * 3 * 3, 2 * 2 * 256 * 5
    expected = {
        "convolution": convolution,
        "linear": linear,
        "linear_backward": 2 * linear,
        "convolution_backward": convolution,  # the input requires no grad
    }
    counts = counter.get_flop_counts()
    assert counts["Global"] == counts["Sequential"] == expected
    assert counts["Sequential.0"] == {"convolution": convolution, "convolution_backward": convolution}
    assert counter.get_total_flops() == sum(expected.values())
    assert counter.get_table().splitlines()[1].startswith("Global")
    assert len(counter.get_table(depth=1).splitlines()) == 3


PRODUCTS = {
    "matmul": (lambda: leafgrad.ones(2, 3, 4) @ leafgrad.ones(4, 5), 2 * 2 * 3 * 4 * 5),
    "vector": (lambda: leafgrad.ones(3) @ leafgrad.ones(3), 6),
    "addmm": (lambda: leafgrad.addmm(leafgrad.ones(5), leafgrad.ones(3, 4), leafgrad.ones(4, 5)), 2 * 3 * 4 * 5),
    "groups": (lambda: nn.Conv1d(4, 6, 3, groups=2)(leafgrad.ones(2, 4, 9)), 2 * 2 * 6 * 7 * 2 * 3),
    "transposed": (lambda: nn.ConvTranspose2d(4, 6, 3, groups=2)(leafgrad.ones(2, 4, 5, 5)), 10800),
    "attention": (
        lambda: nn.functional.scaled_dot_product_attention(*[leafgrad.ones(1, 2, n, 4) for n in (3, 6, 6)]),
        2 * 2 * 3 * 6 * (4 + 4),
    ),
    "lstm": (lambda: nn.LSTM(2, 3)(leafgrad.ones(4, 1, 2)), 2 * 4 * 12 * (2 + 3)),
    "elementwise": (lambda: leafgrad.ones(9) * 2, 0),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    function, flops = PRODUCTS[name]
    assert counted(function).get_total_flops() == flops


def test_modules_that_fail_leave_nothing_behind(capsys):
    net = nn.Linear(2, 3)
    with FlopCounterMode() as counter:
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            net(leafgrad.ones(1, 3))
        leafgrad.ones(1, 2) @ leafgrad.ones(2, 1)
    assert counter.get_flop_counts() == {"Global": {"matmul": 4}}
    assert "matmul 4" in capsys.readouterr().out
    net(leafgrad.ones(1, 2))
    assert counter.get_total_flops() == 4
