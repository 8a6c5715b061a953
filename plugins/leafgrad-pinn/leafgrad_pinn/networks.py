"""Networks as recipes, which a problem builds anew for each seed."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

import leafgrad
from leafgrad import Tensor, nn
from leafgrad_pinn.callables import Function, Named, check_number
from leafgrad_pinn.layers import Dense, Factorised, Inputs, Maker, Periodic, activation
from leafgrad_pinn.sampling import Array


@dataclass(frozen=True)
class Network:
    """How a network is made, apart from its inputs and outputs, which follow from domain and fields.

    Args:
        width: of each hidden layer.
        depth: how many hidden layers, or blocks.
        activation: one of ``leafgrad_pinn.layers.ACTIVATIONS``.
        embed: ``Periodic(...)`` or ``Even(...)``, ``Fourier(...)``, or a tuple of two.
        factorised: ``Factorised(...)`` for random weight factorisation.
        enrich: a function s of coordinates by name, such as the singular term of a corner: each field is then
            a + s b, where a and b are outputs of the network.
    """

    order: ClassVar[int | None] = None  # of the highest derivative; None for any
    closed: ClassVar[bool] = False  # whether it is periodic in periodic coordinates by itself

    width: int = 32
    depth: int = 3
    activation: str = "tanh"
    embed: Any = None
    factorised: Factorised | None = None
    enrich: Function | None = field(default=None, repr=False)  # its address is another in each process

    def __post_init__(self) -> None:
        check_number(f"{type(self).__name__}: width", self.width, whole=True)
        check_number(f"{type(self).__name__}: depth", self.depth, whole=True)
        if self.width < 1 or self.depth < 1:
            raise ValueError(
                f"{type(self).__name__}: expected a width and depth of at least 1, got {self.width}, {self.depth}"
            )
        activation(self.activation)

    def rings(self, names: Sequence[str]) -> set[str]:
        """The coordinates in which it is periodic by itself, in a domain that is so in these."""
        parts = self.embed if isinstance(self.embed, (tuple, list)) else [self.embed]
        exact = {name for part in parts if isinstance(part, Periodic) for name in part.harmonics}
        return exact | set(names if self.closed else ())

    def build(self, names: Sequence[str], bounds: Array, outputs: int, make: Maker) -> nn.Module:
        """The module: a list of as many columns of n numbers as there are names -> (n, outputs)."""
        inputs = Inputs(names, bounds, self.embed, make)
        if self.enrich is None:
            return nn.Sequential(inputs, self.layers(inputs, outputs, make))
        return Enriched(nn.Sequential(inputs, self.layers(inputs, 2 * outputs, make)), self.enrich, names)

    def layers(self, inputs: Inputs, outputs: int, make: Maker) -> nn.Module:
        """What comes after a given input layer. (n, inputs.size) -> (n, outputs)"""
        return self.body(inputs.size, outputs, make)

    @abstractmethod
    def body(self, inputs: int, outputs: int, make: Maker) -> nn.Module:
        """What comes after the input layer. (n, inputs) -> (n, outputs)"""


class Enriched(nn.Module):
    """The first half of a network's outputs plus a function times the second half. (n, 2 k) -> (n, k)"""

    def __init__(self, net: nn.Module, term: Function, names: Sequence[str]) -> None:
        super().__init__()
        self.net, self.names = net, list(names)
        self.term = Named(term, "enrich", names)

    def forward(self, columns: Sequence[Tensor]) -> Tensor:
        outputs = self.net(columns)
        term = self.term.numbers(dict(zip(self.names, columns, strict=True)), columns[0])
        k = outputs.shape[1] // 2
        result: Tensor = outputs[:, :k] + term[:, None] * outputs[:, k:]
        return result


class MLP(Network):
    """Dense layers with an activation between each two, ``MLP(width, depth)``."""

    def body(self, inputs: int, outputs: int, make: Maker) -> nn.Module:
        return Plain(self, inputs, outputs, make)


class Plain(nn.Module):
    def __init__(self, recipe: MLP, inputs: int, outputs: int, make: Maker) -> None:
        super().__init__()
        sizes = [inputs] + [recipe.width] * recipe.depth
        self.hidden = nn.ModuleList([Dense(m, n, make, recipe.factorised) for m, n in pairwise(sizes)])
        self.last = Dense(recipe.width, outputs, make, recipe.factorised)
        self.activation = activation(recipe.activation)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.hidden:
            x = self.activation(layer(x))
        result: Tensor = self.last(x)
        return result


class ModifiedMLP(Network):
    """An MLP whose hidden layers blend two encodings of the inputs: u h + v (1 - h).

    Source: Wang, Teng and Perdikaris (2021), SIAM J. Sci. Comput. 43, A3055.
    """

    def body(self, inputs: int, outputs: int, make: Maker) -> nn.Module:
        return Blending(self, inputs, outputs, make)


class Blending(nn.Module):
    def __init__(self, recipe: ModifiedMLP, inputs: int, outputs: int, make: Maker) -> None:
        super().__init__()
        self.u = Dense(inputs, recipe.width, make, recipe.factorised)
        self.v = Dense(inputs, recipe.width, make, recipe.factorised)
        sizes = [inputs] + [recipe.width] * recipe.depth
        self.hidden = nn.ModuleList([Dense(m, n, make, recipe.factorised) for m, n in pairwise(sizes)])
        self.last = Dense(recipe.width, outputs, make, recipe.factorised)
        self.activation = activation(recipe.activation)

    def forward(self, x: Tensor) -> Tensor:
        u, v = self.activation(self.u(x)), self.activation(self.v(x))
        for layer in self.hidden:
            x = self.activation(layer(x))
            x = v + x * (u - v)
        result: Tensor = self.last(x)
        return result


class PirateNet(Network):
    """Residual blocks with gates as in `ModifiedMLP`, each skipped at first: the network begins as a linear map of its
    embedding, which should be a wide one, as ``embed=Fourier(64)``, since it is also the width between blocks.

    ``depth`` counts blocks of three dense layers. Source: Wang, Li, Chen and Perdikaris (2024), arXiv 2402.00326,
    without its initialisation from data.
    """

    def body(self, inputs: int, outputs: int, make: Maker) -> nn.Module:
        return Blocks(self, inputs, outputs, make)


class Blocks(nn.Module):
    def __init__(self, recipe: PirateNet, inputs: int, outputs: int, make: Maker) -> None:
        super().__init__()
        width, factorised = recipe.width, recipe.factorised
        self.u, self.v = Dense(inputs, width, make, factorised), Dense(inputs, width, make, factorised)
        sizes = [(inputs, width), (width, width), (width, inputs)] * recipe.depth
        self.dense = nn.ModuleList([Dense(m, n, make, factorised) for m, n in sizes])
        self.skips = nn.ParameterList([make.parameter(0.0 * make.rng.random(())) for _ in range(recipe.depth)])
        self.last = Dense(inputs, outputs, make, factorised)
        self.activation = activation(recipe.activation)

    def forward(self, x: Tensor) -> Tensor:
        u, v = self.activation(self.u(x)), self.activation(self.v(x))
        for k, alpha in enumerate(self.skips):
            one, two, three = (self.dense[3 * k + i] for i in range(3))
            f = self.activation(one(x))
            g = self.activation(two(v + f * (u - v)))
            h = self.activation(three(v + g * (u - v)))
            x = alpha * h + (1 - alpha) * x
        result: Tensor = self.last(x)
        return result


@dataclass(frozen=True)
class Own(Network):
    """A module of one's own: ``Own(lambda inputs, outputs: nn.Sequential(...))``.

    It takes coordinates scaled to [-1, 1], or what ``embed`` makes of them, (n, inputs), and gives (n, outputs). Its
    random weights follow from the seed. The stage `LeastSquares` trains its layer ``last``, if it has one of this
    name. The file of a solution has its weights, and the function's name; who loads it gives the function:
    ``Solution.load(path, own=MyModule)``.

    Args:
        make: gives the module, of the numbers of its inputs and outputs.
        embed, enrich: see `Network`.
    """

    make: Callable[[int, int], nn.Module] = field(default=nn.Linear, repr=False)

    def __init__(
        self, make: Callable[[int, int], nn.Module], *, embed: Any = None, enrich: Function | None = None
    ) -> None:
        if not callable(make) or isinstance(make, nn.Module):
            raise TypeError(
                f"Own: expected a function that makes a module, as MyModule(inputs, outputs), got {type(make).__name__}"
            )
        super().__init__(embed=embed, enrich=enrich)
        object.__setattr__(self, "make", make)

    @property
    def name(self) -> str:
        """What files call it."""
        return str(getattr(self.make, "__name__", type(self.make).__name__))

    def body(self, inputs: int, outputs: int, make: Maker) -> nn.Module:
        with leafgrad.random.fork_rng():
            leafgrad.manual_seed(int(make.rng.integers(2**31)))
            module = self.make(inputs, outputs)
        if not isinstance(module, nn.Module):
            raise TypeError(f"Own: expected a function that makes a module, got one that makes {type(module).__name__}")
        module = module.to(device=make.device, dtype=make.dtype)
        found = module(make.tensor(np.linspace(-1, 1, 3 * inputs).reshape(3, inputs)).requires_grad_())
        if not isinstance(found, Tensor) or tuple(found.shape) != (3, outputs):
            got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise ValueError(f"Own: expected a module (n, {inputs}) -> (n, {outputs}), got {got} for n = 3")
        return module


@dataclass(frozen=True)
class SIREN(Network):
    """Dense layers with sin(frequency x) between them. Source: Sitzmann et al. (2020), arXiv 2006.09661.

    Of one wide layer it is a sum of waves: with frequencies as high as the solution's, `GaussNewton` solves linear
    equations in a few steps.

    Args:
        frequency: their omega_0, for coordinates scaled to [-1, 1]; or for each coordinate the highest frequency of
            the first layer, as in ``{"x": 4, "t": 20}``.
    """

    activation: str = "sin"
    frequency: float | dict[str, float] = 5.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.activation != "sin" or self.factorised is not None:
            raise ValueError("SIREN: expected activation='sin' and factorised=None; take MLP for others")
        for frequency in self.frequency.values() if isinstance(self.frequency, dict) else [self.frequency]:
            check_number("SIREN: frequency", frequency)
            if frequency <= 0:
                raise ValueError(f"SIREN: frequency: expected positive numbers, got {self.frequency}")

    def layers(self, inputs: Inputs, outputs: int, make: Maker) -> nn.Module:
        if not isinstance(self.frequency, dict):
            return self.body(inputs.size, outputs, make)
        if set(self.frequency) != set(inputs.names) or inputs.frequencies is not None:
            raise ValueError(
                f"SIREN: frequency: expected a number for each of {', '.join(inputs.names)} and no Fourier embedding, "
                f"got {self.frequency}"
            )
        highest = np.array([self.frequency[name] for name in inputs.origins], dtype=np.float64)
        return Sines(self, highest, outputs, make)

    def body(self, inputs: int, outputs: int, make: Maker) -> nn.Module:
        assert not isinstance(self.frequency, dict)
        return Sines(self, np.full(inputs, self.frequency / inputs), outputs, make)


class Sines(nn.Module):
    """The layers of a SIREN; ``highest`` are the highest frequencies of the first, for each input (inputs,)."""

    def __init__(self, recipe: SIREN, highest: Array, outputs: int, make: Maker) -> None:
        super().__init__()
        frequency = recipe.frequency
        self.frequency = max(frequency.values()) if isinstance(frequency, dict) else frequency
        limit = math.sqrt(6 / recipe.width) / self.frequency
        self.hidden = nn.ModuleList([Dense(len(highest), recipe.width, make, limit=highest[:, None] / self.frequency)])
        for _ in range(recipe.depth - 1):
            self.hidden.append(Dense(recipe.width, recipe.width, make, limit=limit))
        self.last = Dense(recipe.width, outputs, make, limit=limit)
        if isinstance(frequency, dict):  # which may be low: waves of all phases
            phases = make.rng.uniform(-math.pi, math.pi, recipe.width)
            self.hidden[0].bias = make.parameter(phases / self.frequency)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.hidden:
            x = leafgrad.sin(self.frequency * layer(x))
        result: Tensor = self.last(x)
        return result
