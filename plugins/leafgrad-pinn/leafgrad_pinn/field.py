"""Fields: what is solved for, as networks that may satisfy conditions by construction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor, nn
from leafgrad.func import jvp
from leafgrad_pinn.callables import Function, Named, check_number, names_of
from leafgrad_pinn.calls import warn
from leafgrad_pinn.domains import Domain, as_domain
from leafgrad_pinn.elsewhere import at_any_time
from leafgrad_pinn.layers import Maker
from leafgrad_pinn.networks import Network
from leafgrad_pinn.operators import Operator
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.shapes import Shape
from leafgrad_pinn.values import recording, reverse

Values = Callable[[Mapping[str, Tensor]], dict[str, Tensor]]
Beginning = tuple[Tensor, Tensor | None]  # a field at a window's first moment, and its derivative by time

RESERVED = ("lap", "n", "at", "points", "names", "root", "path", "along", "space", "laplacian")
SAME = 1e-6  # of exact values, how far two may be apart where they meet


@dataclass(frozen=True)
class Hard:
    """A condition that a field satisfies exactly, whatever its network is.

    Args:
        value: a number, or a function of coordinates by name, defined all over the domain.
        on: for a boundary, the names of edges, as one string or a list; all of them by default.
        rate: for initial values, the derivative by time as well; a number or a function.
        clamped: for a boundary, that the field has the normal derivative of ``value`` there as well.
    """

    value: Function | float
    on: str | Sequence[str] | None = None
    rate: Function | float | None = None
    clamped: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.on, (list, tuple)):
            object.__setattr__(self, "on", " ".join(names_of("Hard: on", self.on)))


class Field:
    """An unknown function on a domain: ``Field("u", domain, net=MLP(64, 3))``.

    Args:
        name: by which equations ask for it.
        domain: a shape, a time, or ``shape * time``.
        net: the network's recipe, such as ``MLP(width, depth)``.
        initial: ``Hard(...)`` for exact values at the first moment.
        boundary: ``Hard(...)`` for exact values on edges.
        scale: of what size it is, in its units; what a `Problem` finds by default, where that is far from 1.
        part: a shape within the domain to which it belongs, such as one of two materials; elsewhere a solution has nan
            for it. Conditions in such a shape take it as ``of=``.
        history: what it was before the first moment, for equations that ask, as ``u.at(t=t - 5)``: a number, or a
            function of coordinates by name. At that moment it is what initial conditions say.

    Raises:
        ValueError: names that clash, edges that do not exist, hard conditions that contradict each other.

    Warns:
        UserWarning: exact values have a kink where the ends of a periodic coordinate meet.
    """

    def __init__(
        self,
        name: str,
        domain: Any,
        net: Network,
        *,
        initial: Hard | None = None,
        boundary: Hard | None = None,
        scale: float | None = None,
        part: Shape | None = None,
        history: Function | float | None = None,
    ) -> None:
        if not isinstance(net, Network):
            raise TypeError(f"net: expected a recipe, such as MLP(32, 3), got {type(net).__name__}")
        for what, given in (("initial", initial), ("boundary", boundary)):
            if not (given is None or isinstance(given, Hard)):
                raise TypeError(f"Field {name!r}: {what}: expected Hard(...) or nothing, got {given!r}")
        if initial is not None and initial.clamped:
            raise ValueError(f"Field {name!r}: initial: clamped is for boundaries; give the rate, as Hard(..., rate=0)")
        self.name, self.domain, self.net = name, as_domain(domain), net
        if isinstance(net, Operator) != bool(self.domain.functions):
            kind, got = ("an operator, such as DeepONet(64, 3)", "input functions") if self.domain.functions else (
                "a network, such as MLP(32, 3)", "no input functions")  # fmt: skip
            raise ValueError(
                f"Field {name!r}: net: expected {kind}, since its domain has {got}, got {type(net).__name__}"
            )
        self.initial, self.boundary = initial, boundary
        if scale is not None:
            check_number(f"Field {name!r}: scale", scale)
            if scale <= 0:
                raise ValueError(f"Field {name!r}: scale: expected a positive number, got {scale}")
        self.scale, self.part, self.history = scale, part, history
        if part is not None and (not isinstance(part, Shape) or part.names != self.domain.space):
            raise ValueError(
                f"Field {name!r}: part: expected a shape of {', '.join(self.domain.space) or 'space'}, in this order, "
                f"got {part!r}"
            )
        if part is not None:
            inside = Domain(part).interior(64, "sobol", np.random.default_rng(0))
            if not Domain(self.domain.shape).inside(inside).any():
                raise ValueError(f"Field {name!r}: part: expected a shape within {self.domain.shape}, got {part}")
        self.shared: tuple[Field, ...] = (self,)
        clash = {name, *RESERVED} & {*self.domain.names, *(f.name for f in self.domain.functions)}
        if clash or not name.isidentifier():
            raise ValueError(f"Field {name!r}: expected a name, and coordinates other than it, {', '.join(RESERVED)}")
        Ansatz(self).check()

    def __repr__(self) -> str:
        return f"Field({self.name!r}, {self.domain!r}, {self.net!r})"


def fields(
    names: str | Sequence[str],
    domain: Any,
    net: Network,
    *,
    initial: Mapping[str, Hard] = {},
    boundary: Mapping[str, Hard] = {},
    scale: Mapping[str, float] = {},
    history: Mapping[str, Function | float] = {},
) -> tuple[Field, ...]:
    """Several fields on one network, which has an output for each: ``u, v, p = fields("u v p", domain, net=...)``.

    Args:
        names: of the fields, as one string, or a list.
        domain, net: as for `Field`.
        initial, boundary: exact conditions by field.
        scale, history: sizes, and what they were before, by field.
    """
    split = names_of("fields: names", names)
    for given, what, example in (
        (initial, "conditions", "Hard(0)"),
        (boundary, "conditions", "Hard(0)"),
        (scale, "sizes", "1e5"),
        (history, "values", "0"),
    ):
        if not isinstance(given, Mapping):
            raise TypeError(f"fields: expected {what} by field, as {{'{split[0]}': {example}}}, got {given!r}")
        if unknown := set(given) - set(split):
            raise ValueError(f"fields: expected names among {names}, got {', '.join(sorted(unknown))}")
    made = tuple(
        Field(
            n, domain, net, initial=initial.get(n), boundary=boundary.get(n), scale=scale.get(n), history=history.get(n)
        )
        for n in split
    )
    if len(set(split)) < len(split) or not made:
        raise ValueError(f"fields: expected different names, at least one, got {names!r}")
    for field in made:
        field.shared = made
    return made


class Derivative(Field):
    """A field that is a derivative of another, times a factor: ``Derivative("v", s, "x", factor=-1)``.

    It has no network of its own: give it to the `Problem` beside the other, to measure, draw or constrain it.

    Args:
        name: by which equations, data and references ask for it.
        of: the field.
        coordinate: by which it is differentiated.
        factor: a number.

    Raises:
        TypeError: ``of`` is no `Field`. ValueError: it does not have the coordinate.
    """

    def __init__(self, name: str, of: Field, coordinate: str, factor: float = 1.0) -> None:
        if not isinstance(of, Field):
            raise TypeError(f"Derivative {name!r}: of: expected a Field, got {type(of).__name__}")
        super().__init__(name, of.domain, of.net, part=of.part, history=of.history)
        if coordinate not in of.domain.names:
            raise ValueError(
                f"Derivative {name!r}: coordinate: expected one of {', '.join(of.domain.names)}, got {coordinate!r}"
            )
        check_number(f"Derivative {name!r}: factor", factor)
        self.of, self.coordinate, self.factor = of, coordinate, float(factor)
        whole = (*of.shared, self)
        for field in whole:
            field.shared = whole


class Ansatz:
    """How a field follows from a network's output: the output itself, or lift + factor * output."""

    def __init__(self, field: Field) -> None:
        domain = field.domain
        self.field, self.domain = field, domain
        self.edges: tuple[str, ...] = ()
        self.clamped = field.boundary is not None and field.boundary.clamped
        self.start = self.rate = self.side = None
        if initial := field.initial:
            if domain.time is None:
                raise ValueError(f"Field {field.name!r}: initial: the domain has no time")
            timeless = [*domain.names[:-1], *(f.name for f in domain.functions)]
            self.start = Named(initial.value, f"Field {field.name!r}: initial", timeless)
            if initial.rate is not None:
                self.rate = Named(initial.rate, f"Field {field.name!r}: rate", timeless)
        if boundary := field.boundary:
            self.edges = domain.check_edges(domain.edges if boundary.on is None else names_of("Hard: on", boundary.on))
            if domain.shape:
                domain.shape.check_hard()
            self.side = Named(boundary.value, f"Field {field.name!r}: boundary", domain.names)
        self.history = None
        if field.history is not None:
            if domain.time is None:
                raise ValueError(f"Field {field.name!r}: history: the domain has no time")
            self.history = Named(field.history, f"Field {field.name!r}: history", domain.names)
        asked = {name for call in (self.start, self.rate) if call for name in call.parameters}
        self.functions = [function for function in domain.functions if function.name in asked]

    def __call__(self, columns: Mapping[str, Tensor], output: Tensor, begun: Beginning | None = None) -> Tensor:
        """The field (n,) of coordinates (n,) each, the network's output (n,), and what it begins with if it goes on."""
        if self.side is not None:
            shape = self.domain.shape
            assert shape is not None
            factor = shape.vanishing(columns, self.edges)
            output = (factor * factor if self.clamped else factor) * output
        if self.start is not None:
            time = self.domain.time
            assert time is not None
            elapsed = (columns[time.name] - time.start) / (time.stop - time.start)
            output = elapsed * output if self.rate is None else elapsed * elapsed * output
        lift = self.lift(columns, output, begun)
        return output if lift is None else lift + output

    def lift(self, columns: Mapping[str, Tensor], like: Tensor, begun: Beginning | None = None) -> Tensor | None:
        """What the field is where the factor is zero."""
        side = None if self.side is None else self.side.numbers(columns, like)
        if self.start is None:
            return side
        time = self.domain.time
        assert time is not None
        if begun is None:
            given = {f.name: f.at(columns[f.name], columns) for f in self.functions}
            begun = (
                self.start.numbers({**columns, **given}, like),
                None if self.rate is None else self.rate.numbers({**columns, **given}, like),
            )
        lift, rate = begun
        if rate is not None:
            lift = lift + (columns[time.name] - time.start) * rate
        if self.side is not None and side is not None:
            lift = lift + side - self._begun(columns, like)
        return lift

    def _begun(self, columns: Mapping[str, Tensor], like: Tensor) -> Tensor:
        """The boundary's values at the first moment, gone on from there at their rate if the field's rate is given."""
        time = self.domain.time
        assert time is not None
        assert self.side is not None
        first = leafgrad.full_like(like, time.start, requires_grad=True)
        begun = self.side.numbers({**columns, time.name: first}, like)
        if self.rate is None:
            return begun
        return begun + (columns[time.name] - time.start) * reverse(begun, [first])[0]

    @recording()
    def check(self) -> None:
        """ValueError if initial and boundary values contradict each other where they meet."""
        if self.side is None and self.start is None:
            return
        rng = np.random.default_rng(0)
        points = self.domain.interior(64, "uniform", rng)
        known = self._known(points)
        self._check_finite(known, points)
        self._check_periodic(points[:8], float(known.abs().max()))
        if self.side is None:
            return
        if self.domain.time is not None:
            points[:, -1] = self.domain.time.start
        start, (points, normals) = self._known(points), self.domain.boundary(64, self.edges, "uniform", rng)
        columns = columns_of(self.domain, points) | self._some(points)
        apart, side = self._apart(columns), self.side.numbers(columns, columns[self.domain.names[0]])
        if self.clamped and self.start is not None:
            names = self.domain.space
            sides = columns_of(self.domain, np.pad(normals, ((0, 0), (0, len(self.domain.names) - len(names)))))
            slope: Tensor = jvp(
                lambda *space: self._apart({**columns, **dict(zip(names, space, strict=True))}),
                tuple(columns[name] for name in names),
                tuple(sides[name] for name in names),
            )[1]
            length = float(np.ptp(self.domain.bounds[: len(names)], axis=1).max())
            apart = leafgrad.maximum(apart.abs(), length * slope.abs())
        gap = apart.detach().abs().numpy()
        self._check_finite(apart, points)
        if gap.max() > SAME * max(float(values.abs().max()) for values in (side, start)):
            place = points[gap.argmax()]
            if self.start is not None and self.domain.time is not None:  # both are given at the first moment alone
                place[-1] = self.domain.time.start
            first = dict(zip(self.domain.names, place.tolist(), strict=True))
            raise ValueError(
                f"Field {self.field.name!r}: conflicting corner values: initial and boundary differ by {gap.max():.2g} "
                f"where they meet, at {first}; change one, or take a soft one, without this place by where=..."
            )

    def _known(self, points: Array) -> Tensor:
        """What a field with exact values is without a network, at points (n, d)."""
        zeros = leafgrad.zeros(len(points), dtype=leafgrad.float64)
        return self(columns_of(self.domain, points) | self._some(points), zeros).detach()

    def _some(self, points: Array) -> dict[str, Tensor]:
        """Some input functions at as many points."""
        return {f.name: leafgrad.tensor(f.some(len(points))) for f in self.functions}

    def _check_finite(self, values: Tensor, points: Array) -> None:
        """ValueError if exact values (n,) at points (n, d) are not all numbers."""
        wrong = ~values.detach().isfinite().numpy()
        if wrong.any():
            place = dict(zip(self.domain.names, points[wrong][0].tolist(), strict=True))
            raise ValueError(f"Field {self.field.name!r}: expected finite exact values, got nan or inf, as at {place}")

    def _apart(self, columns: Mapping[str, Tensor]) -> Tensor:
        """The field minus the boundary's value, without a network."""
        assert self.side is not None
        zeros = leafgrad.zeros_like(columns[self.domain.names[0]])
        return self(columns, zeros) - self.side.numbers(columns, zeros)

    def _check_periodic(self, points: Array, size: float) -> None:
        """Exact values, of a size, where a periodic coordinate ends: ValueError if they jump, a warning at a kink."""
        for name in self.domain.periodic:
            start, stop = self.domain.bounds[self.domain.names.index(name)]
            (low, low_slope), (high, high_slope) = (self._at_end(points, name, end) for end in (start, stop))
            gap, kink = float((high - low).abs().max()), float((high_slope - low_slope).abs().max())
            if gap > SAME * max(size, float(low.abs().max())):
                raise ValueError(
                    f"Field {self.field.name!r}: expected exact values that are periodic in {name}, "
                    f"got ones whose ends differ by {gap:.2g}"
                )
            if kink > SAME * max(size / (stop - start), float(low_slope.abs().max())):
                warn(
                    f"Field {self.field.name!r}: exact values have a kink where the ends of {name} meet: their slopes "
                    f"differ by {kink:.2g}. The field keeps it for ever, and no equation sees it; unless the solution "
                    "has it, too, take a soft condition, such as Initial(...)"
                )

    def _at_end(self, points: Array, name: str, end: float) -> tuple[Tensor, Tensor]:
        """The lift, and its derivative by a coordinate, where that is ``end``."""
        columns = columns_of(self.domain, points) | self._some(points)
        column = columns[name] = leafgrad.full_like(columns[name], end, requires_grad=True)
        value = self(columns, leafgrad.zeros_like(column))
        return value.detach(), reverse(value, [column])[0].detach()


def columns_of(domain: Domain, points: Any, dtype: Any = leafgrad.float64, device: Any = "cpu") -> dict[str, Tensor]:
    """Points (n, d), a NumPy array, as a tensor (n,) for each coordinate, to be differentiated by."""
    return {
        name: leafgrad.tensor(np.ascontiguousarray(points[:, i]), dtype=dtype, device=device, requires_grad=True)
        for i, name in enumerate(domain.names)
    }


class Surrogate(nn.Module):
    """The fields that share a network, as a module: n numbers for each coordinate -> n numbers for each field.

    Args:
        shared: the fields.
        make: makes the network's weights.
        before: what the fields are in the window of time before; exact initial values go on from there.
    """

    def __init__(self, shared: Sequence[Field], make: Maker, before: Surrogate | None = None) -> None:
        super().__init__()
        domain = shared[0].domain
        self.names, self.time, self.bounds = domain.names, domain.time, domain.bounds
        self.scales = [field.scale or 1.0 for field in shared if not isinstance(field, Derivative)]
        self.fields, self.inputs = [field.name for field in shared], [f.name for f in domain.functions]
        self.parts = {field.name: field.part for field in shared if field.part is not None}
        self.derivatives = [field for field in shared if isinstance(field, Derivative)]
        self.ansatz = {field.name: Ansatz(field) for field in shared if not isinstance(field, Derivative)}
        net = shared[0].net
        self.net: nn.Module = (
            net.operator(domain, len(self.ansatz), make)
            if isinstance(net, Operator)
            else net.build(domain.names, domain.bounds, len(self.ansatz), make)
        )
        self.before = () if before is None else (before,)  # in a tuple: none of its weights are this module's

    def forward(self, columns: Mapping[str, Tensor], alone: bool = False) -> dict[str, Tensor]:
        """The fields; where values ``alone`` are wanted, without derivatives by the coordinates."""
        return self.whole(partial(self.values, alone=alone and not self.derivatives), columns)

    def past(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The fields before their time begins: those of windows before, or what their history says, or nan."""
        return self.whole(self.values_before, columns)

    def whole(self, values: Values, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Fields that have outputs of the network, with those that are their derivatives."""
        more = {field.name: self.value(field, values, columns) for field in self.derivatives}
        return {**values(columns), **more}

    def values_before(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Of fields with outputs what they were."""
        for before in self.before:
            assert before.time is not None
            return at_any_time(before.values, before.values_before, before.time)(dict(columns))
        like = next(iter(columns.values()))
        return {
            name: leafgrad.full_like(like, float("nan"))
            if ansatz.history is None
            else ansatz.history.numbers(columns, like)
            for name, ansatz in self.ansatz.items()
        }

    def values(self, columns: Mapping[str, Tensor], alone: bool = False) -> dict[str, Tensor]:
        """The fields that have an output of the network."""
        outputs = self.net([columns[name] for name in self.names], *[columns[name] for name in self.inputs])
        begun: Mapping[str, Beginning] = {}
        for before in self.before:
            begun = before.end(columns, {n: a.rate is not None for n, a in self.ansatz.items() if a.start}, alone)
        found = [outputs[:, i] if scale == 1 else outputs[:, i] * scale for i, scale in enumerate(self.scales)]
        return {name: one(columns, output, begun.get(name))
                for output, (name, one) in zip(found, self.ansatz.items(), strict=True)}  # fmt: skip

    def end(self, columns: Mapping[str, Tensor], rates: Mapping[str, bool], alone: bool) -> dict[str, Beginning]:
        """Fields at the last moment, at n places, and where ``rates`` says so their rates; without graphs if alone."""
        if not rates or self.time is None:
            return {}
        last = leafgrad.full_like(columns[self.time.name], self.time.stop, requires_grad=True)
        found = self({**columns, self.time.name: last}, alone)
        return {n: (found[n].detach() if alone else found[n], reverse(found[n], [last], alone)[0] if rate else None)
                for n, rate in rates.items()}  # fmt: skip

    def value(self, field: Field, values: Values, columns: Mapping[str, Tensor]) -> Tensor:
        """One field, which may be a derivative."""
        if not isinstance(field, Derivative):
            return values(columns)[field.name]

        def along(column: Tensor) -> Tensor:
            return self.value(field.of, values, {**columns, field.coordinate: column})

        column = columns[field.coordinate]
        found: Tensor = field.factor * jvp(along, (column,), (leafgrad.ones_like(column).detach(),))[1]
        return found
