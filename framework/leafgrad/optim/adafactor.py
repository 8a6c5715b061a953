"""Adafactor: Adam's mean square as the product of a column and a row, in less memory."""

from __future__ import annotations

from typing import Any

from leafgrad.dtypes import dtype, finfo
from leafgrad.ops.select import fmax, maximum, minimum
from leafgrad.optim.bucket import Bucket
from leafgrad.optim.optimizer import Group, Optimizer, Params, check_pair, check_range, option
from leafgrad.tensor.tensor import Tensor

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Gradients divided by the root of their mean square, of which only the means of rows and columns are kept.

    All parameters of one shape are taken together; tensors of more than two dimensions are stacks of matrices.
    Source: Shazeer and Stern (2018), "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost",
    https://arxiv.org/abs/1804.04235.

    Args:
        params: tensors, (name, tensor) pairs or groups.
        lr: the largest step, relative to the size of the parameter; later steps are at most ``1 / sqrt(step)``.
        beta2_decay: the running means give a new square the weight ``step ** beta2_decay``.
        eps: the least root mean square of a gradient (None: the dtype's ``finfo.eps``), and of a parameter.
        d: longer steps than this, relative to ``lr``, are shortened to it.
        weight_decay: what the parameters are shrunk by, times ``lr``.
        foreach, maximize: as for every ``Optimizer``.

    Raises:
        ValueError: a negative ``lr``, ``eps`` or ``weight_decay``, ``d`` below 1, a positive ``beta2_decay``.
    """

    slots = ("variance",)

    takes_complex = False

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_range("learning rate", lr, 0)
        check_range("negative of beta2_decay", -beta2_decay, 0)
        check_pair("eps", eps)
        check_range("epsilon1", 0 if eps[0] is None else eps[0], 0)
        check_range("epsilon2", eps[1], 0)
        check_range("clipping threshold d", d, 1)
        check_range("weight_decay value", weight_decay, 0)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    @staticmethod
    def shelf(p: Tensor) -> Any:
        """Parameters of one shape are put into one bucket."""
        return tuple(p.shape)

    def update(self, group: Group, bucket: Bucket) -> None:
        """One step of the parameters in ``bucket``, all of one shape."""
        shape = (len(bucket.params), *bucket.shapes[0])
        g, p, lr = bucket.gradient().view(shape), bucket.values().view(shape), option(group, "lr")
        if group["maximize"]:
            g = -g
        step, kind = bucket.count(g), g.dtype
        eps = least(group, kind)
        weight = step ** option(group, "beta2_decay")
        square = maximum(self._mean_square(bucket, g, weight, eps), eps * eps)
        change = g / square.sqrt()
        # A nan is kept to its own elements: of a whole that has one, no size is taken.
        size = fmax(root_mean_square(p), option(group, "eps", 1)) * minimum(step**-0.5, lr)
        change = change * (size / fmax(root_mean_square(change) / option(group, "d"), 1.0))
        bucket.add(-(change + p * (lr * option(group, "weight_decay"))).reshape(-1))

    def _mean_square(self, bucket: Bucket, g: Tensor, weight: Tensor, eps: Any) -> Tensor:
        """The running mean of the square of g, as far as it is kept, in g's shape."""
        square = g * g
        if g.ndim < 3:
            return running(bucket, "variance", square, weight)
        rows = running(bucket, "row_var", square.mean(-1, keepdim=True), weight)
        columns = running(bucket, "col_var", square.mean(-2, keepdim=True), weight)
        return rows * columns / maximum(rows.mean(-2, keepdim=True), eps)


def running(bucket: Bucket, name: str, new: Tensor, weight: Tensor) -> Tensor:
    """The state called ``name`` moved towards ``new`` by ``weight``. (k, ...) -> (k, ...)"""
    shapes = (tuple(new.shape[1:]),) * len(bucket.params)
    mean = bucket.zeros(name, new, shapes)
    return mean.add_((new.reshape(-1) - mean) * weight).view(new.shape)


def root_mean_square(x: Tensor) -> Tensor:
    """Of each parameter: (k, ...) -> (k, 1, ..., 1)"""
    return (x * x).reshape(x.shape[0], -1).mean(1).sqrt().reshape(-1, *(1,) * (x.ndim - 1))


def least(group: Group, kind: dtype) -> float:
    """The least root mean square of a gradient."""
    eps: float | None = group["eps"][0]
    return finfo(kind).eps if eps is None else eps
