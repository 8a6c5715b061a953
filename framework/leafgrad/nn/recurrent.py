"""Recurrent layers over whole sequences, in several layers and both directions, padded or packed."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from functools import partial
from typing import Any

from leafgrad import modes
from leafgrad.nn import functional as F, init
from leafgrad.nn.module import Module
from leafgrad.nn.parameter import Parameter
from leafgrad.nn.recurrent_cells import NONLINEARITIES, State, lstm_step
from leafgrad.nn.recurrent_scan import SCANS, scan
from leafgrad.nn.utils.rnn import PackedSequence, padded, picked
from leafgrad.ops.convert import new_full
from leafgrad.ops.messages import warn
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.creation import arange, empty
from leafgrad.tensor.data import tensor
from leafgrad.tensor.joining import cat, stack
from leafgrad.tensor.tensor import Tensor

__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]

GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "GRU": 3, "LSTM": 4}


class Ends:
    """Where the sequences of a batch end. With one length for all, None, nothing has to be looked up."""

    def __init__(self, lengths: list[int] | None, x: Tensor) -> None:
        self.steps = None
        if lengths is not None and min(lengths) < max(lengths):
            self.column = arange(len(lengths), device=x.device)
            self.last = tensor(lengths, device=x.device) - 1
            self.steps = arange(len(x), device=x.device).unsqueeze(1)

    def reversed(self, x: Tensor) -> Tensor:
        """Each sequence backwards, what comes after its end left where it is. (T, N, ...) -> (T, N, ...)"""
        if self.steps is None:
            return x.flip(0)
        mirrored = self.last - self.steps
        return x[mirrored.where(mirrored >= 0, self.steps), self.column]

    def final(self, x: Tensor) -> Tensor:
        """The last element of each sequence. (T, N, ...) -> (N, ...)"""
        return x[-1] if self.steps is None else x[self.last, self.column]


class RNNBase(Module):
    """What recurrent layers share: weights for each layer and direction, and the way of a sequence through them.

    All weights start uniform over ±1 / sqrt(hidden_size). Where they are drawn again, in every layer k and, with the
    suffix ``_reverse``, in both directions:

    Attributes:
        weight_ih_lk: (gates * hidden_size, input_size), or the size of what the layer before returns.
        weight_hh_lk: (gates * hidden_size, hidden_size), or proj_size.
        bias_ih_lk, bias_hh_lk: (gates * hidden_size,), with ``bias``.
        weight_hr_lk: (proj_size, hidden_size), with ``proj_size``.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if mode not in GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}; expected one of {', '.join(GATES)}")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_arguments()
        self.dropout = float(dropout)
        for name, shape in self._shapes():
            self.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    def _check_arguments(self) -> None:
        for name in ("bias", "batch_first", "bidirectional"):
            if not isinstance(value := getattr(self, name), bool):
                raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
        for name in ("input_size", "hidden_size", "num_layers"):
            if not isinstance(value := getattr(self, name), int) or isinstance(value, bool):
                raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
            if value <= 0:
                raise ValueError(f"{name} must be greater than zero, got {value}")
        p = self.dropout
        if not isinstance(p, numbers.Number) or isinstance(p, bool) or not 0 <= p <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed, "
                f"got {p!r}"
            )
        if p > 0 and self.num_layers == 1:
            warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={p} and num_layers={self.num_layers}"
            )
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size and self.mode != "LSTM":
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")

    def _suffixes(self) -> list[str]:
        ways = ("", "_reverse") if self.bidirectional else ("",)
        return [f"_l{layer}{way}" for layer in range(self.num_layers) for way in ways]

    def _shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The name and shape of each parameter."""
        rows, result = GATES[self.mode] * self.hidden_size, self.proj_size or self.hidden_size
        for suffix in self._suffixes():
            inward = self.input_size if suffix.startswith("_l0") else result * (2 if self.bidirectional else 1)
            yield f"weight_ih{suffix}", (rows, inward)
            yield f"weight_hh{suffix}", (rows, result)
            if self.bias:
                yield f"bias_ih{suffix}", (rows,)
                yield f"bias_hh{suffix}", (rows,)
            if self.proj_size:
                yield f"weight_hr{suffix}", (result, self.hidden_size)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _all_weights(self) -> list[list[str]]:
        """Their names, which PyTorch's programs look up to set biases."""
        names = [name for name, _ in self._shapes()]
        return [[name for name in names if name.endswith(suffix)] for suffix in self._suffixes()]

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing: the parameters need not lie next to each other in memory."""

    def extra_repr(self) -> str:
        shown = [f"{self.input_size}, {self.hidden_size}"]
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0}
        for name, value in {**usual, "bidirectional": False}.items():
            if getattr(self, name) != value:
                shown.append(f"{name}={getattr(self, name)}")
        return ", ".join(shown)

    # ---- forward ----------------------------------------------------------------------------------------------

    def _run(self, suffix: str, x: Tensor, state: State) -> State:
        """One layer in one direction: each part of the state after every step."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        weights: list[Any] = [getattr(self, name + suffix, None) for name in names]
        if self.proj_size:
            projection = getattr(self, "weight_hr" + suffix)
            return scan(partial(lstm_step, projection=projection), x, *weights, *state)
        fused = SCANS[self.mode]
        run = fused.definition if x.is_complex() else fused.apply
        result: State = run(self.mode == "RNN_RELU", x, *weights, *state)
        return result

    def _layers(self, x: Tensor, state: State, lengths: list[int] | None) -> tuple[Tensor, State]:
        """All layers. (T, N, input), and (layers * directions, N, H) for each part of the state -> the same"""
        ends = Ends(lengths, x)
        suffixes = self._suffixes()
        ways = len(suffixes) // self.num_layers
        last = []
        for k in range(0, len(suffixes), ways):
            if k:
                x = F.dropout(x, self.dropout, self.training)
            found = []
            for way in range(ways):
                own = tuple(part[k + way] for part in state)
                after = self._run(suffixes[k + way], ends.reversed(x) if way else x, own)
                last.append([ends.final(part) for part in after])
                found.append(ends.reversed(after[0]) if way else after[0])
            x = found[0] if ways == 1 else cat(found, -1)
        return x, tuple(stack(part) for part in zip(*last, strict=True))

    def _call(self, input: Any, state: State | None) -> tuple[Any, State]:
        """Any form of input through the layers, and back into that form."""
        if isinstance(input, PackedSequence):
            return self._call_packed(input, state)
        kind = type(self).__name__
        if expect_tensor(input, "input", kind).ndim not in (2, 3):
            raise ValueError(f"{kind}: Expected input to be 2D or 3D, got {input.ndim}D tensor instead")
        self._check_input(input)
        self._check_ndim(input.ndim, state)
        whole = input.ndim == 3
        x = input.transpose(0, 1) if whole and self.batch_first else input
        if not len(x):
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        if not whole:
            x, state = x.unsqueeze(1), None if state is None else tuple(part.unsqueeze(1) for part in state)
        y, after = self._layers(x, self._state(x, state), None)
        if not whole:
            return y.squeeze(1), tuple(part.squeeze(1) for part in after)
        return y.transpose(0, 1) if self.batch_first else y, after

    def _call_packed(self, input: PackedSequence, state: State | None) -> tuple[PackedSequence, State]:
        self._check_input(input.data)
        x = padded(input.data, input.steps())
        if state is not None and input.sorted_indices is not None:
            order = input.sorted_indices
            state = tuple(part.index_select(1, order) for part in state)
        y, after = self._layers(x, self._state(x, state), input.lengths())
        if input.unsorted_indices is not None:
            order = input.unsorted_indices
            after = tuple(part.index_select(1, order) for part in after)
        return input.like(picked(y, input.steps())), after

    def _check_input(self, input: Tensor) -> None:
        weight = self.weight_ih_l0
        if input.dtype is not weight.dtype and not modes.get() & modes.AUTOCAST:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )

    def _check_ndim(self, ndim: int, state: State | None) -> None:
        got = [expect_tensor(part, "hx", type(self).__name__).ndim for part in state or ()]
        if any(n != ndim for n in got):
            batched = "batched 3-D" if ndim == 3 else "unbatched 2-D"
            names, which = ("hx", f"{got[0]}-D tensor") if len(got) == 1 else (
                "hx and cx", f"({got[0]}-D, {got[-1]}-D) tensors"
            )  # fmt: skip
            raise RuntimeError(f"For {batched} input, {names} should also be {ndim}-D but got {which}")

    def _state(self, x: Tensor, state: State | None) -> State:
        """The state before the first step, checked; zeros for None."""
        count = len(self._suffixes())
        sizes = [self.proj_size or self.hidden_size] + [self.hidden_size] * (self.mode == "LSTM")
        if state is None:
            return tuple([new_full.function(x, shape=(count, x._data.shape[1], size), value=0) for size in sizes])
        for i, (part, size) in enumerate(zip(state, sizes, strict=True)):
            expected = (count, x.shape[1], size)
            if tuple(part.shape) != expected:
                what = "hidden" if len(sizes) == 1 else f"hidden[{i}]"
                raise RuntimeError(f"Expected {what} size {expected}, got {list(part.shape)}")
        return state


class RNN(RNNBase):
    """Layers h_t = tanh(weight_ih x_t + bias_ih + weight_hh h_(t-1) + bias_hh), or relu.

    Elman (1990).

    Args:
        input_size, hidden_size: sizes of x and h.
        num_layers: each but the first takes the result of the one before.
        nonlinearity: "tanh" or "relu".
        bias: False leaves both biases out.
        batch_first: input and output are (batch, steps, ...) instead of (steps, batch, ...).
        dropout: the probability with which results of layers are zeroed on their way to the next one, in training.
        bidirectional: each layer also runs from the last step to the first; both results are joined.

    Raises:
        ValueError: a size is not positive, or ``dropout`` or ``nonlinearity`` are none.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in NONLINEARITIES:
            raise ValueError(f"Unknown nonlinearity {nonlinearity!r}. Select from 'tanh' or 'relu'.")
        common = (bias, batch_first, dropout, bidirectional, proj_size, device, dtype)
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, *common)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor | PackedSequence, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """The last layer's h after each step, and every layer's after the last.

        Args:
            input: (steps, batch, input_size), or without batch, or packed.
            hx: h before the first step, (layers * directions, batch, hidden_size); zeros if None.

        Returns:
            (steps, batch, directions * hidden_size), or packed like the input; and h in the form of ``hx``.

        Raises:
            RuntimeError, ValueError: shapes or dtypes do not match.
        """
        output, (h,) = self._call(input, None if hx is None else (hx,))
        return output, h


class GRU(RNNBase):
    """Layers of gated recurrent units. Cho et al. (2014).

    With gates r = sigmoid(w_r x + b_r + u_r h + c_r) and z = sigmoid(w_z x + b_z + u_z h + c_z), and
    n = tanh(w_n x + b_n + r (u_n h + c_n)): h' = (1 - z) n + z h. The weights hold r, z, n one below the other.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional: see ``RNN``.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        common = (bias, batch_first, dropout, bidirectional, proj_size, device, dtype)
        super().__init__("GRU", input_size, hidden_size, num_layers, *common)

    def forward(self, input: Tensor | PackedSequence, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """The last layer's h after each step, and every layer's after the last; see ``RNN.forward``."""
        output, (h,) = self._call(input, None if hx is None else (hx,))
        return output, h


class LSTM(RNNBase):
    """Layers of long short-term memory. Hochreiter and Schmidhuber (1997).

    With gates i, f, o = sigmoid and g = tanh of w x + b + u h + d: c' = f c + i g, and h' = o tanh(c'). The weights
    hold i, f, g, o one below the other.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional: see ``RNN``.
        proj_size: h is projected to this size if it is not 0; Sak et al. (2014).

    Raises:
        ValueError: a size is not positive, or ``proj_size`` is not smaller than ``hidden_size``.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        common = (bias, batch_first, dropout, bidirectional, proj_size, device, dtype)
        super().__init__("LSTM", input_size, hidden_size, num_layers, *common)

    def forward(
        self, input: Tensor | PackedSequence, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Any, tuple[Tensor, Tensor]]:
        """The last layer's h after each step, and every layer's h and c after the last.

        Args:
            input: (steps, batch, input_size), or without batch, or packed.
            hx: h and c before the first step, (layers * directions, batch, proj_size or hidden_size) and
                (layers * directions, batch, hidden_size); zeros if None.

        Returns:
            (steps, batch, directions * (proj_size or hidden_size)), or packed like the input; and (h, c) in the form
            of ``hx``.

        Raises:
            RuntimeError, ValueError: shapes or dtypes do not match. TypeError: ``hx`` is not a pair of tensors.
        """
        if hx is not None and not (isinstance(hx, (tuple, list)) and len(hx) == 2):
            raise TypeError(f"LSTM: hx: expected a tuple of two tensors (h, c), got {type(hx).__name__}")
        output, (h, c) = self._call(input, None if hx is None else tuple(hx))
        return output, (h, c)
