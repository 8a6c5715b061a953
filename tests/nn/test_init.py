"""Initial values: sparse, of convolutions, drawn from a generator; names of old."""

from __future__ import annotations

import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.nn import init


@pytest.mark.parametrize("shape", [(4, 3, 5), (3, 4, 3, 3), (4, 2, 3, 1, 3)])
def test_dirac_passes_channels_on(shape, device):
    weight = init.dirac_(lg.randn(shape, device=device))
    center = tuple(n // 2 for n in shape[2:])
    middle = weight[(slice(None), slice(None), *center)]
    assert middle.tolist() == lg.eye(*shape[:2]).tolist()
    assert weight.sum().item() == min(shape[:2])


def test_dirac_of_groups():
    weight = init.dirac_(lg.zeros(4, 2, 3), groups=2)
    assert weight[:, :, 1].tolist() == [[1, 0], [0, 1]] * 2
    with pytest.raises(ValueError, match="dim 0 must be divisible by groups"):
        init.dirac_(weight, 3)
    with pytest.raises(ValueError, match="Only tensors with 3, 4, or 5 dimensions"):
        init.dirac_(lg.ones(2, 2))


def test_sparse_columns(device):
    weight = init.sparse_(lg.ones(10, 50, device=device), 0.35, std=2.0)
    assert (weight == 0).sum(0).tolist() == [4] * 50
    assert weight[weight != 0].std().item() == pytest.approx(2, abs=0.3)
    assert len({tuple(row) for row in (weight == 0).t().tolist()}) > 10
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions"):
        init.sparse_(lg.ones(2), 0.1)


FILLS = {
    "uniform_": lambda t, g: init.uniform_(t, generator=g),
    "normal_": lambda t, g: init.normal_(t, generator=g),
    "trunc_normal_": lambda t, g: init.trunc_normal_(t, a=-0.5, b=3.0, generator=g),
    "xavier_uniform_": lambda t, g: init.xavier_uniform_(t, generator=g),
    "xavier_normal_": lambda t, g: init.xavier_normal_(t, generator=g),
    "kaiming_uniform_": lambda t, g: init.kaiming_uniform_(t, generator=g),
    "kaiming_normal_": lambda t, g: init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu", generator=g),
    "orthogonal_": lambda t, g: init.orthogonal_(t, generator=g),
    "sparse_": lambda t, g: init.sparse_(t, 0.3, generator=g),
}


@pytest.mark.parametrize("name", FILLS)
def test_a_generator_decides(name):
    first, second = (FILLS[name](lg.zeros(6, 4), lg.Generator().manual_seed(3)).tolist() for _ in range(2))
    assert first == second
    assert first != FILLS[name](lg.zeros(6, 4), lg.Generator().manual_seed(4)).tolist()
    weight = nn.Parameter(lg.zeros(6, 4))
    assert FILLS[name](weight, None) is weight
    assert weight.requires_grad


def test_names_of_old():
    for name in ("uniform", "normal", "constant", "eye", "xavier_uniform", "kaiming_normal", "orthogonal"):
        with pytest.warns(FutureWarning, match=f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`"):
            getattr(init, name)(lg.zeros(3, 3), *((1.0,) if name == "constant" else ()))
    assert init._calculate_fan_in_and_fan_out(lg.ones(2, 3, 5)) == (15, 10)
