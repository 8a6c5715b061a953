"""What functions give to Tensor. Written by `python -m leafgrad.testing.stubs`; do not edit."""

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, overload

from leafgrad import return_types
from leafgrad.autograd.edge import GradientEdge
from leafgrad.dtypes import dtype, memory_format
from leafgrad.tensor.arguments import Dim
from leafgrad.tensor.random import Generator
from leafgrad.tensor.storage import TypedStorage, UntypedStorage
from leafgrad.tensor.tensor import Tensor

CLAIMS: dict[str, dict[str, tuple[str, Any]]]
DECLARED: dict[str, Callable[..., Any]]

def claim(owner: str, name: str, module: str) -> None: ...
def declare(name: str, function: Callable[..., Any]) -> None: ...
def attach(
    name: str, function: Callable[..., Any] | property, *, checked: bool = False, module: str = "", shows: str = ""
) -> None: ...
def expect(names: Iterable[str]) -> None: ...

class Later:
    module: str
    name: str

    def __init__(self, module: str, name: str) -> None: ...

class Listed:
    name: str

    def __init__(self, name: str) -> None: ...

class Methods:
    @property
    def H(self) -> Tensor: ...
    @property
    def T(self) -> Tensor: ...
    def __abs__(self) -> Tensor:
        """Absolute value. Its derivative at 0 is taken as 0. (...) -> (...)"""
    def __add__(self, other: Any) -> Tensor:
        """Sum of x and y, broadcast. (...), (...) -> (...)"""
    def __and__(self, other: Any) -> Tensor:
        """x and y, bit by bit. Integers and bools. (...), (...) -> (...)"""
    def __array_namespace__(self, *, api_version: builtins.str | None = None) -> Any:
        """The functions of the Python array API standard that leafgrad has: the module ..."""
    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: builtins.bool = False) -> Tensor:
        """What a function of NumPy made of this tensor's elements, as a tensor: ``np.sqrt(x)``."""
    def __bool__(self) -> builtins.bool:
        """Whether the only element is not zero."""
    def __complex__(self) -> builtins.complex:
        """The only element as a complex number."""
    def __contains__(self, element: Any) -> builtins.bool:
        """Whether some element equals a number, or those of a tensor that broadcasts."""
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: builtins.tuple[builtins.int, builtins.int] | None = None,
        dl_device: builtins.tuple[builtins.int, builtins.int] | None = None,
        copy: builtins.bool | None = None,
    ) -> Any:
        """A DLPack capsule that shares this tensor's memory, for the ``from_dlpack`` of another library."""
    def __dlpack_device__(self) -> builtins.tuple[builtins.int, builtins.int]:
        """DLPack's numbers for the type and index of the device: (1, 0) for the CPU, (2, index) for CUDA."""
    def __eq__(self, other: Any) -> Any:
        """Return self==value."""
    def __float__(self) -> builtins.float:
        """The only element as a float."""
    def __floordiv__(self, other: Any) -> Tensor:
        """The quotient rounded down. It has no gradient. (...), (...) -> (...)"""
    def __format__(self, spec: builtins.str) -> builtins.str:
        """The only element of a tensor without dimensions, as a number is formatted."""
    def __ge__(self, other: Any) -> Tensor:
        """Whether x is y or above. (...), (...) -> (...) bool"""
    def __getitem__(self, key: Any) -> Tensor:
        """A view for ints, slices, None and the ellipsis, a copy as soon as tensors, lists or masks choose elements."""
    def __gt__(self, other: Any) -> Tensor:
        """Whether x is above y. (...), (...) -> (...) bool"""
    def __iadd__(self, other: Any) -> Self:
        """``add`` in place; returns the tensor."""
    def __iand__(self, other: Any) -> Self:
        """``bitwise_and`` in place; returns the tensor."""
    def __ifloordiv__(self, other: Any) -> Self:
        """``floor_divide`` in place; returns the tensor."""
    def __ilshift__(self, other: Any) -> Self:
        """``bitwise_left_shift`` in place; returns the tensor."""
    def __imod__(self, other: Any) -> Self:
        """``remainder`` in place; returns the tensor."""
    def __imul__(self, other: Any) -> Self:
        """``mul`` in place; returns the tensor."""
    def __index__(self) -> builtins.int:
        """The only element of an integer tensor, as an index."""
    def __int__(self) -> builtins.int:
        """The only element as an int."""
    def __invert__(self) -> Tensor:
        """All bits of x turned round; logical not for bools. (...) -> (...)"""
    def __ior__(self, other: Any) -> Self:
        """``bitwise_or`` in place; returns the tensor."""
    def __ipow__(self, other: Any) -> Self:
        """``pow`` in place; returns the tensor."""
    def __irshift__(self, other: Any) -> Self:
        """``bitwise_right_shift`` in place; returns the tensor."""
    def __isub__(self, other: Any) -> Self:
        """``sub`` in place; returns the tensor."""
    def __iter__(self) -> Iterator[Tensor]:
        """The slices along the first dimension."""
    def __itruediv__(self, other: Any) -> Self:
        """``div`` in place; returns the tensor."""
    def __ixor__(self, other: Any) -> Self:
        """``bitwise_xor`` in place; returns the tensor."""
    def __le__(self, other: Any) -> Tensor:
        """Whether x is y or below. (...), (...) -> (...) bool"""
    def __len__(self) -> builtins.int:
        """The size of the first dimension."""
    def __lshift__(self, other: Any) -> Tensor:
        """The bits of x moved up by y. Integers. (...), (...) -> (...)"""
    def __lt__(self, other: Any) -> Tensor:
        """Whether x is below y. (...), (...) -> (...) bool"""
    def __matmul__(self, other: Any) -> Tensor:
        """Matrix product. (..., n, k), (..., k, m) -> (..., n, m); also of vectors, (k)."""
    def __mod__(self, other: Any) -> Tensor:
        """x - y floor(x / y): has the sign of y, as Python's ``%``. (...), (...) -> (...)"""
    def __mul__(self, other: Any) -> Tensor:
        """Product of x and y, broadcast. (...), (...) -> (...)"""
    def __ne__(self, other: Any) -> Any:
        """Return self!=value."""
    def __neg__(self) -> Tensor:
        """Minus x. (...) -> (...)"""
    def __or__(self, other: Any) -> Tensor:
        """x or y, bit by bit. Integers and bools. (...), (...) -> (...)"""
    def __pos__(self) -> Tensor: ...
    def __pow__(self, other: Any) -> Tensor:
        """x to the power y, broadcast. (...), (...) -> (...)"""
    def __radd__(self, other: Any) -> Tensor:
        """Sum of x and y, broadcast. (...), (...) -> (...)"""
    def __rand__(self, other: Any) -> Tensor:
        """x and y, bit by bit. Integers and bools. (...), (...) -> (...)"""
    def __reduce__(self) -> builtins.tuple[Any, ...]:
        """For pickle and copy: class, elements as a NumPy array, device, requires_grad; then the attributes."""
    def __repr__(self) -> builtins.str:
        """The repr of a tensor."""
    def __reversed__(self) -> Tensor:
        """The slices along the first dimension, last one first."""
    def __rfloordiv__(self, other: Any) -> Tensor: ...
    def __rlshift__(self, other: Any) -> Tensor: ...
    def __rmatmul__(self, other: Any) -> Tensor: ...
    def __rmod__(self, other: Any) -> Tensor: ...
    def __rmul__(self, other: Any) -> Tensor:
        """Product of x and y, broadcast. (...), (...) -> (...)"""
    def __ror__(self, other: Any) -> Tensor:
        """x or y, bit by bit. Integers and bools. (...), (...) -> (...)"""
    def __rpow__(self, other: Any) -> Tensor: ...
    def __rrshift__(self, other: Any) -> Tensor: ...
    def __rshift__(self, other: Any) -> Tensor:
        """The bits of x moved down by y, the sign kept. Integers. (...), (...) -> (...)"""
    def __rsub__(self, other: Any) -> Tensor: ...
    def __rtruediv__(self, other: Any) -> Tensor: ...
    def __rxor__(self, other: Any) -> Tensor:
        """Bits in which x and y differ. Integers and bools. (...), (...) -> (...)"""
    def __setitem__(self, key: Any, value: Any) -> None:
        """Write ``value`` (a number, a tensor or data for one, which broadcasts) to what ``self[key]`` gives."""
    def __sub__(self, other: Any) -> Tensor:
        """Difference of x and y, broadcast. (...), (...) -> (...)"""
    def __truediv__(self, other: Any) -> Tensor:
        """Quotient of x and y, broadcast; integers divide as floats. (...), (...) -> (...)"""
    def __xor__(self, other: Any) -> Tensor:
        """Bits in which x and y differ. Integers and bools. (...), (...) -> (...)"""
    def _repr_html_(self) -> builtins.str:
        """HTML for notebooks: dtype, shape, device and place in the graph, above the repr."""
    def abs(self) -> Tensor:
        """Absolute value. Its derivative at 0 is taken as 0. (...) -> (...)"""
    def abs_(self) -> Tensor:
        """``abs`` in place; returns the tensor."""
    def absolute(self) -> Tensor:
        """Absolute value. Its derivative at 0 is taken as 0. (...) -> (...)"""
    def absolute_(self) -> Tensor:
        """``abs`` in place; returns the tensor."""
    def acos(self) -> Tensor:
        """Arccosine, in [0, pi]; nan beyond [-1, 1]. (...) -> (...)"""
    def acos_(self) -> Tensor:
        """``acos`` in place; returns the tensor."""
    def acosh(self) -> Tensor:
        """Inverse hyperbolic cosine; nan below 1. (...) -> (...)"""
    def acosh_(self) -> Tensor:
        """``acosh`` in place; returns the tensor."""
    def add(self, other: Any, *, alpha: builtins.float = 1) -> Tensor:
        """``input + alpha * other``. (...), (...) -> (...)"""
    def add_(self, other: Any, *, alpha: builtins.float = 1) -> Tensor:
        """``add`` in place; returns the tensor."""
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """``beta * input + alpha * sum(batch1 @ batch2)`` over the batch. (b, n, k), (b, k, m) -> (n, m)"""
    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """``addbmm`` in place; returns the tensor."""
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = 1) -> Tensor:
        """``input + value * tensor1 / tensor2``. All broadcast. RuntimeError if both are integers."""
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = 1) -> Tensor:
        """``addcdiv`` in place; returns the tensor."""
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = 1) -> Tensor:
        """``input + value * tensor1 * tensor2``. All broadcast."""
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = 1) -> Tensor:
        """``addcmul`` in place; returns the tensor."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """``beta * input + alpha * (mat1 @ mat2)``. input broadcasts to (n, m); (n, k), (k, m) -> (n, m)"""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """``addmm`` in place; returns the tensor."""
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """``beta * input + alpha * (mat @ vec)``. input broadcasts to (n); (n, k), (k) -> (n)"""
    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """``addmv`` in place; returns the tensor."""
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """``beta * input + alpha * outer(vec1, vec2)``, in the dtype of all. (n, m), (n), (m) -> (n, m)"""
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """``addr`` in place; returns the tensor."""
    def adjoint(self) -> Tensor:
        """The last two dimensions exchanged, conjugated. (..., m, n) -> (..., n, m)"""
    def all(self, dim: builtins.int | Iterable[builtins.int] | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Whether no element over ``dim`` is zero. bool, but uint8 for uint8"""
    def allclose(
        self,
        other: Tensor,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> builtins.bool:
        """Whether ``isclose`` holds for all elements, as a Python bool."""
    def amax(self, dim: builtins.int | Iterable[builtins.int] | None = (), keepdim: builtins.bool = False) -> Tensor:
        """The largest value over ``dim``. Equal ones share the gradient. IndexError if there is none."""
    def amin(self, dim: builtins.int | Iterable[builtins.int] | None = (), keepdim: builtins.bool = False) -> Tensor:
        """The smallest value over ``dim``. Equal ones share the gradient. IndexError if there is none."""
    def aminmax(self, *, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> return_types.aminmax:
        """``amin`` and ``amax`` over one dimension or all, named ``min`` and ``max``."""
    def angle(self) -> Tensor:
        """The angle with the positive real axis, in [-pi, pi]; nan stays. (...) -> (...) of a floating dtype"""
    def any(self, dim: builtins.int | Iterable[builtins.int] | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Whether some element over ``dim`` is nonzero. bool, but uint8 for uint8"""
    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """Replace each element by ``callable(element)``. Slow: for the CPU, and for what nothing else does."""
    def arccos(self) -> Tensor:
        """Arccosine, in [0, pi]; nan beyond [-1, 1]. (...) -> (...)"""
    def arccos_(self) -> Tensor:
        """``acos`` in place; returns the tensor."""
    def arccosh(self) -> Tensor:
        """Inverse hyperbolic cosine; nan below 1. (...) -> (...)"""
    def arccosh_(self) -> Tensor:
        """``acosh`` in place; returns the tensor."""
    def arcsin(self) -> Tensor:
        """Arcsine, in [-pi/2, pi/2]; nan beyond [-1, 1]. (...) -> (...)"""
    def arcsin_(self) -> Tensor:
        """``asin`` in place; returns the tensor."""
    def arcsinh(self) -> Tensor:
        """Inverse hyperbolic sine. (...) -> (...)"""
    def arcsinh_(self) -> Tensor:
        """``asinh`` in place; returns the tensor."""
    def arctan(self) -> Tensor:
        """Arctangent, in (-pi/2, pi/2). (...) -> (...)"""
    def arctan2(self, other: Any) -> Tensor:
        """Angle of the point with ordinate x and abscissa y, in [-pi, pi]. (...), (...) -> (...)"""
    def arctan2_(self, other: Any) -> Tensor:
        """``atan2`` in place; returns the tensor."""
    def arctan_(self) -> Tensor:
        """``atan`` in place; returns the tensor."""
    def arctanh(self) -> Tensor:
        """Inverse hyperbolic tangent; nan beyond [-1, 1]. (...) -> (...)"""
    def arctanh_(self) -> Tensor:
        """``atanh`` in place; returns the tensor."""
    def argmax(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Index of the largest element along ``dim``, or in the flattened tensor. int64"""
    def argmin(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Index of the smallest element along ``dim``, or in the flattened tensor. int64"""
    def argsort(
        self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
    ) -> Tensor:
        """Indices that sort along ``dim``; equal elements stay in order, with or without ``stable``. int64"""
    def argwhere(self) -> Tensor:
        """Indices of the elements that are not zero, in order. (how many, input.ndim), int64"""
    def as_strided(self, size: Any, stride: Any, storage_offset: builtins.int | None = None) -> Tensor:
        """A view of the same memory: element (i, j, …) is i * stride[0] + j * stride[1] + … behind ..."""
    def as_strided_(self, size: Any, stride: Any, storage_offset: builtins.int | None = None) -> Tensor:
        """Become ``self.as_strided(size, stride, storage_offset)``, in place."""
    def as_strided_scatter(
        self, src: Tensor, size: Any, stride: Any, storage_offset: builtins.int | None = None
    ) -> Tensor:
        """A copy with ``as_strided(size, stride, storage_offset)`` replaced by ``src``."""
    def as_subclass(self, cls: builtins.type[Tensor]) -> Tensor:
        """Its memory and history as an object of ``cls``, whose ``__torch_function__`` says what operations do ..."""
    def asin(self) -> Tensor:
        """Arcsine, in [-pi/2, pi/2]; nan beyond [-1, 1]. (...) -> (...)"""
    def asin_(self) -> Tensor:
        """``asin`` in place; returns the tensor."""
    def asinh(self) -> Tensor:
        """Inverse hyperbolic sine. (...) -> (...)"""
    def asinh_(self) -> Tensor:
        """``asinh`` in place; returns the tensor."""
    def atan(self) -> Tensor:
        """Arctangent, in (-pi/2, pi/2). (...) -> (...)"""
    def atan2(self, other: Any) -> Tensor:
        """Angle of the point with ordinate x and abscissa y, in [-pi, pi]. (...), (...) -> (...)"""
    def atan2_(self, other: Any) -> Tensor:
        """``atan2`` in place; returns the tensor."""
    def atan_(self) -> Tensor:
        """``atan`` in place; returns the tensor."""
    def atanh(self) -> Tensor:
        """Inverse hyperbolic tangent; nan beyond [-1, 1]. (...) -> (...)"""
    def atanh_(self) -> Tensor:
        """``atanh`` in place; returns the tensor."""
    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: builtins.bool | None = None,
        create_graph: builtins.bool = False,
        inputs: Tensor | GradientEdge | Iterable[Tensor | GradientEdge] | None = None,
    ) -> None:
        """Compute the gradient of this tensor and accumulate it in the ``.grad`` of the leaves it came from."""
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """``beta * input + alpha * (batch1 @ batch2)``. (b, n, k), (b, k, m) -> (b, n, m)"""
    def baddbmm_(
        self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1
    ) -> Tensor:
        """``baddbmm`` in place; returns the tensor."""
    def bernoulli(self, p: builtins.float | None = None, *, generator: Generator | None = None) -> Tensor:
        """Ones with the probabilities in ``input`` (or ``p`` everywhere), zeros otherwise, of its shape and dtype."""
    def bernoulli_(self, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Write ones with probability p (a number, or a tensor that broadcasts), zeros otherwise."""
    def bfloat16(self, memory_format: memory_format = ...) -> Tensor:
        """As bfloat16."""
    def bincount(self, weights: Tensor | None = None, minlength: builtins.int = 0) -> Tensor:
        """How often 0, 1, 2, … occur in ``input``. (n,) integers -> (max(largest + 1, minlength),)"""
    def bitwise_and(self, other: Any) -> Tensor:
        """x and y, bit by bit. Integers and bools. (...), (...) -> (...)"""
    def bitwise_and_(self, other: Any) -> Tensor:
        """``bitwise_and`` in place; returns the tensor."""
    def bitwise_left_shift(self, other: Any) -> Tensor:
        """The bits of x moved up by y. Integers. (...), (...) -> (...)"""
    def bitwise_left_shift_(self, other: Any) -> Tensor:
        """``bitwise_left_shift`` in place; returns the tensor."""
    def bitwise_not(self) -> Tensor:
        """All bits of x turned round; logical not for bools. (...) -> (...)"""
    def bitwise_not_(self) -> Tensor:
        """``bitwise_not`` in place; returns the tensor."""
    def bitwise_or(self, other: Any) -> Tensor:
        """x or y, bit by bit. Integers and bools. (...), (...) -> (...)"""
    def bitwise_or_(self, other: Any) -> Tensor:
        """``bitwise_or`` in place; returns the tensor."""
    def bitwise_right_shift(self, other: Any) -> Tensor:
        """The bits of x moved down by y, the sign kept. Integers. (...), (...) -> (...)"""
    def bitwise_right_shift_(self, other: Any) -> Tensor:
        """``bitwise_right_shift`` in place; returns the tensor."""
    def bitwise_xor(self, other: Any) -> Tensor:
        """Bits in which x and y differ. Integers and bools. (...), (...) -> (...)"""
    def bitwise_xor_(self, other: Any) -> Tensor:
        """``bitwise_xor`` in place; returns the tensor."""
    def bmm(self, mat2: Tensor) -> Tensor:
        """Products of matrices, pair by pair; nothing broadcasts. (b, n, k), (b, k, m) -> (b, n, m)"""
    def bool(self, memory_format: memory_format = ...) -> Tensor:
        """As bool: whether each element is not zero."""
    def broadcast_to(self, *size: Any) -> Tensor:
        """``input.expand(size)``"""
    def byte(self, memory_format: memory_format = ...) -> Tensor:
        """As uint8."""
    def cauchy_(
        self, median: builtins.float = 0.0, sigma: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Write Cauchy numbers of this median; ``sigma`` is half the width of the density at half its height."""
    def cdouble(self, memory_format: memory_format = ...) -> Tensor:
        """As complex128."""
    def ceil(self) -> Tensor:
        """The smallest integer that is not below x. (...) -> (...)"""
    def ceil_(self) -> Tensor:
        """``ceil`` in place; returns the tensor."""
    def cfloat(self, memory_format: memory_format = ...) -> Tensor:
        """As complex64."""
    def chalf(self, memory_format: memory_format = ...) -> Tensor:
        """PyTorch's complex32, which leafgrad has not: always a NotImplementedError."""
    def char(self, memory_format: memory_format = ...) -> Tensor:
        """As int8."""
    def cholesky(self, upper: builtins.bool = False) -> Tensor:
        """Succeeded by ``linalg.cholesky``. (..., n, n) -> (..., n, n)"""
    def cholesky_inverse(self, upper: builtins.bool = False) -> Tensor:
        """A^-1 from the factor L of A = L L^H, or if ``upper`` of A = L^H L. (..., n, n) -> (..., n, n)"""
    def cholesky_solve(self, L: Tensor, upper: builtins.bool = False) -> Tensor:
        """X with A X = ``input``, from L of A = L L^H, or if ``upper`` of A = L^H L. (..., n, k) -> (..., n, k)"""
    def chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
        """At most ``chunks`` pieces along ``dim``, of equal size but for the last; views."""
    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        """``input``, but at least ``min`` and at most ``max``. (...) -> (...)"""
    def clamp_(self, min: Any = None, max: Any = None) -> Tensor:
        """``clamp`` in place; returns the tensor."""
    def clamp_max(self, max: Any) -> Tensor:
        """``input``, but at most ``max``, a number or a tensor. (...) -> (...)"""
    def clamp_max_(self, max: Any) -> Tensor:
        """``clamp_max`` in place; returns the tensor."""
    def clamp_min(self, min: Any) -> Tensor:
        """``input``, but at least ``min``, a number or a tensor. (...) -> (...)"""
    def clamp_min_(self, min: Any) -> Tensor:
        """``clamp_min`` in place; returns the tensor."""
    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """``input``, but at least ``min`` and at most ``max``. (...) -> (...)"""
    def clip_(self, min: Any = None, max: Any = None) -> Tensor:
        """``clamp`` in place; returns the tensor."""
    def conj(self) -> Tensor:
        """The complex conjugate, in memory of its own; ``input`` itself if it is real. (...) -> (...)"""
    def conj_physical(self) -> Tensor:
        """The complex conjugate, in memory of its own; ``input`` itself if it is real. (...) -> (...)"""
    def conj_physical_(self) -> Tensor:
        """``conj`` in place; returns the tensor."""
    def contiguous(self, memory_format: Any = ...) -> Tensor:
        """The tensor itself if it lies in memory like that, else a copy that does."""
    def copy_(self, src: Tensor, non_blocking: builtins.bool = False) -> Tensor:
        """Write the elements of ``src``, broadcast and converted to this dtype and device; gradients flow to ..."""
    def copysign(self, other: Any) -> Tensor:
        """The magnitude of x with the sign of y. (...), (...) -> (...)"""
    def copysign_(self, other: Any) -> Tensor:
        """``copysign`` in place; returns the tensor."""
    def corrcoef(self) -> Tensor:
        """Pearson's correlation of variables (rows) over observations (columns). (n, m) -> (n, n); (m) or (1, m) ..."""
    def cos(self) -> Tensor:
        """Cosine. (...) -> (...)"""
    def cos_(self) -> Tensor:
        """``cos`` in place; returns the tensor."""
    def cosh(self) -> Tensor:
        """Hyperbolic cosine. (...) -> (...)"""
    def cosh_(self) -> Tensor:
        """``cosh`` in place; returns the tensor."""
    def count_nonzero(self, dim: builtins.int | Iterable[builtins.int] | None = None) -> Tensor:
        """How many elements over ``dim`` are nonzero. int64"""
    def cov(
        self, *, correction: builtins.int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
    ) -> Tensor:
        """Covariances of variables (rows) over observations (columns). (n, m) -> (n, n); (m) or (1, m) -> ()"""
    def cross(self, other: Tensor, dim: builtins.int | None = None) -> Tensor:
        """Cross product of vectors along a dimension of size 3; other dimensions broadcast."""
    def cummax(self, dim: builtins.int) -> return_types.cummax:
        """(values, indices) of the largest element so far along ``dim``, the last of equal ones. (...) -> (...)"""
    def cummin(self, dim: builtins.int) -> return_types.cummin:
        """(values, indices) of the smallest element so far along ``dim``, the last of equal ones. (...) -> (...)"""
    def cumprod(self, dim: builtins.int, *, dtype: Any = None) -> Tensor:
        """Running products along ``dim``; integers and bools are multiplied in int64. (...) -> (...)"""
    def cumprod_(self, dim: builtins.int, *, dtype: Any = None) -> Tensor:
        """``cumprod`` in place; returns the tensor."""
    def cumsum(self, dim: builtins.int, *, dtype: Any = None) -> Tensor:
        """Running sums along ``dim``; integers and bools are added up in int64. (...) -> (...)"""
    def cumsum_(self, dim: builtins.int, *, dtype: Any = None) -> Tensor:
        """``cumsum`` in place; returns the tensor."""
    def data_ptr(self) -> builtins.int:
        """The address of the first element, 0 if there is none. Who writes there, writes unseen by autograd."""
    def deg2rad(self) -> Tensor:
        """Degrees to radians. (...) -> (...)"""
    def deg2rad_(self) -> Tensor:
        """``deg2rad`` in place; returns the tensor."""
    def det(self) -> Tensor:
        """Determinant; see ``linalg.det``. (..., n, n) -> (...)"""
    def diag(self, diagonal: builtins.int = 0) -> Tensor:
        """The diagonal of a matrix, as a copy; or a matrix with ``input`` (n,) on its diagonal."""
    def diag_embed(self, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1) -> Tensor:
        """Zeros with the last dimension of ``input`` on a diagonal of the dimensions ``dim1`` and ``dim2``."""
    def diagflat(self, offset: builtins.int = 0) -> Tensor:
        """A matrix with all elements of ``input`` on its diagonal."""
    def diagonal(self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
        """The elements [i, i + offset] of two dimensions, as the last dimension of a view."""
    def diagonal_scatter(
        self, src: Tensor, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
    ) -> Tensor:
        """A copy with a diagonal replaced by ``src``."""
    def diff(
        self, n: builtins.int = 1, dim: builtins.int = -1, prepend: Tensor | None = None, append: Tensor | None = None
    ) -> Tensor:
        """The ``n``-th differences of neighbours along ``dim``; != for bool. (..., m, ...) -> (..., m - n, ...)"""
    def dim(self) -> builtins.int:
        """The number of dimensions."""
    def dim_order(self) -> builtins.tuple[builtins.int, ...]:
        """The dimensions as they follow in memory, outermost first."""
    def dist(self, other: Tensor, p: builtins.float = 2) -> Tensor:
        """The p-norm of ``input - other``."""
    def div(self, other: Any, *, rounding_mode: builtins.str | None = None) -> Tensor:
        """``input / other``. (...), (...) -> (...)"""
    def div_(self, other: Any, *, rounding_mode: builtins.str | None = None) -> Tensor:
        """``div`` in place; returns the tensor."""
    def divide(self, other: Any, *, rounding_mode: builtins.str | None = None) -> Tensor:
        """``input / other``. (...), (...) -> (...)"""
    def divide_(self, other: Any, *, rounding_mode: builtins.str | None = None) -> Tensor:
        """``div`` in place; returns the tensor."""
    def dot(self, tensor: Tensor) -> Tensor:
        """Inner product of two vectors. (n), (n) -> ()"""
    def double(self, memory_format: memory_format = ...) -> Tensor:
        """As float64."""
    def dsplit(
        self, indices_or_sections: builtins.int | Sequence[builtins.int] | Tensor
    ) -> builtins.tuple[Tensor, ...]:
        """Split along dimension 2."""
    def element_size(self) -> builtins.int:
        """Bytes of one element."""
    def eq(self, other: Any) -> Tensor:
        """Whether x equals y. (...), (...) -> (...) bool"""
    def eq_(self, other: Any) -> Tensor:
        """``eq`` in place; returns the tensor."""
    def equal(self, other: Tensor) -> builtins.bool:
        """Whether both have the same size and elements, as a Python bool. nan is not equal to nan."""
    def erf(self) -> Tensor:
        """The error function, 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x. (...) -> (...)"""
    def erf_(self) -> Tensor:
        """``erf`` in place; returns the tensor."""
    def erfc(self) -> Tensor:
        """1 - erf(x), which keeps its digits where erf is close to 1. (...) -> (...)"""
    def erfc_(self) -> Tensor:
        """``complementary_erf`` in place; returns the tensor."""
    def erfinv(self) -> Tensor:
        """The number whose error function is x; infinite at -1 and 1, nan beyond. (...) -> (...)"""
    def erfinv_(self) -> Tensor:
        """``inverse_erf`` in place; returns the tensor."""
    def exp(self) -> Tensor:
        """e to the power x. (...) -> (...)"""
    def exp2(self) -> Tensor:
        """2 to the power x. (...) -> (...)"""
    def exp2_(self) -> Tensor:
        """``exp2`` in place; returns the tensor."""
    def exp_(self) -> Tensor:
        """``exp`` in place; returns the tensor."""
    def expand(self, *size: Any) -> Tensor:
        """Dimensions of size 1 repeated to ``size`` without a copy; -1 leaves one as it is. New ones come first."""
    def expand_as(self, other: Tensor) -> Tensor:
        """``self.expand(other.shape)``"""
    def expm1(self) -> Tensor:
        """exp(x) - 1, accurate near 0. (...) -> (...)"""
    def expm1_(self) -> Tensor:
        """``expm1`` in place; returns the tensor."""
    def exponential_(self, lambd: builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Write exponential numbers of rate ``lambd``."""
    def fill_(self, value: Any) -> Tensor:
        """Write one number, or the element of a tensor without dimensions, everywhere."""
    def fill_diagonal_(self, fill_value: Any, wrap: builtins.bool = False) -> Tensor:
        """Write one number to the elements [i, i] of a matrix, or [i, i, …] of a tensor of equal dimensions."""
    def fix(self) -> Tensor:
        """x without its decimals. (...) -> (...)"""
    def fix_(self) -> Tensor:
        """``trunc`` in place; returns the tensor."""
    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        """The dimensions from ``start_dim`` to ``end_dim``, both included, made one."""
    def flip(self, *dims: Any) -> Any: ...
    def fliplr(self) -> Tensor:
        """A copy with the columns in reverse order."""
    def flipud(self) -> Tensor:
        """A copy with the rows in reverse order."""
    def float(self, memory_format: memory_format = ...) -> Tensor:
        """As float32."""
    def float_power(self, exponent: Any) -> Tensor:
        """``input ** exponent`` in float64, or complex128 of complex numbers. (...), (...) -> (...)"""
    def float_power_(self, exponent: Any) -> Tensor:
        """``float_power`` in place; returns the tensor."""
    def floor(self) -> Tensor:
        """The largest integer that is not above x. (...) -> (...)"""
    def floor_(self) -> Tensor:
        """``floor`` in place; returns the tensor."""
    def floor_divide(self, other: Any) -> Tensor:
        """The quotient rounded down. It has no gradient. (...), (...) -> (...)"""
    def floor_divide_(self, other: Any) -> Tensor:
        """``floor_divide`` in place; returns the tensor."""
    def fmax(self, other: Any) -> Tensor:
        """The larger of x and y; if one is nan, the other. Where they are equal x gets the gradient."""
    def fmin(self, other: Any) -> Tensor:
        """The smaller of x and y; if one is nan, the other. Where they are equal x gets the gradient."""
    def fmod(self, other: Any) -> Tensor:
        """x - y trunc(x / y): has the sign of x, as C's ``fmod``. (...), (...) -> (...)"""
    def fmod_(self, other: Any) -> Tensor:
        """``fmod`` in place; returns the tensor."""
    def frac(self) -> Tensor:
        """The decimals of x, with its sign. (...) -> (...)"""
    def frac_(self) -> Tensor:
        """``frac`` in place; returns the tensor."""
    def gather(self, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = False) -> Tensor:
        """out[i, j, k] = input[i, index[i, j, k], k] for ``dim=1``, and alike for others."""
    def gcd(self, other: Any) -> Tensor:
        """The greatest common divisor, at least 0; that of 0 and 0 is 0. Integers. (...), (...) -> (...)"""
    def gcd_(self, other: Any) -> Tensor:
        """``gcd`` in place; returns the tensor."""
    def ge(self, other: Any) -> Tensor:
        """Whether x is y or above. (...), (...) -> (...) bool"""
    def ge_(self, other: Any) -> Tensor:
        """``ge`` in place; returns the tensor."""
    def geometric_(self, p: builtins.float, *, generator: Generator | None = None) -> Tensor:
        """Write how many trials it takes until one succeeds, each with probability ``p``: 1, 2, 3, …"""
    def geqrf(self) -> return_types.geqrf:
        """R on and above the diagonal, and reflections below it and in tau, whose product is Q. It has no gradient."""
    def ger(self, vec2: Tensor) -> Tensor:
        """Every element of one vector times every element of another. (n), (m) -> (n, m)"""
    def get_device(self) -> builtins.int:
        """The index of the device, -1 for the CPU."""
    def greater(self, other: Any) -> Tensor:
        """Whether x is above y. (...), (...) -> (...) bool"""
    def greater_(self, other: Any) -> Tensor:
        """``gt`` in place; returns the tensor."""
    def greater_equal(self, other: Any) -> Tensor:
        """Whether x is y or above. (...), (...) -> (...) bool"""
    def greater_equal_(self, other: Any) -> Tensor:
        """``ge`` in place; returns the tensor."""
    def gt(self, other: Any) -> Tensor:
        """Whether x is above y. (...), (...) -> (...) bool"""
    def gt_(self, other: Any) -> Tensor:
        """``gt`` in place; returns the tensor."""
    def half(self, memory_format: memory_format = ...) -> Tensor:
        """As float16."""
    def heaviside(self, values: Tensor) -> Tensor:
        """0 where ``input`` < 0, 1 where it is > 0, and ``values`` where it is 0; tensors of one dtype. It has ..."""
    def heaviside_(self, values: Tensor) -> Tensor:
        """``heaviside`` in place; returns the tensor."""
    def histc(self, bins: builtins.int = 100, min: builtins.float = 0, max: builtins.float = 0) -> Tensor:
        """How many elements lie in each of ``bins`` intervals of one width from ``min`` to ``max``. -> (bins,)"""
    def histogram(
        self,
        bins: Any,
        *,
        range: Sequence[builtins.float] | None = None,
        weight: Tensor | None = None,
        density: builtins.bool = False,
    ) -> return_types.histogram:
        """How many elements lie in each bin, and the edges of the bins; the last edge belongs to the last bin."""
    def hsplit(
        self, indices_or_sections: builtins.int | Sequence[builtins.int] | Tensor
    ) -> builtins.tuple[Tensor, ...]:
        """Split along dimension 1, or 0 of a one-dimensional tensor."""
    def hypot(self, other: Any) -> Tensor:
        """Length of the vector (x, y), without overflow in between. (...), (...) -> (...)"""
    def hypot_(self, other: Any) -> Tensor:
        """``hypot`` in place; returns the tensor."""
    @property
    def imag(self) -> Tensor:
        """The imaginary part, a view. (...) -> (...). RuntimeError for a real tensor, as in PyTorch."""
    def index_add(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: builtins.float = 1) -> Tensor:
        """A copy of ``input`` with ``alpha`` times the slices of ``source`` added to those at ``index`` along ..."""
    def index_add_(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: builtins.float = 1) -> Tensor:
        """``index_add`` in place; returns the tensor."""
    def index_copy(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
        """A copy of ``input`` with the slices at ``index`` along ``dim`` replaced by those of ``source``."""
    def index_copy_(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
        """``index_copy`` in place; returns the tensor."""
    def index_fill(self, dim: builtins.int, index: Tensor, value: Any) -> Tensor:
        """A copy of ``input`` with a number (or 0-d tensor) in the slices at ``index`` along ``dim``."""
    def index_fill_(self, dim: builtins.int, index: Tensor, value: Any) -> Tensor:
        """``index_fill`` in place; returns the tensor."""
    def index_put(self, indices: Sequence[Tensor | None], values: Tensor, accumulate: builtins.bool = False) -> Tensor:
        """A copy of ``input`` with ``values`` written (or added, with ``accumulate``) where ``input[indices]`` ..."""
    def index_put_(self, indices: Sequence[Tensor | None], values: Tensor, accumulate: builtins.bool = False) -> Tensor:
        """``index_put`` in place; returns the tensor."""
    def index_reduce(
        self,
        dim: builtins.int,
        index: Tensor,
        source: Tensor,
        reduce: builtins.str,
        *,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """A copy of ``input`` whose slices at ``index`` along ``dim`` are combined with those of ``source``."""
    def index_reduce_(
        self,
        dim: builtins.int,
        index: Tensor,
        source: Tensor,
        reduce: builtins.str,
        *,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """``index_reduce`` in place."""
    def index_select(self, dim: builtins.int, index: Tensor) -> Tensor:
        """The slices of ``input`` along ``dim`` at a vector of indices, as a copy."""
    def inner(self, other: Tensor) -> Tensor:
        """Inner products over the last dimensions. (..., k), (+++, k) -> (..., +++); a 0-d tensor multiplies."""
    def int(self, memory_format: memory_format = ...) -> Tensor:
        """As int32."""
    def inverse(self) -> Tensor:
        """Inverse; see ``linalg.inv``. (..., n, n) -> (..., n, n)"""
    def is_complex(self) -> builtins.bool:
        """Whether the dtype is complex64 or complex128."""
    def is_conj(self) -> builtins.bool:
        """False: conjugates are computed at once, never on reading."""
    def is_contiguous(self, memory_format: Any = ...) -> builtins.bool:
        """Whether the elements lie in memory in order and without gaps: that of the dimensions, or of a memory ..."""
    @property
    def is_cpu(self) -> Any: ...
    def is_floating_point(self) -> builtins.bool:
        """Whether the dtype is float16, bfloat16, float32 or float64."""
    @property
    def is_ipu(self) -> Any: ...
    @property
    def is_maia(self) -> Any: ...
    @property
    def is_meta(self) -> Any: ...
    @property
    def is_mkldnn(self) -> Any: ...
    @property
    def is_mps(self) -> Any: ...
    @property
    def is_mtia(self) -> Any: ...
    def is_neg(self) -> builtins.bool:
        """False: conjugates are computed at once, never on reading."""
    @property
    def is_nested(self) -> Any: ...
    def is_nonzero(self) -> builtins.bool:
        """Whether the only element is not zero. RuntimeError if there are more, or none."""
    def is_pinned(self, device: Any = "cuda") -> builtins.bool:
        """Whether the tensor is in page-locked memory, from which devices of the type of ``device`` copy by ..."""
    @property
    def is_quantized(self) -> Any: ...
    def is_same_size(self, other: Tensor) -> builtins.bool:
        """Whether two tensors have the same size."""
    def is_set_to(self, tensor: Tensor) -> builtins.bool:
        """Whether another tensor has the same memory, offset, shape and strides."""
    def is_shared(self) -> builtins.bool:
        """Whether the tensor is in memory that processes share: always False."""
    def is_signed(self) -> builtins.bool:
        """Whether the dtype has negative numbers."""
    @property
    def is_sparse(self) -> Any: ...
    @property
    def is_sparse_csr(self) -> Any: ...
    @property
    def is_vulkan(self) -> Any: ...
    @property
    def is_xla(self) -> Any: ...
    @property
    def is_xpu(self) -> Any: ...
    def isclose(
        self,
        other: Tensor,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> Tensor:
        """Whether ``abs(input - other) <= atol + rtol * abs(other)``. (...), (...) -> (...) bool"""
    def isfinite(self) -> Tensor:
        """Whether x is neither infinite nor nan. (...) -> (...) bool"""
    def isinf(self) -> Tensor:
        """Whether x is inf or -inf. (...) -> (...) bool"""
    def isnan(self) -> Tensor:
        """Whether x is nan. (...) -> (...) bool"""
    def isneginf(self) -> Tensor:
        """Whether elements are -inf. (...) -> (...) bool"""
    def isposinf(self) -> Tensor:
        """Whether elements are +inf. (...) -> (...) bool"""
    def isreal(self) -> Tensor:
        """Whether the imaginary part is 0. (...) -> (...) bool"""
    @property
    def itemsize(self) -> Any: ...
    def kron(self, other: Tensor) -> Tensor:
        """Kronecker product: blocks of ``other``, each times one element of ``input``. (n, m), (p, q) -> (n p, m q)"""
    def kthvalue(
        self, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False
    ) -> return_types.kthvalue:
        """The k-th smallest along ``dim``, counted from 1, and its index."""
    @property
    def layout(self) -> Any: ...
    def lcm(self, other: Any) -> Tensor:
        """The least common multiple, at least 0; that of 0 and anything is 0. Integers. (...), (...) -> (...)"""
    def lcm_(self, other: Any) -> Tensor:
        """``lcm`` in place; returns the tensor."""
    def ldexp(self, other: Tensor) -> Tensor:
        """``input * 2**other``, of ``input``'s floating dtype where ``other`` is whole. (...), (...) -> (...)"""
    def ldexp_(self, other: Tensor) -> Tensor:
        """``ldexp`` in place; returns the tensor."""
    def le(self, other: Any) -> Tensor:
        """Whether x is y or below. (...), (...) -> (...) bool"""
    def le_(self, other: Any) -> Tensor:
        """``le`` in place; returns the tensor."""
    def lerp(self, end: Tensor, weight: Any) -> Tensor:
        """``input + weight * (end - input)``, exact at both ends. (...), (...), (...) -> (...), floating"""
    def lerp_(self, end: Tensor, weight: Any) -> Tensor:
        """``lerp`` in place; returns the tensor."""
    def less(self, other: Any) -> Tensor:
        """Whether x is below y. (...), (...) -> (...) bool"""
    def less_(self, other: Any) -> Tensor:
        """``lt`` in place; returns the tensor."""
    def less_equal(self, other: Any) -> Tensor:
        """Whether x is y or below. (...), (...) -> (...) bool"""
    def less_equal_(self, other: Any) -> Tensor:
        """``le`` in place; returns the tensor."""
    def log(self) -> Tensor:
        """Natural logarithm; -inf at 0, nan below. (...) -> (...)"""
    def log10(self) -> Tensor:
        """Logarithm to the base 10. (...) -> (...)"""
    def log10_(self) -> Tensor:
        """``log10`` in place; returns the tensor."""
    def log1p(self) -> Tensor:
        """log(1 + x), accurate near 0. (...) -> (...)"""
    def log1p_(self) -> Tensor:
        """``log1p`` in place; returns the tensor."""
    def log2(self) -> Tensor:
        """Logarithm to the base 2. (...) -> (...)"""
    def log2_(self) -> Tensor:
        """``log2`` in place; returns the tensor."""
    def log_(self) -> Tensor:
        """``log`` in place; returns the tensor."""
    def log_normal_(
        self, mean: builtins.float = 1.0, std: builtins.float = 2.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Write numbers whose logarithm is normal, of this mean and standard deviation."""
    def log_softmax(self, dim: builtins.int, dtype: Any = None) -> Tensor:
        """log of ``softmax``, without overflow. (...) -> (...)"""
    def logaddexp(self, other: Any) -> Tensor:
        """log(exp(x) + exp(y)) without overflow. (...), (...) -> (...)"""
    def logaddexp2(self, other: Tensor) -> Tensor:
        """log2(2^input + 2^other), without overflow. (...), (...) -> (...)"""
    def logcumsumexp(self, dim: builtins.int) -> Tensor:
        """log of the running sums of exp along ``dim``, without overflow. (...) -> (...). NotImplementedError: ..."""
    def logdet(self) -> Tensor:
        """Logarithm of the determinant: -inf where that is 0, nan where it is negative. (..., n, n) -> (...)"""
    def logical_and(self, other: Any) -> Tensor:
        """Whether x and y are both nonzero. (...), (...) -> (...) bool"""
    def logical_and_(self, other: Any) -> Tensor:
        """``logical_and`` in place; returns the tensor."""
    def logical_not(self) -> Tensor:
        """Whether x is zero. (...) -> (...) bool"""
    def logical_not_(self) -> Tensor:
        """``logical_not`` in place; returns the tensor."""
    def logical_or(self, other: Any) -> Tensor:
        """Whether x or y is nonzero. (...), (...) -> (...) bool"""
    def logical_or_(self, other: Any) -> Tensor:
        """``logical_or`` in place; returns the tensor."""
    def logical_xor(self, other: Any) -> Tensor:
        """Whether just one of x and y is nonzero. (...), (...) -> (...) bool"""
    def logical_xor_(self, other: Any) -> Tensor:
        """``logical_xor`` in place; returns the tensor."""
    def logit(self, eps: builtins.float | None = None) -> Tensor:
        """log(x / (1 - x)), the inverse of sigmoid. With ``eps``, x is first clamped to [eps, 1 - eps]. (...) -> ..."""
    def logit_(self, eps: builtins.float | None = None) -> Tensor:
        """``logit`` in place; returns the tensor."""
    def logsumexp(self, dim: builtins.int | Iterable[builtins.int] | None, keepdim: builtins.bool = False) -> Tensor:
        """log of the sum of exp over ``dim``, without overflow."""
    def long(self, memory_format: memory_format = ...) -> Tensor:
        """As int64."""
    def lt(self, other: Any) -> Tensor:
        """Whether x is below y. (...), (...) -> (...) bool"""
    def lt_(self, other: Any) -> Tensor:
        """``lt`` in place; returns the tensor."""
    def lu(self, pivot: builtins.bool = True, get_infos: builtins.bool = False) -> Any:
        """``linalg.lu_factor``, or with ``get_infos`` ``linalg.lu_factor_ex``, under its former name."""
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """X with A X = ``b``, from what ``linalg.lu_factor(A)`` returns. (..., n, k) -> (..., n, k)"""
    @property
    def mH(self) -> Any: ...
    @property
    def mT(self) -> Tensor: ...
    def map2_(self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
        """Replace each element by ``callable(element, of_x, of_y)``."""
    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Replace each element by ``callable(element, other)``, with that of a tensor that broadcasts."""
    def masked_fill(self, mask: Tensor, value: Any) -> Tensor:
        """``value`` (a number or a 0-d tensor) where ``mask`` holds, ``input`` elsewhere. The two broadcast."""
    def masked_fill_(self, mask: Tensor, value: Any) -> Tensor:
        """``masked_fill`` in place; returns the tensor."""
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """``input`` with the elements where ``mask`` holds replaced by those of ``source``, in order."""
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """``masked_scatter`` in place; returns the tensor."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements where ``mask`` holds. How many depends on values: the host waits. (...) -> (n,)"""
    def matmul(self, other: Tensor) -> Tensor:
        """Matrix product, also ``input @ other``."""
    def matrix_exp(self) -> Tensor:
        """Matrix exponential; see ``linalg.matrix_exp``. (..., n, n) -> (..., n, n)"""
    def matrix_power(self, n: builtins.int) -> Tensor:
        """The n-th power; see ``linalg.matrix_power``. (..., n, n) -> (..., n, n)"""
    @overload
    def max(self) -> Tensor:
        """The largest value; with ``dim``, (values, indices) along it; with a tensor, ``maximum(input, other)``."""
    @overload
    def max(self, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.max:
        """The largest value; with ``dim``, (values, indices) along it; with a tensor, ``maximum(input, other)``."""
    @overload
    def max(self, *, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.max:
        """The largest value; with ``dim``, (values, indices) along it; with a tensor, ``maximum(input, other)``."""
    @overload
    def max(self, other: Tensor) -> Tensor:
        """The largest value; with ``dim``, (values, indices) along it; with a tensor, ``maximum(input, other)``."""
    @overload
    def max(self, *, other: Tensor) -> Tensor:
        """The largest value; with ``dim``, (values, indices) along it; with a tensor, ``maximum(input, other)``."""
    def maximum(self, other: Any) -> Tensor:
        """The larger of x and y; nan if either is. Where they are equal each gets half the gradient, at nan all ..."""
    def mean(
        self,
        dim: builtins.int | Iterable[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: Any = None,
    ) -> Tensor:
        """Mean over ``dim``. RuntimeError for integers, unless ``dtype`` says how to take them."""
    @overload
    def median(self) -> Tensor:
        """The lower median, nan if there is one; with ``dim``, (values, indices) along it."""
    @overload
    def median(self, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.median:
        """The lower median, nan if there is one; with ``dim``, (values, indices) along it."""
    @overload
    def min(self) -> Tensor:
        """The smallest value; with ``dim``, (values, indices) along it; with a tensor, ``minimum(input, other)``."""
    @overload
    def min(self, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.min:
        """The smallest value; with ``dim``, (values, indices) along it; with a tensor, ``minimum(input, other)``."""
    @overload
    def min(self, *, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.min:
        """The smallest value; with ``dim``, (values, indices) along it; with a tensor, ``minimum(input, other)``."""
    @overload
    def min(self, other: Tensor) -> Tensor:
        """The smallest value; with ``dim``, (values, indices) along it; with a tensor, ``minimum(input, other)``."""
    @overload
    def min(self, *, other: Tensor) -> Tensor:
        """The smallest value; with ``dim``, (values, indices) along it; with a tensor, ``minimum(input, other)``."""
    def minimum(self, other: Any) -> Tensor:
        """The smaller of x and y; nan if either is. Where they are equal each gets half the gradient, at nan all ..."""
    def mm(self, mat2: Tensor) -> Tensor:
        """Product of two matrices. (n, k), (k, m) -> (n, m)"""
    def mode(self, dim: builtins.int = -1, keepdim: builtins.bool = False) -> return_types.mode:
        """(values, indices) of the commonest value along ``dim``: the smallest of equally common, its last index."""
    def moveaxis(
        self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
    ) -> Tensor:
        """The dimensions ``source`` (an int or several) moved to the places ``destination``, the others in order."""
    def movedim(
        self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
    ) -> Tensor:
        """The dimensions ``source`` (an int or several) moved to the places ``destination``, the others in order."""
    def msort(self) -> Tensor:
        """Values sorted along the first dimension."""
    def mul(self, other: Any) -> Tensor:
        """Product of x and y, broadcast. (...), (...) -> (...)"""
    def mul_(self, other: Any) -> Tensor:
        """``mul`` in place; returns the tensor."""
    def multinomial(
        self, num_samples: builtins.int, replacement: builtins.bool = False, *, generator: Generator | None = None
    ) -> Tensor:
        """``num_samples`` positions along the last dimension, drawn with the weights in ``input``."""
    def multiply(self, other: Any) -> Tensor:
        """Product of x and y, broadcast. (...), (...) -> (...)"""
    def multiply_(self, other: Any) -> Tensor:
        """``mul`` in place; returns the tensor."""
    def mv(self, vec: Tensor) -> Tensor:
        """Product of a matrix and a vector. (n, k), (k) -> (n)"""
    def nan_to_num(
        self,
        nan: builtins.float | None = None,
        posinf: builtins.float | None = None,
        neginf: builtins.float | None = None,
    ) -> Tensor:
        """``input`` with nan and infinities replaced. (...) -> (...)"""
    def nan_to_num_(
        self,
        nan: builtins.float | None = None,
        posinf: builtins.float | None = None,
        neginf: builtins.float | None = None,
    ) -> Tensor:
        """``nan_to_num`` in place; returns the tensor."""
    def nanmean(
        self,
        dim: builtins.int | Iterable[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: Any = None,
    ) -> Tensor:
        """Mean over ``dim`` of what is not nan. RuntimeError for integers."""
    @overload
    def nanmedian(self) -> Tensor:
        """The lower median of what is not nan, nan if nothing is; with ``dim``, (values, indices) along it."""
    @overload
    def nanmedian(self, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.nanmedian:
        """The lower median of what is not nan, nan if nothing is; with ``dim``, (values, indices) along it."""
    def nanquantile(
        self,
        q: Any,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        interpolation: builtins.str = "linear",
    ) -> Tensor:
        """``quantile`` of what is not nan; nan where nothing is."""
    def nansum(
        self,
        dim: builtins.int | Iterable[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: Any = None,
    ) -> Tensor:
        """Sum over ``dim`` of what is not nan."""
    def narrow(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """``length`` elements of dimension ``dim`` from ``start`` on, as a view."""
    def narrow_copy(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """``narrow(dim, start, length)`` as a copy."""
    @property
    def nbytes(self) -> Any: ...
    def ndimension(self) -> builtins.int:
        """The number of dimensions."""
    def ne(self, other: Any) -> Tensor:
        """Whether x differs from y. (...), (...) -> (...) bool"""
    def ne_(self, other: Any) -> Tensor:
        """``ne`` in place; returns the tensor."""
    def neg(self) -> Tensor:
        """Minus x. (...) -> (...)"""
    def neg_(self) -> Tensor:
        """``neg`` in place; returns the tensor."""
    def negative(self) -> Tensor:
        """Minus x. (...) -> (...)"""
    def negative_(self) -> Tensor:
        """``neg`` in place; returns the tensor."""
    def nelement(self) -> builtins.int:
        """The number of elements."""
    def new(self, *args: Any, device: Any = None) -> Tensor:
        """A tensor of a sequence, or of sizes with arbitrary elements, of this tensor's dtype on its device."""
    def new_empty(
        self, *size: Any, dtype: dtype | None = None, device: Any = None, requires_grad: builtins.bool = False
    ) -> Tensor:
        """Arbitrary elements, of shape ``size``, of this tensor's dtype and device unless others are given."""
    def new_empty_strided(
        self,
        size: Any,
        stride: Any,
        dtype: dtype | None = None,
        device: Any = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Arbitrary elements with these strides, of this tensor's dtype and device unless others are given."""
    def new_full(
        self,
        size: Any,
        fill_value: Any,
        *,
        dtype: dtype | None = None,
        device: Any = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """``fill_value`` everywhere, of shape ``size``, of this tensor's dtype and device unless others are given."""
    def new_ones(
        self, *size: Any, dtype: dtype | None = None, device: Any = None, requires_grad: builtins.bool = False
    ) -> Tensor:
        """Ones of shape ``size``, of this tensor's dtype and device unless others are given."""
    def new_tensor(
        self, data: Any, *, dtype: dtype | None = None, device: Any = None, requires_grad: builtins.bool = False
    ) -> Tensor:
        """A copy of ``data`` as a leaf, of this tensor's dtype and device unless others are given."""
    def new_zeros(
        self, *size: Any, dtype: dtype | None = None, device: Any = None, requires_grad: builtins.bool = False
    ) -> Tensor:
        """Zeros of shape ``size``, of this tensor's dtype and device unless others are given."""
    def nextafter(self, other: Any) -> Tensor:
        """The next number after x in the direction of y. (...), (...) -> (...)"""
    def nextafter_(self, other: Any) -> Tensor:
        """``nextafter`` in place; returns the tensor."""
    def nonzero(self, *, as_tuple: builtins.bool = False) -> Any:
        """Like ``argwhere``; with ``as_tuple`` one tensor (how many,) for each dimension, which can index ``input``."""
    def nonzero_static(self, *, size: builtins.int, fill_value: builtins.int = -1) -> Tensor:
        """The first ``size`` rows of ``argwhere``, and below them rows of ``fill_value``. (...) -> (size, dim) int64"""
    def norm(
        self,
        p: builtins.float | builtins.str | None = "fro",
        dim: builtins.int | Iterable[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        dtype: Any = None,
    ) -> Tensor:
        """The p-norm of the elements over ``dim``, ``(sum of abs(x)**p) ** (1/p)``."""
    def normal_(
        self, mean: builtins.float = 0.0, std: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Write normal numbers of this mean and standard deviation, of complex ones that of both parts together."""
    def not_equal(self, other: Any) -> Tensor:
        """Whether x differs from y. (...), (...) -> (...) bool"""
    def not_equal_(self, other: Any) -> Tensor:
        """``ne`` in place; returns the tensor."""
    def numel(self) -> builtins.int:
        """The number of elements."""
    def orgqr(self, tau: Tensor) -> Tensor:
        """The same as ``linalg.householder_product``, under LAPACK's name. (..., m, n), (..., k) -> (..., m, n)"""
    def ormqr(self, tau: Tensor, other: Tensor, left: builtins.bool = True, transpose: builtins.bool = False) -> Tensor:
        """Q times ``other``, or ``other`` times Q if not ``left``, of the whole Q that ``geqrf`` returned."""
    def outer(self, vec2: Tensor) -> Tensor:
        """Every element of one vector times every element of another. (n), (m) -> (n, m)"""
    def permute(self, *dims: Any) -> Any: ...
    def pin_memory(self, device: Any = "cuda") -> Tensor:
        """A copy in page-locked memory, without history; itself if it is there. ``to(device, ..."""
    def pinverse(self, rcond: builtins.float = 1e-15) -> Tensor:
        """Moore-Penrose inverse; see ``linalg.pinv``. (..., m, n) -> (..., n, m)"""
    def positive(self) -> Tensor:
        """``input`` itself. RuntimeError for bool."""
    def pow(self, exponent: Any) -> Tensor:
        """``input ** exponent``. (...), (...) -> (...)"""
    def pow_(self, exponent: Any) -> Tensor:
        """``pow`` in place; returns the tensor."""
    def prod(self, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, dtype: Any = None) -> Tensor:
        """Product over ``dim``, one dimension or all; integers and bools are multiplied in int64."""
    def put(self, index: Tensor, source: Tensor, accumulate: builtins.bool = False) -> Tensor:
        """A copy with elements of ``source`` at places of the flattened tensor; they add up if ``accumulate``."""
    def put_(self, index: Tensor, source: Tensor, accumulate: builtins.bool = False) -> Tensor:
        """``put`` in place."""
    def qr(self, some: builtins.bool = True) -> return_types.qr:
        """Q and R with ``input`` = Q R; succeeded by ``linalg.qr``. ``some`` reduces them to min(m, n) columns ..."""
    def quantile(
        self,
        q: Any,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        interpolation: builtins.str = "linear",
    ) -> Tensor:
        """The ``q``-quantiles along ``dim``, or of all elements; nan where there is a nan."""
    def rad2deg(self) -> Tensor:
        """Radians to degrees. (...) -> (...)"""
    def rad2deg_(self) -> Tensor:
        """``rad2deg`` in place; returns the tensor."""
    def random_(
        self, from_: builtins.int | None = None, to: builtins.int | None = None, *, generator: Generator | None = None
    ) -> Tensor:
        """Write integers uniform in [from, to); ``random_(to)`` starts at 0."""
    def ravel(self) -> Tensor:
        """The elements in one dimension without gaps, a view where they lie like that. (...) -> (n,)"""
    @property
    def real(self) -> Tensor:
        """The real part, a view; ``input`` itself if it is real. (...) -> (...)"""
    def reciprocal(self) -> Tensor:
        """One over x. (...) -> (...)"""
    def reciprocal_(self) -> Tensor:
        """``reciprocal`` in place; returns the tensor."""
    def relu(self) -> Tensor:
        """max(x, 0). (...) -> (...)"""
    def relu_(self) -> Tensor:
        """``relu`` in place; returns the tensor."""
    def remainder(self, other: Any) -> Tensor:
        """x - y floor(x / y): has the sign of y, as Python's ``%``. (...), (...) -> (...)"""
    def remainder_(self, other: Any) -> Tensor:
        """``remainder`` in place; returns the tensor."""
    def renorm(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """Slices along ``dim`` scaled down where their p-norm is larger than ``maxnorm``. (...) -> (...)"""
    def renorm_(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """``renorm`` in place; returns the tensor."""
    def repeat(self, *repeats: Any) -> Tensor:
        """A copy with dimension i repeated ``repeats[i]`` times; new dimensions come first."""
    def repeat_interleave(
        self,
        repeats: builtins.int | Tensor | None = None,
        dim: builtins.int | None = None,
        *,
        output_size: builtins.int | None = None,
    ) -> Tensor:
        """Each slice along ``dim`` repeated ``repeats`` times (an int, or a tensor with one for each), in place."""
    def reshape(self, *shape: Any) -> Tensor:
        """The elements, in order, in another shape: sizes one by one or in a tuple, of which one may be -1."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """``self.reshape(other.shape)``"""
    def resize_(self, *size: Any, memory_format: Any = None) -> Tensor:
        """Take another shape: the elements that follow in memory, or in new memory a copy of those and arbitrary ..."""
    def resize_as_(self, the_template: Tensor, memory_format: Any = None) -> Tensor:
        """``resize_`` to the shape of another tensor, and with ``preserve_format`` to its memory format too."""
    def resolve_conj(self) -> Tensor:
        """``input``: conjugates are computed at once, never on reading. (...) -> (...)"""
    def resolve_neg(self) -> Tensor:
        """``input``: conjugates are computed at once, never on reading. (...) -> (...)"""
    def roll(
        self, shifts: builtins.int | Sequence[builtins.int], dims: builtins.int | Sequence[builtins.int] | None = None
    ) -> Tensor:
        """Elements shifted by ``shifts`` along ``dims``, coming in again at the other end; flattened without ..."""
    def rot90(self, k: builtins.int = 1, dims: Sequence[builtins.int] = (0, 1)) -> Tensor:
        """Rotated by k * 90 degrees in the plane of ``dims``, from the first towards the second."""
    def round(self, *, decimals: builtins.int = 0) -> Tensor:
        """``input`` rounded to ``decimals`` places, halves to the even neighbour. (...) -> (...)"""
    def round_(self, *, decimals: builtins.int = 0) -> Tensor:
        """``round`` in place; returns the tensor."""
    def rsqrt(self) -> Tensor:
        """One over the square root of x. (...) -> (...)"""
    def rsqrt_(self) -> Tensor:
        """``rsqrt`` in place; returns the tensor."""
    def scatter(
        self,
        dim: builtins.int,
        index: Tensor,
        src: Any = None,
        *,
        value: Any = None,
        reduce: builtins.str | None = None,
    ) -> Tensor:
        """A copy of ``input`` with out[i, index[i, j, k], k] = src[i, j, k] for ``dim=1``, and alike for others."""
    def scatter_(
        self,
        dim: builtins.int,
        index: Tensor,
        src: Any = None,
        *,
        value: Any = None,
        reduce: builtins.str | None = None,
    ) -> Tensor:
        """``scatter`` in place; returns the tensor."""
    def scatter_add(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """A copy of ``input`` with src[i, j, k] added to out[i, index[i, j, k], k] for ``dim=1``, and alike for ..."""
    def scatter_add_(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """``scatter_add`` in place; returns the tensor."""
    def scatter_reduce(
        self, dim: builtins.int, index: Tensor, src: Tensor, reduce: builtins.str, *, include_self: builtins.bool = True
    ) -> Tensor:
        """Like ``scatter``, with all values that go to one place combined."""
    def scatter_reduce_(
        self, dim: builtins.int, index: Tensor, src: Tensor, reduce: builtins.str, *, include_self: builtins.bool = True
    ) -> Tensor:
        """``scatter_reduce`` in place; returns the tensor."""
    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """The slice at ``index`` of dimension ``dim``, which goes away; a view."""
    def select_scatter(self, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
        """A copy with ``select(dim, index)`` replaced by ``src``."""
    def set_(
        self, source: Tensor | TypedStorage, storage_offset: builtins.int = 0, size: Any = None, stride: Any = None
    ) -> Tensor:
        """Take the memory, shape and strides of ``source``; writes to one are then seen by the other."""
    def sgn(self) -> Tensor:
        """``input`` over its absolute value, 0 at 0; the sign of real numbers. (...) -> (...)"""
    def sgn_(self) -> Tensor:
        """``sgn`` in place; returns the tensor."""
    def share_memory_(self) -> Tensor:
        """Always a RuntimeError: memory is not shared between processes."""
    def short(self, memory_format: memory_format = ...) -> Tensor:
        """As int16."""
    def sigmoid(self) -> Tensor:
        """The logistic function 1 / (1 + exp(-x)). (...) -> (...)"""
    def sigmoid_(self) -> Tensor:
        """``sigmoid`` in place; returns the tensor."""
    def sign(self) -> Tensor:
        """-1, 0 or 1; 0 for nan, which has no sign. (...) -> (...)"""
    def sign_(self) -> Tensor:
        """``sign`` in place; returns the tensor."""
    def signbit(self) -> Tensor:
        """Whether the sign of x is negative, -0.0 included. (...) -> (...) bool"""
    def sin(self) -> Tensor:
        """Sine. (...) -> (...)"""
    def sin_(self) -> Tensor:
        """``sin`` in place; returns the tensor."""
    def sinc(self) -> Tensor:
        """sin(pi x) / (pi x), and 1 at 0. (...) -> (...)"""
    def sinc_(self) -> Tensor:
        """``sinc`` in place; returns the tensor."""
    def sinh(self) -> Tensor:
        """Hyperbolic sine. (...) -> (...)"""
    def sinh_(self) -> Tensor:
        """``sinh`` in place; returns the tensor."""
    def size(self, dim: builtins.int | None = None) -> Any:
        """The shape, or the size of one dimension."""
    def slice_scatter(
        self,
        src: Tensor,
        dim: builtins.int = 0,
        start: builtins.int | None = None,
        end: builtins.int | None = None,
        step: builtins.int = 1,
    ) -> Tensor:
        """A copy with the slice ``start:end:step`` of dimension ``dim`` replaced by ``src``."""
    def slogdet(self) -> return_types.slogdet:
        """Sign and logarithm of the magnitude of the determinant; see ``linalg.slogdet``. (..., n, n) -> (...), ..."""
    def softmax(self, dim: builtins.int, dtype: Any = None) -> Tensor:
        """exp over its sum along ``dim``. (...) -> (...). RuntimeError for integers, unless ``dtype`` is given."""
    def sort(
        self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
    ) -> return_types.sort:
        """Values sorted along ``dim``, and the indices they had; equal elements stay in order. nan is the largest."""
    def split(self, split_size: Any, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
        """``split``: pieces of ``split_size``, or of the sizes in a list."""
    def split_with_sizes(self, split_sizes: Any, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
        """Pieces of these sizes along ``dim``; views."""
    def sqrt(self) -> Tensor:
        """Square root; nan for negative x. (...) -> (...)"""
    def sqrt_(self) -> Tensor:
        """``sqrt`` in place; returns the tensor."""
    def square(self) -> Tensor:
        """x times x; of bools int64, as other powers of them are. (...) -> (...)"""
    def square_(self) -> Tensor:
        """``square`` in place; returns the tensor."""
    def squeeze(self, dim: Dim = None) -> Tensor:
        """Without the dimensions of size 1, or without those among ``dim`` (an int or several)."""
    def squeeze_(self, dim: Dim = None) -> Tensor:
        """Become ``self.squeeze(dim)``, in place."""
    def std(
        self,
        dim: builtins.int | Iterable[builtins.int] | None = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.float | None = None,
    ) -> Tensor:
        """Standard deviation over ``dim``, the square root of ``var``; arguments as there."""
    def storage(self) -> TypedStorage:
        """The memory of this tensor and all of its views, as elements of this tensor's dtype."""
    def storage_offset(self) -> builtins.int:
        """How many elements lie in memory before the first one of this tensor."""
    def stride(self, dim: builtins.int | None = None) -> Any:
        """How many elements to step in memory from one to the next along each dimension, or along one."""
    def sub(self, other: Any, *, alpha: builtins.float = 1) -> Tensor:
        """``input - alpha * other``. (...), (...) -> (...). RuntimeError as for ``add``, and for bools."""
    def sub_(self, other: Any, *, alpha: builtins.float = 1) -> Tensor:
        """``sub`` in place; returns the tensor."""
    def subtract(self, other: Any, *, alpha: builtins.float = 1) -> Tensor:
        """``input - alpha * other``. (...), (...) -> (...). RuntimeError as for ``add``, and for bools."""
    def subtract_(self, other: Any, *, alpha: builtins.float = 1) -> Tensor:
        """``sub`` in place; returns the tensor."""
    def sum(
        self,
        dim: builtins.int | Iterable[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: Any = None,
    ) -> Tensor:
        """Sum over ``dim``; integers and bools are added up in int64."""
    def sum_to_size(self, *size: Any) -> Tensor:
        """``self`` summed over the dimensions in which it could have been expanded from ``size``; integers as int64."""
    def svd(self, some: builtins.bool = True, compute_uv: builtins.bool = True) -> return_types.svd:
        """U, S and V with ``input`` = U diag(S) V^H; succeeded by ``linalg.svd``, which gives V^H."""
    def swapaxes(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """The same as ``transpose``."""
    def swapaxes_(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """The same as ``transpose_``."""
    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """With two dimensions exchanged."""
    def swapdims_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Become ``self.transpose(dim0, dim1)``, in place."""
    def t(self) -> Tensor:
        """The transposed matrix; tensors of fewer dimensions as they are. (m, n) -> (n, m)"""
    def t_(self) -> Tensor:
        """Become ``self.t()``, in place."""
    def take(self, index: Tensor) -> Tensor:
        """The elements of the flattened ``input`` at ``index``. -> index.shape"""
    def take_along_dim(self, indices: Tensor, dim: builtins.int | None = None) -> Tensor:
        """``gather`` with the other dimensions broadcast; without ``dim`` from the flattened tensors."""
    def tan(self) -> Tensor:
        """Tangent. (...) -> (...)"""
    def tan_(self) -> Tensor:
        """``tan`` in place; returns the tensor."""
    def tanh(self) -> Tensor:
        """Hyperbolic tangent. (...) -> (...)"""
    def tanh_(self) -> Tensor:
        """``tanh`` in place; returns the tensor."""
    def tensor_split(
        self, indices_or_sections: builtins.int | Sequence[builtins.int] | Tensor, dim: builtins.int = 0
    ) -> builtins.tuple[Tensor, ...]:
        """That many pieces along ``dim``, of sizes that differ by one at most, or pieces cut at given places; views."""
    def tile(self, *dims: Any) -> Any: ...
    def to_device(self, device: Any, *, stream: Any = None) -> Tensor:
        """The tensor on another device, as the array API standard spells ``to``."""
    def topk(
        self, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True
    ) -> return_types.topk:
        """The k largest (or smallest) along ``dim``, in order, and their indices."""
    def trace(self) -> Tensor:
        """Sum of the diagonal of a matrix. (n, m) -> ()"""
    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """With two dimensions exchanged."""
    def transpose_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Become ``self.transpose(dim0, dim1)``, in place."""
    def triangular_solve(
        self,
        A: Tensor,
        upper: builtins.bool = True,
        transpose: builtins.bool = False,
        unitriangular: builtins.bool = False,
    ) -> return_types.triangular_solve:
        """X with A X = ``b``, where only one triangle of A counts, and A; succeeded by ``linalg.solve_triangular``."""
    def tril(self, diagonal: builtins.int = 0) -> Tensor:
        """The lower triangle of the last two dimensions, zeros elsewhere. (..., m, n) -> (..., m, n)"""
    def tril_(self, diagonal: builtins.int = 0) -> Tensor:
        """Write zeros above a diagonal of the last two dimensions."""
    def triu(self, diagonal: builtins.int = 0) -> Tensor:
        """The upper triangle of the last two dimensions, zeros elsewhere. (..., m, n) -> (..., m, n)"""
    def triu_(self, diagonal: builtins.int = 0) -> Tensor:
        """Write zeros below a diagonal of the last two dimensions."""
    def true_divide(self, other: Any) -> Tensor:
        """``input / other``, integers as floats. (...), (...) -> (...)"""
    def true_divide_(self, other: Any) -> Tensor:
        """``true_divide`` in place; returns the tensor."""
    def trunc(self) -> Tensor:
        """x without its decimals. (...) -> (...)"""
    def trunc_(self) -> Tensor:
        """``trunc`` in place; returns the tensor."""
    def type(self, dtype: Any = None, non_blocking: builtins.bool = False) -> Any:
        """Converted to ``dtype``, given as such, as FloatTensor or by name; without it, the name of the own type."""
    def type_as(self, other: Tensor) -> Tensor:
        """As the dtype of ``other``, on its device."""
    def unbind(self, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
        """The slices along ``dim``, which goes away; views."""
    def unflatten(self, dim: builtins.int, sizes: Any) -> Tensor:
        """One dimension made several, of ``sizes``, in which one may be -1."""
    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """All windows of ``size`` along ``dimension``, ``step`` apart, as a new last dimension of a view."""
    def uniform_(
        self, from_: builtins.float = 0.0, to: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Write numbers uniform in [from, to)."""
    def unique(
        self,
        sorted: builtins.bool = True,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
    ) -> Any:
        """The distinct elements, or slices along ``dim``, in ascending order (also for ``sorted=False``)."""
    def unique_consecutive(
        self,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
    ) -> Any:
        """The first element, or slice along ``dim``, of each run of equal ones."""
    def unsafe_chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
        """``chunk``, whose pieces may be written in place."""
    def unsafe_split(self, split_size: builtins.int, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
        """``split``, whose pieces may be written in place."""
    def unsafe_split_with_sizes(self, split_sizes: Any, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
        """``split_with_sizes``, whose pieces may be written in place."""
    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """With a dimension of size 1 inserted so that it is ``dim`` of the result."""
    def unsqueeze_(self, dim: builtins.int) -> Tensor:
        """Become ``self.unsqueeze(dim)``, in place."""
    def untyped_storage(self) -> UntypedStorage:
        """The memory of this tensor, which all of its views have in common."""
    def var(
        self,
        dim: builtins.int | Iterable[builtins.int] | None = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.float | None = None,
    ) -> Tensor:
        """Variance over ``dim``: squared deviations from the mean, summed, over n - ``correction``."""
    def vdot(self, other: Tensor) -> Tensor:
        """Inner product of two vectors, the first conjugated. (n), (n) -> ()"""
    def view(self, *size: Any, dtype: Any = None) -> Tensor:
        """The same memory in another shape, in which one size may be -1, or its bytes as another dtype."""
    def view_as(self, other: Tensor) -> Tensor:
        """``self.view(other.shape)``"""
    def vsplit(
        self, indices_or_sections: builtins.int | Sequence[builtins.int] | Tensor
    ) -> builtins.tuple[Tensor, ...]:
        """Split along dimension 0."""
    @overload
    def where(self) -> builtins.tuple[Tensor, ...]: ...
    @overload
    def where(self, input: Any, other: Any) -> Tensor: ...
    def xlogy(self, other: Any) -> Tensor:
        """``input * log(other)``, and 0 where ``input`` is 0 unless ``other`` is nan. (...), (...) -> (...)"""
    def xlogy_(self, other: Any) -> Tensor:
        """``xlogy`` in place; returns the tensor."""
    def zero_(self) -> Tensor:
        """Write zero everywhere."""
