"""Matrices with orthonormal columns or rows, as functions of matrices without constraint."""

from __future__ import annotations

from leafgrad import modes
from leafgrad.nn.module import Module
from leafgrad.nn.utils.parametrize import register_parametrization
from leafgrad.tensor.creation import arange, eye, zeros
from leafgrad.tensor.decompositions import qr
from leafgrad.tensor.joining import cat, stack
from leafgrad.tensor.linalg import matrix_exp, solve
from leafgrad.tensor.random import randn
from leafgrad.tensor.tensor import Tensor

MAPS = ("matrix_exp", "cayley", "householder")


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Make a weight, or each matrix of a batch, orthogonal or at least of orthonormal rows or columns.

    Lezcano-Casado (2019). Returns ``module``.

    Args:
        orthogonal_map: "matrix_exp" or "cayley", of a skew matrix, or "householder", a product of reflections; by
            default the first for square matrices, the last for others.
        use_trivialization: compute it from a fixed orthogonal matrix, at which training begins.

    Raises:
        ValueError: there is no such tensor, it is no matrix, or the map is unknown.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder"
    if orthogonal_map not in MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)


class _Orthogonal(Module):
    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        """(..., n, k) -> the same"""
        wide = x.shape[-2] < x.shape[-1]
        tall = x.mT if wide else x
        q = reflected(tall) if self.orthogonal_map == "householder" else rotated(tall, self.orthogonal_map)
        if self.use_trivialization:
            q = self.base @ q
        return q.mT if wide else q

    @modes.no_grad()
    def right_inverse(self, q: Tensor) -> Tensor:
        """What ``forward`` maps to ``q``, or to the orthogonal matrix that a QR decomposition makes of it."""
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {q.shape}."
            )
        wide = q.shape[-2] < q.shape[-1]
        tall = q.mT if wide else q
        if self.use_trivialization:
            self.base = completed(tall)
            unit = -eye(*tall.shape[-2:], dtype=q.dtype, device=q.device).expand(tall.shape).clone()
            return unit.mT if wide else unit  # which both kinds of map take to the unit matrix
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        found = reflections(tall)
        return found.mT if wide else found


def rotated(x: Tensor, kind: str) -> Tensor:
    """The first columns of the rotation of a skew matrix, of which x has the lower triangle. (..., n, k), n >= k"""
    n, k = x.shape[-2:]
    lower = x.tril()
    if n > k:
        rest = zeros(*x.shape[:-1], n - k, dtype=x.dtype, device=x.device)
        lower = cat([lower, rest], -1)
    skew = lower - lower.mT
    if kind == "matrix_exp":
        return matrix_exp(skew)[..., :k]
    unit = eye(n, dtype=x.dtype, device=x.device).expand(skew.shape)
    return solve(unit - skew * 0.5, unit + skew * 0.5)[..., :k]


def reflected(x: Tensor) -> Tensor:
    """The first columns of a product of reflections, one for each column of x below its diagonal. (..., n, k)

    The diagonal, of ones and minus ones, gives the columns their signs.
    """
    n, k = x.shape[-2:]
    unit = eye(n, k, dtype=x.dtype, device=x.device)
    below = x.tril(-1) + unit
    signs = x.detach().diagonal(0, -2, -1).sign().unsqueeze(-2)
    q = unit * signs
    for i in reversed(range(k)):
        q = reflect(q, below[..., i].unsqueeze(-1))
    return q


def reflect(x: Tensor, v: Tensor) -> Tensor:
    """The columns of x reflected at the plane normal to v. (..., n, k), (..., n, 1)"""
    return x - v * ((v.mT @ x) * (2.0 / (v * v).sum((-2, -1), keepdim=True)))


def reflections(q: Tensor) -> Tensor:
    """What ``reflected`` maps to the orthogonal factor of ``q``: Householder's decomposition. (..., n, k)"""
    n, k = q.shape[-2:]
    places = eye(n, k, dtype=q.dtype, device=q.device)
    columns = []
    for i in range(k):
        below = q[..., i].unsqueeze(-1) * (arange(n, device=q.device) >= i).to(q.dtype).unsqueeze(-1)
        top = q[..., i : i + 1, i : i + 1]
        sign = top.sign() + (top == 0).to(q.dtype)
        length = below.norm(2, -2, keepdim=True)
        v = below + places[:, i : i + 1] * (sign * length)
        v = v / v[..., i : i + 1, :]
        q = reflect(q, v)
        columns.append((v - places[:, i : i + 1] * (1 + sign)).squeeze(-1))
    return stack(columns, -1)


def completed(q: Tensor) -> Tensor:
    """An orthogonal matrix whose first columns are those of ``q``, made orthonormal. (..., n, k) -> (..., n, n)"""
    n, k = q.shape[-2:]
    if n > k:
        q = cat([q, randn(*q.shape[:-1], n - k, dtype=q.dtype, device=q.device)], -1)
    factor, r = qr(q)
    return factor * r.diagonal(0, -2, -1).sign().unsqueeze(-2)
