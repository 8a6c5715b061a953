"""L-BFGS: a quasi-Newton method that remembers the last changes of the gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import modes
from leafgrad.ops.convert import new_full
from leafgrad.ops.flat import pack, unpack
from leafgrad.optim.line_search import Point, strong_wolfe
from leafgrad.optim.optimizer import Optimizer, Params, check_range
from leafgrad.tensor.tensor import Tensor

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Limited-memory BFGS. A step runs up to ``max_iter`` iterations and evaluates the closure several times.

    Source: Nocedal and Wright (2006), "Numerical Optimization", algorithms 7.4 and 7.5. With
    ``line_search_fn=None`` each iteration moves by ``lr`` without looking.

    The state, kept under the first parameter, has ``n_iter`` and ``func_evals``, counted over all steps, and
    ``stop_reason``, why the last step ended: ``"tolerance_grad"`` (all gradients small), ``"tolerance_change"``
    (the loss, a step or the slope along it too small), ``"max_iter"`` or ``"max_eval"``.

    Args:
        params: tensors of one dtype and device; only one group.
        lr: length of a step, or the first one that the line search tries.
        max_iter: iterations in one step.
        max_eval: evaluations of the closure in one step; 1.25 ``max_iter`` by default.
        tolerance_grad: stop when no element of the gradient is larger.
        tolerance_change: stop when loss or parameters change by less.
        history_size: how many changes of the gradient are remembered.
        line_search_fn: ``"strong_wolfe"`` or None.

    Raises:
        ValueError: a negative ``lr``, several groups. RuntimeError: an unknown ``line_search_fn``, at a step.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_range("learning rate", lr, 0)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups); pass one list of tensors")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Minimize for up to ``max_iter`` iterations.

        Args:
            closure: clears the gradients, computes the loss and its gradients, and returns the loss.

        Returns:
            The first loss.
        """
        if closure is None:
            raise TypeError("LBFGS.step() needs a closure that computes the loss and its gradients, and returns it")
        group = self.param_groups[0]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError(f"only 'strong_wolfe' is supported as line_search_fn, got {group['line_search_fn']!r}")
        self._evaluations = 0
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with modes.no_grad():
            first = self._evaluate(closure)
            point = Point(0.0, float(first), self._gradient(), 0.0)
            state["stop_reason"] = None
            if largest(point.gradient) <= group["tolerance_grad"]:
                state["stop_reason"] = "tolerance_grad"
            iterations = 0
            while state["stop_reason"] is None:
                iterations += 1
                point = self._iterate(closure, point, state, iterations)
        return first

    def _iterate(self, closure: Callable[[], Any], here: Point, state: dict[str, Any], iteration: int) -> Point:
        """One iteration from the point ``here``; writes ``stop_reason`` if it is the last one."""
        group = self.param_groups[0]
        lr, tolerance = float(group["lr"]), group["tolerance_change"]
        if group["max_iter"] < 1:
            state["stop_reason"] = "max_iter"
            return here
        state["n_iter"] += 1
        g = here.gradient
        d = state["d"] = direction(state, g, group["history_size"])
        t = state["t"] = lr if state["n_iter"] > 1 else min(1.0, 1.0 / g.abs().sum().item()) * lr
        state["prev_flat_grad"], state["prev_loss"] = g, here.loss
        slope = g.dot(d).item()
        if slope > -tolerance:
            state["stop_reason"] = "tolerance_change"
            return here
        there, looked = here, True
        if group["line_search_fn"]:
            there = self._search(closure, d, t, Point(0.0, here.loss, g, slope))
            t = state["t"] = there.t
            self._move(d, t)
        else:
            self._move(d, t)
            looked = iteration < group["max_iter"]  # after the last move nobody needs to know the loss
            if looked:
                there = Point(t, float(self._evaluate(closure)), self._gradient(), 0.0)
        if looked and largest(there.gradient) <= group["tolerance_grad"]:
            state["stop_reason"] = "tolerance_grad"
        elif looked and (largest(d * t) <= tolerance or abs(there.loss - here.loss) < tolerance):
            state["stop_reason"] = "tolerance_change"
        elif iteration >= group["max_iter"]:
            state["stop_reason"] = "max_iter"
        elif self._evaluations >= group["max_eval"]:
            state["stop_reason"] = "max_eval"
        return there

    def _search(self, closure: Callable[[], Any], d: Tensor, t: float, start: Point) -> Point:
        """The point that the line search finds; the parameters are left where they were."""
        group = self.param_groups[0]
        origin: Tensor = pack(*group["params"])

        def at(t: float) -> Point:
            self._move(d, t)
            loss = float(self._evaluate(closure))
            g = self._gradient()
            for p, part in zip(group["params"], self._parts(origin), strict=True):
                p.copy_(part)
            return Point(t, loss, g, g.dot(d).item())

        left = group["max_eval"] - self._evaluations
        found, _ = strong_wolfe(at, start, t, largest(d), max_evaluations=left)
        return found

    def _evaluate(self, closure: Callable[[], Any]) -> Any:
        self._evaluations += 1
        self.state[self.param_groups[0]["params"][0]]["func_evals"] += 1
        with modes.enable_grad():
            loss = closure()
        if not isinstance(loss, (Tensor, int, float)):
            raise TypeError(f"LBFGS.step(): closure: expected it to return the loss, got {type(loss).__name__}")
        return loss

    def _gradient(self) -> Tensor:
        """The gradients of all parameters, flat; zeros where there is none."""
        params = self.param_groups[0]["params"]
        flat: Tensor = pack(*[new_full(p, shape=tuple(p.shape), value=0) if p.grad is None else p.grad for p in params])
        return flat

    def _parts(self, flat: Tensor) -> tuple[Tensor, ...]:
        parts: tuple[Tensor, ...] = unpack(flat, shapes=tuple(tuple(p.shape) for p in self.param_groups[0]["params"]))
        return parts

    def _move(self, d: Tensor, t: float) -> None:
        for p, part in zip(self.param_groups[0]["params"], self._parts(d * t), strict=True):
            p.add_(part)


def largest(x: Tensor) -> float:
    """The largest magnitude in ``x``."""
    return float(x.abs().max().item())


def direction(state: dict[str, Any], g: Tensor, history_size: int) -> Tensor:
    """Minus the gradient ``g`` (n) times the approximate inverse Hessian, after taking in the last step.

    ``old_dirs`` holds changes of the gradient, ``old_stps`` the steps that caused them, ``ro`` the inverses of their
    products, ``H_diag`` the scale of the first approximation.
    """
    if state["n_iter"] == 1:
        state["old_dirs"], state["old_stps"], state["ro"], state["H_diag"] = [], [], [], 1.0
        return -g
    changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
    y, s = g - state["prev_flat_grad"], state["d"] * state["t"]
    ys = y.dot(s).item()
    if ys > 1e-10:
        if len(changes) == history_size:
            del changes[0], steps[0], inverses[0]
        changes.append(y)
        steps.append(s)
        inverses.append(1.0 / ys)
        state["H_diag"] = ys / y.dot(y).item()
    q = -g
    shares = []
    for y, s, ro in zip(reversed(changes), reversed(steps), reversed(inverses), strict=True):
        share = s.dot(q).item() * float(ro)
        q.sub_(y * share)
        shares.append(share)
    q.mul_(float(state["H_diag"]))
    for y, s, ro, share in zip(changes, steps, inverses, reversed(shares), strict=True):
        q.add_(s * (share - y.dot(q).item() * float(ro)))
    return q
