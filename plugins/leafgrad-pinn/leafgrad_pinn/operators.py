"""Operators: networks of functions and coordinates, for families of problems."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields as members
from importlib import import_module
from typing import ClassVar

import numpy as np

import leafgrad
from leafgrad import Tensor, nn
from leafgrad_pinn.callables import check_number
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.functions import InputFunction
from leafgrad_pinn.layers import Inputs, Maker
from leafgrad_pinn.networks import MLP, Network


class Operator(Network):
    """How a network of input functions and coordinates is made, apart from its inputs and outputs."""

    @abstractmethod
    def operator(self, domain: Domain, outputs: int, make: Maker) -> nn.Module:
        """The module: columns of n numbers, and k of each input function by their values at the sensors, (k, m), of
        which each has n / k successive points, -> (n, outputs)."""

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
        weights = self.branch(self.scaled(functions))  # (k, outputs * width)
        basis = self.trunk(self.inputs(columns))  # (n, width)
        if len(weights) == len(basis):
            found = (weights.reshape(-1, *self.shape) * basis[:, None]).sum(2)
        else:
            each = basis.reshape(len(weights), -1, self.shape[1])
            found = (each @ weights.reshape(-1, *self.shape).transpose(1, 2)).reshape(-1, self.shape[0])
        result: Tensor = found / math.sqrt(self.shape[1]) + self.bias
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
        found, held = [], dict(self.named_buffers(recurse=False))
        for k, (values, mean, std) in enumerate(zip(functions, self.means, self.stds, strict=True)):
            components = held.get(f"components{k}")
            found.append((values - mean) / std if components is None else (values - mean) @ components)
        return leafgrad.cat(found, 1)


@dataclass(frozen=True)
class FNO(Operator):
    """A Fourier neural operator, from functions on the grid of their sensors to fields there: ``FNO(32, 4, modes=12)``.

    Between the grid's points fields are products of straight lines, with first derivatives, which serve an `Energy`;
    the functions and the domain have the same coordinates. It is computed once for each function: an energy of ``n``
    functions, with many points each, takes n runs, an equation at n points as many. Cut energies at its points, as
    ``Energy(..., order=2, pieces=28)`` for 29 sensors: it bends to what no point sees. Needs leafgrad-fft.

    Args:
        width, depth: of blocks, and how many.
        modes: how many frequencies there are in each direction.
        padding: by which part of the grid coordinates that are not periodic are extended with zeros.

    Source: Li et al. (2021), arXiv 2010.08895.
    """

    order: ClassVar[int | None] = 1
    closed: ClassVar[bool] = True

    modes: int = 12
    padding: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("FNO: modes", self.modes, 1, whole=True)
        check_number("FNO: padding", self.padding, 0)
        defaults = {member.name: member.default for member in members(Network)}
        for name in ("activation", "embed", "factorised", "enrich"):
            if getattr(self, name) != defaults[name]:
                raise ValueError(f"FNO: {name}: expected none, which it does not take, got {getattr(self, name)!r}")

    def operator(self, domain: Domain, outputs: int, make: Maker) -> nn.Module:
        return OnGrid(self, domain, outputs, make)


class OnGrid(nn.Module):
    """The network of an `FNO`, and its values between the points of the grid."""

    def __init__(self, recipe: FNO, domain: Domain, outputs: int, make: Maker) -> None:
        super().__init__()
        try:
            fft = import_module("leafgrad_fft")
        except ImportError:
            raise ImportError("FNO needs leafgrad-fft: pip install leafgrad-fft") from None
        first = domain.functions[0]
        for function in domain.functions:
            together = list(function.axes) == list(first.axes) and function.shape == first.shape
            if set(function.axes) != set(domain.names) or not together:
                raise ValueError(
                    f"FNO: expected input functions of all coordinates, {', '.join(domain.names)}, on one grid, got "
                    f"{function}; give all the same sensors in one order, or take a DeepONet"
                )
        self.means, self.stds = [f.mean for f in domain.functions], [f.std for f in domain.functions]
        self.between = InputFunction(first.name, first.axes, degree=1).on(domain)
        self.closed = [name in domain.periodic for name in first.axes]
        self.names, self.shape = domain.names, first.shape
        if len(set(self.closed)) > 1:
            raise ValueError("FNO: expected coordinates that are all periodic, or none of them")
        with leafgrad.random.fork_rng():
            leafgrad.manual_seed(int(make.rng.integers(2**31)))
            net = fft.FNO(
                len(domain.functions), outputs, (recipe.modes,) * len(self.shape), recipe.width, recipe.depth,
                0.0 if any(self.closed) else recipe.padding,
            )  # fmt: skip
        self.net = net.to(device=make.device, dtype=make.dtype)

    def forward(self, columns: Sequence[Tensor], *functions: Tensor) -> Tensor:
        scaled = [(f - mean) / std for f, mean, std in zip(functions, self.means, self.stds, strict=True)]
        grid = leafgrad.stack([f.reshape(-1, *self.shape) for f in scaled], 1)
        for dim, closed in enumerate(self.closed, 2):  # the end of a ring is its beginning
            grid = grid.narrow(dim, 0, grid.shape[dim] - 1) if closed else grid
        found = self.net(grid)
        for dim, closed in enumerate(self.closed, 2):
            found = leafgrad.cat([found, found.narrow(dim, 0, 1)], dim) if closed else found
        at = dict(zip(self.names, columns, strict=True))
        return leafgrad.stack([self.between.at(found[:, k].flatten(1), at) for k in range(found.shape[1])], 1)
