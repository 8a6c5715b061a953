"""Measured values of fields, and equations at the places where they were measured."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from leafgrad import Tensor
from leafgrad_pinn.callables import Function, check_number
from leafgrad_pinn.complex import ComplexValue
from leafgrad_pinn.conditions import Batch, Condition
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.sampling import Array, columns_given, paired
from leafgrad_pinn.scene import Scene
from leafgrad_pinn.values import Points


class Data(Condition):
    """Fields have given values at given points: ``Data({"x": x, "t": t}, {"u": u})``.

    Args:
        coordinates: for each coordinate an array (n,), or of a grid's shape, as all others then.
        values: for each field an array (n,), of complex numbers for a complex field.
        weight, name, loss: see `Condition`.
        weights: for each point what its squared residual counts, (n,).
        functions: in a family, for each input function its values at the sensors for each point, (n, m) or (n, mx, my).
        noise: the standard deviation of the measurement, in the field's units: a number, or one for each field by name;
            for a complex field of either part. Residuals of that size are those of a right answer, and are no reason to
            call a problem unsolved; the loss is as without it.

    Raises:
        ValueError: arrays of different shapes, or with numbers that are not finite; noise that is not positive.
    """

    def __init__(
        self,
        coordinates: Mapping[str, Array],
        values: Mapping[str, Array],
        *,
        weight: float = 1,
        name: str = "data",
        weights: Array | None = None,
        loss: Callable[[Any], Any] | None = None,
        functions: Mapping[str, Array] = {},
        noise: float | Mapping[str, float] = {},
    ) -> None:
        self.functions = functions
        for given in (coordinates, values):
            if not isinstance(given, Mapping):
                raise TypeError(
                    f'{name}: expected arrays by name, as Data({{"x": x}}, {{"u": u}}), got {type(given).__name__}'
                )
        if not coordinates or not values:
            raise ValueError(f"{name}: expected coordinates and fields, got {list(coordinates)} and {list(values)}")
        given = {key: measured(f"{name}: {key}", v) for key, v in {**coordinates, **values}.items()}
        counts = {} if weights is None else {"weights=": measured(f"{name}: weights", weights)}
        arrays = paired(name, given | counts)
        self.coordinates, self.values = ({key: arrays[key] for key in part} for part in (coordinates, values))
        if wrong := [key for key, v in self.coordinates.items() if np.iscomplexobj(v)]:
            raise TypeError(f"{name}: expected real coordinates, got complex {', '.join(wrong)}")
        if wrong := [key for key, array in arrays.items() if not np.isfinite(array).all()]:
            raise ValueError(f"{name}: expected finite numbers, got nan or inf in {', '.join(wrong)}")
        super().__init__(len(next(iter(arrays.values()))), "uniform", weight, name, loss=loss)
        self.noise = dict(noise) if isinstance(noise, Mapping) else dict.fromkeys(self.values, noise)
        if unknown := [field for field in self.noise if field not in self.values]:
            raise ValueError(f"{name}: noise: expected fields among {', '.join(self.values)}, got {', '.join(unknown)}")
        for field, deviation in self.noise.items():
            check_number(f"{name}: noise of {field}", deviation)
            if deviation <= 0:
                raise ValueError(f"{name}: noise of {field}: expected a positive number, got {deviation}")
        self.counts = None if weights is None else columns_given(name, self.coordinates, arrays["weights="])["weights"]

    def __repr__(self) -> str:
        given = f"{', '.join(self.coordinates)} -> {', '.join(self.values)}"
        return super().__repr__().replace("Data(", f"Data({given}, ", 1)

    @classmethod
    def from_npz(cls, path: str | os.PathLike[str], *coordinates: str, **fields: str) -> Data:
        """Data from a file: ``Data.from_npz("burgers.npz", "x", "t", u="u")``, fields by the names of their arrays."""
        try:
            loaded = np.load(path)
        except ValueError as error:
            raise ValueError(f"{path}: expected an npz file, as np.savez writes it") from error
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise ValueError(f"{path}: expected an npz file, as np.savez writes it, got a single array")
        with loaded as file:
            if missing := [key for key in (*coordinates, *fields.values()) if key not in file]:
                raise ValueError(f"{path}: expected the arrays {', '.join(missing)}, got {', '.join(file)}")
            return cls({key: file[key] for key in coordinates}, {field: file[key] for field, key in fields.items()})

    def points(self, domain: Domain) -> Array:
        """The points (n, d); ValueError if a coordinate is missing or points lie outside."""
        if set(self.coordinates) != set(domain.names):
            raise ValueError(
                f"{self.name}: expected the coordinates {', '.join(domain.names)}, got {', '.join(self.coordinates)}"
            )
        points = np.stack([self.coordinates[key] for key in domain.names], 1)
        domain.check_inside(self.name, points)
        return points

    def within(self, domain: Domain) -> Data | None:
        inside = domain.inside(np.stack([self.coordinates[key] for key in domain.names], 1))
        part = copy.copy(self)
        part.coordinates, part.values = (
            {key: array[inside] for key, array in arrays.items()} for arrays in (self.coordinates, self.values)
        )
        part.counts = None if self.counts is None else self.counts[inside]
        part.n = int(inside.sum())
        return part if part.n else None

    def bind(self, scene: Scene) -> None:
        for field, value in self.values.items():
            if np.iscomplexobj(value) and scene.field(field, self.name) not in scene.complex:
                raise ValueError(f"{self.name}: expected real numbers for {field}, got complex ones; take ComplexField")
            scene.field(field, self.name)
        self.measured = [field for field in self.values for _ in range(1 + (field in scene.complex))]
        points = self.at(scene.domain)["points"]
        for field, part in scene.parts.items():
            if field in self.values and not (inside := scene.domain.covered(part, points)).all():
                first = dict(zip(scene.domain.names, points[~inside][0].tolist(), strict=True))
                raise ValueError(
                    f"{self.name}: expected points in the part of {field}, {part}, got {(~inside).sum()} outside of "
                    f"it, the first at {first}"
                )

    def at(self, domain: Domain) -> Batch:
        """The points (n, d), and input functions there; ValueError if these are missing, or of another number."""
        if set(self.functions) != {function.name for function in domain.functions}:
            wanted = ", ".join(function.name for function in domain.functions) or "none"
            raise ValueError(
                f"{self.name}: functions: expected those of the family, {wanted}, by their values at sensors for each "
                f"point, got {', '.join(self.functions) or 'none'}"
            )
        batch = {"points": self.points(domain)}
        for function in domain.functions:
            batch[function.key] = function.values(self.functions[function.name])
            if len(batch[function.key]) != self.n:
                raise ValueError(
                    f"{self.name}: functions: {function.name}: expected one for each of {self.n} points, got "
                    f"{len(batch[function.key])}"
                )
        return batch

    def draw(self, domain: Domain, rng: np.random.Generator) -> Batch:
        batch = self.at(domain) | ({} if self.counts is None else {"weights": self.counts})
        for field, value in self.values.items():
            batch[f"value {field}"] = value.real
            if np.iscomplexobj(value):
                batch[f"imag {field}"] = value.imag
        return batch

    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Tensor]) -> Any:
        known = {
            field: ComplexValue(extra[f"value {field}"], extra[f"imag {field}"])
            if f"imag {field}" in extra
            else extra[f"value {field}"]
            for field in self.values
        }
        return tuple(values[field] - known[field] for field in self.values)


class At(Condition):
    """An equation at the points of data: ``At(data, lambda u: u.t + lam * u * u.x)``."""

    def __init__(self, data: Data, equation: Function, *, weight: float = 1, name: str = "at data") -> None:
        if not isinstance(data, Data):
            raise TypeError(f"{name}: expected Data(...), got {type(data).__name__}")
        super().__init__(data.n, "uniform", weight, name)
        self.data, self.equation = data, equation

    def within(self, domain: Domain) -> At | None:
        part = copy.copy(self)
        data = self.data.within(domain)
        if data is None:
            return None
        part.data, part.n = data, data.n
        return part

    def bind(self, scene: Scene) -> None:
        self.call = scene.named(self.equation, self.name)

    def draw(self, domain: Domain, rng: np.random.Generator) -> Batch:
        return self.data.at(domain)

    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Tensor]) -> Any:
        return self.call(values)


def measured(what: str, values: Any) -> Array:
    """Measured values as float64, or complex128 if they are complex; TypeError for what is no number."""
    array = np.asarray(values)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"{what}: expected numbers, got {array.dtype}")
    return np.asarray(array, dtype=np.complex128 if np.iscomplexobj(array) else np.float64)
