"""The steps of recurrent layers, all in one op, and the gradients of their gates.

Time comes first: x is (T, N, gates H), what each step takes from the input; h and c are the state before the first
step, (N, H). A loop over time within an op costs a few array operations a step; recorded one by one, they would cost
ten times as much. There are no vjp rules: ``nn/recurrent_scan.py`` uses the gradients that stand here, and the
definition of a step for those of higher order.
"""

from __future__ import annotations

from typing import Any

from leafgrad.ops.define import op


def _parts(x: Any, count: int) -> list[Any]:
    """The gates side by side in the last dimension, each a view."""
    n = x.shape[-1] // count
    return [x[..., k * n : (k + 1) * n] for k in range(count)]


def _empty(xp: Any, like: Any, *shape: int) -> Any:
    return xp.empty(shape, dtype=like.dtype)


def _fit(x: Any, w: Any, *states: Any) -> bool:
    """Whether gates x and the weights w of the state are of the sizes that a layer has."""
    batch, hidden = states[0].shape
    fits = x.ndim == 3 and x.shape[1:] == (batch, w.shape[0]) and w.shape[1] == hidden
    return bool(x.floating and fits and all(s.shape == (batch, hidden) for s in states))


# ---- plain --------------------------------------------------------------------------------------------------------


@op
def rnn(xp: Any, x: Any, w_hh: Any, h: Any, *, relu: bool) -> Any:
    """h_t = tanh(x_t + w_hh h_(t-1)), or relu. -> h after each step (T, N, H)"""
    hs = xp.empty_like(x)
    w = xp.ascontiguousarray(w_hh.T)
    for a, y in zip(x, hs, strict=True):
        xp.matmul(h, w, out=y)
        y += a
        h = xp.maximum(y, 0, out=y) if relu else xp.tanh(y, out=y)
    return hs


rnn.shape(lambda x, w_hh, h: x if _fit(x, w_hh, h) and w_hh.shape[0] == w_hh.shape[1] else None)


@rnn.lower("native")
def _rnn_in_c(c: Any, e: Any) -> Any:
    total = "x(0) + across(0)"
    code = f"hs(0) = {f'maximum({total}, 0)' if e.params['relu'] else f'tanh({total})'};"
    return c.scan(code, ("hs",), across="w_hh", turned=True, first="h")


@op
def rnn_gates(xp: Any, gh: Any, hs: Any, w_hh: Any, *, relu: bool) -> Any:
    """The gradient of x for gh of hs. -> (T, N, H)"""
    d = (hs > 0).astype(hs.dtype) if relu else 1 - hs * hs
    dh = xp.zeros_like(hs[0])
    for g, y in zip(gh[::-1], d[::-1], strict=True):
        dh += g
        y *= dh
        xp.matmul(y, w_hh, out=dh)
    return d


rnn_gates.shape(lambda gh, hs, w_hh: hs)


@rnn_gates.lower("native")
def _rnn_gates_in_c(c: Any, e: Any) -> Any:
    slope = "(hs(0) > 0)" if e.params["relu"] else "(1 - hs(0) * hs(0))"
    return c.scan(f"d(0) = {slope} * (gh(0) + across(0));", ("d",), across="w_hh", reverse=True)


# ---- gated recurrent units ----------------------------------------------------------------------------------------


@op
def gru(xp: Any, x: Any, w_hh: Any, h: Any, b_hh: Any = None) -> Any:
    """Gated recurrent units. -> h after each step (T, N, H), gates r, z, n (T, N, 3H), and q (T, N, H)

    With x_t = [a, d, e] and [p, s, q] = w_hh h_(t-1) + b_hh: r = sigmoid(a + p), z = sigmoid(d + s),
    n = tanh(e + r q), and h_t = (1 - z) n + z h_(t-1).
    """
    act = xp.array(x)
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


@gru.shape
def _gru_shapes(x: Any, w_hh: Any, h: Any, b_hh: Any) -> Any:
    hs = (*x.shape[:1], *h.shape)
    return [hs, x, hs] if _fit(x, w_hh, h) and w_hh.shape[0] == 3 * w_hh.shape[1] else None


@gru.lower("native")
def _gru_in_c(c: Any, e: Any) -> Any:
    p, s, q = (f"across({k})" if len(e.values) < 4 else f"(across({k}) + b_hh({k}))" for k in range(3))
    code = f"""
        act(0) = 1 / (1 + exp(-x(0) - {p}));
        act(1) = 1 / (1 + exp(-x(1) - {s}));
        qs(0) = {q};
        act(2) = tanh(x(2) + act(0) * qs(0));
        h = act(2) + act(1) * (h - act(2));
        hs(0) = h;"""
    return c.scan(code, ("hs", "act", "qs"), ("h",), across="w_hh", turned=True, first="h")


@op
def gru_gates(xp: Any, gh: Any, before: Any, act: Any, qs: Any, w_hh: Any) -> Any:
    """The gradients of [p, s, q] and of x for gh of hs, and what z passes on to h. -> 2 (T, N, 3H), (N, H)

    ``before`` is h before each step. The gradient of h has another part, that of the first [p, s, q] times w_hh.
    """
    r, z, n = _parts(act, 3)
    inward = xp.empty_like(act)
    dr, dz, dn = _parts(inward, 3)  # first what the gradient of h_t is to be multiplied by
    xp.subtract(before, n, out=dz)
    dz *= z * (1 - z)
    xp.multiply(1 - z, 1 - n * n, out=dn)
    xp.multiply(dn, qs * r * (1 - r), out=dr)
    across = inward.copy()
    _parts(across, 3)[2][...] *= r
    steps, batch, hidden = gh.shape
    dh = xp.zeros_like(gh[0])
    thrice = _empty(xp, act, batch, 3, hidden)
    flat = thrice.reshape(batch, 3 * hidden)
    for t in reversed(range(steps)):
        if t + 1 < steps:
            dh += across[t + 1] @ w_hh
        dh += gh[t]
        thrice[...] = dh[:, None]
        inward[t] *= flat
        across[t] *= flat
        dh *= z[t]
    return across, inward, dh


gru_gates.shape(lambda gh, before, act, qs, w_hh: [act, act, gh.shape[1:]])


@gru_gates.lower("native")
def _gru_gates_in_c(c: Any, e: Any) -> Any:
    code = """
        const real r = act(0), z = act(1), n = act(2), of_h = dh + across(0) + gh(0);
        const real of_n = of_h * (1 - z) * (1 - n * n);
        inward(0) = outward(0) = of_n * qs(0) * r * (1 - r);
        inward(1) = outward(1) = of_h * (before(0) - n) * z * (1 - z);
        inward(2) = of_n;
        outward(2) = of_n * r;
        dh = of_h * z;"""
    return c.scan(code, ("outward", "inward"), ("dh",), across="w_hh", reverse=True)


# ---- long short-term memory ---------------------------------------------------------------------------------------


@op
def lstm(xp: Any, x: Any, w_hh: Any, h: Any, c: Any) -> Any:
    """Long short-term memory. -> h and c after each step (T, N, H), gates i, f, g, o (T, N, 4H)

    With [i, f, g, o] = x_t + w_hh h_(t-1), then tanh of g and sigmoid of the others: c_t = f c_(t-1) + i g, and
    h_t = o tanh(c_t).
    """
    steps, (batch, hidden) = len(x), h.shape
    scale = _empty(xp, x, batch, 4, hidden)  # sigmoid(x) = tanh(x / 2) / 2 + 1 / 2
    scale.fill(0.5)
    shift = scale.copy()
    scale[:, 2], shift[:, 2] = 1, 0
    scale, shift = scale.reshape(batch, 4 * hidden), shift.reshape(batch, 4 * hidden)
    act = x * scale
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


@lstm.shape
def _lstm_shapes(x: Any, w_hh: Any, h: Any, c: Any) -> Any:
    hs = (*x.shape[:1], *h.shape)
    return [hs, hs, x] if _fit(x, w_hh, h, c) and w_hh.shape[0] == 4 * w_hh.shape[1] else None


@lstm.lower("native")
def _lstm_in_c(c: Any, e: Any) -> Any:
    code = """
        act(0) = 1 / (1 + exp(-x(0) - across(0)));
        act(1) = 1 / (1 + exp(-x(1) - across(1)));
        act(2) = tanh(x(2) + across(2));
        act(3) = 1 / (1 + exp(-x(3) - across(3)));
        c = act(1) * c + act(0) * act(2);
        cs(0) = c;
        hs(0) = act(3) * tanh(c);"""
    return c.scan(code, ("hs", "cs", "act"), ("c",), across="w_hh", turned=True, first="h")


@op
def lstm_gates(xp: Any, gh: Any, cs: Any, before: Any, act: Any, w_hh: Any, gc: Any = None) -> Any:
    """The gradients of x and of c for gh of hs and gc of cs; ``before`` is c before each step. -> (T, N, 4H), (N, H)"""
    steps, batch, hidden = cs.shape
    i, f, g, o = _parts(act, 4)
    d = 1 - act
    d *= act
    di, df, dg, do = _parts(d, 4)  # first what the gradient of c_t, and for o that of h_t, is to be multiplied by
    m = xp.tanh(cs)
    di *= g
    df *= before
    xp.multiply(g, -g, out=dg)
    dg += 1
    dg *= i
    do *= m
    m *= -m
    m += 1
    m *= o
    f = xp.ascontiguousarray(f)
    dh, dc, new = [xp.zeros((batch, hidden), dtype=cs.dtype) for _ in range(3)]
    four = _empty(xp, act, batch, 4, hidden)
    flat = four.reshape(batch, 4 * hidden)
    for t in reversed(range(steps)):
        if t + 1 < steps:
            xp.matmul(d[t + 1], w_hh, out=dh)
        dh += gh[t]
        dc += xp.multiply(m[t], dh, out=new)
        if gc is not None:
            dc += gc[t]
        four[:, :3] = dc[:, None]
        four[:, 3] = dh
        d[t] *= flat
        dc *= f[t]
    return d, dc


lstm_gates.shape(lambda gh, cs, before, act, w_hh, gc: [act, cs.shape[1:]])


@lstm_gates.lower("native")
def _lstm_gates_in_c(c: Any, e: Any) -> Any:
    code = f"""
        const real i = act(0), f = act(1), g = act(2), o = act(3), m = tanh(cs(0));
        const real of_h = gh(0) + across(0);
        const real of_c = dc + of_h * o * (1 - m * m){" + gc(0)" if len(e.values) > 5 else ""};
        d(0) = of_c * g * i * (1 - i);
        d(1) = of_c * before(0) * f * (1 - f);
        d(2) = of_c * i * (1 - g * g);
        d(3) = of_h * m * o * (1 - o);
        dc = of_c * f;"""
    return c.scan(code, ("d",), ("dc",), across="w_hh", reverse=True)


rnn.autocast = gru.autocast = lstm.autocast = "lower"
