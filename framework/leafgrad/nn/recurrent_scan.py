"""One recurrent layer in one direction over all time steps: by its definition, and fast.

Input x is (T, N, input); the state holds (N, H) for each of its parts, h and, for long short-term memory, c.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from leafgrad import modes
from leafgrad.nn import functional as F
from leafgrad.nn.fused import Fused
from leafgrad.nn.recurrent_cells import State, gru_step, lstm_step, rnn_step
from leafgrad.ops import promotion, recurrent as ops
from leafgrad.ops.matmul import contract
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


def _before(first: Tensor, states: Tensor) -> Tensor:
    """The state before each step: the first, and all of ``states`` but the last. (N, H), (T, N, H) -> (T, N, H)"""
    return cat([first[None], states[:-1]])


class Scan(Fused):
    """The arguments are x, weight_ih, weight_hh, bias_ih, bias_hh and the state; see ``scan``."""

    @classmethod
    def apply(cls, params: Any, *args: Any) -> tuple[Any, ...]:
        """Autocast lowers the arguments here, so that ``gradients`` gets the numbers that ``run`` computed with."""
        if modes.get() & modes.AUTOCAST:
            args = promotion.autocast(ops.lstm, args)
        return super().apply(params, *args)

    @staticmethod
    def gates(params: Any, saved: Any, before: Tensor, grads: Any) -> tuple[Any, ...]:
        """Gradients of the projected inputs, of what is added to them from h, and of the state but for the last's part.

        ``before`` is h before each step.
        """
        raise NotImplementedError

    @classmethod
    def gradients(cls, params: Any, wanted: tuple[bool, ...], saved: Any, grads: Any) -> tuple[Any, ...]:
        x, w_ih, w_hh, _, _, h = saved[:6]
        before = _before(h, saved[len(wanted)])
        inward, across, passed, *state = cls.gates(params, saved, before, grads)
        bias = inward.sum((0, 1)) if wanted[3] else None
        of_h = None
        if wanted[5]:
            of_h = across[0] @ w_hh
            of_h = of_h if passed is None else passed + of_h
        return (
            inward @ w_ih if wanted[0] else None,
            contract.function(inward, x),
            contract.function(across, before),
            bias,
            None if not wanted[4] else bias if across is inward and bias is not None else across.sum((0, 1)),
            of_h,
            *state,
        )


class RNNScan(Scan):
    """Plain: h' = tanh(w_ih x + b_ih + w_hh h + b_hh), or relu; ``params`` says which."""

    @staticmethod
    def definition(relu: bool, *args: Any) -> State:
        return scan(partial(rnn_step, relu=relu), *args)

    @staticmethod
    def run(relu: bool, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any, h: Tensor) -> Any:
        return (ops.rnn(F.linear(x, w_ih, _sum(b_ih, b_hh)), w_hh, h, relu=relu),), ()

    @staticmethod
    def gates(relu: bool, saved: Any, before: Tensor, grads: Any) -> tuple[Any, ...]:
        _, _, w_hh, _, _, _, hs = saved
        inward = ops.rnn_gates(*grads, hs, w_hh, relu=relu)
        return inward, inward, None


class GRUScan(Scan):
    """Gated recurrent units."""

    @staticmethod
    def definition(params: bool, *args: Any) -> State:
        return scan(gru_step, *args)

    @staticmethod
    def run(params: bool, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any, h: Tensor) -> Any:
        hs, *rest = ops.gru(F.linear(x, w_ih, b_ih), w_hh, h, b_hh)
        return (hs,), tuple(rest)

    @staticmethod
    def gates(params: bool, saved: Any, before: Tensor, grads: Any) -> tuple[Any, ...]:
        _, _, w_hh, _, _, _, _, *rest = saved
        across, inward, passed = ops.gru_gates(*grads, before, *rest, w_hh)
        return inward, across, passed


class LSTMScan(Scan):
    """Long short-term memory, without projections."""

    @staticmethod
    def definition(params: bool, *args: Any) -> State:
        return scan(lstm_step, *args)

    @staticmethod
    def run(params: bool, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any, h: Tensor, c: Tensor) -> Any:
        hs, cs, act = ops.lstm.function(F.linear(x, w_ih, _sum(b_ih, b_hh)), w_hh, h, c)
        return (hs, cs), (act,)

    @staticmethod
    def gates(params: bool, saved: Any, before: Tensor, grads: Any) -> tuple[Any, ...]:
        _, _, w_hh, _, _, _, c, _, cs, act = saved
        of_h, of_c = grads
        if of_h is None:
            of_h = of_c.new_zeros(of_c.shape)
        inward, of_first = ops.lstm_gates.function(of_h, cs, _before(c, cs), act, w_hh, of_c)
        return inward, inward, None, of_first


SCANS: dict[str, type[Scan]] = {"RNN_TANH": RNNScan, "RNN_RELU": RNNScan, "GRU": GRUScan, "LSTM": LSTMScan}
