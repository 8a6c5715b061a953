"""``FloatTensor`` and its kin: constructors of old, and what ``isinstance`` takes for the tensors of a dtype."""

from __future__ import annotations

from typing import Any

from leafgrad import devices, dtypes
from leafgrad.ops import create, dispatch
from leafgrad.tensor import overrides
from leafgrad.tensor.creation import sizes
from leafgrad.tensor.data import copied
from leafgrad.tensor.methods import attach
from leafgrad.tensor.public import public
from leafgrad.tensor.size import Size
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
]


def typed(args: tuple[Any, ...], dtype: dtypes.dtype, device: Any = None) -> Tensor:
    """Sizes make a tensor of arbitrary elements, one sequence or array makes its tensor, nothing an empty one."""
    if len(args) == 1 and not isinstance(args[0], (int, Size)):
        if isinstance(args[0], float):
            raise TypeError(f"new(): data must be a sequence, got float; write leafgrad.tensor({args[0]})")
        if isinstance(args[0], Tensor):
            return args[0].detach().to("cpu" if device is None else device, dtype)
        return copied(args[0], dtype, device)
    place = devices.given(device).resolve()
    out: Tensor = dispatch.create(create.empty, place, shape=sizes(args or (0,), "new"), dtype=dtype.name)
    return out


class TensorType(type):
    """The class of ``FloatTensor`` and its kin, whose instances are the CPU's tensors of that dtype."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.device.type == "cpu"

    def __call__(cls, *args: Any, device: Any = None, **unknown: Any) -> Tensor:
        """A tensor of a sequence, or of sizes with arbitrary elements."""
        for name in unknown:
            raise TypeError(f"{cls.__name__}() got an unexpected keyword argument {name!r}")
        return typed(args, cls.dtype, "cpu" if device is None else device)

    def __repr__(cls) -> str:
        return f"<class '{dtypes.namespace}.{cls.__name__}'>"


ARGS = """Args:
    args: a sequence of elements, or sizes.
    device: the CPU, or None.
"""


def _made(name: str, dtype: dtypes.dtype) -> Any:
    kind = getattr(dtype, "known_as", None) or dtype.name
    doc = f"The CPU's tensors of {kind}; called, one of a sequence, or of sizes with arbitrary elements.\n\n{ARGS}"
    return public(only="leafgrad")(TensorType(name, (), {"dtype": dtype, "__doc__": doc, "__module__": __name__}))


BFloat16Tensor = _made("BFloat16Tensor", dtypes.bfloat16)
BoolTensor = _made("BoolTensor", dtypes.bool_)
ByteTensor = _made("ByteTensor", dtypes.uint8)
CharTensor = _made("CharTensor", dtypes.int8)
DoubleTensor = _made("DoubleTensor", dtypes.float64)
FloatTensor = _made("FloatTensor", dtypes.float32)
HalfTensor = _made("HalfTensor", dtypes.float16)
IntTensor = _made("IntTensor", dtypes.int32)
LongTensor = _made("LongTensor", dtypes.int64)
ShortTensor = _made("ShortTensor", dtypes.int16)

TYPES = {name: globals()[name] for name in __all__}


def _construct(cls: type[Tensor], *args: Any, device: Any = None) -> Tensor:
    """``Tensor(2, 3)`` has arbitrary elements, ``Tensor([2, 3])`` has these, both in the default dtype.

    ``Tensor(other)`` shares the memory of another tensor.
    """
    shares = len(args) == 1 and isinstance(args[0], Tensor)
    made = overrides.alias(args[0].detach(), Tensor) if shares else typed(args, dtypes.get_default_dtype(), device)
    if cls is Tensor:
        return made
    out: Tensor = overrides.alias(made, cls)
    return out


attach("__new__", staticmethod(_construct))


@public(only="Tensor")
def as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """Its memory and history as an object of ``cls``, whose ``__torch_function__`` says what operations do with it.

    Tensor's own, which subclasses inherit, gives results of ``cls``.

    Args:
        cls: a subclass of Tensor.
    """
    if not issubclass(cls, Tensor):
        raise TypeError(f"as_subclass: cls must be a subclass of Tensor, got {cls.__name__}")
    out: Tensor = overrides.alias(self, cls)
    return out


@public(only="Tensor")
def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """A tensor of a sequence, or of sizes with arbitrary elements, of this tensor's dtype on its device."""
    return typed(args, self.dtype, self.device if device is None else device)
