"""Functions that torch has in other forms than leafgrad: views as copies, layers and losses with raw arguments."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad.compat import as_torch
from leafgrad.nn import functional as F

TESTS = "compat.copies compat.functions compat.torch.* testing.names"

x = leafgrad.randn(2, 3, 4, generator=leafgrad.Generator().manual_seed(0))


@pytest.fixture
def torch():
    with as_torch():
        import torch

        yield torch


COPIES = {
    "view_copy": ((24,), lambda x: x.view(24)),
    "transpose_copy": ((0, 1), lambda x: x.transpose(0, 1)),
    "permute_copy": (((2, 0, 1),), lambda x: x.permute(2, 0, 1)),
    "unsqueeze_copy": ((0,), lambda x: x[None]),
    "select_copy": ((1, 2), lambda x: x[:, 2]),
    "slice_copy": ((2, 1, 3), lambda x: x[:, :, 1:3]),
    "expand_copy": (((5, 2, 3, 4),), lambda x: x.expand(5, 2, 3, 4)),
    "diagonal_copy": ((0, 1, 2), lambda x: x.diagonal(0, 1, 2)),
}


@pytest.mark.parametrize("name", COPIES)
def test_views_as_copies(torch, name):
    args, view = COPIES[name]
    copy = getattr(torch, name)(x, *args)
    assert (copy == view(x)).all()
    assert copy._base is None
    assert copy.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


def test_parts_as_copies(torch):
    parts = torch.split_copy(x, 2, 1)
    assert [tuple(p.shape) for p in parts] == [(2, 2, 4), (2, 1, 4)]
    assert all(p._base is None for p in (*parts, *torch.unbind_copy(x)))


def test_copies_of_pairs_and_into_out(torch):
    z = torch.view_as_complex_copy(torch.ones(3, 2))
    assert z.tolist() == [1 + 1j] * 3
    assert torch.view_as_real_copy(z).tolist() == [[1, 1]] * 3
    assert torch.alias_copy(z)._base is None
    out = torch.empty(2)
    assert torch.diagonal_copy(torch.eye(2), out=out) is out
    assert out.tolist() == [1, 1]
    outs = (torch.empty(1), torch.empty(1))
    torch.split_copy(torch.arange(2.0), 1, out=outs)
    assert [o.item() for o in outs] == [0, 1]


def test_layers(torch):
    w, b = leafgrad.ones(4) * 2, leafgrad.ones(4)
    assert (torch.layer_norm(x, (4,), w, b) == F.layer_norm(x, (4,), w, b)).all()
    assert (torch.group_norm(x, 3) == F.group_norm(x, 3)).all()
    assert (torch.rms_norm(x, (4,)) == F.rms_norm(x, (4,))).all()
    normal = F.batch_norm(x, None, None, training=True)
    assert (torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, True) == normal).all()
    assert (torch.instance_norm(x, None, None, None, None, True, 0.1, 1e-5, True) == F.instance_norm(x)).all()
    at = leafgrad.tensor([1, 0])
    assert (torch.embedding(x[0], at) == F.embedding(at, x[0])).all()
    assert (torch.dropout(x, 0.5, False) == x).all()
    assert (torch.constant_pad_nd(x, (1, 0), 3.0)[..., 0] == 3).all()
    assert len(torch.adaptive_max_pool1d(x, 2)) == 2


def test_losses_with_numbered_reductions(torch):
    p, t = x.sigmoid(), (x > 0).float()
    each = F.binary_cross_entropy_with_logits(x, t, reduction="none")
    assert (torch.binary_cross_entropy_with_logits(x, t, reduction=0) == each).all()
    assert torch.kl_div(p.log(), p.flip(0), reduction=2) == F.kl_div(p.log(), p.flip(0), reduction="sum")
    side = t * 2 - 1
    assert torch.margin_ranking_loss(x, p, side, reduction=2) == F.margin_ranking_loss(x, p, side, reduction="sum")
    assert torch.poisson_nll_loss(x, t, True, False, 1e-8, 1) == F.poisson_nll_loss(x, t)


def test_new_tensors(torch):
    array = np.ones(2, "float32")
    assert torch.asarray(array).data_ptr() == array.ctypes.data
    assert torch.asarray(array, copy=True).data_ptr() != array.ctypes.data
    assert torch.asarray(array, copy=False).data_ptr() == array.ctypes.data
    with pytest.raises(ValueError, match="can't avoid a copy"):
        torch.asarray([1.0], copy=False)
    assert torch.asarray(x) is x
    assert torch.asarray([1.0], requires_grad=True).requires_grad
    assert torch.scalar_tensor(3).dtype is torch.float32
    assert torch.fill(x, 2.0).eq(2).all()
    with pytest.warns(UserWarning, match="torch.range is deprecated"):
        assert torch.range(1, 2, 0.5).tolist() == [1, 1.5, 2]


def test_special_functions_of_the_plugin(torch):
    pytest.importorskip("leafgrad_special")
    t = leafgrad.tensor([0.5, 1.5], dtype=leafgrad.float64, requires_grad=True)
    assert torch.lgamma(t).tolist() == pytest.approx([np.log(np.pi) / 2, np.log(np.pi) / 2 - np.log(2)])
    assert leafgrad.autograd.gradcheck(torch.lgamma, t)
    assert torch.special.bessel_j0(t).tolist() == pytest.approx([0.938469807240813, 0.511827671735918])
    assert torch.special.chebyshev_polynomial_t(t, 2).tolist() == pytest.approx([-0.5, 3.5])
    assert torch.special.shifted_chebyshev_polynomial_t(t, 1).tolist() == pytest.approx([0, 2])
    assert torch.special.chebyshev_polynomial_w(t, 0).tolist() == [1, 1]
    assert torch.special.polygamma(1, t).tolist() == pytest.approx([np.pi**2 / 2, np.pi**2 / 2 - 4])
    assert torch.special.hermite_polynomial_h(t, -1).tolist() == [0, 0]
    assert set(torch.special.__all__) >= {"airy_ai", "gammaln", "erf", "zeta", "spherical_bessel_j0"}


def test_without_the_plugin(torch, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "leafgrad_special", None)
    with pytest.raises(NotImplementedError, match="plugin leafgrad-special; install it"):
        torch.i0(x)
