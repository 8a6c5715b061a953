"""Operators that are layers: products, normalization, attention by function bodies, resizing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import leafgrad
from leafgrad.ops.abstract import broadcast_shape
from leafgrad_onnx.errors import OnnxLoadError
from leafgrad_onnx.operators.registry import ints, operator, room, tensor_of


@operator("MatMul")
def matmul(x: Any, y: Any) -> Any:
    if x.ndim and y.ndim:
        rows, columns = x.shape[:-1][-1:], y.shape[-1:] if y.ndim > 1 else ()
        room((*broadcast_shape([tuple(x.shape[:-2]), tuple(y.shape[:-2])]), *rows, *columns), 8)
    return x @ y


@operator("Gemm")
def gemm(
    a: Any, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0,
    broadcast: int = 0,
) -> Any:  # fmt: skip
    a, b = a.T if transA else a, b.T if transB else b
    room((a.shape[0], b.shape[1]), 8)
    y = a @ b
    y = y if alpha == 1 else y * alpha
    if c is None:
        return y
    return y + (c if beta == 1 else c * beta)


@operator("BatchNormalization")
def batch_norm(
    x: Any, scale: Any, bias: Any, mean: Any, var: Any, *, epsilon: float = 1e-5, momentum: float = 0.9,
    training_mode: int = 0, spatial: int = 1,
) -> Any:  # fmt: skip
    shape = [1, -1] + [1] * (x.ndim - 2)
    if not training_mode:
        rate = leafgrad.sqrt(var + epsilon)
        return (x - mean.reshape(shape)) / rate.reshape(shape) * scale.reshape(shape) + bias.reshape(shape)
    dims = [0, *range(2, x.ndim)]
    now, spread = x.mean(dims), x.var(dims, correction=0)
    y = (x - now.reshape(shape)) / leafgrad.sqrt(spread + epsilon).reshape(shape)
    y = y * scale.reshape(shape) + bias.reshape(shape)
    return y, mean * momentum + now * (1 - momentum), var * momentum + spread * (1 - momentum)


@operator("InstanceNormalization")
def instance_norm(x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5) -> Any:
    dims, shape = list(range(2, x.ndim)), [1, -1] + [1] * (x.ndim - 2)
    y = (x - x.mean(dims, keepdim=True)) / leafgrad.sqrt(x.var(dims, correction=0, keepdim=True) + epsilon)
    return y * scale.reshape(shape) + bias.reshape(shape)


@operator("LayerNormalization")
def layer_norm(
    x: Any, scale: Any, bias: Any = None, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Any:
    dims = list(range(axis % x.ndim, x.ndim))
    mean = x.mean(dims, keepdim=True)
    rate = 1 / leafgrad.sqrt(x.var(dims, correction=0, keepdim=True) + epsilon)
    y = (x - mean) * rate * scale
    return (y if bias is None else y + bias), mean, rate


@operator("LRN")
def lrn(x: Any, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int) -> Any:
    before, after = (size - 1) // 2, -(-(size - 1) // 2)
    square = x * x
    zeros = [x.new_zeros([x.shape[0], k, *x.shape[2:]]) for k in (before, after)]
    wide = leafgrad.cat([zeros[0], square, zeros[1]], 1)
    sums = sum(wide.narrow(1, i, x.shape[1]) for i in range(size))
    return x / (bias + alpha / size * sums) ** beta


@operator("MeanVarianceNormalization")
def mean_variance(x: Any, *, axes: list[int] | None = None) -> Any:
    dims = [0, 2, 3] if axes is None else axes
    c = x - x.mean(dims, keepdim=True)
    return c / (leafgrad.sqrt((c * c).mean(dims, keepdim=True)) + 1e-9)


# ---- resizing -----------------------------------------------------------------------------------------------------


class Resizing:
    """How each place of a resized axis is read from the old ones."""

    def __init__(self, mode: str, transform: str, nearest: str, cubic: float, exclude: bool, antialias: bool) -> None:
        self.mode, self.transform, self.nearest = mode, transform, nearest
        self.cubic, self.exclude, self.antialias = cubic, exclude, antialias

    def source(self, n: int, m: int, scale: float, low: float, high: float) -> np.ndarray[Any, Any]:
        """Where the places 0, ..., m - 1 lie among the old ones."""
        i = np.arange(m, dtype="float64")
        match self.transform:
            case "asymmetric":
                return i / scale
            case "align_corners":
                return i * (n - 1) / (n * scale - 1) if n * scale != 1 else i * 0
            case "pytorch_half_pixel":
                return (i + 0.5) / scale - 0.5 if m > 1 else i * 0 - 0.5 + 0.5
            case "half_pixel":
                return (i + 0.5) / scale - 0.5
            case "half_pixel_symmetric":
                adjust = m / (scale * n)
                return n / 2 * (1 - adjust) + (i + 0.5) / scale - 0.5
            case "tf_half_pixel_for_nn":
                return (i + 0.5) / scale
            case "tf_crop_and_resize":
                step = (high - low) * (n - 1) / (m - 1) if m > 1 else 0
                return low * (n - 1) + i * step if m > 1 else 0.5 * (low + high) * (n - 1) + i * 0
        raise OnnxLoadError(f"Resize: coordinate_transformation_mode {self.transform!r}")

    def weights(self, n: int, m: int, scale: float, low: float, high: float) -> np.ndarray[Any, Any]:
        """A matrix (m, n): how much each old place counts for each new one."""
        x = self.source(n, m, scale, low, high)
        found = np.zeros((m, n))
        if self.mode == "nearest":
            places = {
                "round_prefer_floor": lambda: np.ceil(x - 0.5),
                "round_prefer_ceil": lambda: np.floor(x + 0.5),
                "floor": lambda: np.floor(x),
                "ceil": lambda: np.ceil(x),
            }[self.nearest]()
            found[np.arange(m), np.clip(places, 0, n - 1).astype(int)] = 1
            return found
        stretch = min(scale, 1.0) if self.antialias else 1.0
        reach = (1 if self.mode == "linear" else 2) / stretch
        for i in range(m):
            if self.antialias:
                taps = np.arange(math.floor(x[i] - reach) - 1, math.ceil(x[i] + reach) + 2)
            else:
                count = 4 if self.mode == "cubic" else 2
                taps = math.floor(x[i]) - (1 if self.mode == "cubic" else 0) + np.arange(count)
            w = self.kernel((taps - x[i]) * stretch)
            w = np.where((taps < 0) | (taps >= n), 0, w) if self.exclude else w
            w = w / w.sum() if self.exclude or self.antialias else w
            np.add.at(found[i], np.clip(taps, 0, n - 1), w)
        return found

    def kernel(self, t: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        t = np.abs(t)
        if self.mode == "linear":
            return np.maximum(1 - t, 0)
        a = self.cubic
        near = (a + 2) * t**3 - (a + 3) * t**2 + 1
        far = a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a
        return np.where(t <= 1, near, np.where(t < 2, far, 0))


@operator("Resize", host=(1, 2, 3))
def resize(
    x: Any, roi: Any = None, scales: Any = None, sizes: Any = None, *, mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel", nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75, exclude_outside: int = 0, extrapolation_value: float = 0.0, antialias: int = 0,
    axes: list[int] | None = None, keep_aspect_ratio_policy: str = "stretch",
) -> Any:  # fmt: skip
    chosen = list(range(x.ndim)) if axes is None else [a % x.ndim for a in axes]
    old = [x.shape[d] for d in chosen]
    if sizes is not None and np.size(sizes):
        new = ints(sizes)
        factors = [m / n for m, n in zip(new, old, strict=True)]
        if keep_aspect_ratio_policy != "stretch":
            best = min(factors) if keep_aspect_ratio_policy == "not_larger" else max(factors)
            factors = [best] * len(factors)
            new = [math.floor(best * n + 0.5) for n in old]
    elif scales is not None and np.size(scales):
        factors = [float(s) for s in np.asarray(scales).reshape(-1)]
        new = [math.floor(n * s) for n, s in zip(old, factors, strict=True)]
    else:
        raise OnnxLoadError("Resize: expected scales or sizes")
    whole = list(x.shape)
    how = Resizing(
        mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, bool(exclude_outside), bool(antialias)
    )
    crops = coordinate_transformation_mode == "tf_crop_and_resize"
    region = [float(v) for v in np.asarray(roi).reshape(-1)] if crops else [0.0] * len(chosen) + [1.0] * len(chosen)
    outside = None
    for k, d in enumerate(chosen):
        n, m = old[k], new[k]
        whole[d] = m
        room(whole, 8)
        room((m, n), 8)
        low, high = region[k], region[k + len(chosen)]
        if crops:
            places = how.source(n, m, factors[k], low, high)
            beyond = ((places < 0) | (places > n - 1)).reshape([-1 if e == d else 1 for e in range(x.ndim)])
            outside = beyond if outside is None else outside | beyond
        if n == m and factors[k] == 1 and not crops:
            continue
        matrix = tensor_of(how.weights(n, m, factors[k], low, high)).to(
            x.dtype if x.dtype.is_floating_point else leafgrad.float32
        )
        y = (x.to(matrix.dtype).transpose(d, -1) @ matrix.T).transpose(d, -1)
        x = y if x.dtype.is_floating_point else leafgrad.round(y).to(x.dtype)
    if outside is not None and mode == "linear":
        x = leafgrad.where(tensor_of(outside.copy()), x.new_full((), extrapolation_value), x)
    return x
