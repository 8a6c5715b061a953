"""Nested containers as rows of JSON, and back: nested as deep as one likes, since neither way recurses.

A row is one container, ``[kind, items]``, and stands after those that it contains. Numbers, strings, booleans and None
stand for themselves, ``{"tensor": name}`` for a tensor, and ``{"row": n}`` for a container. With ``"grad": true`` the
tensor requires grad, with ``"shared": true`` it is another tensor with the same memory. In an OrderedDict, the pair
whose key is None holds the versions of the modules that a ``state_dict()`` is of.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from leafgrad.tensor.tensor import Tensor

MAPPINGS = ("dict", "OrderedDict")
KINDS = (*MAPPINGS, "list", "tuple")


@dataclass
class _Open:
    """A container of which some items are still to come."""

    obj: Any
    kind: str
    rest: Iterator[tuple[Any, Any]]
    items: list[Any] = field(default_factory=list)
    key: Any = None

    def add(self, item: Any) -> None:
        """Take what stands for the value under the present key."""
        self.items.append([self.key, item] if self.kind in MAPPINGS else item)


def pack(obj: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """JSON data for ``obj``, and its tensors by their dotted paths. What stands in several places is stored once.

    Raises:
        TypeError: something that cannot be stored; the message says where. ValueError: a container contains itself.
    """
    rows: list[Any] = []
    tensors: dict[str, Tensor] = {}
    known: dict[int, tuple[Any, Any]] = {}  # by identity: the object, kept alive, and what stands for it
    names: dict[Any, str] = {}  # of tensors by their memory
    within: set[int] = set()  # the containers that are open
    stack = [_Open(None, "list", iter([("", obj)]))]
    while True:
        top = stack[-1]
        for key, value in top.rest:
            top.key = key
            if value is None or isinstance(value, (bool, int, float, str)):
                top.add(value)
            elif id(value) in known:
                top.add(known[id(value)][1])
            elif isinstance(value, Tensor):
                place = memory(value)
                item: dict[str, Any] = {"tensor": names[place], "shared": True} if place in names else {}
                if not item:
                    name = _path(stack) or "tensor"
                    while name in tensors or name == "__metadata__":  # {"a.b": ..., "a": {"b": ...}}
                        name += "_"
                    names[place] = item["tensor"] = name
                    tensors[name] = value
                if value.requires_grad:
                    item["grad"] = True
                known[id(value)] = value, item
                top.add(item)
            elif id(value) in within:
                raise ValueError(f"save: obj{_where(stack)}: expected a tree, got a {type(value).__name__} in itself")
            else:
                stack.append(_opened(value, stack))
                within.add(id(value))
                break
        else:
            done = stack.pop()
            if not stack:
                return {"rows": rows, "root": done.items[0]}, tensors
            within.remove(id(done.obj))
            rows.append([done.kind, done.items])
            known[id(done.obj)] = done.obj, {"row": len(rows) - 1}
            stack[-1].add({"row": len(rows) - 1})


def memory(x: Tensor) -> Any:
    """What tensors have in common that are the same elements in the same memory; nothing else has it."""
    return (x.device, x.data_ptr(), x.shape, x.stride(), x.dtype) if x.numel() else id(x)


def _opened(value: Any, stack: list[_Open]) -> _Open:
    if isinstance(value, (list, tuple)):
        return _Open(value, "list" if isinstance(value, list) else "tuple", enumerate(value))
    if not isinstance(value, Mapping):
        raise TypeError(
            f"save: obj{_where(stack)}: expected a Tensor, number, string, None, dict, list or tuple, got "
            f"{type(value).__name__}; save its state_dict() or convert it first"
        )
    for key in value:
        if not isinstance(key, (str, int, float, bool)):
            raise TypeError(f"save: obj{_where(stack)}: expected keys that are strings or numbers, got {key!r}")
    if not isinstance(value, OrderedDict):
        return _Open(value, "dict", iter(value.items()))
    versions = getattr(value, "_metadata", None)
    return _Open(value, "OrderedDict", iter([*value.items(), *([] if versions is None else [(None, versions)])]))


def _path(stack: list[_Open]) -> str:
    return ".".join(str(level.key) for level in stack[1:])


def _where(stack: list[_Open]) -> str:
    path = _path(stack)
    return f" at {path!r}" if path else ""


def unpack(data: Any, tensors: Mapping[str, Tensor]) -> Any:
    """What ``pack`` took apart.

    Raises:
        ValueError: the data cannot be from ``pack``; the message says what is wrong.
    """
    if not isinstance(data, dict) or not isinstance(data.get("rows"), list) or "root" not in data:
        raise ValueError("its structure has no rows and root")
    built: list[Any] = []

    def one(item: dict[str, Any], stored: Tensor) -> Tensor:
        found = stored.detach() if item.get("shared") else stored
        return found.requires_grad_() if item.get("grad") else found

    def value(item: Any) -> Any:
        if isinstance(item, list):
            raise ValueError(f"row {len(built)} of its structure contains {item!r:.40}, not a value")
        if not isinstance(item, dict):
            return item
        name, row = item.get("tensor"), item.get("row")
        if isinstance(name, str):
            if name not in tensors:
                raise ValueError(f"it lacks tensor {name!r}")
            return one(item, tensors[name])
        if type(row) is not int or not 0 <= row < len(built):
            raise ValueError(f"row {len(built)} of its structure contains {item!r:.40}, not a tensor or an earlier row")
        return built[row]

    def key(item: Any) -> Any:
        if not isinstance(item, (str, int, float)):
            raise ValueError(f"row {len(built)} of its structure has the key {item!r:.40}, not a string or a number")
        return item

    for row in data["rows"]:
        if not isinstance(row, list) or len(row) != 2 or row[0] not in KINDS or not isinstance(row[1], list):
            raise ValueError(f"row {len(built)} of its structure is {row!r:.40}, not a dict, list or tuple")
        kind, items = row
        if kind in MAPPINGS:
            if not all(isinstance(pair, list) and len(pair) == 2 for pair in items):
                raise ValueError(f"row {len(built)} of its structure is a dict, but not of pairs")
            made: Any = {} if kind == "dict" else OrderedDict()
            for k, v in items:
                if k is None and kind == "OrderedDict":
                    made._metadata = value(v)
                else:
                    made[key(k)] = value(v)
            built.append(made)
        else:
            values = [value(item) for item in items]
            built.append(values if kind == "list" else tuple(values))
    return value(data["root"])
