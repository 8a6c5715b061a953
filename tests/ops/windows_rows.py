"""Windows, ranges and convolutions, element by element."""

from __future__ import annotations

import itertools
import math

import numpy as np
from op_table import FLOATS, Row, uniform

from leafgrad.ops import convolution, ranges, windows
from leafgrad.ops.windows import Windows


def over(length, kernel, stride, padding, dilation):
    """The windows that fit."""
    size = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(length, kernel, stride, padding, dilation, strict=True)
    )
    return Windows(length, kernel, stride, padding, dilation, size)


LINE = over((6,), (3,), (2,), (1,), (1,))
PLANE = over((4, 5), (2, 3), (1, 2), (1, 0), (2, 1))
GAPS = over((7, 4), (2, 1), (3, 2), (0, 0), (1, 1))  # leave elements out
SOLID = over((3, 2, 4), (2, 2, 2), (2, 1, 1), (0, 1, 0), (1, 1, 2))
POINTS = over((3, 3), (1, 1), (1, 1), (0, 0), (1, 1))


def elements(w):
    """(window, place in the kernel, element) for each that is no padding."""
    for window in np.ndindex(*w.size):
        for place in np.ndindex(*w.kernel):
            steps = zip(window, place, w.stride, w.dilation, w.padding, strict=True)
            element = tuple(i * s + k * d - p for i, k, s, d, p in steps)
            if all(0 <= e < n for e, n in zip(element, w.length, strict=True)):
                yield window, place, element


def unfold(x, windows):
    out = np.zeros((*x.shape[: -len(windows.size)], *windows.kernel, *windows.size))
    for window, place, element in elements(windows):
        out[(..., *place, *window)] = x[(..., *element)]
    return out


def fold(x, windows):
    out = np.zeros((*x.shape[: -2 * len(windows.size)], *windows.length))
    for window, place, element in elements(windows):
        out[(..., *element)] += x[(..., *place, *window)]
    return out


# ---- the largest ----------------------------------------------------------------------------------------------------


def best(x, windows):
    """The largest of each window, and its number."""
    planes = x.reshape(-1, *windows.length)
    values = np.full((len(planes), *windows.size), -np.inf)
    numbers = np.full(values.shape, -1)
    for plane in range(len(planes)):
        for window, _, element in elements(windows):
            at, v = (plane, *window), planes[(plane, *element)]
            if numbers[at] < 0 or v > values[at] or math.isnan(v):
                values[at], numbers[at] = v, np.ravel_multi_index(element, windows.length)
    shape = (*x.shape[: -len(windows.size)], *windows.size)
    return values.reshape(shape), numbers.reshape(shape)


def window_pick(x, at, windows):
    planes, numbers = x.reshape(-1, math.prod(windows.length)), at.reshape(-1, math.prod(windows.size))
    return np.stack([plane[n] for plane, n in zip(planes, numbers, strict=True)]).reshape(at.shape)


def window_place(v, at, windows):
    out = np.zeros((*v.shape[: v.ndim - len(windows.size)], *windows.length))
    planes = out.reshape(-1, math.prod(windows.length))
    flat = v.reshape(len(planes), -1), at.reshape(len(planes), -1)
    for plane, values, numbers in zip(planes, *flat, strict=True):
        np.add.at(plane, numbers, values)
    return out


def distinct(*choices):
    """Samples without equal elements, whose maximum has a gradient, of (shape before the windows, windows)."""

    def draw(rng, dtype):
        samples = []
        for before, w in choices:
            shape = (*before, *w.length)
            x = rng.permutation(math.prod(shape)).reshape(shape) / 8 - 2
            samples.append(((x.astype(dtype),), {"windows": w}))
        return samples

    return draw


def placed(source):
    """Samples of values of the shape ``source`` of the windows, with numbers of elements."""

    def draw(rng, dtype):
        samples = []
        for before, w in (((2,), LINE), ((2, 1), PLANE), ((), SOLID)):
            at = rng.integers(0, math.prod(w.length), (*before, *w.size))
            samples.append(((uniform(rng, dtype, (*before, *source(w))), at), {"windows": w}))
        return samples

    return draw


def special(rng, dtype):
    """Equal elements, infinite ones and nan."""
    lines = [[1, 1, 0, 0, 1, 1], [-np.inf] * 6, [np.nan, 1, np.nan, 2, 3, -np.inf], [np.inf, -np.inf, 2, 3, 4, 5]]
    return [((np.array(lines, dtype),), {"windows": LINE})]


# ---- ranges ---------------------------------------------------------------------------------------------------------


def range_sum(x, ranges, dim):
    return np.stack([np.take(x, range(*r), dim).sum(dim) for r in ranges], dim)


RANGES = [
    {"ranges": ((0, 2), (2, 4), (4, 6)), "dim": 1},
    {"ranges": ((0, 1), (0, 2), (1, 4), (3, 6)), "dim": 1},
    {"ranges": ((0, 1), (0, 1), (1, 2), (2, 2), (4, 5), (4, 5), (5, 6), (5, 6)), "dim": 1},
    {"ranges": ((0, 6),), "dim": 1},
    {"ranges": ((0, 1), (2, 3)), "dim": 2},
    {"ranges": ((1, 2), (1, 2)), "dim": 0},
]
LONG = [
    {"ranges": ((0, 0), (0, 3), *((0, 9),) * 5, *((1, 11),) * 5, (4, 12), (11, 12)), "dim": 0},
    {"ranges": ((0, 12),) * 12, "dim": 0},
]

# ---- convolutions ---------------------------------------------------------------------------------------------------

CASES = [
    # batch, channels, outputs, groups, windows
    (2, 2, 3, 1, LINE),
    (1, 4, 2, 2, PLANE),
    (1, 2, 2, 2, GAPS),
    (1, 1, 2, 1, SOLID),
    (2, 2, 1, 1, POINTS),
    (0, 2, 2, 1, LINE),
]


def terms(w, x_shape, outputs, groups):
    """The indices of y, weight and x in each product that a convolution adds up."""
    batch, channels = x_shape[:2]
    each, made = channels // groups, outputs // groups
    for (window, place, element), n, o, c in itertools.product(
        list(elements(w)), range(batch), range(outputs), range(each)
    ):
        yield (n, o, *window), (o, c, *place), (n, o // made * each + c, *element)


def convolve(x, weight, bias=None, *, windows, groups):
    out = np.zeros((x.shape[0], weight.shape[0], *windows.size))
    for y, w, e in terms(windows, x.shape, weight.shape[0], groups):
        out[y] += weight[w] * x[e]
    return out if bias is None else out + bias.reshape(-1, *(1,) * len(windows.size))


def spread(y, weight, bias=None, *, windows, groups):
    out = np.zeros((y.shape[0], weight.shape[1] * groups, *windows.length))
    for q, w, e in terms(windows, out.shape, weight.shape[0], groups):
        out[e] += weight[w] * y[q]
    return out if bias is None else out + bias.reshape(-1, *(1,) * len(windows.size))


def weigh(x, y, *, windows, groups):
    out = np.zeros((y.shape[1], x.shape[1] // groups, *windows.kernel))
    for q, w, e in terms(windows, x.shape, y.shape[1], groups):
        out[w] += y[q] * x[e]
    return out


def tensors(*kinds):
    """Samples of the tensors that a convolution ties together: x, y, weight, and the bias of x or of y."""

    def draw(rng, dtype):
        samples = []
        for batch, channels, outputs, groups, w in CASES:
            shapes = {
                "x": (batch, channels, *w.length),
                "y": (batch, outputs, *w.size),
                "weight": (outputs, channels // groups, *w.kernel),
                "bias of x": (channels,),
                "bias of y": (outputs,),
            }
            args = tuple(uniform(rng, dtype, shapes[kind], -1, 1) for kind in kinds)
            samples.append((args, {"windows": w, "groups": groups}))
        return samples

    return draw


PICKED = [((2,), LINE), ((1, 2), PLANE), ((1,), SOLID), ((2,), GAPS), ((0, 3), LINE)]
options = {"order": 2, "integers": False}

ROWS = [
    Row(windows.unfold, unfold, params=[{"windows": PLANE}], shapes=[((2, 4, 5),), ((0, 4, 5),)], **options),
    Row(windows.unfold, unfold, params=[{"windows": SOLID}], shapes=[((3, 2, 4),)], name="unfold solid", **options),
    Row(windows.fold, fold, params=[{"windows": PLANE}], shapes=[((2, 2, 3, *PLANE.size),)], **options),
    Row(windows.fold, fold, params=[{"windows": GAPS}], shapes=[((2, 1, *GAPS.size),)], name="fold gaps", **options),
    Row(windows.window_max, lambda x, windows: best(x, windows)[0], samples=distinct(*PICKED), **options),
    Row(windows.window_max, lambda x, windows: best(x, windows)[0], samples=special, order=0, name="special maxima"),
    Row(windows.window_argmax, lambda x, windows: best(x, windows)[1], samples=distinct(*PICKED), order=0),
    Row(windows.window_argmax, lambda x, windows: best(x, windows)[1], samples=special, order=0, name="where special"),
    Row(windows.window_pick, window_pick, samples=placed(lambda w: w.length), **options),
    Row(windows.window_place, window_place, samples=placed(lambda w: w.size), **options),
    Row(ranges.range_sum, range_sum, params=RANGES, shapes=[((2, 6, 3),)], **options),
    Row(ranges.range_sum, range_sum, params=LONG, shapes=[((12, 2),)], name="long ranges", **options),
    Row(convolution.convolution, convolve, samples=tensors("x", "weight"), **options),
    Row(convolution.convolution, convolve, samples=tensors("x", "weight", "bias of y"), name="with bias", **options),
    Row(convolution.convolution_input, spread, samples=tensors("y", "weight"), **options),
    Row(convolution.convolution_input, spread, samples=tensors("y", "weight", "bias of x"), name="spread with bias",
        **options),
    Row(convolution.convolution_weight, weigh, samples=tensors("x", "y"), dtypes=FLOATS[:2], **options),
]  # fmt: skip
