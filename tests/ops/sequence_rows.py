"""Recurrent layers and attention, and their gradients, which have no rules of their own."""

from __future__ import annotations

import numpy as np
from op_table import Row, uniform
from scipy import special as sp

from leafgrad.ops import attention, recurrent

T, N, H = 3, 2, 3
CLOSE = {"order": 0, "dtypes": ("float64", "float32"), "rtol": 1e-11}


def rnn(x, w_hh, h, relu=False):
    hs = []
    for step in x:
        h = step + h @ w_hh.T
        h = np.maximum(h, 0) if relu else np.tanh(h)
        hs.append(h)
    return np.stack(hs)


def gru(x, w_hh, h, b_hh=None):
    found = []
    for step in x:
        a, d, e = np.split(step, 3, -1)
        p, s, q = np.split(h @ w_hh.T + (0 if b_hh is None else b_hh), 3, -1)
        r, z = sp.expit(a + p), sp.expit(d + s)
        n = np.tanh(e + r * q)
        h = (1 - z) * n + z * h
        found.append((h, np.concatenate([r, z, n], -1), q))
    return tuple(np.stack(part) for part in zip(*found, strict=True))


def lstm(x, w_hh, h, c):
    found = []
    for step in x:
        i, f, g, o = np.split(step + h @ w_hh.T, 4, -1)
        i, f, g, o = sp.expit(i), sp.expit(f), np.tanh(g), sp.expit(o)
        c = f * c + i * g
        h = o * np.tanh(c)
        found.append((h, c, np.concatenate([i, f, g, o], -1)))
    return tuple(np.stack(part) for part in zip(*found, strict=True))


def layer(gates, states, *bias, params=({},)):
    """What goes into the gates, weights and state of a layer, without and with a bias."""

    def samples(rng, dtype):
        given = [(T, N, gates * H), (gates * H, H), *[(N, H)] * states]
        return [
            (tuple(uniform(rng, dtype, s, -1, 1) for s in [*given, *extra]), p)
            for extra in dict.fromkeys([(), bias])
            for p in params
        ]

    return samples


def attend(q, k, v, mask=None, *, scale, causal):
    """All scores at once; where no key takes part, zeros, and 0 as the logarithm of the denominator."""
    scores = q @ np.swapaxes(k, -1, -2) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == "bool" else scores + mask
    weights = np.exp(scores)
    sums = weights.sum(-1, keepdims=True)
    sums = np.where(sums == 0, 1.0, sums)
    return weights / sums @ v, np.log(sums)


def attended(rng, dtype):
    found = []
    for lead, queries, keys in (((), 3, 4), ((2, 3), 4, 4), ((1,), 200, 300), ((700,), 7, 8)):
        q, k, v = (uniform(rng, dtype, (*lead, n, size)) for n, size in ((queries, 2), (keys, 2), (keys, 3)))
        seen = rng.random((*lead[:1], *(1,) * len(lead[1:]), queries, keys)) < 0.4
        masks = [(), (seen,), (uniform(rng, dtype, (1, keys)),)]
        found += [((q, k, v, *mask), {"scale": 0.7, "causal": False}) for mask in masks]
        found.append(((q, k, v), {"scale": 0.7, "causal": True}))
    return found


ROWS = [
    Row(recurrent.rnn, rnn, samples=layer(1, 1, params=({"relu": False}, {"relu": True})), **CLOSE),
    Row(recurrent.gru, gru, samples=layer(3, 1, (3 * H,)), **CLOSE),
    Row(recurrent.lstm, lstm, samples=layer(4, 2), **CLOSE),
    Row(attention.attention, attend, samples=attended, **CLOSE),
]
ELSEWHERE = {
    **dict.fromkeys((recurrent.rnn_gates, recurrent.gru_gates, recurrent.lstm_gates), "test_nn_recurrent.py"),
    attention.attention_gradients: "test_nn_attention.py",
}
