"""Which dtype functions of several ops have under autocast on the CPU, on leafgrad and on PyTorch."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace

import pytest

# What they are called with, for each way.
GIVEN = {
    "mv": lambda t, x: t.mv(x.A, x.v),
    "Tensor.mv": lambda t, x: x.A.mv(x.v),
    "dot": lambda t, x: t.dot(x.v, x.v),
    "vdot": lambda t, x: t.vdot(x.v, x.v),
    "inner of vectors": lambda t, x: t.inner(x.v, x.v),
    "addmv": lambda t, x: t.addmv(x.v, x.A, x.v),
    "tensordot to a number": lambda t, x: t.tensordot(x.A, x.A, 2),
    "bilinear": lambda t, x: x.F.bilinear(x.A, x.A, x.image[0].reshape(4, 4, 4)[:2]),
    "out": lambda t, x: t.mm(x.A, x.A, out=t.empty_like(x.A)),
    "stack": lambda t, x: t.stack([x.A, x.A]),
    "padding in circles": lambda t, x: x.F.pad(x.image, (1, 1, 1, 1), mode="circular"),
    "triplets with a distance": lambda t, x: x.F.triplet_margin_with_distance_loss(x.A, x.A, x.A),
    "norm": lambda t, x: x.A.norm(),
}
LOWER = {
    "inner of matrices": lambda t, x: t.inner(x.A, x.A),
    "tensordot": lambda t, x: t.tensordot(x.A, x.A, 1),
    "outer tensordot": lambda t, x: t.tensordot(x.A, x.A, 0),
    "vecdot": lambda t, x: t.linalg.vecdot(x.A, x.A),
    "prelu": lambda t, x: x.F.prelu(x.A, x.v),
    "matmul of vectors": lambda t, x: x.v @ x.v,
    "multi_dot": lambda t, x: t.linalg.multi_dot([x.A, x.A, x.A]),
}
FLOAT32 = {
    "mse_loss": lambda t, x: x.F.mse_loss(x.A, x.A),
    "MSELoss": lambda t, x: t.nn.MSELoss()(x.A, x.A),
    "l1_loss": lambda t, x: x.F.l1_loss(x.A, target=x.A),
    "smooth_l1_loss": lambda t, x: x.F.smooth_l1_loss(x.A, x.A),
    "huber_loss": lambda t, x: x.F.huber_loss(x.A, x.A),
    "kl_div": lambda t, x: x.F.kl_div(x.A, x.A, reduction="sum"),
    "binary_cross_entropy": lambda t, x: x.F.binary_cross_entropy(x.A / 9, x.A / 9),
    "binary_cross_entropy_with_logits": lambda t, x: x.F.binary_cross_entropy_with_logits(x.A, x.A / 9),
    "soft_margin_loss": lambda t, x: x.F.soft_margin_loss(x.A, x.A),
    "poisson_nll_loss": lambda t, x: x.F.poisson_nll_loss(x.A, x.A),
    "hinge_embedding_loss": lambda t, x: x.F.hinge_embedding_loss(x.A, x.A),
    "margin_ranking_loss": lambda t, x: x.F.margin_ranking_loss(x.v, x.v, x.v),
    "cosine_embedding_loss": lambda t, x: x.F.cosine_embedding_loss(x.A, x.A, x.classes),
    "triplet_margin_loss": lambda t, x: x.F.triplet_margin_loss(x.A, x.A, x.A),
    "multi_margin_loss": lambda t, x: x.F.multi_margin_loss(x.A, x.classes),
    "multilabel_margin_loss": lambda t, x: x.F.multilabel_margin_loss(x.A, x.classes.expand(4, 4).contiguous()),
    "nll_loss": lambda t, x: x.F.nll_loss(x.A, x.classes),
    "cross_entropy": lambda t, x: x.F.cross_entropy(x.A, x.A),
    "ctc_loss": lambda t, x: x.F.ctc_loss(x.A[:, None].log_softmax(-1), x.classes[None, 1:3], (4,), (2,)),
    "avg_pool3d": lambda t, x: x.F.avg_pool3d(x.image[None], 2),
    "adaptive_avg_pool3d": lambda t, x: x.F.adaptive_avg_pool3d(x.image[None], 2),
    "max_unpool2d": lambda t, x: x.F.max_unpool2d(
        x.image, t.arange(0, 64, 4).reshape(1, 1, 4, 4).expand(1, 4, 4, 4), 2
    ),
    "fractional_max_pool2d": lambda t, x: x.F.fractional_max_pool2d(x.image, 2, 2),
    "reflection": lambda t, x: x.F.pad(x.image, (1, 1, 1, 1), mode="reflect"),
    "replication": lambda t, x: t.nn.ReplicationPad2d(1)(x.image),
    "grid_sample": lambda t, x: x.F.grid_sample(x.image, x.image[..., :2], align_corners=False),
    "cdist": lambda t, x: t.cdist(x.A, x.A),
    "trace": lambda t, x: x.A.trace(),
    "quantile": lambda t, x: t.quantile(x.A, 0.5),
    "nanquantile": lambda t, x: x.A.nanquantile(0.5, dim=0),
    "inv": lambda t, x: t.linalg.inv(x.A),
    "inverse": lambda t, x: x.A.inverse(),
    "svd": lambda t, x: t.linalg.svd(x.A),
    "qr": lambda t, x: t.linalg.qr(x.A),
    "eigh": lambda t, x: t.linalg.eigh(x.A),
    "eigvalsh": lambda t, x: t.linalg.eigvalsh(x.A),
    "cholesky": lambda t, x: t.linalg.cholesky(x.A),
    "cholesky_solve": lambda t, x: t.cholesky_solve(x.A, x.A),
    "solve": lambda t, x: t.linalg.solve(x.A, x.A),
    "lstsq": lambda t, x: t.linalg.lstsq(x.A, x.A).solution,
    "tensorinv": lambda t, x: t.linalg.tensorinv(x.A, 1),
    "cond": lambda t, x: t.linalg.cond(x.A),
    "householder_product": lambda t, x: t.linalg.householder_product(x.A, x.v),
    "geqrf": lambda t, x: t.geqrf(x.A),
    "ormqr": lambda t, x: t.ormqr(x.A, x.v, x.A),
}


def inputs(t, dtype):
    return SimpleNamespace(
        A=(t.eye(4) * 3 + 1).to(dtype),
        v=t.full((4,), 0.5).to(dtype),
        image=(t.arange(64.0) / 64).reshape(1, 4, 4, 4).to(dtype),
        classes=t.tensor([1, 1, 1, 1]),
        F=import_module(f"{t.__name__}.nn.functional"),
    )


def dtypes(found):
    return {str(x.dtype).rpartition(".")[2] for x in (found if isinstance(found, tuple) else (found,))}


@pytest.mark.parametrize("low", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", [*GIVEN, *LOWER, *FLOAT32])
def test_dtypes(t, name, low):
    function = (GIVEN | LOWER | FLOAT32)[name]
    for dtype in (low, "float32", "float64"):
        with t.autocast("cpu", dtype=getattr(t, low)):
            found = dtypes(function(t, inputs(t, getattr(t, dtype))))
        expected = dtype if name in GIVEN or dtype == "float64" else low if name in LOWER else "float32"
        assert found == {expected}, dtype
    if name in FLOAT32 and low == "bfloat16":
        x = inputs(t, t.float32)
        with t.autocast("cpu", enabled=False):
            assert dtypes(function(t, x)) == {"float32"}


def test_what_is_copied_has_the_widest_dtype(t):
    x, at = t.zeros(3), t.tensor([0, 1])
    with t.autocast("cpu"):
        assert x.index_copy(0, at, t.ones(2, dtype=t.bfloat16)).tolist() == [1, 1, 0]
        assert x.bfloat16().index_copy(0, at, t.ones(2)).dtype is t.float32


@pytest.mark.parametrize("name", ["addmm_", "baddbmm_", "addbmm_"])
def test_products_in_place_are_taken_as_they_are(t, name):
    a = t.tensor([[1.2345, 2.3456], [3.4567, 4.5678]])
    x, y = (a[None] if name[0] == "b" else a).clone(), a if name == "addmm_" else a[None]
    expected = x + y @ y
    with t.autocast("cpu"):
        getattr(x, name)(y, y)
    assert (x.flatten() - expected.flatten()).abs().max() < 1e-5


def test_gradients_have_the_dtypes_of_the_inputs(t):
    x, y = (t.ones(3, dtype=dtype, requires_grad=True) for dtype in (t.bfloat16, t.float32))
    with t.autocast("cpu"):
        t.nn.functional.mse_loss(x, y * 3, reduction="sum").backward()
    assert (x.grad.dtype, y.grad.dtype) == (t.bfloat16, t.float32)
    assert (x.grad.tolist(), y.grad.tolist()) == ([-4] * 3, [12] * 3)
