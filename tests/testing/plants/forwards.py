"""Bugs in forwards, and state that one call leaves to the next."""

from __future__ import annotations

import numpy as np
from testing.plants.entered import ONE, X, Y, plant

from leafgrad import op

# ---- forwards -----------------------------------------------------------------------------------------------------


@plant("elementwise", ONE)
def neighbours():
    @op("elementwise")
    def smooth(xp, x):
        return x + xp.roll(x.reshape(-1), 1).reshape(x.shape)

    return smooth


@plant("sizes", ONE)
def neighbours_from_64_on():
    @op("elementwise")
    def smooth(xp, x):
        return 2 * x if x.size < 64 else x + xp.roll(x.reshape(-1), 1).reshape(x.shape)

    return smooth


@plant("sizes", ONE)
def the_last_of_65():
    @op("elementwise")
    def blocked(xp, x):
        out = 2 * x
        if out.ndim and out.size > 64:
            out[64:] = 0
        return out

    return blocked


@plant("sizes", ONE)
def a_rule_wrong_from_1000_on():
    @op("elementwise")
    def doubled(xp, x):
        return 2 * x

    return doubled.vjp(x=lambda g: 2 * g if len(g.shape) != 1 or g.shape[0] < 1000 else 3 * g)


@plant("sizes", ONE)
def a_scale_by_the_size():
    @op("elementwise")
    def scaled(xp, x):
        return x * (1 if x.size < 500 else 1 + 1e-3)

    return scaled


@plant("values", ONE, reference=lambda x: x**2)
def a_wrong_forward():
    @op("elementwise")
    def wrong(xp, x):
        return x * x * 1.0000001

    return wrong


@plant("values", ONE, reference=lambda x, bias=0.0: x + bias)
def a_forward_that_ignores_a_parameter():
    @op("elementwise")
    def shifted(xp, x, *, bias=0.0):
        return x + 0

    return shifted


@plant("values", [((X.astype("int64"),), {})], reference=lambda x: x // 2)
def integers():
    @op("elementwise")
    def halved(xp, x):
        return (x + 1) // 2

    return halved


@plant("precision", ONE)
def a_silent_float64():
    @op("elementwise")
    def widened(xp, x):
        return x * xp.ones((1,), dtype="float64")

    return widened


@plant("precision", ONE)
def a_forward_wrong_in_float16():
    @op("elementwise")
    def narrow(xp, x):
        return x * (2 if x.dtype.itemsize > 2 else 3)

    return narrow


@plant("forward", ONE)
def an_argument_that_is_written():
    @op
    def sorted_in_place(xp, x):
        x.sort(axis=-1)
        return x + 0

    return sorted_in_place


@plant("layouts", ONE)
def an_order_of_memory():
    @op
    def raveled(xp, x):
        return x.ravel(order="K").copy()

    return raveled


@plant("stand-in", ONE)
def numpy_in_a_forward():
    @op("elementwise")
    def exponential(xp, x):
        return np.exp(x)

    return exponential


@plant("stand-in", ONE)
def a_transfer():
    @op("elementwise")
    def scaled(xp, x):
        return xp.asarray(np.asarray(x) * 2)

    return scaled


@plant("forward", ONE)
def a_forward_that_fails():
    @op("elementwise")
    def broken(xp, x):
        raise ValueError("planted")

    return broken


@plant("stand-in", ONE)
def a_branch_on_the_dtype_of_numpy():
    @op("elementwise")
    def rooted(xp, x):
        return np.lib.scimath.sqrt(x)

    return rooted


@plant("precision", ONE)
def a_detour_by_float32():
    @op("elementwise")
    def sine(xp, x):
        return xp.sin(x.astype("float32")).astype(x.dtype)

    return sine


@plant("precision", ONE)
def integers_that_become_float64():
    @op("elementwise")
    def sine(xp, x):
        return xp.sin(x)

    return sine


# ---- state --------------------------------------------------------------------------------------------------------


@plant("state", [((X,), {}), ((Y,), {})])
def state_in_a_class_attribute():
    class Seen:
        first = None

    @op
    def normalised(xp, x):
        if Seen.first is None:
            Seen.first = 1 + xp.abs(x).sum() * 0 + x.reshape(-1)[0]
        return x / Seen.first

    return normalised


@plant("state", [((X,), {}), ((Y,), {})])
def state_in_a_closure():
    largest = 0

    @op
    def normalised(xp, x):
        nonlocal largest
        largest = xp.maximum(largest, x.max())
        return x / largest

    return normalised


CACHE = {}


@plant("state", [((X,), {}), ((Y,), {})])
def a_cache_with_too_small_a_key():
    CACHE.clear()

    @op
    def centred(xp, x):
        key = x.shape
        if key not in CACHE:
            CACHE[key] = x.mean()
        return x - CACHE[key]

    return centred


@plant("state", [((X,), {}), ((Y,), {})])
def a_list_of_an_enclosing_function():
    kept = []

    def helper(x):
        kept.append(1)
        return len(kept)

    @op
    def counted(xp, x):
        return x * min(helper(x), 2)

    return counted


TABLE = np.ones(1)


@plant("state", [((X,), {}), ((Y,), {})])
def a_global_array():
    TABLE[:] = 1

    @op
    def scaled(xp, x):
        out = x * TABLE[0]
        TABLE[0] = x.reshape(-1)[0]
        return out

    return scaled
