"""One step of a recurrent network: the functions that define it, and cells that hold its weights."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.nn import functional as F, init
from leafgrad.nn.module import Module
from leafgrad.nn.parameter import Parameter
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.creation import empty
from leafgrad.tensor.tensor import Tensor

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]

State = tuple[Tensor, ...]
NONLINEARITIES = ("tanh", "relu")

# ---- what a step does ---------------------------------------------------------------------------------------------


def rnn_step(gates: Tensor, state: State, w: Tensor, b: Tensor | None, relu: bool) -> State:
    """h' = tanh(gates + w h + b), or relu. (N, H), ((N, H),) -> ((N, H),)"""
    total = gates + F.linear(state[0], w, b)
    return (total.relu() if relu else total.tanh(),)


def lstm_step(gates: Tensor, state: State, w: Tensor, b: Tensor | None, projection: Tensor | None = None) -> State:
    """Long short-term memory. (N, 4H), (h, c) -> (h, c)

    Hochreiter and Schmidhuber (1997). With a ``projection`` (P, H), h is (N, P); Sak et al. (2014).
    """
    h, c = state
    i, f, g, o = (gates + F.linear(h, w, b)).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return h if projection is None else F.linear(h, projection), c


def gru_step(gates: Tensor, state: State, w: Tensor, b: Tensor | None) -> State:
    """A gated recurrent unit. (N, 3H), ((N, H),) -> ((N, H),). Cho et al. (2014)."""
    (h,) = state
    size = h.shape[-1]
    across = F.linear(h, w, b)
    r, z = (gates[..., : 2 * size] + across[..., : 2 * size]).sigmoid().chunk(2, -1)
    n = (gates[..., 2 * size :] + r * across[..., 2 * size :]).tanh()
    return ((1 - z) * n + z * h,)


# ---- cells --------------------------------------------------------------------------------------------------------


class RNNCellBase(Module):
    """What cells share: weights for ``chunks`` gates, all uniform over ±1 / sqrt(hidden_size) at first.

    Attributes:
        weight_ih: (chunks * hidden_size, input_size).
        weight_hh: (chunks * hidden_size, hidden_size).
        bias_ih, bias_hh: (chunks * hidden_size,), or None.
    """

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None
    nonlinearity: str = "tanh"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        for name, shape in (("ih", (rows, input_size)), ("hh", (rows, hidden_size))):
            setattr(self, f"weight_{name}", Parameter(empty(shape, device=device, dtype=dtype)))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        bias = "" if self.bias else f", bias={self.bias}"
        other = "" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}"
        return f"{self.input_size}, {self.hidden_size}{bias}{other}"

    def _checked(self, input: Tensor, hx: Any, names: tuple[str, ...]) -> tuple[Tensor, State]:
        """Input and state with a batch dimension; zeros for a state that is None."""
        kind = type(self).__name__
        if expect_tensor(input, "input", kind).ndim not in (1, 2):
            raise ValueError(f"{kind}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        batched = input if input.ndim == 2 else input.unsqueeze(0)
        if batched.shape[1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {batched.shape[1]} expected {self.input_size}")
        if hx is None:
            zero = batched.new_zeros((len(batched), self.hidden_size))
            return batched, (zero,) * len(names)
        state = []
        for i, (name, h) in enumerate(zip(names, hx, strict=True)):
            if expect_tensor(h, name, kind).ndim not in (1, 2):
                raise ValueError(f"{kind}: Expected {name} to be 1D or 2D, got {h.ndim}D instead")
            h = h if input.ndim == 2 or h.ndim == 2 else h.unsqueeze(0)
            if len(h) != len(batched):
                raise RuntimeError(f"Input batch size {len(batched)} doesn't match hidden{i} batch size {len(h)}")
            if h.shape[-1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{i} has inconsistent hidden_size: got {h.shape[-1]}, expected {self.hidden_size}"
                )
            state.append(h)
        return batched, tuple(state)

    def _gates(self, batched: Tensor) -> Tensor:
        return F.linear(batched, self.weight_ih, self.bias_ih)


class RNNCell(RNNCellBase):
    """h' = tanh(weight_ih x + bias_ih + weight_hh h + bias_hh), or relu.

    Args:
        input_size, hidden_size: sizes of x and h.
        bias: False leaves both biases out.
        nonlinearity: "tanh" or "relu".
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """(N, input_size), (N, hidden_size) -> (N, hidden_size); or all without N

        Raises:
            RuntimeError: sizes do not match, or an unknown ``nonlinearity``.
        """
        if self.nonlinearity not in NONLINEARITIES:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}; expected 'tanh' or 'relu'")
        batched, state = self._checked(input, None if hx is None else (hx,), ("hidden",))
        (h,) = rnn_step(self._gates(batched), state, self.weight_hh, self.bias_hh, self.nonlinearity == "relu")
        return h if input.ndim == 2 else h.squeeze(0)


class LSTMCell(RNNCellBase):
    """A step of long short-term memory, with gates i, f, g, o one below the other in the weights.

    Hochreiter and Schmidhuber (1997).

    Args:
        input_size, hidden_size: sizes of the input and of h and c.
        bias: False leaves both biases out.
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """(N, input_size), 2 (N, hidden_size) -> the new h and c, 2 (N, hidden_size); or all without N

        Raises:
            RuntimeError: sizes do not match. TypeError: ``hx`` is not a pair of tensors.
        """
        if hx is not None and not (isinstance(hx, (tuple, list)) and len(hx) == 2):
            raise TypeError(f"LSTMCell: hx: expected a tuple of two tensors (h, c), got {type(hx).__name__}")
        batched, state = self._checked(input, hx, ("hx[0]", "hx[1]"))
        h, c = lstm_step(self._gates(batched), state, self.weight_hh, self.bias_hh)
        return (h, c) if input.ndim == 2 else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """A step of gated recurrent units, with gates r, z, n one below the other in the weights. Cho et al. (2014).

    Args:
        input_size, hidden_size: sizes of the input and of h.
        bias: False leaves both biases out.
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """(N, input_size), (N, hidden_size) -> (N, hidden_size); or all without N

        Raises:
            RuntimeError: sizes do not match.
        """
        batched, state = self._checked(input, None if hx is None else (hx,), ("hidden",))
        (h,) = gru_step(self._gates(batched), state, self.weight_hh, self.bias_hh)
        return h if input.ndim == 2 else h.squeeze(0)
