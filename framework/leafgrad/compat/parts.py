"""Functions of ``torch`` that are parts of others: steps of recurrent layers, grids, derivatives of softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import dtypes
from leafgrad.nn import functional as F
from leafgrad.tensor.creation import empty, zeros
from leafgrad.tensor.tensor import Tensor

MODES, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def frobenius_norm(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    """The square root of the sum of squares over dimensions, by default all."""
    from leafgrad.linalg import vector_norm

    return vector_norm(input, 2, dim or None, keepdim)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """ConvNd in one dimension. (T, B, in), (size, in, out), (out) -> (T', B, out)"""
    return F.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """``functional.affine_grid``."""
    return F.affine_grid(theta, size, align_corners)


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """``functional.grid_sample`` with ``mode`` and ``padding_mode`` by their numbers."""
    return F.grid_sample(input, grid, MODES[interpolation_mode], PADDINGS[padding_mode], align_corners)


def rnn_cell(activation: Callable[[Tensor], Tensor], name: str) -> Callable[..., Tensor]:
    """A step of a recurrent layer with this activation."""

    def function(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None) -> Tensor:
        return activation(F.linear(input, w_ih, b_ih) + F.linear(hx, w_hh, b_hh))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "(N, in), (N, hidden), (hidden, in), (hidden, hidden), (hidden), (hidden) -> (N, hidden)"
    return function


def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    """A step of a GRU. (N, in), (N, hidden), (3*hidden, in), (3*hidden, hidden), ... -> (N, hidden)"""
    reset, update, new = F.linear(input, w_ih, b_ih).chunk(3, 1)
    old_reset, old_update, old_new = F.linear(hx, w_hh, b_hh).chunk(3, 1)
    z = (update + old_update).sigmoid()
    n = (new + (reset + old_reset).sigmoid() * old_new).tanh()
    return n + z * (hx - n)


def lstm_cell(input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None) -> Any:
    """A step of an LSTM. (N, in), 2 of (N, hidden), (4*hidden, in), (4*hidden, hidden), ... -> 2 of (N, hidden)"""
    h, c = hx
    i, f, g, o = (F.linear(input, w_ih, b_ih) + F.linear(h, w_hh, b_hh)).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of ``softmax`` by its output. (...), (...) -> (...)"""
    product = grad_output * output
    return (product - output * product.sum(dim, keepdim=True)).to(input_dtype)


def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of ``log_softmax`` by its output. (...), (...) -> (...)"""
    return (grad_output - output.exp() * grad_output.sum(dim, keepdim=True)).to(input_dtype)


def _standard_gamma(self: Tensor, generator: Any = None) -> Tensor:
    """Draws of Gamma(``self``, 1), differentiable. (...) -> (...)"""
    from leafgrad.distributions import Gamma

    if generator is not None:
        raise NotImplementedError("_standard_gamma: generator: expected None; the default generator draws")
    return Gamma(self, 1.0, validate_args=False).rsample()


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Rows and columns of the elements of a sparse matrix. (n + 1), (elements) -> (2, elements)"""
    kind = dtypes.int32 if out_int32 else dtypes.int64
    rows = empty(0, dtype=kind).new_tensor(range(len(crow_indices) - 1)).repeat_interleave(crow_indices.diff())
    made = rows.new_empty(2, len(col_indices), dtype=kind)
    made[int(transpose)], made[1 - int(transpose)] = rows, col_indices
    return made


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Where the rows of a sparse matrix begin, of the sorted rows of its elements. (elements) -> (size + 1)"""
    made = zeros(size + 1, dtype=dtypes.int32 if out_int32 else dtypes.int64)
    made[1:] = input.bincount(minlength=size).cumsum(0)
    return made


def cast(kind: dtypes.dtype, name: str) -> Callable[..., Tensor]:
    """``Tensor.to`` of a dtype."""

    def function(input: Tensor, non_blocking: bool = False) -> Tensor:
        return input.to(kind)

    function.__name__, function.__doc__ = name, f"``input.to({kind})``."
    return function


def written(name: str) -> Callable[..., Tensor]:
    """A dropout of ``functional`` that writes into its input."""

    def function(input: Tensor, p: float, train: bool) -> Tensor:
        return getattr(F, name)(input, p, train, inplace=True)

    function.__name__ = function.__qualname__ = f"{name}_"
    function.__doc__ = f"``functional.{name}`` in place."
    return function


CASTS = {
    "Byte": dtypes.uint8, "Char": dtypes.int8, "Short": dtypes.int16, "Int": dtypes.int32, "Long": dtypes.int64,
    "Half": dtypes.float16, "Float": dtypes.float32, "Double": dtypes.float64,
}  # fmt: skip
_EACH: tuple[Any, ...] = (
        frobenius_norm, conv_tbc, affine_grid_generator,
        grid_sampler, gru_cell, lstm_cell, rnn_cell(Tensor.tanh, "rnn_tanh_cell"), rnn_cell(F.relu, "rnn_relu_cell"),
        _softmax_backward_data, _log_softmax_backward_data, _standard_gamma, _convert_indices_from_csr_to_coo,
        _convert_indices_from_coo_to_csr,
        *map(written, ("dropout", "alpha_dropout", "feature_alpha_dropout")),
        *[cast(kind, f"_cast_{name}") for name, kind in CASTS.items()],
)  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {function.__name__: function for function in _EACH}
FUNCTIONS["grid_sampler_2d"] = FUNCTIONS["grid_sampler_3d"] = grid_sampler
FUNCTIONS["feature_dropout_"] = written("dropout2d")
