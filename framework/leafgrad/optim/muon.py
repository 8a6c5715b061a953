"""Muon: momentum whose matrices are made orthogonal."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.ops.select import maximum
from leafgrad.optim.bucket import Bucket, exact
from leafgrad.optim.optimizer import Group, Optimizer, Params, check_range, option
from leafgrad.tensor.tensor import Tensor

__all__ = ["Muon"]

# How the step size depends on the shape: (rows, columns) -> factor.
ADJUST = {
    None: lambda rows, columns: math.sqrt(max(1, rows / columns)),
    "original": lambda rows, columns: math.sqrt(max(1, rows / columns)),
    "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
}


class Muon(Optimizer):
    """Momentum for the weight matrices of hidden layers, each step brought near an orthogonal matrix.

    All matrices of one shape are taken together. Biases, embeddings and the like go to another optimizer, e.g. AdamW.
    PyTorch iterates in bfloat16; here the iteration has the parameters' own precision (float32 at least).

    Source: Jordan et al. (2024), "Muon: An optimizer for hidden layers in neural networks",
    https://kellerjordan.github.io/posts/muon; ``"match_rms_adamw"``: Liu et al. (2025), "Muon is Scalable for LLM
    Training", https://arxiv.org/abs/2502.16982.

    Args:
        params: matrices, (name, matrix) pairs or groups.
        lr: step size.
        weight_decay: what the parameters are shrunk by, times ``lr``.
        momentum: share of the running mean of the gradient that is kept.
        nesterov: look ahead: step along a mean of the gradient and the running mean.
        ns_coefficients: of x, x^3 and x^5 in the polynomial that is applied to the singular values.
        eps: the least norm that a step is divided by before.
        ns_steps: how many times the polynomial is applied, less than 100.
        adjust_lr_fn: ``"original"`` (also None) makes steps of tall matrices longer by sqrt(rows / columns);
            ``"match_rms_adamw"`` gives all the size of AdamW's, 0.2 sqrt(max(rows, columns)).

    Raises:
        ValueError: a negative ``lr``, ``weight_decay`` or ``momentum``; an unknown ``adjust_lr_fn``; a parameter
            that is no matrix; at a step, ``ns_steps`` or ``ns_coefficients`` that cannot be.
    """

    slots = ("momentum_buffer",)
    numbers = ()

    takes_complex = False

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_range("learning rate", lr, 0)
        check_range("momentum value", momentum, 0)
        check_range("weight_decay value", weight_decay, 0)
        if adjust_lr_fn not in ADJUST:
            raise ValueError(
                f"Adjust learning rate function {adjust_lr_fn} is not supported; expected 'original' or "
                "'match_rms_adamw'"
            )
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: Group) -> None:
        """Optimize more matrices: a dict with ``"params"`` and options; the defaults serve for the others."""
        super().add_param_group(param_group)
        for p in self.param_groups[-1]["params"]:
            if p.ndim != 2:
                self.param_groups.pop()
                raise ValueError(
                    f"Muon only supports 2D parameters whereas we found a parameter with size: {list(p.shape)}; give "
                    "it to another optimizer"
                )

    @staticmethod
    def shelf(p: Tensor) -> Any:
        """Matrices of one shape are put into one bucket."""
        return tuple(p.shape)

    def update(self, group: Group, bucket: Bucket) -> None:
        """One step of the matrices in ``bucket``, all of one shape."""
        rows, columns = bucket.shapes[0]
        g, momentum, lr = bucket.gradient(), option(group, "momentum"), option(group, "lr")
        mean = bucket.zeros("momentum_buffer", g)
        mean.add_((g - mean) * (1 - momentum))
        ahead = g + (mean - g) * momentum if group["nesterov"] else mean
        matrices = ahead.to(exact(g.dtype)).view(len(bucket.params), rows, columns)
        flat = orthogonal(matrices, group["ns_coefficients"], group["ns_steps"], option(group, "eps"))
        step = flat.reshape(-1).to(g.dtype) * (lr * ADJUST[group["adjust_lr_fn"]](rows, columns))
        bucket.add(-(step + bucket.values() * (lr * option(group, "weight_decay"))))


def orthogonal(x: Tensor, coefficients: tuple[float, float, float], steps: int, eps: Any) -> Tensor:
    """The matrices x with all singular values brought near 1, by Newton and Schulz. (k, m, n) -> (k, m, n)"""
    if steps >= 100:
        raise ValueError(f"ns_steps: Number of steps must be less than 100 for computational efficiency, got {steps}")
    if len(coefficients) != 3:
        raise ValueError(f"ns_coefficients: Coefficients must be a tuple of exactly 3 values, got {coefficients}")
    a, b, c = coefficients
    tall = x.shape[1] > x.shape[2]
    x = x.transpose(1, 2) if tall else x
    x = x / maximum((x * x).sum((1, 2), keepdim=True).sqrt(), eps)
    for _ in range(steps):
        gram = x @ x.transpose(1, 2)
        x = x * a + (gram * b + gram @ gram * c) @ x
    return x.transpose(1, 2) if tall else x
