"""Complex fields as pairs of real ones on one network."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from leafgrad import Tensor
from leafgrad_pinn.callables import Function
from leafgrad_pinn.field import Field, Hard, fields
from leafgrad_pinn.networks import Network
from leafgrad_pinn.unknowns import Unknown
from leafgrad_pinn.values import Value, derivative, split


class ComplexField:
    """A complex unknown function, whose real and imaginary part are fields on one network.

    In equations it stands for a `ComplexValue`, and an equation of complex value is two real ones::

        psi = ComplexField("psi", domain, net=MLP(64, 3), initial=Hard(lambda x: 2 / lg.cosh(x)))
        Problem(psi, [Interior(lambda psi: 1j * psi.t + psi.xx / 2 + psi.abs2 * psi)])

    Args:
        name: by which equations ask for it; ``psi_re`` and ``psi_im`` are its parts, which they may ask for too.
        domain, net: as for `Field`.
        initial, boundary: ``Hard(...)`` for the real part, the imaginary one being zero there, or a pair of them.
        history: what it was before the first moment, as for `Field`: the real part, or a pair.
    """

    def __init__(
        self,
        name: str,
        domain: Any,
        net: Network,
        *,
        initial: Hard | Sequence[Hard] | None = None,
        boundary: Hard | Sequence[Hard] | None = None,
        history: Function | float | Sequence[Function | float] | None = None,
    ) -> None:
        parts = (f"{name}_re", f"{name}_im")
        past: dict[str, Function | float] = {}
        if history is not None:
            past = dict(zip(parts, history if isinstance(history, (list, tuple)) else (history, 0), strict=True))
        hard = [{} if given is None else dict(zip(parts, pair(given), strict=True)) for given in (initial, boundary)]
        self.name = name
        self.real, self.imag = fields(" ".join(parts), domain, net, initial=hard[0], boundary=hard[1],
                                      history=past)  # fmt: skip

    @property
    def domain(self) -> Any:
        return self.real.domain

    @property
    def parts(self) -> tuple[Field, Field]:
        """The real and the imaginary part."""
        return self.real, self.imag

    def __repr__(self) -> str:
        return f"ComplexField({self.name!r}, {self.real!r}, {self.imag!r})"


def pair(given: Hard | Sequence[Hard]) -> Sequence[Hard]:
    """Conditions on the real and the imaginary part."""
    if isinstance(given, Hard):
        return given, Hard(0, given.on, None if given.rate is None else 0)
    if len(given) != 2 or not all(isinstance(part, Hard) for part in given):
        raise ValueError(f"ComplexField: expected Hard(...), or a pair of them, got {given}")
    return given


class ComplexValue:
    """A complex field at n points, or what arithmetic makes of it: two tensors (n,).

    Derivatives are attributes as those of a field, ``psi.t``, ``psi.xx``, ``psi.lap``, ``psi.n``, and complex too.
    """

    def __init__(self, real: Any, imag: Any) -> None:
        self.real, self.imag = real, imag

    def __getattr__(self, name: str) -> ComplexValue:
        if name.startswith("_"):
            raise AttributeError(name)
        if not (isinstance(self.real, Value) and isinstance(self.imag, Value)):
            raise AttributeError(
                f"{name}: expected a complex field, got an expression of some: differentiate first, as psi.x.conj, "
                "or by d(psi * psi, x)"
            )
        if name not in ("lap", "n") and split(name, self.real.points.coordinates) is None:
            raise AttributeError(
                f"{name}: expected a derivative of a complex field, as psi.x, lap, n, or its at, conj, abs2, real and "
                "imag; its modulus is abs(psi), its angle lg.atan2(psi.imag, psi.real)"
            )
        return ComplexValue(getattr(self.real, name), getattr(self.imag, name))

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "a complex field is its values at the condition's points, and psi.conj, psi.abs2, psi.x have no brackets; "
            "at another place it is psi.at(x=0)"
        )

    def along(self, path: Sequence[str]) -> ComplexValue:
        """The derivative by each coordinate of the path in turn."""
        return ComplexValue(self.real.along(path), self.imag.along(path))

    def at(self, **place: Any) -> ComplexValue:
        """It where coordinates are others, as `leafgrad_pinn.values.Value.at`."""
        return ComplexValue(self.real.at(**place), self.imag.at(**place))

    @property
    def conj(self) -> ComplexValue:
        """The complex conjugate."""
        return ComplexValue(self.real, -self.imag)

    @property
    def abs2(self) -> Tensor:
        """The square of the modulus, which is smooth where it is zero too. (n,)"""
        square: Tensor = self.real * self.real + self.imag * self.imag
        return square

    def __abs__(self) -> Tensor:
        modulus: Tensor = self.abs2.sqrt()
        return modulus

    def __pos__(self) -> ComplexValue:
        return self

    def __neg__(self) -> ComplexValue:
        return ComplexValue(-self.real, -self.imag)

    def __add__(self, other: Any) -> ComplexValue:
        real, imag = both(other)
        return ComplexValue(self.real + real, plus(self.imag, imag))

    __radd__ = __add__

    def __sub__(self, other: Any) -> ComplexValue:
        real, imag = both(other)
        return ComplexValue(self.real - real, plus(self.imag, -imag))

    def __rsub__(self, other: Any) -> ComplexValue:
        return -self + other

    def __mul__(self, other: Any) -> ComplexValue:
        real, imag = both(other)
        return ComplexValue(
            plus(times(self.real, real), -times(self.imag, imag)), plus(times(self.real, imag), times(self.imag, real))
        )

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> ComplexValue:
        real, imag = both(other)
        square = plus(times(real, real), times(imag, imag))
        return self * ComplexValue(real / square, -imag / square)

    def __rtruediv__(self, other: Any) -> ComplexValue:
        return ComplexValue(self.real / self.abs2, -self.imag / self.abs2) * other

    def __pow__(self, exponent: int) -> ComplexValue:
        if not isinstance(exponent, int) or exponent < 1:
            raise TypeError(f"**: expected an integer of at least 1 as the power of a complex field, got {exponent!r}")
        result = self
        for _ in range(exponent - 1):
            result = result * self
        return result


def d(value: Any, *coordinates: Tensor) -> Any:
    """The derivative of an expression by one coordinate after the other: ``d(u * u.x, x)``. (n,) -> (n,)

    Args:
        value: an expression of fields and coordinates, in an equation, complex ones too, or in exact values.
        coordinates: parameters of the equation, as the x of ``lambda u, x: d(u * u, x)``; or what the value is made
            of, as u. By a coordinate that it does not depend on, as what is detached, the derivative is 0.

    Raises:
        TypeError: the value is a number. ValueError: it is not made of what it is to be differentiated by, or that
            requires no grad.
    """
    if isinstance(value, ComplexValue):
        parts = [0 if isinstance(part, numbers.Complex) else derivative(part, *coordinates) for part in both(value)]
        return ComplexValue(*parts)
    return derivative(value, *coordinates)


def both(value: Any) -> tuple[Any, Any]:
    """The real and the imaginary part of a complex field, a number, a tensor or an unknown."""
    if isinstance(value, (ComplexValue, numbers.Complex)) or (isinstance(value, Tensor) and value.is_complex()):
        return value.real, value.imag
    return (value.current() if isinstance(value, Unknown) else value), 0


def each_part(function: Callable[[Any], Any], value: Any) -> Any:
    """A linear function of a value, real or complex."""
    return ComplexValue(*map(function, both(value))) if isinstance(value, ComplexValue) else function(value)


def none(value: Any) -> bool:
    """Whether it is the number zero, that is a part that does not exist."""
    return isinstance(value, numbers.Complex) and value == 0


def plus(a: Any, b: Any) -> Any:
    """a + b, without adding zeros."""
    return b if none(a) else a if none(b) else a + b


def times(a: Any, b: Any) -> Any:
    """a b, without multiplying by zeros."""
    return 0 if none(a) or none(b) else a * b


def parts_of(result: Any) -> list[Any]:
    """The real values in an equation's result: those of a tuple, and two for a complex value."""
    results = result if isinstance(result, tuple) else (result,)
    parts = [[p for p in both(r) if not none(p)] if isinstance(r, ComplexValue) else [r] for r in results]
    return [part for those in parts for part in those]
