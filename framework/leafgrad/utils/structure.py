"""Nested containers as rows of JSON, and back: nested as deep as one likes, since neither way recurses.

A row is one container, ``[kind, items]``, and stands after those that it contains. Numbers, strings, booleans and None
stand for themselves, ``{"tensor": name}`` for a tensor, ``{"path": text}`` for a path, and ``{"row": n}`` for a
container. With ``"grad": true`` the tensor requires grad, with ``"shared": true`` it is another tensor with the same
memory; with ``"size"``, ``"stride"`` and ``"offset"``, counted in elements, it is a part of that memory; with
``"numpy"`` it is an ``"array"`` or a ``"scalar"`` of NumPy's, of its ``"dtype"`` where leafgrad has no such.
``{"name": text}`` is a class, function or dtype by the name under which it can be imported. In a mapping, the pair
whose key is None holds what else belongs to it: in an OrderedDict the versions of the modules that a ``state_dict()``
is of. An object is ``"new"`` of its class, or what a ``"call"`` of it gives, with ``"arguments"``, a ``"state"``, and
``"items"``, a list or dict of them, if its class is derived from such. So are numbers, strings and tuples of classes of
their own, as named tuples.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from leafgrad import dtypes
from leafgrad.tensor.data import tensor
from leafgrad.tensor.storage import address, as_strided, storage
from leafgrad.tensor.tensor import Tensor
from leafgrad.utils import trust
from leafgrad.utils.bounds import Bounds
from leafgrad.utils.objects import made, makes_itself, reduced, stands_by_name

Named = Callable[[set[str]], Mapping[str, Any]]


@dataclass(frozen=True)
class Kind:
    """How containers of one class are stored.

    Attributes:
        of: the class itself; subclasses are not of this kind.
        pairs: the keys and values of one, for what is stored as pairs; None for what is stored as items.
        made: one of these pairs, and what is stored beside them; or of these items, within the bounds of a file.
        extra: what is stored beside them under the key None, or None.
    """

    of: type
    pairs: Callable[[Any], Iterable[tuple[Any, Any]]] | None
    made: Callable[[list[Any], Any], Any]
    extra: Callable[[Any], Any] = lambda obj: None


def _versioned(pairs: list[Any], versions: Any) -> OrderedDict[Any, Any]:
    made = OrderedDict(pairs)
    if versions is not None:
        vars(made).update(_metadata=versions)
    return made


def _with_default(pairs: list[Any], name: Any) -> defaultdict[Any, Any]:
    factory = next((f for f in FACTORIES if f.__name__ == name), None)
    if factory is None and name is not None:
        raise ValueError(f"its structure has a defaultdict of {name!r:.40}")
    return defaultdict(factory, pairs)


def _factory(obj: defaultdict[Any, Any]) -> str | None:
    """What a defaultdict fills itself with; TypeError if only code could tell."""
    if obj.default_factory is not None and obj.default_factory not in FACTORIES:
        names = ", ".join(f.__name__ for f in FACTORIES)
        raise TypeError(f"expected a defaultdict of {names} or None, got {obj.default_factory!r}; convert it to a dict")
    return None if obj.default_factory is None else obj.default_factory.__name__


def _hashable(items: Iterable[Any], bounds: Bounds) -> Iterator[Any]:
    for item in items:
        for part in item if type(item) is tuple else (item,):
            if not _is_key(part) and part is not None:
                raise ValueError(f"its structure has a {type(part).__name__} that is large or not flat in a set")
        yield bounds.key(item)


def _is_key(key: Any) -> bool:
    """Numbers and strings, of no class of their own; not integers so large that many could have one hash."""
    return type(key) in (str, float, bool) or (type(key) is int and abs(key) < 2**60)


FACTORIES: tuple[Any, ...] = (dict, list, set, tuple, int, float, str, bool)
KINDS = {
    "dict": Kind(dict, dict.items, lambda pairs, _: dict(pairs)),
    "OrderedDict": Kind(OrderedDict, dict.items, _versioned, lambda obj: getattr(obj, "_metadata", None)),
    "Counter": Kind(Counter, dict.items, lambda pairs, _: Counter(dict(pairs))),
    "defaultdict": Kind(defaultdict, dict.items, _with_default, _factory),
    "Namespace": Kind(Namespace, lambda obj: vars(obj).items(), lambda pairs, _: Namespace(**dict(pairs))),
    "SimpleNamespace": Kind(
        SimpleNamespace, lambda obj: vars(obj).items(), lambda pairs, _: SimpleNamespace(**dict(pairs))
    ),
    "list": Kind(list, None, lambda items, _: items),
    "tuple": Kind(tuple, None, lambda items, _: tuple(items)),
    "bounded deque": Kind(
        deque,
        lambda obj: [("maxlen", obj.maxlen), ("items", list(obj))],
        lambda pairs, _: deque(dict(pairs)["items"], dict(pairs)["maxlen"]),
    ),
    "deque": Kind(deque, None, lambda items, _: deque(items)),
    "set": Kind(set, None, lambda items, bounds: set(_hashable(items, bounds))),
    "frozenset": Kind(frozenset, None, lambda items, bounds: frozenset(_hashable(items, bounds))),
    "complex": Kind(complex, lambda z: [("real", z.real), ("imag", z.imag)], lambda pairs, _: complex(**dict(pairs))),
    "bytes": Kind(
        bytes,
        lambda b: [("latin1", b.decode("latin1"))],
        lambda pairs, _: "".join(dict(pairs).values()).encode("latin1"),
    ),
    "object": Kind(object, reduced, lambda pairs, _: made(dict(pairs))),
}
TREE = ("_buffers", "_modules", "_parameters")  # attributes of Modules which names in a state_dict() are without
KIND_OF = {kind.of: name for name, kind in KINDS.items()}


@dataclass
class _Open:
    """A container of which some items are still to come."""

    obj: Any
    kind: str
    rest: Iterator[tuple[Any, Any]]
    hidden: Container[Any] = ()  # keys that do not stand in the paths of what is under them
    items: list[Any] = field(default_factory=list)
    key: Any = None

    def add(self, item: Any) -> None:
        """Take what stands for the value under the present key."""
        self.items.append(item if KINDS[self.kind].pairs is None else [self.key, item])


def pack(obj: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """JSON data for ``obj``, and its tensors by their dotted paths. What stands in several places is stored once.

    Raises:
        TypeError: something that cannot be stored; the message says where. ValueError: a container contains itself.
    """
    rows: list[Any] = []
    tensors: dict[str, Tensor] = {}
    known: dict[int, tuple[Any, Any]] = {}  # by identity: the object, kept alive, and what stands for it
    names: dict[Any, str] = {}  # of tensors by their memory
    users: dict[str, list[dict[str, Any]]] = {}  # what stands for tensors, by the stored one
    within: set[int] = set()  # the containers that are open
    stack = [_Open(None, "list", iter([("", obj)]))]
    while True:
        top = stack[-1]
        for key, value in top.rest:
            top.key = key
            if id(value) in known:
                top.add(known[id(value)][1])
            elif (isinstance(value, Tensor) and not makes_itself(value)) or _is_of_numpy(value):
                t = value if isinstance(value, Tensor) else _of_numpy(value, stack)
                place = memory(t)
                item: dict[str, Any] = {"tensor": names[place], "shared": True} if place in names else {}
                if not item:
                    name = _path(stack) or "tensor"
                    while name in tensors or name == "__metadata__":  # {"a.b": ..., "a": {"b": ...}}
                        name += "_"
                    names[place] = item["tensor"] = name
                    tensors[name] = t
                users.setdefault(item["tensor"], []).append(item)
                if t.requires_grad:
                    item["grad"] = True
                if t is not value:
                    item["numpy"] = "array" if type(value).__name__ == "ndarray" else "scalar"
                    if value.dtype.kind in BITS and dtypes.of(t._data).name != value.dtype.name:
                        item["dtype"] = value.dtype.str
                known[id(value)] = value, item
                top.add(item)
            elif value is None or type(value) in (bool, int, float, str):
                top.add(value)
            elif type(value) is type(Path()) or stands_by_name(value):
                top.add(_word(value, stack))
            elif id(value) in within:
                raise ValueError(f"save: obj{_where(stack)}: expected a tree, got a {type(value).__name__} in itself")
            else:
                stack.append(_opened(value, stack))
                within.add(id(value))
                break
        else:
            done = stack.pop()
            if not stack:
                tie(tensors, users)
                return {"rows": rows, "root": done.items[0]}, tensors
            within.remove(id(done.obj))
            rows.append([done.kind, done.items])
            known[id(done.obj)] = done.obj, {"row": len(rows) - 1}
            stack[-1].add({"row": len(rows) - 1})


def memory(x: Tensor) -> Any:
    """What tensors have in common that are the same elements in the same memory; nothing else has it."""
    return (x.device, address(x, "save()"), x.shape, x.stride(), x.dtype) if x.numel() else id(x)


def tie(tensors: dict[str, Tensor], users: Mapping[str, list[dict[str, Any]]]) -> None:
    """Make tensors that overlap in memory parts of one stored tensor: one of them that has all, or a flat one."""
    spans: dict[Any, list[tuple[int, int, str]]] = {}
    for name, t in tensors.items():
        if t.numel() and all(n >= 0 for n in t.stride()):
            last = sum((n - 1) * step for n, step in zip(t.shape, t.stride(), strict=True))
            start = address(t, "save()")
            key = t.device, t.dtype, start % t.element_size()
            spans.setdefault(key, []).append((start, start + (last + 1) * t.element_size(), name))
    order = {name: i for i, name in enumerate(tensors)}
    for found in spans.values():
        for group in overlapping(sorted(found)):
            low, high = group[0][0], max(end for _, end, _ in group)
            first = tensors[group[0][2]]
            count = (high - low) // first.element_size()
            whole = [
                name for start, end, name in group if (start, end) == (low, high) and tensors[name].is_contiguous()
            ]
            stored = whole[0] if whole else min((name for _, _, name in group), key=order.__getitem__)
            for start, _, name in group:
                if name != stored or not whole:
                    t, offset = tensors[name], (start - low) // first.element_size()
                    part = {"tensor": stored, "size": [*t.shape], "stride": [*t.stride()], "offset": offset}
                    for item in users[name]:
                        item.update(part, shared=True)
            for _, _, name in group:
                if name != stored:
                    del tensors[name]
            if not whole:
                tensors[stored] = storage(first).strided((count,), (1,), first.storage_offset())


def overlapping(spans: Iterable[tuple[int, int, str]]) -> list[list[tuple[int, int, str]]]:
    """Those of sorted spans (start, end, name) that meet others, in groups."""
    groups: list[list[tuple[int, int, str]]] = []
    reach = 0
    for span in spans:
        if groups and span[0] < reach:
            groups[-1].append(span)
        else:
            groups.append([span])
        reach = max(reach, span[1])
    return [group for group in groups if len(group) > 1]


BITS = "uMm"  # kinds of NumPy's numbers that leafgrad lacks in part: they are stored as signed integers of their size


def _is_of_numpy(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "__array__") and not isinstance(value, (str, bytes))


def _of_numpy(value: Any, stack: list[_Open]) -> Tensor:
    try:
        made = tensor(value)
    except TypeError as error:
        if value.dtype.kind in BITS:
            return tensor(value.view(f"i{value.dtype.itemsize}"))
        raise TypeError(f"save: obj{_where(stack)}: expected numbers that leafgrad has, got {value.dtype}") from error
    return made


def _opened(value: Any, stack: list[_Open]) -> _Open:
    name = KIND_OF.get(type(value), "object")
    if name == "deque" and value.maxlen is not None:
        name = "bounded deque"
    kind, above = KINDS[name], stack[-1]
    if kind.pairs is None:
        if name in ("set", "frozenset"):
            _check_set(value, stack)
        arguments = above.kind == "object" and above.key == "arguments"
        return _Open(value, name, enumerate(value), range(len(value)) if arguments else ())
    try:
        pairs = list(kind.pairs(value))
    except TypeError as error:
        raise TypeError(
            f"save: obj{_where(stack)}: expected a Tensor, array, number, string, path, None, one of "
            f"{', '.join(KINDS)}, got {type(value).__name__}: {error}; save its state_dict() or convert it first"
        ) from None
    for key, _ in pairs:
        if not _is_key(key):
            raise TypeError(
                f"save: obj{_where(stack)}: expected keys that are strings or numbers, got {key!r:.80} of type "
                f"{type(key).__name__}; convert them first"
            )
    try:
        extra = kind.extra(value)
    except TypeError as error:
        raise TypeError(f"save: obj{_where(stack)}: {error}") from None
    state = above.kind == "object" and above.key == "state"
    hidden = ("arguments", "state", "items") if name == "object" else TREE if state else ()
    return _Open(value, name, iter([*pairs, *([] if extra is None else [(None, extra)])]), hidden)


def _word(value: Any, stack: list[_Open]) -> dict[str, str]:
    """A path, or a class, function or dtype."""
    try:
        return {"path": str(value)} if isinstance(value, Path) else {"name": trust.name_of(value)}
    except TypeError as error:
        raise TypeError(f"save: obj{_where(stack)}: {error}; save its state_dict() or convert it first") from None


def _check_set(value: Any, stack: list[_Open]) -> None:
    try:
        list(_hashable(value, Bounds(sys.maxsize)))
    except ValueError:
        raise TypeError(
            f"save: obj{_where(stack)}: expected a set of numbers, strings or flat tuples of them, got {value!r:.80}"
        ) from None


def _path(stack: list[_Open]) -> str:
    return ".".join(str(level.key) for level in stack[1:] if level.key not in level.hidden)


def _where(stack: list[_Open]) -> str:
    path = _path(stack)
    return f" at {path!r}" if path else ""


def unpack(data: Any, tensors: Mapping[str, Tensor], bounds: Bounds, named: Named) -> Any:
    """What ``pack`` took apart.

    Args:
        data: the rows and the root.
        tensors: by their names.
        bounds: of the file.
        named: gives the classes, functions and dtypes that are called so in the file.

    Raises:
        ValueError: the data cannot be from ``pack``, or would take too long; the message says what is wrong.
    """
    if not isinstance(data, dict) or not isinstance(data.get("rows"), list) or "root" not in data:
        raise ValueError("its structure has no rows and root")
    built: list[Any] = []
    known = named(_names(data))

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
        if isinstance(item.get("path"), str):
            return Path(item["path"])
        if isinstance(item.get("name"), str):
            return known[item["name"]]
        if type(row) is not int or not 0 <= row < len(built):
            raise ValueError(f"row {len(built)} of its structure contains {item!r:.40}, not a tensor or an earlier row")
        return built[row]

    for row in data["rows"]:
        whole = isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], list)
        if not whole or row[0] not in KINDS:
            raise ValueError(f"row {len(built)} of its structure is {row!r:.40}, not one of {', '.join(KINDS)}")
        kind, items = KINDS[row[0]], row[1]
        if kind.pairs is None:
            built.append(kind.made([value(item) for item in items], bounds))
            continue
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in items):
            raise ValueError(f"row {len(built)} of its structure is a {row[0]}, but not of pairs")
        for key, _ in items:
            attributes = "Namespace" in row[0]
            if not (isinstance(key, str) if attributes else _is_key(key) or key is None):
                raise ValueError(f"row {len(built)} of its structure has the key {key!r:.40}, not a string or a number")
        extra = next((v for k, v in items if k is None), None)
        built.append(kind.made([(k, value(v)) for k, v in items if k is not None], value(extra)))
    return value(data["root"])


def _names(data: dict[str, Any]) -> set[str]:
    """The names of classes, functions and dtypes."""
    items = [row[1] for row in data["rows"] if isinstance(row, list) and len(row) == 2 and isinstance(row[1], list)]
    values = [pair[-1] if isinstance(pair, list) and pair else pair for pairs in items for pair in pairs]
    named = [value["name"] for value in [*values, data["root"]] if isinstance(value, dict) and "name" in value]
    return {name for name in named if isinstance(name, str)}


def one(item: dict[str, Any], stored: Tensor) -> Any:
    """The tensor or array that an item stands for."""
    found = stored.detach() if item.get("shared") else stored
    if "size" in item:
        found = _part(found, item["size"], item.get("stride"), item.get("offset"))
    if "numpy" in item:
        array = found.cpu().numpy()
        array = array.view(item["dtype"]) if "dtype" in item else array
        return array[()] if item["numpy"] == "scalar" and not array.ndim else array
    return found.requires_grad_() if item.get("grad") else found


def _part(stored: Tensor, size: Any, stride: Any, offset: Any) -> Tensor:
    numbers = [*size, *stride, offset] if isinstance(size, list) and isinstance(stride, list) else [None]
    if not all(type(n) is int and n >= 0 for n in numbers) or len(size) != len(stride):
        raise ValueError(f"it has a part of a tensor of size {size!r:.40} and stride {stride!r:.40}")
    last = sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if 0 in size or offset + last >= stored.numel() or not stored.is_contiguous():
        raise ValueError(f"it has a part at {offset}, of size {size} and stride {stride}, of {stored.numel()} numbers")
    return as_strided(stored, size, stride, stored.storage_offset() + offset)
