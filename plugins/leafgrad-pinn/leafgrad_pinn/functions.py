"""Input functions: what a family of problems is over, such as all forcings or all initial values.

A network sees a function by its values at sensors, the points of a grid. Equations see it between these too, by
polynomials, so that whatever has values at the sensors is such a function: a draw, a measurement, or a closed form.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.callables import Named
from leafgrad_pinn.sampling import Array, reals

if TYPE_CHECKING:
    from leafgrad_pinn.domains import Domain

LOOKS = 256  # functions that say of what size they are, or more: four for each sensor
LARGEST = 600  # sensors, of which principal components are found
LEAST = 1e-4  # of the first principal component: smaller ones are left out
FAR = 6.0  # standard deviations, above which a function is unlike those that are drawn
LEFT = 0.02  # of a function, what may lie beside all components of those that are drawn
EQUAL = 1e-6  # of the distance of sensors: how far they may be from where they should be
DEGREES = (1, 3, 5)  # of polynomials between sensors


class InputFunction:
    """A function of some coordinates, known by its values at sensors. ``shape * InputFunction(...)`` is a family.

    Attributes:
        name: by which equations ask for it.
        axes: for each of its coordinates the places of sensors, equally spaced from end to end: (m,), m above degree.
        mean, std: of its values, by which networks scale them.
        degree: of the polynomials between sensors, through the nearest ones: 5, with two derivatives whose errors fall
            as the sensors' distance to the power of 4; 3 with one; or 1 with none, for functions that jump.
        periodic: the coordinates whose ends are one place.
        components: the principal components of draws, (m, r), as large as the root of their standard deviations; None
            where there are too many sensors.
    """

    periodic: tuple[str, ...] = ()

    def __init__(
        self,
        name: str,
        axes: Mapping[str, Array],
        mean: float = 0.0,
        std: float = 1.0,
        degree: int = 5,
        components: Array | None = None,
    ) -> None:
        what = f"{type(self).__name__} {name!r}"
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"{type(self).__name__}: name: expected a name, such as 'f', got {name!r}")
        if degree not in DEGREES:
            raise ValueError(f"{what}: degree: expected one of {', '.join(map(str, DEGREES))}, got {degree!r}")
        if not isinstance(axes, Mapping) or not axes:
            raise TypeError(f'{what}: axes: expected arrays by name, as {{"x": x}}, got {type(axes).__name__}')
        self.name, self.mean, self.std, self.degree = name, float(mean), float(std), degree
        self.components = components
        self.axes = {key: reals(f"{what}: {key}", axis) for key, axis in axes.items()}
        for key, axis in self.axes.items():
            even = np.linspace(axis[0], axis[-1], len(axis)) if axis.ndim == 1 and len(axis) > degree else None
            if even is None or not (even[1] > even[0] and np.abs(axis - even).max() < EQUAL * (even[1] - even[0])):
                raise ValueError(
                    f"{what}: {key}: expected at least {degree + 1} places of sensors, equally spaced and rising, got "
                    f"{axis!r:.60}"
                )
        if not self.std > 0:
            raise ValueError(f"{what}: std: expected a positive number, got {std}")
        if components is not None:
            if components.ndim != 2 or len(components) != self.size or not components.size:
                raise ValueError(f"{what}: components: expected shape ({self.size}, r), got {components.shape}")
            if not np.isfinite(components).all() or not components.any(0).all():
                raise ValueError(
                    f"{what}: components: expected finite numbers, in each some other than zero, got others"
                )

    def learn(self, draws: Array) -> None:
        """Take over mean, deviation and principal components of draws (n, m)."""
        self.mean, self.std = float(draws.mean()), float(draws.std()) or 1.0
        self.components = None
        if self.size <= min(LARGEST, len(draws)):
            _, sizes, directions = np.linalg.svd((draws - self.mean) / math.sqrt(len(draws)), full_matrices=False)
            if (kept := sizes > LEAST * sizes[0]).any():
                self.components = (directions[kept] / np.sqrt(sizes[kept] * sizes[0])[:, None]).T

    def unlike(self, row: Array) -> str:
        """In what a function, (1, m), differs from all that are drawn, in words; "" if it does not."""
        if self.components is None:
            gap = float(np.abs(row - self.mean).max()) / self.std
            return f"it is {gap:.0f} standard deviations from their mean" if gap > FAR else ""
        sizes = 1 / np.square(self.components).sum(0)  # products with the first of their deviations
        sizes /= math.sqrt(sizes[0])
        large, away = sizes > LEFT * sizes[0], (row - self.mean)[0]
        found = away @ (self.components * np.sqrt(sizes * sizes[0]))[:, large]
        gap = float(np.abs(found / sizes[large]).max())
        whole = self.size * self.std**2 + float(away @ away)
        left = math.sqrt(max(0.0, float(away @ away - found @ found)) / whole)
        usual = math.sqrt(float(np.square(sizes[~large]).sum()) / (self.size * self.std**2))
        told = [f"{left:.0%} of it is in none of them"] if left > LEFT + FAR * usual else []
        return " and ".join([*told, *([f"it is {gap:.0f} standard deviations from their mean"] * (gap > FAR))])

    @property
    def key(self) -> str:
        """Where a batch of points has its values at the sensors."""
        return f"function {self.name}"

    @property
    def order(self) -> int:
        """Of the highest derivative that there is."""
        return self.degree // 2

    def __mul__(self, other: Any) -> Any:
        raise TypeError(f"{type(self).__name__} * {type(other).__name__}: input functions come last: `shape * {self}`")

    @property
    def shape(self) -> tuple[int, ...]:
        """How many sensors there are along each coordinate."""
        return tuple(map(len, self.axes.values()))

    @property
    def size(self) -> int:
        """How many sensors there are, m."""
        return math.prod(self.shape)

    def on(self, domain: Domain) -> InputFunction:
        """It on a domain; ValueError where its sensors do not reach from end to end of coordinates."""
        for name, axis in self.axes.items():
            if name not in domain.names:
                raise ValueError(
                    f"{self.name}: over: expected coordinates among {', '.join(domain.names)}, got {name!r}"
                )
            low, high = domain.bounds[domain.names.index(name)]
            if not np.allclose((axis[0], axis[-1]), (low, high), rtol=0, atol=1e-6 * (high - low)):
                raise ValueError(
                    f"{self.name}: {name}: expected sensors from {low:g} to {high:g}, as the domain has it, got ones "
                    f"from {axis[0]:g} to {axis[-1]:g}"
                )
        placed = copy.copy(self)
        placed.periodic = tuple(name for name in self.axes if name in domain.periodic)
        return placed

    def some(self, n: int) -> Array:
        """Always the same functions, (n, m): draws, where there is a distribution."""
        return np.full((n, self.size), self.mean)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Random functions, by their values at the sensors: (n, m)"""
        raise ValueError(f"{self.name}: expected a distribution, such as GaussianField(...), to draw from, got none")

    def values(self, given: Any) -> Array:
        """The values at the sensors, (n, m), of a function of NumPy arrays by coordinate, or of arrays of values.

        Raises:
            TypeError, ValueError: it is none, or its values are not finite or of another shape.
        """
        if callable(given):
            grid = dict(zip(self.axes, np.meshgrid(*self.axes.values(), indexing="ij"), strict=True))
            if isinstance(given, np.ufunc) and given.nin != len(grid):  # one more would be where it writes
                raise TypeError(f"{self.name}: expected a function of {', '.join(grid)}, got {given}, of {given.nin}")
            names = grid if isinstance(given, np.ufunc) else Named(given, self.name, self.axes).parameters
            given = np.broadcast_to(reals(self.name, given(*[grid[name] for name in names])), self.shape)
        array = np.asarray(given)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{self.name}: expected a function, or real numbers at its sensors, got {array.dtype}")
        if array.shape[-len(self.shape) :] != self.shape or array.ndim > len(self.shape) + 1:
            raise ValueError(
                f"{self.name}: expected values at its sensors, of shape {self.shape}, or several functions, each in a "
                f"row, got shape {array.shape}"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{self.name}: expected finite values, got nan or inf")
        rows = array.reshape(-1, *self.shape).astype(np.float64)
        for name in self.periodic:
            axis = list(self.axes).index(name) + 1
            gap = np.abs(rows.take(-1, axis) - rows.take(0, axis)).max()
            if gap > EQUAL * (1 + np.abs(rows).max()):
                raise ValueError(f"{self.name}: expected the same values at both ends of {name}, got {gap:.2g} between")
        return rows.reshape(-1, self.size)

    def row(self, rows: Array, index: int) -> Array:
        """One function of several by their values at the sensors, (n, m): (m,) or (mx, my)"""
        return np.asarray(rows[index].reshape(self.shape))

    def at(self, rows: Tensor, columns: Mapping[str, Tensor]) -> Tensor:
        """Values of functions, given by rows at the sensors (k, m), at points (n,) by coordinate: (n,)

        Each function has n / k successive points.
        """
        every = [self._near(name, columns[name]) for name in self.axes]
        strides, total = [math.prod(self.shape[k + 1 :]) for k in range(len(self.shape))], None
        for corner in itertools.product(*every):
            places: Any = sum((place * stride for (place, _), stride in zip(corner, strides, strict=True)), start=0)
            found = rows.gather(1, places.reshape(len(rows), -1)).reshape(-1)
            term = math.prod([weight for _, weight in corner]) * found
            total = term if total is None else total + term
        assert total is not None
        return total

    def _near(self, name: str, x: Tensor) -> list[tuple[Tensor, Tensor]]:
        """The degree + 1 sensors about each x (n,), and how much each counts, by Lagrange's polynomials: (n,) each."""
        axis, count = self.axes[name], len(self.axes[name]) - 1
        low, step = float(axis[0]), float(axis[-1] - axis[0]) / count
        first = ((x.detach() - low) / step - (self.degree - 1) // 2).floor()
        if name not in self.periodic:
            first = first.clamp(0, count - self.degree)
        place, away = first.long(), (x - low) / step - first
        found, nodes = [], range(self.degree + 1)
        for k in nodes:
            factors = [away - j for j in nodes if j != k]
            scale = math.prod(k - j for j in nodes if j != k)
            which = (place + (k + count)) % count if name in self.periodic else place + k
            found.append((which, math.prod(factors[1:], start=factors[0]) / scale))
        return found

    def function(self, row: Array) -> Callable[..., Array]:
        """The function that has these values at the sensors, (m,), of NumPy arrays, which broadcast.

        ValueError beyond the ends of coordinates that are not periodic.
        """

        def call(*columns: Array) -> Array:
            arrays = np.broadcast_arrays(*[reals(self.name, column) for column in columns])
            for (name, axis), a in zip(self.axes.items(), arrays, strict=True):
                slack = EQUAL * (axis[1] - axis[0])
                if name not in self.periodic and not ((a >= axis[0] - slack) & (a <= axis[-1] + slack)).all():
                    raise ValueError(
                        f"{self.name}: expected {name} from {axis[0]:g} to {axis[-1]:g}, got {a.min():g} to {a.max():g}"
                    )
            flat = {name: leafgrad.tensor(a.reshape(-1)) for name, a in zip(self.axes, arrays, strict=True)}
            found: Array = self.at(leafgrad.tensor(row.reshape(1, -1)), flat).numpy()
            return found.reshape(arrays[0].shape)

        return call

    def __repr__(self) -> str:
        sensors = ", ".join(f"{name}: {len(axis)}" for name, axis in self.axes.items())
        return f"{type(self).__name__}({self.name!r}, {sensors})"


class Sampled(InputFunction):
    """Functions of which some are given, to be drawn from these: ``Sampled("f", {"x": x}, values)``.

    Args:
        name, axes: see `InputFunction`.
        values: for each function its values at the sensors, (functions, m) or (functions, mx, my).
        degree: see `InputFunction`.
    """

    def __init__(self, name: str, axes: Mapping[str, Array], values: Array, degree: int = 5) -> None:
        super().__init__(name, axes, degree=degree)
        self.given = self.values(values)
        self.learn(self.given)

    def some(self, n: int) -> Array:
        return self.draw(n, np.random.default_rng(0))

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        return np.asarray(self.given[rng.integers(len(self.given), size=n)])
