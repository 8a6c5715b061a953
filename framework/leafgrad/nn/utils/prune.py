"""Pruning: a parameter multiplied by a mask of zeros and ones, chosen by size, by chance or by hand.

``weight`` then is ``weight_orig``, a parameter, times ``weight_mask``, a buffer, computed whenever it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from leafgrad import modes
from leafgrad.nn.module import Module
from leafgrad.nn.parameter import Parameter
from leafgrad.nn.utils.derived import Rule, derive, rules, underive
from leafgrad.tensor.arguments import one_dim
from leafgrad.tensor.creation import ones_like
from leafgrad.tensor.joining import cat
from leafgrad.tensor.public import publish
from leafgrad.tensor.random import rand_like
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "RandomStructured",
    "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned", "l1_unstructured",
    "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip


class Masked(Rule):
    """A parameter times its mask."""

    def __init__(self, name: str) -> None:
        self.name = name

    def compute(self, module: Module) -> Tensor:
        masked: Tensor = getattr(module, f"{self.name}_orig") * getattr(module, f"{self.name}_mask")
        return masked

    def assign(self, module: Module, value: Any) -> None:
        raise AttributeError(
            f"{type(module).__name__}.{self.name} is pruned: write to {self.name}_orig or {self.name}_mask, or call "
            f"prune.remove(module, {self.name!r}) first"
        )


# ---- methods --------------------------------------------------------------------------------------------------------


class BasePruningMethod:
    """Base of the ways to choose a mask; a subclass defines ``compute_mask``.

    Attributes:
        PRUNING_TYPE: what it chooses among where something is pruned already: ``"unstructured"``, the elements that
            are left, as a vector; ``"structured"``, the slices along ``dim`` that are not all gone; ``"global"``, all.
    """

    PRUNING_TYPE: ClassVar[str] = "unstructured"
    dim = -1

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Zeros in place of what is to go, in the shape of ``t``, the importance of each element.

        Args:
            default_mask: ones; what is returned is a copy of it, changed.
        """
        raise NotImplementedError(f"{type(self).__name__}.compute_mask: define it: t, default_mask -> mask")

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """``t`` times the mask that is chosen by ``importance_scores``, by default ``t`` itself."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise ValueError(f"prune: importance_scores: expected size {list(t.shape)}, got {list(scores.shape)}")
        mask = ones_like(t.detach()) if default_mask is None else default_mask
        with modes.no_grad():
            chosen = self._within(scores.detach(), mask)
        return t * chosen

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune the parameter ``name`` of a module by this method, made of the other arguments; once more if it was.

        Raises:
            AttributeError: there is no such parameter. ValueError: the sizes of scores differ.
        """
        method = cls(*args, **kwargs)
        pruned = isinstance(rules(module).get(name), Masked)
        original = module._parameters.get(f"{name}_orig" if pruned else name)
        if original is None:
            raise AttributeError(f"{type(module).__name__} has no parameter {name!r}")
        scores = getattr(module, name) if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise ValueError(
                f"importance_scores should have the same shape as parameter {name} of {module}, "
                f"{list(original.shape)}, got {list(scores.shape)}"
            )
        with modes.no_grad():
            old = getattr(module, f"{name}_mask") if pruned else ones_like(original.detach())
            mask = method._within(scores.detach(), old)
        if not pruned:
            delattr(module, name)
            module.register_parameter(f"{name}_orig", original)
        module.register_buffer(f"{name}_mask", mask)
        if not pruned:
            derive(module, name, Masked(name))
        return method

    def _within(self, scores: Tensor, mask: Tensor) -> Tensor:
        """The mask with what this method takes of what is left."""
        new = mask.clone()
        if self.PRUNING_TYPE == "global":
            return self.compute_mask(scores, mask.clone()) * mask
        if self.PRUNING_TYPE == "unstructured":
            left = mask == 1
            new[left] = self.compute_mask(scores[left], mask[left]).to(mask.dtype)
            return new
        if self.PRUNING_TYPE != "structured":
            raise ValueError(
                f"PRUNING_TYPE: expected 'unstructured', 'structured' or 'global', got {self.PRUNING_TYPE!r}"
            )
        d = one_dim(scores, self.dim, "prune")
        others = [i for i in range(scores.ndim) if i != d]
        alive = (mask != 0).any(others) if others else mask != 0
        (at,) = alive.nonzero(as_tuple=True)
        chosen = self.compute_mask(scores.index_select(d, at), mask.index_select(d, at))
        return new.index_copy(d, at, chosen.to(mask.dtype))


def _count(amount: Any, size: int, what: str) -> int:
    """How many of ``size`` to prune, from a number of them or a fraction."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise TypeError(f"Invalid type for amount: {amount}. Must be numeric, got {type(amount).__name__}")
    whole = isinstance(amount, int)
    if amount < 0 or (not whole and amount > 1):
        raise ValueError(f"amount={amount} should either be a float in the range [0.0, 1.0] or a non-negative integer")
    if whole and amount > size:
        raise ValueError(f"amount={amount} should be smaller than the number of {what} to prune={size}")
    return int(amount) if whole else round(amount * size)


class _Some(BasePruningMethod):
    """Base of methods that take a number, or a fraction in [0, 1]."""

    def __init__(self, amount: float) -> None:
        _count(amount, int(amount) if isinstance(amount, (int, float)) else 0, "parameters")
        self.amount = amount

    def _least(self, importance: Tensor, what: str) -> Tensor:
        """The places of the least important elements of a vector."""
        return importance.topk(_count(self.amount, importance.numel(), what), largest=False).indices


class Identity(BasePruningMethod):
    """Takes nothing."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class RandomUnstructured(_Some):
    """Takes elements by chance."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        flat = default_mask.reshape(-1)
        return flat.index_fill(0, self._least(rand_like(t).reshape(-1), "parameters"), 0).reshape(default_mask.shape)


class L1Unstructured(_Some):
    """Takes the elements of the least magnitude."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        flat = default_mask.reshape(-1)
        return flat.index_fill(0, self._least(t.abs().reshape(-1), "parameters"), 0).reshape(default_mask.shape)


def _dim_of_slices(t: Tensor, dim: int) -> int:
    if t.ndim < 2:
        raise ValueError(
            f"Structured pruning can only be applied to multidimensional tensors, got one of {t.ndim} dimensions; "
            "use l1_unstructured or random_unstructured"
        )
    return one_dim(t, dim, "prune")


class RandomStructured(_Some):
    """Takes slices along ``dim`` by chance."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        d = _dim_of_slices(t, self.dim)
        chance = rand_like(t.movedim(d, 0).reshape(t.shape[d], -1)[:, 0])
        return default_mask.index_fill(d, self._least(chance, "channels"), 0)


class LnStructured(_Some):
    """Takes the slices along ``dim`` of the least ``n``-norm."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        d = _dim_of_slices(t, self.dim)
        size = t.movedim(d, 0).reshape(t.shape[d], -1).norm(self.n, 1)
        return default_mask.index_fill(d, self._least(size, "channels"), 0)


class CustomFromMask(BasePruningMethod):
    """Takes what ``mask`` says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if self.mask.shape != t.shape:
            raise ValueError(f"mask: expected size {list(t.shape)}, got {list(self.mask.shape)}")
        return default_mask * self.mask.to(default_mask.device).to(default_mask.dtype)


# ---- functions ------------------------------------------------------------------------------------------------------


def identity(module: Module, name: str) -> Module:
    """Give the parameter ``name`` a mask of ones; returns ``module``."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune elements of the parameter ``name`` by chance; returns ``module``.

    Args:
        amount: how many, or a float in [0, 1], which part of those that are left.
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prune the elements of the least magnitude, of the parameter or of ``importance_scores``; returns ``module``."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune slices along ``dim`` by chance; returns ``module``."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: float, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the slices along ``dim`` of the least ``n``-norm; returns ``module``."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune what ``mask`` has zeros for; returns ``module``."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: Mapping[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune elements of several parameters as if they were one vector.

    Args:
        parameters: pairs of a module and a name.
        pruning_method: of PRUNING_TYPE ``"unstructured"``; made of ``kwargs``.
        importance_scores: by pair; by default the parameters themselves.

    Raises:
        TypeError: another kind of method. ValueError: there are no parameters.
    """
    pairs = list(parameters)
    if pruning_method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            "Only 'unstructured' PRUNING_TYPE supported for the `pruning_method`. Found method "
            f"{pruning_method.__name__} of type {pruning_method.PRUNING_TYPE}"
        )
    if not pairs:
        raise ValueError("global_unstructured: parameters: expected pairs of a module and a name, got none")
    method = pruning_method(**kwargs)
    with modes.no_grad():
        values = [getattr(module, name).detach() for module, name in pairs]
        given = importance_scores or {}
        scores = [given.get(pair, value).detach() for pair, value in zip(pairs, values, strict=True)]
        masks = [
            getattr(module, f"{name}_mask", None) if isinstance(rules(module).get(name), Masked) else None
            for module, name in pairs
        ]
        old = [ones_like(v) if m is None else m for v, m in zip(values, masks, strict=True)]
        whole = method._within(cat([s.reshape(-1) for s in scores]), cat([m.reshape(-1) for m in old]))
        parts = whole.split([v.numel() for v in values])
    for (module, name), part, value in zip(pairs, parts, values, strict=True):
        custom_from_mask(module, name, part.reshape(value.shape))


def remove(module: Module, name: str) -> Module:
    """Make the parameter ``name`` an ordinary one again, with its zeros; returns ``module``.

    Raises:
        ValueError: it is not pruned.
    """
    if not isinstance(rules(module).get(name), Masked):
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    original: Parameter = getattr(module, f"{name}_orig")
    with modes.no_grad():
        original.data = getattr(module, name).detach()
    underive(module, name)
    delattr(module, f"{name}_orig")
    delattr(module, f"{name}_mask")
    module.register_parameter(name, original)
    return module


def is_pruned(module: Module) -> bool:
    """Whether a module, or one within it, has a pruned parameter."""
    return any(isinstance(rule, Masked) for part in module.modules() for rule in rules(part).values())


publish(globals())
