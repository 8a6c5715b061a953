"""Special functions of Bessel, gamma and polynomials, from the plugin leafgrad-special, under PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from leafgrad.tensor.out import with_out
from leafgrad.tensor.tensor import Tensor


def plugin() -> Any:
    """The plugin; a NotImplementedError if it is not installed."""
    try:
        return import_module("leafgrad_special")
    except ModuleNotFoundError as error:
        raise NotImplementedError("this function is in the plugin leafgrad-special; install it") from error


# Functions of the plugin, by PyTorch's name.
SAME = {
    **{name: name for name in "digamma erfcx gammainc gammaincc gammaln i0 i0e i1 i1e log_ndtr ndtri zeta".split()},
    "bessel_j0": "j0", "bessel_j1": "j1", "bessel_y0": "y0", "bessel_y1": "y1", "modified_bessel_i0": "i0",
    "modified_bessel_i1": "i1", "modified_bessel_k0": "k0", "modified_bessel_k1": "k1", "psi": "digamma",
    "scaled_modified_bessel_k0": "k0e", "scaled_modified_bessel_k1": "k1e",
}  # fmt: skip

# Polynomials of degree n, as functions of the plugin, the degree and the tensor.
POLYNOMIALS: dict[str, Callable[[Any, int, Tensor], Tensor]] = {
    "chebyshev_polynomial_t": lambda s, n, x: s.eval_chebyt(n, x),
    "chebyshev_polynomial_u": lambda s, n, x: s.eval_chebyu(n, x),
    "chebyshev_polynomial_v": lambda s, n, x: s.eval_chebyu(n, x) - (s.eval_chebyu(n - 1, x) if n else 0),
    "chebyshev_polynomial_w": lambda s, n, x: s.eval_chebyu(n, x) + (s.eval_chebyu(n - 1, x) if n else 0),
    "hermite_polynomial_h": lambda s, n, x: s.eval_hermite(n, x),
    "hermite_polynomial_he": lambda s, n, x: s.eval_hermitenorm(n, x),
    "laguerre_polynomial_l": lambda s, n, x: s.eval_laguerre(n, x),
    "legendre_polynomial_p": lambda s, n, x: s.eval_legendre(n, x),
}


def same(name: str) -> Callable[..., Any]:
    """A function of the plugin."""

    def function(input: Any, other: Any = None) -> Any:
        more = () if other is None else (other,)
        return getattr(plugin(), SAME[name])(input, *more)

    return function


def polynomial(name: str, scale: int = 1, shift: int = 0) -> Callable[[Tensor, int], Tensor]:
    """A polynomial of a tensor, scaled and shifted first, and of a degree; 0 where that is negative."""

    def function(input: Tensor, n: int) -> Tensor:
        if isinstance(n, Tensor) and n.numel() != 1:
            raise NotImplementedError("expected one degree n for all elements, got several")
        x = input if scale == 1 else input * scale + shift
        return x * 0 if int(n) < 0 else POLYNOMIALS[name](plugin(), int(n), x)

    return function


def airy_ai(input: Tensor) -> Tensor:
    """Airy's function Ai. (...) -> (...)"""
    first: Tensor = plugin().airy(input)[0]
    return first


def multigammaln(input: Tensor, p: int) -> Tensor:
    """The logarithm of the gamma function of ``p`` dimensions. (...) -> (...)"""
    value: Tensor = plugin().multigammaln(input, p)
    return value


def polygamma(n: int, input: Tensor) -> Tensor:
    """The ``n``-th derivative of digamma. (...) -> (...)"""
    value: Tensor = plugin().polygamma(n, input)
    return value


def spherical_bessel_j0(input: Tensor) -> Tensor:
    """sin(x) / x. (...) -> (...)"""
    value: Tensor = plugin().spherical_jn(0, input)
    return value


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: same(name) for name in SAME},
    **{name: polynomial(name) for name in POLYNOMIALS},
    **{f"shifted_chebyshev_polynomial_{kind}": polynomial(f"chebyshev_polynomial_{kind}", 2, -1) for kind in "tuvw"},
}
for _function in (airy_ai, multigammaln, polygamma, spherical_bessel_j0):
    FUNCTIONS[_function.__name__] = _function
for _name, _function in FUNCTIONS.items():
    _function.__name__ = _function.__qualname__ = _name
    FUNCTIONS[_name] = with_out(_function, _name, "cast")
globals().update(FUNCTIONS)

__all__ = [*FUNCTIONS]
