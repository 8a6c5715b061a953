"""Laplacians in many dimensions, by estimates."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.callables import Function
from leafgrad_pinn.complex import each_part
from leafgrad_pinn.conditions import Batch, Interior
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.scene import Scene
from leafgrad_pinn.values import Points, Value, reverse


class Stochastic(Interior):
    """An equation inside with an estimate of the Laplacian: ``Stochastic(lambda u, lap: lap(u) - 200, n=256)``.

    With random signs v, v . H v has the trace of the Hessian H as its mean; it takes one derivative along v where the
    Laplacian takes one for each coordinate. Each point has directions of its own, drawn anew with the points: use
    ``points=Fresh(1)``. The mean square of the residual then contains the estimate's variance, divided by ``probes``.

    Args:
        equation: as for `Interior`, with a further parameter ``lap``: takes a field to the estimate, (n,) -> (n,).
        n, sampler, weight, name: see `Condition`.
        probes: how many directions each point has.

    Source: Hutchinson (1990), Commun. Stat. Simul. Comput. 19, 433; Hu, Shukla, Karniadakis and Kawaguchi (2024),
    Comput. Methods Appl. Mech. Eng. 424, 116883.
    """

    def __init__(
        self,
        equation: Function,
        n: int = 256,
        *,
        sampler: str = "uniform",
        weight: float = 1,
        name: str | None = None,
        probes: int = 1,
    ) -> None:
        super().__init__(equation, n, sampler=sampler, weight=weight, name=name)
        if probes < 1:
            raise ValueError(f"Stochastic: probes: expected at least 1, got {probes}")
        self.probes = probes

    def equation_of(self) -> tuple[()]:
        return ()

    def bind(self, scene: Scene) -> None:
        self.call, self.dim = scene.named(self.equation, self.name, "lap"), len(scene.domain.space)
        if not self.dim:
            raise ValueError(f"{self.name}: expected coordinates of space, over which lap runs, got a domain without")

    def at(self, points: Array, rng: np.random.Generator) -> Batch:
        signs = rng.integers(0, 2, (len(points), self.probes, self.dim)) * 2.0 - 1
        return {"points": points, "signs": signs}

    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Tensor]) -> Any:
        columns = [points.columns[name] for name in points.space]

        def lap(u: Value) -> Tensor:
            if not isinstance(u, Tensor):
                raise TypeError(f"{self.name}: lap: expected a field, or an expression of some, got {u!r}")
            slopes = leafgrad.stack(list(reverse(u, columns)), 1)
            estimates = []
            for probe in range(self.probes):
                signs = extra["signs"][:, probe]
                along = (slopes * signs).sum(1)
                second = leafgrad.stack(list(reverse(along, columns)), 1)
                estimates.append((second * signs).sum(1))
            return sum(estimates[1:], start=estimates[0]) / self.probes

        return self.call({**values, "lap": partial(each_part, lap)})
