"""A reader of pickles that runs no code.

A pickle is a program for a stack machine. The one here knows the operations that build containers, numbers, strings and
tensors, and calls nothing by name but what CALLS lists and what the caller trusts; in place of all else it puts what
only says its name. Format: pickletools.py and torch/serialization.py.
"""

from __future__ import annotations

import math
import pickletools
import sys
from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace
from typing import Any, BinaryIO, NamedTuple

from leafgrad import devices, dtypes
from leafgrad.tensor.interop import strided
from leafgrad.tensor.size import Size
from leafgrad.tensor.tensor import Tensor
from leafgrad.utils import objects, trust
from leafgrad.utils.bounds import Bounds
from leafgrad.utils.structure import FACTORIES
from leafgrad.utils.unloaded import Unloaded

STORAGES = {
    "FloatStorage": dtypes.float32,
    "DoubleStorage": dtypes.float64,
    "HalfStorage": dtypes.float16,
    "BFloat16Storage": dtypes.bfloat16,
    "ComplexFloatStorage": dtypes.complex64,
    "ComplexDoubleStorage": dtypes.complex128,
    "LongStorage": dtypes.int64,
    "IntStorage": dtypes.int32,
    "ShortStorage": dtypes.int16,
    "CharStorage": dtypes.int8,
    "ByteStorage": dtypes.uint8,
    "BoolStorage": dtypes.bool_,
}

REMEDY = (
    "leafgrad reads tensors, numbers, strings and containers of them; where PyTorch is installed, save a state_dict(), "
    "or allow its class by leafgrad.serialization.add_safe_globals"
)


class Name(NamedTuple):
    """Something that a pickle refers to as module and name; it is never looked up there."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class Storage(NamedTuple):
    """Memory of tensors."""

    memory: Any
    dtype: dtypes.dtype


class Unsigned(NamedTuple):
    """A dtype of NumPy's that tensors have not."""

    name: str


class Unbuilt:
    """An array of NumPy's whose state has not come, and the numbers under which it is remembered."""

    def __init__(self) -> None:
        self.places: list[Any] = []

    def __str__(self) -> str:
        return "an array without a shape"


class Machine:
    """Runs one pickle.

    Args:
        stored: gives the bytes of a storage by its key and how many there should be.
        bounds: of the file.
    """

    def __init__(self, stored: Callable[[str, int], bytes], bounds: Bounds) -> None:
        self._stored = stored
        self._bounds = bounds
        self._marks: list[int] = []  # how long the stack was where the items of containers begin
        self._storages: dict[str, Storage] = {}
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._trusted: list[Any] = []  # objects of classes that the caller trusts

    def run(self, pickle: bytes | BinaryIO) -> Any:
        """What the pickle builds."""
        for operation, argument, _ in pickletools.genops(pickle):
            if operation.name == "STOP":
                break
            name = operation.name
            act = OPERATIONS.get(name)
            if act is not None:
                act(self, argument)
            elif name in PUSHED:
                self._stack.append(argument)
            elif name in CONSTANTS:
                self._stack.append(CONSTANTS[name]())
            else:
                raise ValueError(f"its pickle has the operation {name}; {REMEDY}")
        (made,) = self._values([self._stack.pop()])
        if isinstance(made, Unloaded):
            raise ValueError(f"it has {made._name} in it; {REMEDY}")
        return made

    def _since_mark(self) -> list[Any]:
        """The items above the last mark, taken off with it."""
        start = self._marks.pop()
        items = self._stack[start:]
        del self._stack[start:]
        return items

    def _last(self, count: int) -> list[Any]:
        """The last items, taken off."""
        items = self._stack[-count:]
        del self._stack[-count:]
        return items

    def _values(self, items: list[Any]) -> list[Any]:
        """``items``, with what mere names stand for."""
        for i, item in enumerate(items):
            kind = type(item)
            if kind is Unbuilt:
                raise ValueError(f"it has {item} in it; {REMEDY}")
            if kind is Name:
                items[i] = trust.trusted_as(str(item)) or Unloaded(str(item))
        return items

    def _put(self, index: Any) -> None:
        place = len(self._memo) if index is None else index
        self._memo[place] = self._stack[-1]
        if type(self._stack[-1]) is Unbuilt:
            self._stack[-1].places.append(place)

    def _name(self, module: str, name: str) -> None:
        found = Name(MOVED.get(module, module), name)
        known = module == "torch" and dtypes.BY_NAME.get(name)
        self._stack.append(known or BUILTINS.get(found) or found)

    def _tuple(self, items: list[Any]) -> None:
        names = bool(items) and type(items[0]) in (str, Name) and items[0] in NAMING
        self._stack.append(tuple(items if names else self._values(items)))

    def _append(self, items: list[Any]) -> None:
        if not isinstance(self._stack[-1], Unloaded):
            self._container((list, deque)).extend(self._values(items))

    def _add(self, items: list[Any]) -> None:
        if not isinstance(self._stack[-1], Unloaded):
            self._container(set).update(self._keys(items))

    def _set(self, items: list[Any]) -> None:
        if not isinstance(self._stack[-1], Unloaded):
            self._container(dict).update(zip(self._keys(items[::2]), self._values(items[1::2]), strict=True))

    def _keys(self, items: list[Any]) -> list[Any]:
        return keys(items, self._bounds)

    def _container(self, kind: Any) -> Any:
        if not isinstance(self._stack[-1], kind):
            raise ValueError(f"its pickle adds items to a {type(self._stack[-1]).__name__}; {REMEDY}")
        return self._stack[-1]

    def _call(self, new: bool = False) -> None:
        function, arguments = self._last(2)
        if not isinstance(function, (Name, type, Unloaded)):  # its text might be endless
            raise ValueError(f"it is damaged: it calls a {type(function).__name__}")
        if function not in CALLS:
            self._stack.append(self._foreign(function, self._values(list(arguments)), new))
            return
        lost = [a for a in arguments if isinstance(a, Unloaded)]
        if lost:  # what is made of it, such as a tensor of an unknown dtype, is as unknown
            self._stack.append(lost[0])
            return
        self._copied(*arguments)
        self._stack.append(CALLS[function](*arguments, *([self._bounds] if function in HASHING and arguments else [])))

    def _copied(self, *things: Any) -> None:
        self._bounds.copied(*(thing for thing in things if not isinstance(thing, Unloaded)))

    def _foreign(self, function: Any, arguments: list[Any], new: bool) -> Any:
        """What is made by something that the caller trusts, or what stands for it."""
        trusted = trust.trusted_as(str(function)) if isinstance(function, Name) else None
        if trusted is None:
            return Unloaded(str(function)) if isinstance(function, Name) else function
        made = trusted.__new__(trusted, *arguments) if new else trusted(*arguments)
        self._trusted.append(made)
        return made

    def _state(self) -> None:
        """Attributes: a state_dict has the versions of its modules, by which they know what to bring up to date."""
        state = self._stack.pop()
        last = self._stack[-1]
        if isinstance(last, Unloaded):
            return
        self._copied(state, *(state if type(state) is tuple else ()))
        if any(last is made for made in self._trusted):
            objects.restore(last, self._values([state])[0])
            return
        if type(last) in STATES:
            self._stack[-1] = made = STATES[type(last)](last, state)
            self._memo.update(dict.fromkeys(getattr(last, "places", ()), made))
            return
        if type(self._stack[-1]) is not OrderedDict or not isinstance(state, dict) or set(state) - {"_metadata"}:
            raise ValueError(f"it has a {type(self._stack[-1]).__name__} with attributes in it; {REMEDY}")
        vars(self._stack[-1]).update(state)

    def _storage(self) -> None:
        kind, name, *rest = self._stack.pop()
        if kind == "module":  # a class with its source, in files before PyTorch 1.6
            self._stack.append(name)
            return
        key, _, count, *view = rest
        if view not in ([], [None]):
            raise ValueError(f"it has a storage that is a part of another; {REMEDY}")
        if kind != "storage":
            raise ValueError(f"it has {name} in it; {REMEDY}")
        if name.name not in STORAGES:
            self._stack.append(Unloaded(str(name)))
            return
        if key not in self._storages:
            self._storages[key] = self._elements(STORAGES[name.name], key, count)
        self._stack.append(self._storages[key])

    def _elements(self, kind: dtypes.dtype, key: str, count: int) -> Storage:
        memory = bytearray(self._stored(key, kind.itemsize * count))
        if len(memory) != kind.itemsize * count:
            raise ValueError(f"it is damaged: a storage of {count} elements has {len(memory)} bytes")
        return Storage(memory, kind)


def tensor(
    storage: Storage, offset: int, size: Any, stride: Any, requires_grad: Any = False, _: Any = None, bits: Any = None
) -> Tensor:
    """The part of a storage with these sizes and strides, in elements; conjugated or negated if ``bits`` say so."""
    if not isinstance(storage, Storage):
        raise ValueError(f"it is damaged: it has a tensor of a {type(storage).__name__}")
    made = strided(storage.memory, dtype=storage.dtype, size=size, stride=stride, offset=offset)
    bits = bits if isinstance(bits, dict) else {}
    made = made.conj() if bits.get("conj") else made
    made = -made if bits.get("neg") else made
    return made.requires_grad_(bool(requires_grad))


def parameter(data: Tensor, requires_grad: bool, *_: Any) -> Any:
    """A Parameter."""
    return trust.found(["leafgrad.nn.Parameter"])["leafgrad.nn.Parameter"](data, requires_grad)


def hashable(key: Any) -> Any:
    """A key, or an item of a set, if its hash is cheap: tuples in tuples and colliding integers take for ever."""
    for part in key if type(key) is tuple else (key,):
        plain = part is None or isinstance(part, (str, bytes, int, float, complex, dtypes.dtype, devices.device))
        if not plain or (isinstance(part, int) and abs(part) >= 2**60):
            raise ValueError(f"it has a {type(part).__name__} that is large or not flat as a key or in a set; {REMEDY}")
    return key


def keys(items: Any, bounds: Bounds) -> list[Any]:
    """Items, all of which may be keys."""
    return [bounds.key(hashable(item)) for item in items]


def mapping(items: Any, bounds: Bounds) -> dict[Any, Any]:
    """A dict of a dict, or of pairs."""
    pairs = items.items() if isinstance(items, dict) else items
    return {bounds.key(hashable(key)): value for key, value in pairs}


def encoded(text: str, encoding: str) -> bytes:
    """Bytes, as pickles of protocol 2 have them."""
    if encoding != "latin1":
        raise ValueError(f"it is damaged: it has bytes in the encoding {encoding!r:.40}")
    return text.encode("latin1")


def number_kind(name: str, *_: Any) -> Any:
    """A dtype of NumPy's."""
    return Unsigned(name) if name in UNSIGNED else NUMBERS.get(name) or Unloaded(f"numpy.dtype({name!r:.40})")


def in_order(kind: Any, state: Any) -> Any:
    """The dtype, if its bytes are in this machine's order."""
    if state[1] not in ("|", "=", "<" if sys.byteorder == "little" else ">"):
        raise ValueError(f"it has numbers in the byte order {state[1]!r:.40}; {REMEDY}")
    return kind


def array(kind: Any, data: bytes, shape: Any = (), fortran: bool = False) -> Any:
    """A NumPy array of these bytes."""
    if isinstance(kind, Unsigned):
        return array(UNSIGNED[kind.name], data, shape, fortran).view(kind.name)
    if len(data) != math.prod(shape) * kind.itemsize:
        raise ValueError(f"it is damaged: an array of shape {shape} has {len(data)} bytes")
    order = range(len(shape)) if fortran else range(len(shape))[::-1]
    steps, step = [0] * len(shape), 1
    for d in order:
        steps[d], step = step, step * max(1, shape[d])
    return strided(bytearray(data), dtype=kind, size=shape, stride=steps, offset=0).numpy()


def with_attributes(obj: Any, state: dict[str, Any]) -> Any:
    """A Namespace with what it holds."""
    vars(obj).update(state)
    return obj


MOVED = {  # modules by what they were called in Python 2, NumPy 1 and Python 3.13
    "__builtin__": "builtins",
    "numpy.core.multiarray": "numpy._core.multiarray",
    "pathlib._local": "pathlib",
}
NUMBERS = {
    "b1": dtypes.bool_, "u1": dtypes.uint8, "i1": dtypes.int8, "i2": dtypes.int16, "i4": dtypes.int32,
    "i8": dtypes.int64, "f2": dtypes.float16, "f4": dtypes.float32, "f8": dtypes.float64,
}  # fmt: skip
UNSIGNED = {"u2": dtypes.int16, "u4": dtypes.int32, "u8": dtypes.int64}  # and whose bits they have
BUILTINS: dict[Any, type] = {Name("builtins", kind.__name__): kind for kind in FACTORIES}
STATES: dict[type, Callable[[Any, Any], Any]] = {
    Namespace: with_attributes,
    SimpleNamespace: with_attributes,
    dtypes.dtype: in_order,
    Unsigned: in_order,
    Unbuilt: lambda _, state: (
        state[2] if isinstance(state[2], Unloaded) else array(state[2], state[4], state[1], state[3])
    ),
}
CALLS: dict[Any, Callable[..., Any]] = {
    Name("collections", "Counter"): lambda *counts: Counter(mapping(*counts) if counts else ()),
    Name("collections", "defaultdict"): lambda factory=None: defaultdict(factory),
    Name("collections", "deque"): deque,
    Name("argparse", "Namespace"): Namespace,
    Name("types", "SimpleNamespace"): SimpleNamespace,
    Name("pathlib", "PosixPath"): Path,
    Name("pathlib", "WindowsPath"): PureWindowsPath,
    Name("builtins", "frozenset"): lambda *items: frozenset(keys(*items) if items else ()),
    Name("builtins", "bytes"): lambda: b"",
    Name("builtins", "complex"): complex,
    Name("builtins", "slice"): slice,
    Name("_codecs", "encode"): encoded,
    Name("numpy", "dtype"): number_kind,
    Name("numpy._core.multiarray", "scalar"): lambda kind, data: array(kind, data)[()],
    Name("numpy._core.multiarray", "_reconstruct"): lambda *_: Unbuilt(),
    set: lambda *items: set(keys(*items) if items else ()),
    Name("collections", "OrderedDict"): lambda *pairs: OrderedDict(mapping(*pairs) if pairs else ()),
    Name("torch._utils", "_rebuild_tensor_v2"): tensor,
    Name("torch._utils", "_rebuild_parameter"): parameter,
    Name("torch", "Size"): Size,
    Name("torch", "device"): devices.device,
}
HASHING = {  # given the bounds of the file, too
    Name("builtins", "frozenset"),
    Name("collections", "Counter"),
    Name("collections", "OrderedDict"),
    set,
}
NAMING = ("storage", "module", Name("numpy", "ndarray"))  # which begin tuples that may have names in them
PUSHED = frozenset(
    "BINUNICODE SHORT_BINUNICODE BINUNICODE8 SHORT_BINBYTES BINBYTES BINFLOAT "
    "BININT BININT1 BININT2 LONG1 LONG4 INT".split()
)
CONSTANTS: dict[str, Callable[[], Any]] = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_SET": set,
    "EMPTY_TUPLE": tuple,
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
}
OPERATIONS: dict[str, Callable[[Any, Any], object]] = {
    "PROTO": lambda machine, _: None,
    "MARK": lambda machine, _: machine._marks.append(len(machine._stack)),
    "FRAME": lambda machine, _: None,
    "BINPUT": Machine._put,
    "LONG_BINPUT": Machine._put,
    "MEMOIZE": Machine._put,
    "BINGET": lambda machine, index: machine._stack.append(machine._memo[index]),
    "LONG_BINGET": lambda machine, index: machine._stack.append(machine._memo[index]),
    "GLOBAL": lambda machine, text: machine._name(*text.split(" ")),
    "STACK_GLOBAL": lambda machine, _: machine._name(*machine._last(2)),
    "TUPLE": lambda machine, _: machine._tuple(machine._since_mark()),
    "TUPLE1": lambda machine, _: machine._tuple(machine._last(1)),
    "TUPLE2": lambda machine, _: machine._tuple(machine._last(2)),
    "TUPLE3": lambda machine, _: machine._tuple(machine._last(3)),
    "APPEND": lambda machine, _: machine._append(machine._last(1)),
    "APPENDS": lambda machine, _: machine._append(machine._since_mark()),
    "ADDITEMS": lambda machine, _: machine._add(machine._since_mark()),
    "FROZENSET": lambda machine, _: machine._stack.append(frozenset(machine._keys(machine._since_mark()))),
    "SETITEM": lambda machine, _: machine._set(machine._last(2)),
    "SETITEMS": lambda machine, _: machine._set(machine._since_mark()),
    "REDUCE": lambda machine, _: machine._call(),
    "NEWOBJ": lambda machine, _: machine._call(new=True),
    "BUILD": lambda machine, _: machine._state(),
    "BINPERSID": lambda machine, _: machine._storage(),
}
