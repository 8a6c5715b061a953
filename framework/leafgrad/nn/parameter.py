"""Parameter and Buffer: tensors that register themselves with a module; and those whose shape is not known yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from leafgrad import modes
from leafgrad.ops import dispatch
from leafgrad.tensor.creation import empty
from leafgrad.tensor.overrides import unwrapped
from leafgrad.tensor.tensor import Tensor

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"]


def _sharing(cls: type[Any], data: Any) -> Any:
    """A leaf of another class with the memory of ``data``."""
    if not isinstance(data, Tensor):
        raise TypeError(
            f"{cls.__name__}: data: expected a Tensor, got {type(data).__name__}; wrap it with leafgrad.tensor(...)"
        )
    shared = data.detach()
    out = dispatch.alias(shared._data, kind=cls)
    out._writes, out._epoch = shared._writes, shared._epoch
    if modes.tracer():  # where no memory is shared, but what stands for it
        out._view = shared._view
    return out


class Parameter(Tensor):
    """A leaf tensor that registers itself when it is assigned to an attribute of a Module.

    It shares memory with ``data``.

    Args:
        data: a tensor, of any shape and dtype; an empty one by default.
        requires_grad: whether operations on it are recorded; needs a floating dtype.

    Raises:
        TypeError: ``data`` is not a Tensor.
        RuntimeError: ``requires_grad`` with a dtype that is not a floating one.
    """

    __slots__ = ()
    __torch_function__ = unwrapped

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        out: Parameter = _sharing(cls, empty(0) if data is None else data)
        out._set_grad(requires_grad)
        return out

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """Without the gradient: one that came along would be added to the first that the copy gets."""
        out = super().__deepcopy__(memo)
        out.grad = None
        return out

    def _twin(self, memo: dict[Any, Any]) -> Tensor:
        """In memory of its own, as in PyTorch."""
        return self.detach().clone()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.detach(), self.requires_grad)


class Buffer(Tensor):
    """A tensor that registers itself as a buffer when it is assigned to an attribute of a Module.

    It shares memory with ``data``.

    Args:
        data: a tensor, of any shape and dtype; an empty one by default.
        persistent: whether ``state_dict`` holds it.

    Raises:
        TypeError: ``data`` is not a Tensor.
    """

    __slots__ = ()
    __torch_function__ = unwrapped

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        data = empty(0) if data is None else data
        out: Buffer = _sharing(cls, data)
        out.persistent = persistent
        out._set_grad(data.requires_grad)
        return out


# ---- of a shape that the first call will tell ---------------------------------------------------------------------


def become(value: Any, kind: type) -> None:
    """Make an object one of another class, with all that it holds."""
    value.__class__ = kind


class UninitializedTensor(Tensor):
    """A parameter or buffer that waits for its shape. It has a dtype and a device, and refuses everything else."""

    __slots__ = ()
    __torch_function__ = unwrapped

    _like: Tensor  # has the dtype and the device
    _trained: bool

    def _wait(self, requires_grad: bool, device: Any, dtype: Any) -> None:
        self.__dict__.update(_like=empty(0, device=device, dtype=dtype), _trained=requires_grad)

    def materialize(self, shape: Sequence[int], device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary parameter or buffer of this shape, with arbitrary elements."""
        like, trained = self.__dict__.pop("_like"), self.__dict__.pop("_trained")
        made = empty(shape, device=like.device if device is None else device, dtype=dtype or like.dtype)
        become(self, Parameter if isinstance(self, Parameter) else Buffer)
        self._data, self._writes, self._epoch = made._data, made._writes, made._epoch
        self._history = self._leaf = self._view = None
        self._set_grad(trained)

    def convert(self, convert: Any) -> None:
        """Change dtype or device by a function of tensors."""
        self.__dict__["_like"] = convert(self._like)

    def _refuse(self) -> NoReturn:
        raise ValueError(
            "Attempted to use an uninitialized parameter: its shape follows from the first input. Call the module "
            "once on a batch, before an optimizer or anything else uses its parameters"
        )

    @property
    def _data(self) -> Any:
        return self._refuse()

    @_data.setter
    def _data(self, value: Any) -> None:
        self._refuse()

    @property
    def _node(self) -> Any:
        return self._refuse()

    @_node.setter
    def _node(self, value: Any) -> None:
        self._refuse()

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    @property
    def dtype(self) -> Any:
        return self._like.dtype

    @property
    def device(self) -> Any:
        return self._like.device

    @property
    def is_leaf(self) -> bool:
        return True

    @property
    def grad(self) -> None:
        return None

    @grad.setter
    def grad(self, value: Any) -> None:
        self._refuse()

    @property
    def requires_grad(self) -> bool:
        return self._trained

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._trained = value

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        self._trained = requires_grad
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        make, arguments = self._remade()
        memo[id(self)] = made = make(*arguments)
        return made

    def _remade(self) -> tuple[Any, tuple[Any, ...]]:
        raise NotImplementedError

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self._remade()


class UninitializedParameter(UninitializedTensor, Parameter):
    """A parameter whose shape the first call of its module will tell: see ``LazyLinear``."""

    __slots__ = ()

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        out = object.__new__(cls)
        out._wait(requires_grad, device, dtype)
        return out

    def _remade(self) -> tuple[Any, tuple[Any, ...]]:
        return type(self), (self.requires_grad, self.device, self.dtype)


class UninitializedBuffer(UninitializedTensor, Buffer):
    """A buffer whose shape the first call of its module will tell."""

    __slots__ = ()

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        out = object.__new__(cls)
        out._wait(requires_grad, device, dtype)
        out.persistent = persistent
        return out

    def _remade(self) -> tuple[Any, tuple[Any, ...]]:
        return type(self), (self.requires_grad, self.device, self.dtype, self.persistent)
