"""Attributes of a module that are computed from others whenever they are read, as a weight from its parametrization.

A module with such attributes is of a subclass of its class, which has properties for them. How each is computed is a
``Rule``, kept in the module; so copies and pickles of the module work as those of any other.
"""

from __future__ import annotations

import functools
from typing import Any, cast

from leafgrad.nn.module import Module


class Rule:
    """How one attribute is computed, and what writing it does."""

    prefix = ""  # of the name of the module's class

    def compute(self, module: Module) -> Any:
        raise NotImplementedError

    def assign(self, module: Module, value: Any) -> None:
        raise NotImplementedError


def rules(module: Module) -> dict[str, Rule]:
    """The rules of a module by attribute. A dict of its own where there are some."""
    found: dict[str, Rule] = module.__dict__.get("_derived", {})
    return found


def original_class(module: Module) -> type[Module]:
    """The class of a module before it had computed attributes."""
    return getattr(type(module), "_underived", type(module))


def derive(module: Module, name: str, rule: Rule) -> None:
    """Compute the attribute ``name`` of a module by a rule."""
    _set(module, {**rules(module), name: rule})


def underive(module: Module, name: str) -> None:
    """Make ``name`` an ordinary attribute again, without a value."""
    _set(module, {key: rule for key, rule in rules(module).items() if key != name})


def _set(module: Module, new: dict[str, Rule]) -> None:
    base = original_class(module)
    module.__dict__["_derived"] = new
    prefix = next((rule.prefix for rule in new.values() if rule.prefix), "")
    module.__class__ = _class(base, tuple(sorted(new)), prefix) if new else base
    if not new:
        del module.__dict__["_derived"]


def _class(base: type[Module], names: tuple[str, ...], prefix: str) -> type[Module]:
    return _classes(cast(Any, base), names, prefix)


@functools.cache
def _classes(base: Any, names: tuple[str, ...], prefix: str) -> type[Module]:
    """The subclass of ``base`` in which ``names`` are computed."""
    members: dict[str, Any] = {name: _property(name) for name in names}

    def __reduce_ex__(self: Module, protocol: Any) -> tuple[Any, ...]:
        return _unpickled, (base, names, prefix), self.__dict__

    members.update(__reduce_ex__=__reduce_ex__, __module__=base.__module__, __doc__=base.__doc__, _underived=base)
    return type(prefix + base.__name__, (base,), members)


def _unpickled(base: type[Module], names: tuple[str, ...], prefix: str) -> Module:
    kind = _class(base, names, prefix)
    return kind.__new__(kind)


def _property(name: str) -> property:
    def read(self: Module) -> Any:
        try:
            return rules(self)[name].compute(self)
        except AttributeError as error:  # would be taken for a missing attribute of the module
            raise RuntimeError(f"computing {name} of {type(self).__name__}: {error}") from error

    def write(self: Module, value: Any) -> None:
        rules(self)[name].assign(self, value)

    return property(read, write)
