"""Modules that hold modules: Sequential, ModuleList, ModuleDict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Self, overload

from leafgrad.nn.module import Module, indent, layout

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


class Numbered(Module):
    """Modules in order, named by their positions. The base of Sequential and ModuleList."""

    def _position(self, index: Any, end: int) -> int:
        """``index`` counted from the front; an IndexError unless it is in [-len, end)."""
        if not hasattr(index, "__index__"):
            raise TypeError(f"{type(self).__name__}: expected an int or a slice, got {index!r}")
        index = operator.index(index)
        if not -len(self) <= index < end:
            raise IndexError(f"index {index} is out of range for {len(self)} modules")
        return index if index >= 0 else index + len(self)

    def _renumber(self, modules: Iterable[Any]) -> None:
        self._modules.clear()
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    def _key(self, index: Any) -> str:
        return list(self._modules)[self._position(index, len(self))]

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self._slice(index)
        return self._modules[self._key(index)]

    def _slice(self, index: slice) -> Self:
        raise NotImplementedError

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self._modules.values())
        if not isinstance(index, slice):
            index = self._position(index, len(self))
        del modules[index]
        self._renumber(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Self:
        """Add a module at the end; returns self."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end; returns self."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend: expected an iterable of modules, got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before the one at ``index``; returns self."""
        if not isinstance(module, Module):
            raise TypeError(f"insert: module: expected a Module, got {type(module).__name__}")
        modules = list(self._modules.values())
        modules.insert(self._position(index, len(self) + 1), module)
        self._renumber(modules)
        return self

    def pop(self, index: int | slice) -> Any:
        """Remove the module at ``index`` and return it."""
        found = self[index]
        del self[index]
        return found

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)


class Sequential(Numbered):
    """Calls its modules one after another, each on the result of the one before.

    Args:
        *args: the modules, or one OrderedDict of names and modules.
    """

    def __init__(self, *args: Module | OrderedDict[str, Module]) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            self._renumber(args)

    def _slice(self, index: slice) -> Self:
        return type(self)(OrderedDict(list(self._modules.items())[index]))

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*list(self) * _factor(times, type(self)))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        return self.extend(list(self) * (_factor(times, type(self)) - 1))

    def forward(self, input: Any) -> Any:
        """The result of the last module."""
        for module in self._modules.values():
            input = module(input)
        return input


def _factor(times: int, kind: type) -> int:
    """How often modules are repeated (the same ones, with the same parameters)."""
    if not isinstance(times, int):
        raise TypeError(f"unsupported operand type(s) for *: {kind} and {type(times)}")
    if times <= 0:
        raise ValueError(f"Non-positive multiplication factor {times} for {kind}")
    return times


class ModuleList(Numbered):
    """A list of modules, registered. It cannot be called."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _slice(self, index: slice) -> Self:
        return type(self)(list(self._modules.values())[index])

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        """Runs of modules with equal reprs are printed once."""
        runs: list[list[Any]] = []  # first position, last position, repr
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = [
            indent(f"({a}): {text}" if a == b else f"({a}-{b}): {b - a + 1} x {text}") for a, b, text in runs
        ]  # fmt: skip
        return layout(type(self).__name__, [], lines)


class ModuleDict(Module):
    """A dict of modules, registered, in order of insertion. It cannot be called.

    Args:
        modules: a mapping, or an iterable of pairs, of names and modules.
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        found: Module = self._modules[key]
        return found

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove the module ``key`` and return it."""
        found: Module = self._modules.pop(key)
        return found

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return self._modules.values()

    def items(self) -> ItemsView[str, Module]:
        """The names with the modules."""
        return self._modules.items()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules, and replace those whose names are there."""
        if not isinstance(modules, (Mapping, ModuleDict, Iterable)):
            raise TypeError(
                f"ModuleDict.update: expected a mapping or an iterable of pairs, got {type(modules).__name__}"
            )
        pairs = modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(f"ModuleDict.update: expected pairs of a name and a module, got {pair!r}")
            self[pair[0]] = pair[1]
