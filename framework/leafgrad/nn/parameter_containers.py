"""Modules that hold parameters: ParameterList, ParameterDict. Plain tensors become parameters; other values stay."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn, Self

from leafgrad.nn.module import Module
from leafgrad.nn.parameter import Parameter
from leafgrad.tensor.tensor import Tensor

__all__ = ["ParameterDict", "ParameterList"]


class Holder(Module):
    """Base: values kept as attributes. It cannot be called."""

    def _put(self, name: str, value: Any) -> None:
        setattr(
            self, name, Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value
        )

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"{type(self).__name__} should not be called.")


def _described(value: Any, kind: Any) -> str:
    """A value, in the repr of what holds it. ``kind``: how the elements of a tensor are named."""
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(map(str, value.shape))
    where = "" if value.device.type == "cpu" else f" ({value.device})"
    return f"Parameter containing: [{kind(value)} of size {size}{where}]"


class ParameterList(Holder):
    """A list of parameters, registered. It cannot be called."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _position(self, index: Any) -> str:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range for {len(self)} parameters")
        return str(index if index >= 0 else index + len(self))

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._position(index))

    def __setitem__(self, index: int, param: Any) -> None:
        self._put(self._position(index), param)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, str(i)) for i in range(len(self))])

    def append(self, value: Any) -> Self:
        """Add a parameter at the end; returns self."""
        self._put(str(self._size), value)
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add parameters at the end; returns self."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_described(value, lambda t: t.dtype)}" for i, value in enumerate(self))


class ParameterDict(Holder):
    """A dict of parameters by name, registered, in order of insertion. It cannot be called.

    Args:
        parameters: a mapping, or an iterable of pairs, of names and parameters.
    """

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _name(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}')"
            )
        return key

    def __getitem__(self, key: str) -> Any:
        if self._name(key) not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._put(self._name(key), value)
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __or__(self, other: ParameterDict) -> ParameterDict:
        return ParameterDict([*self.items(), *other.items()])

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        return ParameterDict([*other.items(), *self.items()])

    def __ior__(self, other: Mapping[str, Any] | ParameterDict) -> Self:
        self.update(other)
        return self

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return [self[key] for key in self._keys]

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names with the parameters."""
        return [(key, self[key]) for key in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter ``key``, or ``default`` if there is none."""
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter ``key``, which becomes ``default`` if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Remove the parameter ``key`` and return it."""
        found = self[key]
        del self[key]
        return found

    def popitem(self) -> tuple[str, Any]:
        """Remove the last name with its parameter and return both."""
        if not self._keys:
            raise KeyError("popitem(): ParameterDict is empty")
        key = next(reversed(self))
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove all parameters."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """A new ParameterDict of the same parameters."""
        return ParameterDict(self.items())

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new ParameterDict of one value under many names."""
        return ParameterDict((key, default) for key in keys)

    def update(self, parameters: Mapping[str, Any] | ParameterDict | Iterable[tuple[str, Any]]) -> None:
        """Add parameters, and replace those whose names are there.

        Args:
            parameters: those of a plain dict come in the order of their names, those of an OrderedDict, a
                ParameterDict or pairs in their own.
        """
        if not isinstance(parameters, Iterable):
            raise TypeError(
                f"ParameterDict.update: expected a mapping or an iterable of pairs, got {type(parameters).__name__}"
            )
        pairs = parameters.items() if isinstance(parameters, (Mapping, ParameterDict)) else parameters
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs = sorted(pairs)
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(f"ParameterDict.update: expected pairs of a name and a parameter, got {pair!r}")
            self[pair[0]] = pair[1]

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_described(value, lambda t: t.type())}" for key, value in self.items())
