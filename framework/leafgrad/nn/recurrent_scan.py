"""One recurrent layer in one direction over all time steps: by its definition, and fast.

Input x is (T, N, input); the state holds (N, H) for each of its parts, h and, for long short-term memory, c.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from leafgrad.nn import functional as F
from leafgrad.nn.fused import Fused
from leafgrad.nn.recurrent_cells import State, gru_step, lstm_step, rnn_step
from leafgrad.ops import recurrent as ops
from leafgrad.tensor.joining import cat, stack
from leafgrad.tensor.tensor import Tensor


def scan(step: Any, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any, *state: Tensor) -> State:
    """Each part of the state after every step, (T, N, H), where ``step`` is one of ``recurrent_cells``."""
    states = []
    for gates in F.linear(x, w_ih, b_ih).unbind(0):
        state = step(gates, state, w_hh, b_hh)
        states.append(state)
    return tuple(stack(part) for part in zip(*states, strict=True))


def _sum(b_ih: Tensor | None, b_hh: Tensor | None) -> Tensor | None:
    return b_ih if b_hh is None else b_hh if b_ih is None else b_ih + b_hh


class Scan(Fused):
    """The arguments are x, weight_ih, weight_hh, bias_ih, bias_hh and the state; see ``scan``."""

    @staticmethod
    def gates(params: Any, saved: Any, grads: Any) -> tuple[Any, ...]:
        """Gradients of the projected inputs, of what is added to them from h, and of the state."""
        raise NotImplementedError

    @classmethod
    def gradients(cls, params: Any, wanted: tuple[bool, ...], saved: Any, grads: Any) -> tuple[Any, ...]:
        x, w_ih, _, _, _, h = saved[:6]
        hs = saved[len(wanted)]
        inward, across, *state = cls.gates(params, saved, grads)
        bias = inward.sum((0, 1)) if wanted[3] else None
        return (
            inward @ w_ih if wanted[0] else None,
            inward.flatten(0, 1).t() @ x.flatten(0, 1),
            across.flatten(0, 1).t() @ cat([h, hs.flatten(0, 1)[: -len(h)]]),
            bias,
            None if not wanted[4] else bias if across is inward and bias is not None else across.sum((0, 1)),
            *state,
        )


class RNNScan(Scan):
    """Plain: h' = tanh(w_ih x + b_ih + w_hh h + b_hh), or relu; ``params`` says which."""

    @staticmethod
    def definition(relu: bool, *args: Any) -> State:
        return scan(partial(rnn_step, relu=relu), *args)

    @staticmethod
    def run(relu: bool, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any, h: Tensor) -> Any:
        return (ops.rnn(x, w_ih, w_hh, h, _sum(b_ih, b_hh), relu=relu),), ()

    @staticmethod
    def gates(relu: bool, saved: Any, grads: Any) -> tuple[Any, ...]:
        _, _, w_hh, _, _, _, hs = saved
        inward, h = ops.rnn_gates(*grads, hs, w_hh, relu=relu)
        return inward, inward, h


class GRUScan(Scan):
    """Gated recurrent units."""

    @staticmethod
    def definition(params: bool, *args: Any) -> State:
        return scan(gru_step, *args)

    @staticmethod
    def run(params: bool, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any, h: Tensor) -> Any:
        hs, *rest = ops.gru(x, w_ih, w_hh, h, b_ih, b_hh)
        return (hs,), tuple(rest)

    @staticmethod
    def gates(params: bool, saved: Any, grads: Any) -> tuple[Any, ...]:
        _, _, w_hh, _, _, h, hs, *rest = saved
        return tuple(ops.gru_gates(*grads, hs, *rest, w_hh, h))


class LSTMScan(Scan):
    """Long short-term memory, without projections."""

    @staticmethod
    def definition(params: bool, *args: Any) -> State:
        return scan(lstm_step, *args)

    @staticmethod
    def run(params: bool, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any, h: Tensor, c: Tensor) -> Any:
        hs, cs, act = ops.lstm(x, w_ih, w_hh, h, c, _sum(b_ih, b_hh))
        return (hs, cs), (act,)

    @staticmethod
    def gates(params: bool, saved: Any, grads: Any) -> tuple[Any, ...]:
        _, _, w_hh, _, _, _, c, _, cs, act = saved
        of_h, of_c = grads
        if of_h is None:
            of_h = of_c.new_zeros(of_c.shape)
        inward, *state = ops.lstm_gates(of_h, cs, act, w_hh, c, of_c)
        return inward, inward, *state


SCANS: dict[str, type[Scan]] = {"RNN_TANH": RNNScan, "RNN_RELU": RNNScan, "GRU": GRUScan, "LSTM": LSTMScan}
