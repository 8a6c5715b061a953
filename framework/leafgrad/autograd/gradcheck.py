"""Gradients compared with finite differences.

Everything is compared in the tensors' own dtype on the host, element by element: entry (i, j) of a Jacobian is
the derivative of output element j with respect to input element i, as PyTorch prints it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import backends, dtypes
from leafgrad.autograd import api
from leafgrad.ops import dispatch, messages
from leafgrad.ops.complex import view_as_complex, view_as_real
from leafgrad.ops.shape import stack
from leafgrad.tensor.inplace import write
from leafgrad.tensor.tensor import Tensor

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """``gradcheck`` found a gradient that differs from finite differences. Says which, and by how much."""


Function = Callable[..., Any]


def gradcheck(
    func: Function,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
) -> bool:
    """Compare the gradients of ``func`` with central differences at ``inputs``, of float64 or complex128.

    A complex number counts as two real ones: what is compared are derivatives of real and imaginary parts by such.

    Args:
        func: takes the inputs, returns a Tensor or a tuple of Tensors.
        inputs: a Tensor or a tuple; those that require grad are checked. They are perturbed in place, and restored.
        eps: step of the differences.
        atol, rtol: a derivative passes if ``|numerical - analytical| <= atol + rtol * |analytical|``.
        raise_exception: raise on failure, instead of returning False.
        nondet_tol: how much two backward passes may differ.
        check_undefined_grad: check that outputs without gradient count as outputs with gradient zero.
        check_grad_dtypes: also check the dtype of gradients.
        check_batched_grad: also check that several gradients at once, ``is_grads_batched=True``, are those one by one.
        check_batched_forward_grad: the same of derivatives along several directions, by ``vmap`` of forward mode.
        check_forward_ad: also check forward mode (``leafgrad.autograd.forward.push``).
        check_backward_ad: check the backward pass.
        fast_mode: compare along one random direction, at the cost of a few evaluations for any size.

    Raises:
        GradcheckError: they differ. ValueError: no input requires grad.
    """
    point = as_tuple(inputs)
    check_inputs(point)
    func, point = as_reals(func, point)
    check = Check(func, point, eps, atol, rtol, nondet_tol, check_grad_dtypes)
    try:
        check.run(check_backward_ad, check_forward_ad, fast_mode)
        if check_backward_ad and check_undefined_grad:
            check.undefined_gradients()
        if check_backward_ad and check_batched_grad:
            check.batched_gradients()
        if check_batched_forward_grad:
            check.batched_directions()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Function,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
) -> bool:
    """Compare second derivatives: ``gradcheck`` of the backward pass of ``func``, as a function of inputs and
    ``grad_outputs`` (random ones if None, in memory with gaps if ``gen_non_contig_grad_outputs``). Arguments and errors
    are those of ``gradcheck``."""
    point = as_tuple(inputs)
    check_inputs(point)
    if grad_outputs is None:
        outputs = differentiable(func(*point))
        drawn = [like(o, random(o)) for o in outputs]
        if gen_non_contig_grad_outputs:
            drawn = [s.unsqueeze(-1).repeat(*[1] * s.ndim, 2)[..., 0] for s in drawn]
        seeds = tuple(s.detach().requires_grad_() for s in drawn)
    else:
        seeds = as_tuple(grad_outputs)

    def backward(*args: Any) -> tuple[Tensor, ...]:
        variables, gs = args[: len(point)], args[len(point) :]
        tracked = [v for v in variables if isinstance(v, Tensor) and v.requires_grad]
        found = api.grad(differentiable(func(*variables)), tracked, gs, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        backward,
        point + seeds,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )


# ---- checking arguments -----------------------------------------------------------------------------------------


def as_tuple(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def differentiable(result: Any) -> tuple[Tensor, ...]:
    """The outputs that require grad."""
    return tuple(o for o in as_tuple(result) if isinstance(o, Tensor) and o.requires_grad)


def check_inputs(point: tuple[Any, ...]) -> None:
    tracked = [(i, x) for i, x in enumerate(point) if isinstance(x, Tensor) and x.requires_grad]
    if not tracked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for i, x in tracked:
        if x.dtype not in (dtypes.float64, dtypes.complex128):
            messages.warn(
                f"Input #{i} requires gradient and is not a double precision floating point (got {x.dtype}). "
                "Finite differences will likely fail: pass tensors of dtype float64 or complex128"
            )


def as_reals(func: Function, point: tuple[Any, ...]) -> tuple[Function, tuple[Any, ...]]:
    """``func`` of pairs of real numbers in place of complex ones, and the same inputs so; both as they are if real."""
    outputs = as_tuple(func(*point))
    if outputs and not any(isinstance(o, Tensor) for o in outputs):
        raise TypeError(f"gradcheck: func: expected it to return tensors, got {type(outputs[0]).__name__}")
    complexes = [isinstance(x, Tensor) and x.requires_grad and x.dtype.is_complex for x in point]
    if not any(complexes) and not any(isinstance(o, Tensor) and o.dtype.is_complex for o in outputs):
        return func, point

    def real(*pairs: Any) -> tuple[Any, ...]:
        found = as_tuple(func(*[view_as_complex(x) if c else x for x, c in zip(pairs, complexes, strict=True)]))
        return tuple([view_as_real(o) if isinstance(o, Tensor) and o.dtype.is_complex else o for o in found])

    pairs = [
        view_as_real(x.detach()).clone().requires_grad_() if c else x for x, c in zip(point, complexes, strict=True)
    ]
    return real, tuple(pairs)


# ---- arrays on the host -----------------------------------------------------------------------------------------


def host(t: Tensor) -> Any:
    data = t._array("gradcheck")
    return backends.backend_of(data).to_host(data)


def pushed(out: Tensor, x: Tensor, tangent: Tensor) -> Tensor:
    """The derivative of ``out`` along a direction in ``x``, by forward mode, which few programs import."""
    from leafgrad.autograd import forward

    (t,) = forward.push((out,), (x,), (tangent,))
    return t


def like(t: Tensor, array: Any) -> Tensor:
    """``array``, which lies on the host, as a tensor of the dtype and device of ``t``."""
    kind, index = t.device.resolve()
    out: Tensor = dispatch.alias(backends.by_device_type(kind).from_host(array.astype(t.dtype.name), index))
    return out


def random(t: Tensor) -> Any:
    """Numbers like ``t`` in [-1, 1), the same at each run."""
    uniform = backends.by_device_type("cpu").generator().uniform(tuple(t.shape), "float64")
    drawn = 2 * uniform - 1
    return drawn + 0.5j * drawn[::-1] if drawn.ndim and t.dtype.is_complex else drawn


def zero_matrix(rows: int, columns: int) -> Any:
    return backends.by_device_type("cpu").xp.zeros((rows, columns))


# ---- the check --------------------------------------------------------------------------------------------------


class Check:
    """One function at one point."""

    def __init__(
        self, func: Function, point: tuple[Any, ...], eps: float, atol: float, rtol: float, nondet: float, dtypes: bool
    ) -> None:
        self.func, self.point = func, point
        self.eps, self.atol, self.rtol, self.nondet, self.check_dtypes = eps, atol, rtol, nondet, dtypes
        self.tracked = [i for i, x in enumerate(point) if isinstance(x, Tensor) and x.requires_grad]
        for i in self.tracked:
            if 0 in getattr(point[i]._data, "strides", ()) and point[i]._data.size > 1:
                raise RuntimeError(
                    f"The {i}th input is expanded: its elements share memory and cannot be perturbed one by one; "
                    "clone() it first"
                )

    def run(self, backward: bool, forward_mode: bool, fast: bool) -> None:
        outputs = as_tuple(self.func(*self.point))
        floating = [j for j, o in enumerate(outputs) if isinstance(o, Tensor) and o.dtype.is_differentiable]
        self.floating = [j for j in floating if outputs[j].requires_grad] or floating  # without any, they shall be flat
        for i in self.tracked:
            compare = self.compare_directions if fast else self.compare_jacobians
            compare(i, outputs, backward, forward_mode)

    def values(self) -> list[Any]:
        """The floating outputs, as host arrays of their own."""
        outputs = as_tuple(self.func(*self.point))
        return [host(outputs[j]).astype("float64") for j in self.floating]

    def differences(self, x: Tensor, step: Any) -> list[Any]:
        """Central differences of all outputs along ``step``, which ``x`` is moved by and moved back."""
        start = host(x).copy()
        memory = x.detach()
        write(memory, like(x, start + step))
        above = self.values()
        write(memory, like(x, start - step))
        below = self.values()
        write(memory, like(x, start))
        return [a - b for a, b in zip(above, below, strict=True)]

    def compare_jacobians(self, i: int, outputs: tuple[Any, ...], backward: bool, forward_mode: bool) -> None:
        x, n = self.point[i], self.point[i]._data.size
        numerical = [zero_matrix(n, outputs[j]._data.size) for j in self.floating]
        for k in range(n):
            for full, difference in zip(numerical, self.differences(x, self.unit(x, k)), strict=True):
                full[k] = difference.reshape(-1) / (2 * self.eps)
        for full, j in zip(numerical, self.floating, strict=True):
            if backward or not outputs[j].requires_grad:
                self.compare("", i, j, full, self.jacobian(x, j, i))
            if forward_mode and outputs[j].requires_grad:
                self.compare("computed with forward mode ", i, j, full, self.jacobian_forward(x, j))

    def unit(self, x: Tensor, k: int, size: float | None = None) -> Any:
        step = zero_matrix(1, x._data.size)
        step[0, k] = self.eps if size is None else size
        return step.reshape(tuple(x.shape))

    def jacobian(self, x: Tensor, j: int, i: int) -> Any:
        """By backward passes; computed twice, to see that it comes out the same."""
        first, second = self.rows(x, j), self.rows(x, j)
        if abs(first - second).max(initial=0.0) > self.nondet:
            raise GradcheckError(
                f"Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                f"gives different values, although analytical gradient matches numerical gradient. The tolerance for "
                f"nondeterminism was {self.nondet} (output {j}, input {i})."
            )
        return first

    def rows(self, x: Tensor, j: int) -> Any:
        out = as_tuple(self.func(*self.point))[j]
        full = zero_matrix(x._data.size, out._data.size)
        for k in range(out._data.size if out.requires_grad else 0):
            seed = like(out, self.unit(out, k, 1.0))
            (g,) = api.grad(out, x, seed, retain_graph=True, allow_unused=True)
            if g is not None:
                self.check_gradient(g, x)
                full[:, k] = host(g).reshape(-1)
        return full

    def check_gradient(self, g: Tensor, x: Tensor) -> None:
        if g.shape != x.shape or (self.check_dtypes and g.dtype is not x.dtype):
            raise GradcheckError(f"expected a gradient of {list(x.shape)} {x.dtype}, got {list(g.shape)} {g.dtype}")

    def jacobian_forward(self, x: Tensor, j: int) -> Any:
        out = as_tuple(self.func(*self.point))[j]
        full = zero_matrix(x._data.size, out._data.size)
        for k in range(x._data.size):
            t = pushed(out, x, like(x, self.unit(x, k, 1.0)))
            full[k] = host(t).reshape(-1)
        return full

    def compare_directions(self, i: int, outputs: tuple[Any, ...], backward: bool, forward_mode: bool) -> None:
        x = self.point[i]
        u = random(x)
        differences = self.differences(x, self.eps * u)
        for j, difference in zip(self.floating, differences, strict=True):
            out = as_tuple(self.func(*self.point))[j]
            v = random(out)
            numerical = (difference * v).sum() / (2 * self.eps)
            analytical = numerical * 0.0
            if out.requires_grad and backward:
                (g,) = api.grad(out, x, like(out, v), retain_graph=True, allow_unused=True)
                if g is not None:
                    self.check_gradient(g, x)
                    analytical = (host(g) * u).sum()
            if backward or not out.requires_grad:
                self.compare("along a random direction ", i, j, numerical, analytical)
            if forward_mode and out.requires_grad:
                t = pushed(out, x, like(x, u))
                self.compare(
                    "computed with forward mode along a random direction ", i, j, numerical, (host(t) * v).sum()
                )

    def gradients(self, outputs: list[Tensor], seeds: list[Tensor], batched: bool = False) -> list[Any]:
        """With respect to each input, as host arrays; zeros where there is none."""
        inputs = [self.point[i] for i in self.tracked]
        found = api.grad(outputs, inputs, seeds, retain_graph=True, allow_unused=True, is_grads_batched=batched)
        count = seeds[0].shape[:1] if batched else ()
        zeros = [zero_matrix(count[0] if count else 1, x._data.size).reshape((*count, *x.shape)) for x in inputs]
        return [zero if g is None else host(g) for zero, g in zip(zeros, found, strict=True)]

    def undefined_gradients(self) -> None:
        """Outputs left out, one after the other, and the same with zeros as their gradients."""
        outputs = list(differentiable(self.func(*self.point)))
        for j in range(len(outputs) if len(outputs) > 1 else 0):
            seeds = [like(o, random(o) * (k != j)) for k, o in enumerate(outputs)]
            given = self.gradients(outputs, seeds)
            left = self.gradients(outputs[:j] + outputs[j + 1 :], seeds[:j] + seeds[j + 1 :])
            if not all(map(self.close, given, left)):
                raise GradcheckError(
                    f"Expected backward function to handle undefined output grads: without a gradient for output {j} "
                    "the gradients of the inputs are others than with zeros"
                )

    def batched_gradients(self) -> None:
        """Two gradients of each output, at once and one by one."""
        for j, out in enumerate(differentiable(self.func(*self.point))):
            rows = [like(out, random(out)), like(out, 1 - random(out))]
            alone = [self.gradients([out], [row]) for row in rows]
            both = self.gradients([out], [stack(*rows, dim=0)], batched=True)
            for n, i in enumerate(self.tracked):
                if not all(self.close(alone[k][n], both[n][k]) for k in range(2)):
                    raise GradcheckError(
                        f"For output {j} and input {i}: gradients taken at once with is_grads_batched=True are others "
                        "than those taken one by one"
                    )

    def batched_directions(self) -> None:
        """Derivatives along two directions in each input, at once and one by one."""
        from leafgrad.batching.vmap import vmap  # which few programs need

        for i in self.tracked:
            x = self.point[i]
            for j, out in enumerate(differentiable(self.func(*self.point))):
                directions = [like(x, random(x)), like(x, 1 - random(x))]
                alone = [pushed(out, x, direction) for direction in directions]
                both = vmap(lambda u, out=out, x=x: pushed(out, x, u))(stack(*directions, dim=0))
                if not all(self.close(host(alone[k]), host(both[k])) for k in range(2)):
                    raise GradcheckError(
                        f"For output {j} and input {i}: derivatives along several directions, by vmap of forward mode, "
                        "are others than those along one after the other"
                    )

    def close(self, a: Any, b: Any) -> bool:
        xp = backends.by_device_type("cpu").xp
        return bool(xp.allclose(a, b, rtol=self.rtol, atol=self.atol, equal_nan=True))

    def compare(self, how: str, i: int, j: int, numerical: Any, analytical: Any) -> None:
        xp = backends.by_device_type("cpu").xp
        a, b = xp.atleast_2d(numerical), xp.atleast_2d(analytical)
        wrong = ~xp.isclose(a, b, rtol=self.rtol, atol=self.atol, equal_nan=True)
        if not wrong.any():
            return
        text = f"Jacobian mismatch {how}for output {j} with respect to input {i},\n"
        text += f"numerical:{numerical}\nanalytical:{analytical}\n"
        if wrong.size > 1:
            error = xp.where(wrong, xp.nan_to_num(abs(a - b), nan=xp.inf), -1.0)
            row, column = (int(k) for k in xp.unravel_index(error.argmax(), error.shape))
            text += (
                f"{int(wrong.sum())} of {wrong.size} entries differ; the worst is d output[{j}].flatten()[{column}] / "
                f"d input[{i}].flatten()[{row}]: numerical {float(a[row, column]):.6g}, analytical "
                f"{float(b[row, column]):.6g}."
            )
        raise GradcheckError(text)
