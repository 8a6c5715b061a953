"""Parametrizations: a parameter as a function of others, computed whenever it is read.

``register_parametrization(layer, "weight", Symmetric())`` makes ``layer.weight`` the result of the module
``Symmetric`` on ``layer.parametrizations.weight.original``, which is what is trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from leafgrad import modes
from leafgrad.nn.containers import ModuleDict, ModuleList
from leafgrad.nn.module import Module
from leafgrad.nn.parameter import Parameter
from leafgrad.nn.utils.derived import Rule, derive, original_class, rules, underive
from leafgrad.tensor.public import publish
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]

_CACHE: ContextVar[dict[tuple[int, str], Tensor] | None] = ContextVar("parametrizations", default=None)
modes.setting("parametrize.cached()")(_CACHE.get)


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once within this context."""
    if _CACHE.get() is not None:
        yield
        return
    token = _CACHE.set({})
    try:
        yield
    finally:
        _CACHE.reset(token)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied one after another, and what they are applied to.

    Args:
        modules: the parametrizations.
        original: the parameter or buffer whose place they take.
        unsafe: leave out the checks.

    Attributes:
        original: what the first one is given; ``original0``, ``original1``, ... if it takes several tensors.
        ntensors: how many it takes.
    """

    original: Tensor

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        first: Any = original
        with modes.no_grad():
            for module in reversed(list(self)):
                first = _inverted(module, first)
        self.is_tensor = isinstance(first, Tensor)
        if self.is_tensor:
            _check_kind(original, first, "original")
            self.ntensors = 1
            _overwrite(original, first)
            _register(self, "original", original)
        else:
            first = self._several(first)
            self.ntensors = len(first)
            for i, part in enumerate(first):
                trained = isinstance(original, Parameter)
                _register(self, f"original{i}", Parameter(part, original.requires_grad) if trained else part)
        if not unsafe:
            _check_alike(original, self())

    def _several(self, first: Any) -> list[Tensor]:
        if not isinstance(first, Sequence) or not all(isinstance(part, Tensor) for part in first):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(first).__name__}"
            )
        return list(first)

    def originals(self) -> list[Tensor]:
        """What the first parametrization is given."""
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Give the originals values for which the result is ``value``, as far as the parametrizations can."""
        with modes.no_grad():
            first: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                first = module.right_inverse(first)
            parts = [first] if self.is_tensor else self._several(first)
            for original, part in zip(self.originals(), parts, strict=True):
                _check_kind(original, part, "original")
                _overwrite(original, part)

    def forward(self) -> Tensor:
        """The result of the last parametrization."""
        first, *others = self
        value: Tensor = first(*self.originals())
        for module in others:
            value = module(value)
        return value


class Parametrized(Rule):
    """An attribute that its ParametrizationList computes."""

    prefix = "Parametrized"

    def __init__(self, name: str) -> None:
        self.name = name

    def compute(self, module: Module) -> Any:
        cache = _CACHE.get()
        if cache is None:
            return module.parametrizations[self.name]()
        key = id(module), self.name
        if key not in cache:
            cache[key] = module.parametrizations[self.name]()
        return cache[key]

    def assign(self, module: Module, value: Any) -> None:
        module.parametrizations[self.name].right_inverse(value)


# ---- registration ---------------------------------------------------------------------------------------------------


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of ``module`` by a module, after those that do so already; returns ``module``.

    Args:
        tensor_name: the parameter or buffer.
        parametrization: called with the original tensor, it returns what takes its place. Its method
            ``right_inverse``, if it has one, gives the original (or a sequence of originals) for a result: it is
            called at once, and when the attribute is written.
        unsafe: leave out the checks that shape and dtype stay.

    Raises:
        ValueError: there is no such tensor, or the parametrization changes its shape or dtype.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        lists = module.parametrizations
        if not unsafe:
            _check_further(getattr(module, tensor_name), parametrization)
        lists[tensor_name].append(parametrization)
        lists[tensor_name].unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    found = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = found
    derive(module, tensor_name, Parametrized(tensor_name))
    return module


def _check_further(before: Tensor, parametrization: Module) -> None:
    with modes.no_grad():
        after = parametrization(before)
        _check_alike(before, after)
        if hasattr(parametrization, "right_inverse"):
            _check_alike(before, _inverted(parametrization, after))


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parametrized tensor an ordinary one again; returns ``module``.

    Args:
        leave_parametrized: with its value as it is; False gives back the original.

    Raises:
        ValueError: it is not parametrized, or has several originals and ``leave_parametrized`` is False.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    found = module.parametrizations[tensor_name]
    if not found.is_tensor and not leave_parametrized:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    originals = found.originals()
    value = originals[0]
    if leave_parametrized:
        with modes.no_grad():
            computed = getattr(module, tensor_name).clone()
        if not found.is_tensor:
            trained = any(o.requires_grad for o in originals)
            value = Parameter(computed, trained) if isinstance(value, Parameter) else computed
        else:
            _overwrite(value, computed)
    underive(module, tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        del module.parametrizations
    _register(module, tensor_name, value)
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of ``module`` is parametrized; ``tensor_name`` asks for one."""
    found = [name for name, rule in rules(module).items() if isinstance(rule, Parametrized)]
    return bool(found) if tensor_name is None else tensor_name in found


def type_before_parametrizations(module: Module) -> type[Module]:
    """The class of ``module`` without its parametrizations."""
    return original_class(module)


# ---- checks and small steps -----------------------------------------------------------------------------------------


def _inverted(module: Module, value: Any) -> Any:
    """What ``module`` makes ``value`` of, if it can tell; else ``value``."""
    if not hasattr(module, "right_inverse"):
        return value
    try:
        return module.right_inverse(value)
    except NotImplementedError:
        return value


def _check_alike(before: Tensor, after: Any) -> None:
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for what in ("dtype", "shape"):
        if getattr(before, what) != getattr(after, what):
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                f"enabled.\nunparametrized {what}: {getattr(before, what)}\nparametrized {what}: {getattr(after, what)}"
            )


def _check_kind(original: Tensor, new: Tensor, name: str) -> None:
    if original.dtype is not new.dtype:
        raise ValueError(
            f"The tensor returned by `right_inverse` has dtype {new.dtype} while `{name}` has dtype {original.dtype}"
        )


def _overwrite(original: Tensor, new: Tensor) -> None:
    """Give ``original`` the value of ``new``, which may be of another shape. A state taken before keeps the old one."""
    if new is not original:
        original.data = new.detach().clone()


def _register(module: Module, name: str, value: Tensor) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


publish(globals())
