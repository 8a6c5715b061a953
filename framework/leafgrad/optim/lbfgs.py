"""L-BFGS: a quasi-Newton method that remembers the last changes of the gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import modes
from leafgrad.ops.complex import view_as_complex, view_as_real
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
    ``inverse``, besides PyTorch's names, is what makes a resumed run go on to the same bits; without it, to rounding.

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
        ValueError: a negative ``lr``, a ``history_size`` below 1, several groups.
        RuntimeError: an unknown ``line_search_fn``, at a step.
    """

    _memory: CurvatureMemory | None = None  # follows from the state

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
        check_range("history_size", history_size, 1)
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
            if largest_magnitude(point.gradient) <= group["tolerance_grad"]:
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
        d = state["d"] = self._direction(state, g)
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
        if looked and largest_magnitude(there.gradient) <= group["tolerance_grad"]:
            state["stop_reason"] = "tolerance_grad"
        elif looked and (largest_magnitude(d * t) <= tolerance or abs(there.loss - here.loss) < tolerance):
            state["stop_reason"] = "tolerance_change"
        elif iteration >= group["max_iter"]:
            state["stop_reason"] = "max_iter"
        elif self._evaluations >= group["max_eval"]:
            state["stop_reason"] = "max_eval"
        return there

    def _direction(self, state: dict[str, Any], g: Tensor) -> Tensor:
        """Where to go from a point with gradient ``g`` (n), after taking in the last step."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            state.pop("inverse", None)
            return -g
        if self._memory is None or not self._memory.left(state):
            self._memory = CurvatureMemory(state, g)
        y, s = g - state["prev_flat_grad"], state["d"] * state["t"]
        ys = y.dot(s).item()
        if ys > 1e-10:
            self._memory.add(s, y, 1.0 / ys, self.param_groups[0]["history_size"])
            self._memory.leave(state)
            state["H_diag"] = ys / y.dot(y)
        return self._memory.direction(g, state["H_diag"])

    def _search(self, closure: Callable[[], Any], d: Tensor, t: float, start: Point) -> Point:
        """The point that the line search finds; the parameters are left where they were."""
        group = self.param_groups[0]
        origin: Tensor = pack(*map(real, group["params"]))

        def at(t: float) -> Point:
            self._move(d, t)
            loss = float(self._evaluate(closure))
            g = self._gradient()
            for p, part in zip(group["params"], self._parts(origin), strict=True):
                p.copy_(part)
            return Point(t, loss, g, g.dot(d).item())

        left = group["max_eval"] - self._evaluations
        found, _ = strong_wolfe(at, start, t, largest_magnitude(d), max_evaluations=left)
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
        grads = [new_full(p, shape=tuple(p.shape), value=0) if p.grad is None else p.grad for p in params]
        flat: Tensor = pack(*map(real, grads))
        return flat

    def _parts(self, flat: Tensor) -> list[Tensor]:
        """What belongs to each parameter of a vector of all."""
        params = self.param_groups[0]["params"]
        parts = unpack(flat, shapes=tuple(tuple(real(p).shape) for p in params))
        return [view_as_complex(part) if p.is_complex() else part for p, part in zip(params, parts, strict=True)]

    def _move(self, d: Tensor, t: float) -> None:
        for p, part in zip(self.param_groups[0]["params"], self._parts(d * t), strict=True):
            p.add_(part)


def real(x: Tensor) -> Tensor:
    """``x``, complex numbers as pairs."""
    return view_as_real(x) if x.is_complex() else x


def largest_magnitude(x: Tensor) -> float:
    """The largest magnitude in ``x``."""
    return float(x.abs().max().item())


class CurvatureMemory:
    """The last pairs of a step and the change of the gradient that it caused, and directions that follow from them.

    They are the rows of two matrices S and Y, (m, n), the oldest first. Each of the two loops of algorithm 7.4 is a
    substitution with L, the lower triangle of Y S^T; here it is a product with its inverse K. A new pair adds a row
    to L and to K, and once the oldest is dropped, what is left of K is the inverse of what is left of L.

    Source: Byrd, Nocedal and Schnabel (1994), "Representations of quasi-Newton matrices and their use in limited
    memory methods", Math. Program. 63, for the idea.

    Rows are written once and stay where they are, so the lists in the optimizer's state are views of them.

    Args:
        state: what a memory has left in an optimizer's state; ``inverse``, which is K, is computed if it is missing.
        like: a vector (n) of the dtype and on the device of all.
    """

    def __init__(self, state: dict[str, Any], like: Tensor) -> None:
        saved = [list(state[name]) for name in ("old_stps", "old_dirs", "ro")]
        self.lists: dict[str, list[Any]] = {"old_stps": [], "old_dirs": [], "ro": []}
        self.steps = self.changes = new_full(like, shape=(0, *like.shape), value=0)
        self.inverse = new_full(like, shape=(0, 0), value=0)
        self.first = self.end = 0  # the pairs lie in these rows
        for s, y, ro in zip(*saved, strict=True):
            self.add(s, y, float(ro), len(saved[0]))
        if "inverse" in state and tuple(state["inverse"].shape) == (self.end, self.end):
            self.inverse[: self.end, : self.end] = state["inverse"]  # the very bits: it depends on pairs long forgotten
        self.leave(state)

    def leave(self, state: dict[str, Any]) -> None:
        """Put everything into ``state`` from which another memory can go on."""
        state.update(self.lists, inverse=self.inverse[self.first : self.end, self.first : self.end])

    def left(self, state: dict[str, Any]) -> bool:
        """Whether ``state`` still holds what this memory has left there."""
        pairs = self.end - self.first
        return all(state.get(name) is kept and len(kept) == pairs for name, kept in self.lists.items())

    def add(self, s: Tensor, y: Tensor, ro: float, limit: int) -> None:
        """Take in a pair, ``ro`` the inverse of its product, and forget what is older than the last ``limit``."""
        forgotten = max(self.end - self.first + 1 - limit, 0)
        self.first += forgotten
        for kept in self.lists.values():
            del kept[:forgotten]
        if self.end == len(self.steps):
            self._move()
        i, j = self.first, self.end
        rows = self.steps[j].copy_(s), self.changes[j].copy_(y), ro
        self.inverse[j, i:j] = (self.steps[i:j] @ y) @ self.inverse[i:j, i:j] * -ro
        self.inverse[j, j] = ro
        self.end = j + 1
        for kept, row in zip(self.lists.values(), rows, strict=True):
            kept.append(row)

    def _move(self) -> None:
        """Move the pairs to the front of new matrices with a quarter more rows."""
        i, j = self.first, self.end
        m, n = j - i, self.steps.shape[1]
        rows = m + m // 4 + 1
        self.steps = padded(self.steps[i:j], (rows, n))
        self.changes = padded(self.changes[i:j], (rows, n))
        self.inverse = padded(self.inverse[i:j, i:j], (rows, rows))
        self.first, self.end = 0, m
        self.lists["old_stps"][:] = self.steps[:m].unbind()
        self.lists["old_dirs"][:] = self.changes[:m].unbind()

    def direction(self, g: Tensor, scale: Tensor | float) -> Tensor:
        """Minus the approximate inverse Hessian, ``scale`` times the identity before all pairs, times ``g`` (n)."""
        i, j = self.first, self.end
        s, y, inverse = self.steps[i:j], self.changes[i:j], self.inverse[i:j, i:j]
        shares = (s @ g) @ inverse
        r = (g - shares @ y) * scale
        return -(r + (inverse @ (shares / inverse.diagonal() - y @ r)) @ s)


def padded(x: Tensor, shape: tuple[int, int]) -> Tensor:
    """A matrix of ``shape`` with ``x`` at its upper left and zeros elsewhere."""
    larger = new_full(x, shape=shape, value=0)
    larger[: x.shape[0], : x.shape[1]] = x
    return larger
