"""SOAP: Adam in the eigenbasis of Shampoo's preconditioner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import leafgrad
from leafgrad import Tensor, linalg, optim


class SoapOptimizer(optim.Optimizer):
    """SOAP for matrices. The first step only looks at the gradient, as in the authors' own program.

    Each matrix G of gradients has running means L of G G^T and R of G^T G, whose eigenvectors follow by a step of
    orthogonal iteration now and then; Adam's second moment is kept in their basis.

    Source: Vyas et al. (2024), "SOAP: Improving and stabilizing Shampoo using Adam", arXiv 2409.11321, algorithm 3.

    Args:
        params: matrices.
        lr: step size.
        betas: shares of the running means of gradients and of their squares that are kept.
        shampoo: the same for L and R.
        eps: added to the root of the mean square.
        every: steps between two looks at the eigenvectors.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 3e-3,
        betas: tuple[float, float] = (0.95, 0.95),
        shampoo: float = 0.95,
        eps: float = 1e-8,
        every: int = 10,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "shampoo": shampoo, "eps": eps, "every": every})

    def step(self, closure: Any = None) -> Any:
        """One step of each matrix that has a gradient; returns what the closure gives."""
        loss = None if closure is None else closure()
        with leafgrad.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        self._step(p, p.grad, group)
        return loss

    def _step(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        state, beta = self.state[p], group["shampoo"]
        if not state:
            left, right = g @ g.mT * (1 - beta), g.mT @ g * (1 - beta)
            state.update(
                step=0, mean=leafgrad.zeros_like(p), square=leafgrad.zeros_like(p), left=left, right=right,
                left_basis=linalg.eigh(left)[1].flip(1), right_basis=linalg.eigh(right)[1].flip(1),
            )  # fmt: skip
            return
        state["step"] += 1
        first, second = group["betas"]
        rows, columns = state["left_basis"], state["right_basis"]
        turned = rows.mT @ g @ columns
        state["mean"] = first * state["mean"] + (1 - first) * g
        state["square"] = second * state["square"] + (1 - second) * turned.square()
        mean = rows.mT @ state["mean"] @ columns / (1 - first ** state["step"])
        size = (state["square"] / (1 - second ** state["step"])).sqrt() + group["eps"]
        p.add_(rows @ (mean / size) @ columns.mT, alpha=-group["lr"])
        state["left"] = beta * state["left"] + (1 - beta) * (g @ g.mT)
        state["right"] = beta * state["right"] + (1 - beta) * (g.mT @ g)
        if state["step"] % group["every"] == 0:
            state["left_basis"] = linalg.qr(state["left"] @ rows)[0]
            state["right_basis"] = linalg.qr(state["right"] @ columns)[0]
