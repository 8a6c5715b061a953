"""Recurrent layers over all time steps at once, and the gradients of their gates.

Time comes first: x is (T, N, inputs), h and c are the state before the first step, (N, H). A loop over time within an
op costs a few array operations a step; recorded one by one, they would cost ten times as much. There are no vjp rules:
``nn/recurrent_scan.py`` uses the gradients that stand here, and the definition of a step for those of higher order.
"""

from __future__ import annotations

from typing import Any

from leafgrad.ops.define import op
from leafgrad.ops.matmul import linear


def _parts(x: Any, count: int) -> list[Any]:
    """The gates side by side in the last dimension, each a view."""
    n = x.shape[-1] // count
    return [x[..., k * n : (k + 1) * n] for k in range(count)]


def _before(xp: Any, first: Any, states: Any) -> Any:
    """The state before each step: the first, and all of ``states`` but the last."""
    return xp.concatenate([first[None], states[:-1]])


def _empty(xp: Any, like: Any, *shape: int) -> Any:
    return xp.empty(shape, dtype=like.dtype)


# ---- plain --------------------------------------------------------------------------------------------------------


@op
def rnn(xp: Any, x: Any, w_ih: Any, w_hh: Any, h: Any, b: Any = None, *, relu: bool) -> Any:
    """h_t = tanh(w_ih x_t + w_hh h_(t-1) + b), or relu. -> h after each step (T, N, H)"""
    hs = linear.forward(xp, x, w_ih, b)
    across, w = _empty(xp, hs, *h.shape), xp.ascontiguousarray(w_hh.T)
    for y in hs:
        y += xp.matmul(h, w, out=across)
        h = xp.maximum(y, 0, out=y) if relu else xp.tanh(y, out=y)
    return hs


@op
def rnn_gates(xp: Any, gh: Any, hs: Any, w_hh: Any, *, relu: bool) -> Any:
    """The gradients of what is within tanh, and of h, for gh of hs. -> (T, N, H), (N, H)"""
    d = (hs > 0).astype(hs.dtype) if relu else 1 - hs * hs
    dh = xp.zeros_like(hs[0])
    for t in reversed(range(len(hs))):
        dh += gh[t]
        d[t] *= dh
        xp.matmul(d[t], w_hh, out=dh)
    return d, dh


# ---- gated recurrent units ----------------------------------------------------------------------------------------


@op
def gru(xp: Any, x: Any, w_ih: Any, w_hh: Any, h: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """Gated recurrent units. -> h after each step (T, N, H), gates r, z, n (T, N, 3H), and q (T, N, H)

    With [a, d, e] = w_ih x_t + b_ih and [p, s, q] = w_hh h_(t-1) + b_hh: r = sigmoid(a + p), z = sigmoid(d + s),
    n = tanh(e + r q), and h_t = (1 - z) n + z h_(t-1).
    """
    act = linear.forward(xp, x, w_ih, b_ih)
    steps, (batch, hidden) = len(x), h.shape
    hs, qs = (_empty(xp, act, steps, batch, hidden) for _ in range(2))
    across, w = _empty(xp, act, batch, 3 * hidden), xp.ascontiguousarray(w_hh.T)
    for rz, r, z, n, q, y in zip(act[..., : 2 * hidden], *_parts(act, 3), qs, hs, strict=True):
        xp.matmul(h, w, out=across)
        if b_hh is not None:
            across += b_hh
        rz += across[:, : 2 * hidden]
        rz *= 0.5  # sigmoid(x) = tanh(x / 2) / 2 + 1 / 2
        xp.tanh(rz, out=rz)
        rz *= 0.5
        rz += 0.5
        q[...] = across[:, 2 * hidden :]
        n += xp.multiply(r, q, out=y)
        xp.tanh(n, out=n)
        xp.subtract(h, n, out=y)  # (1 - z) n + z h = n + z (h - n)
        y *= z
        y += n
        h = y
    return hs, act, qs


@op
def gru_gates(xp: Any, gh: Any, hs: Any, act: Any, qs: Any, w_hh: Any, h: Any) -> Any:
    """The gradients of [a, d, e], of [p, s, q], and of h, for gh of hs. -> 2 (T, N, 3H), (N, H)"""
    r, z, n = _parts(act, 3)
    inward = xp.empty_like(act)
    dr, dz, dn = _parts(inward, 3)  # first what the gradient of h_t is to be multiplied by
    xp.subtract(_before(xp, h, hs), n, out=dz)
    dz *= z * (1 - z)
    xp.multiply(1 - z, 1 - n * n, out=dn)
    xp.multiply(dn, qs * r * (1 - r), out=dr)
    across = inward.copy()
    _parts(across, 3)[2][...] *= r
    dh = xp.zeros_like(h)
    batch, hidden = h.shape
    thrice = _empty(xp, act, batch, 3, hidden)
    flat = thrice.reshape(batch, 3 * hidden)
    for t in reversed(range(len(hs))):
        dh += gh[t]
        thrice[...] = dh[:, None]
        inward[t] *= flat
        across[t] *= flat
        dh *= z[t]
        dh += across[t] @ w_hh
    return inward, across, dh


# ---- long short-term memory ---------------------------------------------------------------------------------------


@op
def lstm(xp: Any, x: Any, w_ih: Any, w_hh: Any, h: Any, c: Any, b: Any = None) -> Any:
    """Long short-term memory. -> h and c after each step (T, N, H), gates i, f, g, o (T, N, 4H)

    With [i, f, g, o] = w_ih x_t + w_hh h_(t-1) + b, then tanh of g and sigmoid of the others: c_t = f c_(t-1) + i g,
    and h_t = o tanh(c_t).
    """
    act = linear.forward(xp, x, w_ih, b)
    steps, (batch, hidden) = len(x), h.shape
    scale = xp.full((batch, 4, hidden), 0.5, dtype=act.dtype)  # sigmoid(x) = tanh(x / 2) / 2 + 1 / 2
    shift = scale.copy()
    scale[:, 2], shift[:, 2] = 1, 0
    scale, shift = scale.reshape(batch, 4 * hidden), shift.reshape(batch, 4 * hidden)
    act *= scale
    w = xp.ascontiguousarray((w_hh * scale[:1].T).T) if batch else w_hh.T
    hs, cs = (_empty(xp, act, steps, batch, hidden) for _ in range(2))
    across, new = _empty(xp, act, batch, 4 * hidden), _empty(xp, act, batch, hidden)
    for a, i, f, g, o, y, m in zip(act, *_parts(act, 4), hs, cs, strict=True):
        a += xp.matmul(h, w, out=across)
        xp.tanh(a, out=a)
        a *= scale
        a += shift
        xp.multiply(f, c, out=m)
        m += xp.multiply(i, g, out=new)
        xp.tanh(m, out=new)
        h, c = xp.multiply(o, new, out=y), m
    return hs, cs, act


@op
def lstm_gates(xp: Any, gh: Any, cs: Any, act: Any, w_hh: Any, c: Any, gc: Any = None) -> Any:
    """The gradients of w_hh h + ..., of h and of c, for gh of hs and gc of cs. -> (T, N, 4H), 2 (N, H)"""
    steps, batch, hidden = cs.shape
    i, f, g, o = _parts(act, 4)
    d = 1 - act
    d *= act
    di, df, dg, do = _parts(d, 4)  # first what the gradient of c_t, and for o that of h_t, is to be multiplied by
    m = xp.tanh(cs)
    di *= g
    df *= _before(xp, c, cs)
    xp.multiply(g, -g, out=dg)
    dg += 1
    dg *= i
    do *= m
    m *= -m
    m += 1
    m *= o
    f = xp.ascontiguousarray(f)
    dh, dc, new = (xp.zeros_like(c) for _ in range(3))
    four = _empty(xp, act, batch, 4, hidden)
    flat = four.reshape(batch, 4 * hidden)
    for t in reversed(range(steps)):
        dh += gh[t]
        dc += xp.multiply(m[t], dh, out=new)
        if gc is not None:
            dc += gc[t]
        four[:, :3] = dc[:, None]
        four[:, 3] = dh
        d[t] *= flat
        xp.matmul(d[t], w_hh, out=dh)
        dc *= f[t]
    return d, dh, dc
