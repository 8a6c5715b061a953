"""Operators: networks of functions and coordinates, for families of problems."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import leafgrad
from leafgrad import Tensor, nn
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.functions import InputFunction
from leafgrad_pinn.layers import Inputs, Maker
from leafgrad_pinn.networks import MLP, Network


class Operator(Network):
    """How a network of input functions and coordinates is made, apart from its inputs and outputs."""

    @abstractmethod
    def operator(self, domain: Domain, outputs: int, make: Maker) -> nn.Module:
        """The module: columns of n numbers, and for each input function its values at the sensors, (n, m) or (1, m),
        -> (n, outputs)."""

    def body(self, inputs: int, outputs: int, make: Maker) -> nn.Module:
        raise TypeError(f"{type(self).__name__}: expected a domain with input functions, got a network's part")


@dataclass(frozen=True)
class DeepONet(Operator):
    """A network of the functions times one of the coordinates, branch and trunk: ``DeepONet(64, 3)``.

    The result is the inner product of what the two make, of ``width`` numbers, and a constant.

    Args:
        width, depth, activation, factorised: of both, where they are not given; `Network`.
        embed: of the coordinates.
        branch, trunk: networks in place of `MLP`, such as ``branch=ModifiedMLP(64, 3)``.

    Source: Lu, Jin, Pang, Zhang and Karniadakis (2021), Nature Machine Intelligence 3, 218. Trained by equations: Wang,
    Wang and Perdikaris (2021), Science Advances 7, eabi8605.
    """

    branch: Network | None = None
    trunk: Network | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.enrich is not None:
            raise ValueError("DeepONet: enrich: expected none, which operators do not take")
        for name, part in (("branch", self.branch), ("trunk", self.trunk)):
            if part is not None and (isinstance(part, Operator) or not isinstance(part, Network)):
                got = type(part).__name__
                raise TypeError(f"DeepONet: {name}: expected a network's recipe, such as MLP(64, 3), got {got}")
            if part is not None and (part.embed is not None or part.enrich is not None):
                raise ValueError(f"DeepONet: {name}: expected a network without embed and enrich; DeepONet takes embed")

    def operator(self, domain: Domain, outputs: int, make: Maker) -> nn.Module:
        return BranchAndTrunk(self, domain, outputs, make)


class BranchAndTrunk(nn.Module):
    """The layers of a `DeepONet`."""

    def __init__(self, recipe: DeepONet, domain: Domain, outputs: int, make: Maker) -> None:
        super().__init__()
        plain = MLP(recipe.width, recipe.depth, recipe.activation, factorised=recipe.factorised)
        self.scaled = Scaled(domain.functions, make)
        self.inputs = Inputs(domain.names, domain.bounds, recipe.embed, make)
        self.shape = (outputs, recipe.width)
        self.branch = (recipe.branch or plain).body(self.scaled.size, outputs * recipe.width, make)
        self.trunk = (recipe.trunk or plain).body(self.inputs.size, recipe.width, make)
        self.bias = make.parameter(np.zeros(outputs))

    def forward(self, columns: Sequence[Tensor], *functions: Tensor) -> Tensor:
        weights = self.branch(self.scaled(functions))
        basis = self.trunk(self.inputs(columns))
        found = (weights.reshape(-1, *self.shape) * basis[:, None]).sum(2) / math.sqrt(self.shape[1])
        result: Tensor = found + self.bias
        return result


class Scaled(nn.Module):
    """All functions by their principal components, or by their values at sensors, of about mean 0 and variance 1.

    Values at neighbouring sensors are nearly the same, so that a network of them is trained as slowly as any of badly
    scaled inputs. (n, m) for each -> (n, size)
    """

    def __init__(self, functions: Sequence[InputFunction], make: Maker) -> None:
        super().__init__()
        self.size = 0
        self.means, self.stds = [f.mean for f in functions], [f.std for f in functions]
        for k, f in enumerate(functions):
            self.size += f.size if f.components is None else f.components.shape[1]
            components = None if f.components is None else make.tensor(f.components)
            self.register_buffer(f"components{k}", components, persistent=False)

    def forward(self, functions: Sequence[Tensor]) -> Tensor:
        found = []
        for k, (values, mean, std) in enumerate(zip(functions, self.means, self.stds, strict=True)):
            components = getattr(self, f"components{k}")
            found.append((values - mean) / std if components is None else (values - mean) @ components)
        return leafgrad.cat(found, 1)
