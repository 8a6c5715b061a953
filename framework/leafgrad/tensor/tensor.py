"""The Tensor: its attributes, its place in the graph, and conversions to Python and NumPy."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any

from leafgrad import backends, devices, dtypes, modes
from leafgrad.lazy import calling
from leafgrad.ops import dispatch
from leafgrad.ops.convert import clone, to_device
from leafgrad.ops.node import GraphNode, Hooks, Leaf, Output, SymbolBase, TensorBase, Version
from leafgrad.ops.runtime import runtime
from leafgrad.tensor import arguments, asking
from leafgrad.tensor.deep_copies import DeepCopies
from leafgrad.tensor.graph import Node, node_for
from leafgrad.tensor.handle import RemovableHandle
from leafgrad.tensor.methods import Methods
from leafgrad.tensor.size import Size, of_ints

NON_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. It won't be populated during "
    "autograd.backward(): call .retain_grad() on this tensor before backward() if you want it, or access the leaf "
    "tensor that it was computed from."
)


class Tensor(Methods, DeepCopies, asking.Overridable, TensorBase):
    """A multi-dimensional array of one dtype on one device, which can take part in automatic differentiation.

    Made by ``leafgrad.tensor``, ``zeros``, ``randn``, … and by every operation on tensors.

    Args:
        args: a sequence of elements, sizes for arbitrary ones, in the default dtype, or a tensor to share memory with.
        device: where it is made; None: on the default device.
    """

    __slots__ = ()
    __module__ = dtypes.namespace

    # NumPy leaves ``array * x`` and ``np.float64(2) * x`` to the reflected operators, which know gradients.
    __array_priority__ = 1000

    # ---- what it is -------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        return of_ints(Size, self._data.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self._data.ndim)

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the elements."""
        return dtypes.BY_ARRAY_DTYPE.get(self._data.dtype) or dtypes.of(self._data)

    @property
    def device(self) -> devices.device:
        """Where the tensor lives."""
        return devices.at(*self._data.place) if isinstance(self._data, SymbolBase) else devices.of(self._data)

    @property
    def data(self) -> Tensor:
        """The same memory, detached from the graph; writes through it are not checked by autograd."""
        # in a trace memory is a matter of bookkeeping, which detach() does
        out: Tensor = dispatch.detach(self) if modes.tracer() else dispatch.alias(self._data)
        out._writes = Version.of_data()
        return out

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"data: expected a Tensor, got {type(value).__name__}; wrap it with leafgrad.tensor(...)")
        x = dispatch.inside(self)
        if x._node is not None and not value.dtype.is_differentiable:
            raise RuntimeError(
                f"data: expected a floating or complex tensor, since this one requires grad, got {value.dtype}"
            )
        if tracer := modes.tracer():
            if value._view is not None and value._view.shows(x):
                return  # it is t.data += x, which has written the memory
            x, value = tracer.set_data(self, value)
        x._history, x._view = x._node, None
        x._data = value._data
        if x._leaf is not None:
            x._leaf.shape, x._leaf.dtype = value._data.shape, value._data.dtype
        x._writes = x._writes or Version()
        x._writes.bump()

    @property
    def _base(self) -> Tensor | None:
        """The tensor of which this one is a view, None if it is none."""
        modes.settle(self, "t._base")
        return None if self._view is None else self._view.seen_base()

    def _is_view(self) -> bool:
        """Whether this tensor is a view of another one."""
        return self._base is not None

    # ---- its place in the graph -------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded and gradients flow to it."""
        x = dispatch.inside(self)
        return (x._history if x._view is not None and x._view.cut_off(x) else x._node) is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not self.is_leaf:
            raise self._not_a_leaf()
        self._set_grad(value)

    def _not_a_leaf(self) -> RuntimeError:
        return RuntimeError(
            "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
            "in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
        )

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set ``requires_grad`` of a leaf in place, and return it.

        Raises:
            RuntimeError: the tensor is not a leaf, its dtype is not a floating one, or a transform is running.
        """
        modes.refuse_transformed("Tensor.requires_grad_()")
        return self._set_grad(requires_grad)

    def _set_grad(self, requires_grad: bool) -> Tensor:
        """Set ``requires_grad`` of a leaf, and return it."""
        if requires_grad is not True and requires_grad is not False:
            raise TypeError(
                "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not "
                f"{type(requires_grad).__name__}"
            )
        x = dispatch.inside(self)
        if x._node is not None and not isinstance(x._node, Leaf):
            if requires_grad:
                return self
            raise self._not_a_leaf()
        if not requires_grad:
            x._node = None
        elif x._node is None:
            if not dtypes.of(self._data).is_differentiable:
                raise RuntimeError(
                    f"only Tensors of floating point and complex dtype can require gradients, got {self.dtype}; "
                    "convert it with .float()"
                )
            if self._writes is dispatch.INFERENCE_VERSION and not modes.is_inference_mode_enabled():
                raise RuntimeError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed; clone() it"
                )
            x._node = self._accumulator()
        return self

    def _accumulator(self) -> Leaf:
        x = dispatch.inside(self)
        if x._leaf is None:
            x._leaf = Leaf(self)
        leaf: Leaf = x._leaf
        return leaf

    @property
    def is_leaf(self) -> bool:
        """True unless the tensor requires grad and was computed from others that do."""
        node = dispatch.inside(self)._node
        return node is None or isinstance(node, Leaf)

    @property
    def grad_fn(self) -> Node | None:
        """The node of the operation that made this tensor, None for a leaf."""
        node = dispatch.inside(self)._node
        if node is None or isinstance(node, Leaf):
            return None
        return node_for(node.source if isinstance(node, Output) else node)

    @property
    def output_nr(self) -> int:
        """Which output of ``grad_fn`` this tensor is."""
        node = dispatch.inside(self)._node
        return node.index if isinstance(node, Output) else 0

    @property
    def grad(self) -> Tensor | None:
        """The gradient accumulated by ``backward()``, or None."""
        if self._leaf is not None and self._leaf.grad is not None and not modes.get() & modes.TRACE:
            kept: Tensor = self._leaf.grad
            return kept
        leaf = dispatch.inside(self)._leaf
        found: Tensor | None = None if leaf is None else dispatch.grad_of(leaf)
        if found is None and not self.is_leaf and not self.retains_grad:
            warnings.warn(NON_LEAF_GRAD, UserWarning, stacklevel=2)
        return found

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            self._check_grad(value)
        elif modes.tracer() is None:
            if self._leaf is not None:
                self._leaf.grad, self._leaf.passes = None, -abs(self._leaf.passes)
            return
        leaf = dispatch.inside(self)._leaf if value is None else self._accumulator()
        if leaf is not None:
            dispatch.set_grad(leaf, value)

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def _check_grad(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {kind}")
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad; assign a clone()")
        for what, ours, theirs in (
            ("size", list(self.shape), list(value.shape)),
            ("dtype", self.dtype, value.dtype),
            ("device", self.device, value.device),
        ):
            if ours != theirs:
                raise RuntimeError(
                    f"attempting to assign a gradient of {what} '{theirs}' to a tensor of {what} '{ours}'. Please "
                    f"ensure that the gradient and the tensor are the same {what}"
                )

    @property
    def retains_grad(self) -> bool:
        """Whether this non-leaf tensor keeps its gradient."""
        if self.is_leaf:
            return False
        dispatch.interrupt("t.retains_grad")
        x = dispatch.inside(self)
        return x._leaf is not None and x._node.hooks is not None and weakref.ref(x._leaf) in x._node.hooks.retained

    def retain_grad(self) -> None:
        """Keep this tensor's gradient in ``.grad`` at backward, although it is not a leaf.

        Raises:
            RuntimeError: the tensor does not require grad, or a transform is running.
        """
        modes.refuse_transformed("Tensor.retain_grad()")
        node = dispatch.inside(self)._node
        if node is None:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False; it gets no gradient")
        if not self.is_leaf and not self.retains_grad:
            dispatch.attached(node).retained.append(weakref.ref(self._accumulator()))

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Call ``hook(grad)`` whenever the gradient of this tensor is computed; it may return a replacement.

        Returns:
            A handle whose ``remove()`` takes the hook away.

        Raises:
            RuntimeError: the tensor does not require grad.
        """
        hooks = self._for_hook(hook, "register_hook")
        node = dispatch.inside(self)._node
        derivative = next((d for d in reversed(modes.DERIVATIVES.get()) if d.made(node)), None)
        return RemovableHandle(hooks.functions, hook if derivative is None else derivative.hooked(hook))

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        """Call ``hook(tensor)`` after each backward pass that added to the ``.grad`` of this leaf.

        Returns:
            A handle whose ``remove()`` takes the hook away.

        Raises:
            RuntimeError: the tensor does not require grad, or is not a leaf.
        """
        hooks = self._for_hook(hook, "register_post_accumulate_grad_hook")
        if not self.is_leaf:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return RemovableHandle(hooks.accumulated, hook)

    def _for_hook(self, hook: Any, where: str) -> Hooks:
        node: GraphNode | None = dispatch.inside(self)._node
        if node is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not callable(hook):
            raise TypeError(f"{where}: hook: expected a function, got {type(hook).__name__}")
        found: Hooks = dispatch.attached(node)
        return found

    def detach(self) -> Tensor:
        """The same memory as a tensor that does not require grad. In-place writes are seen by both."""
        out: Tensor = dispatch.detach(self)
        return out

    def detach_(self) -> Tensor:
        """Cut this tensor off from the graph, in place.

        Raises:
            RuntimeError: the tensor is a view.
        """
        x = dispatch.inside(self)
        if (view := x._view) is not None and view.seen_base() is not None:
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        cut(x)
        return self

    @property
    def _version(self) -> int:
        """How often the memory of this tensor was written in place."""
        modes.settle(self, "t._version")
        writes = self._writes
        if writes is dispatch.INFERENCE_VERSION:
            raise RuntimeError("Inference tensors do not track version counter.")
        return 0 if writes is None else int(writes.count)

    def is_inference(self) -> bool:
        """Whether this tensor was made under ``inference_mode``."""
        dispatch.interrupt("t.is_inference()")
        return self._writes is dispatch.INFERENCE_VERSION

    # ---- to Python --------------------------------------------------------------------------------------------

    def item(self) -> bool | int | float:
        """The only element as a Python number.

        Raises:
            RuntimeError: the tensor has more than one element, or is empty.
        """
        return self._number("item()")

    def _number(self, what: str) -> Any:
        """The only element, for ``what``; in a trace perhaps something that stands for it until it is known."""
        tracer = modes.tracer()
        later = tracer.number_of(self, what) if tracer else None
        if later is not None:
            return later
        data = self._array(what)
        if data.size != 1:
            raise RuntimeError(f"a Tensor with {data.size} elements cannot be converted to Scalar; use .tolist()")
        return backends.backend_of(data).item(data)

    def _array(self, what: str) -> Any:
        """The raw array, for ``what`` to read. A trace computes it first; what vmap hides is an error."""
        data, tracer = self._data, modes.tracer()
        if isinstance(data, SymbolBase) and (data.level or tracer is None):
            raise data.withheld(what)
        return tracer.reveal(self, what) if tracer else data

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        data = self._array("tolist()")
        return backends.backend_of(data).to_host(data).tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """The elements as a NumPy array that shares memory with a CPU tensor; bfloat16 is the package ml_dtypes'.

        Args:
            force: detach the tensor and copy it to the CPU first, where that is needed.

        Raises:
            RuntimeError: the tensor requires grad, outside of ``no_grad``. TypeError: it is not on the CPU.
        """
        if force is True:
            return self.detach().cpu().numpy()
        data = self._array("numpy()")
        dispatch.expose(data)
        if self.requires_grad and modes.get() & modes.GRAD:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self.device.type != "cpu":
            raise TypeError(f"can't convert {self.device} tensor to numpy. Copy it to the host first with .cpu()")
        return data.view(backends.by_device_type("cpu").array_type) if self.dtype is dtypes.bfloat16 else data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"__array__: copy=False, but {array.dtype} can become {dtype} only in a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    __hash__ = object.__hash__

    # ---- copies and conversions -------------------------------------------------------------------------------

    def clone(self, *, memory_format: Any = None) -> Tensor:
        """A copy in memory of its own, laid out like this or in a memory format; gradients flow through it."""
        keep = memory_format is None or memory_format is dtypes.preserve_format
        return clone(self) if keep else laid_out(self, memory_format, "clone")

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        """Converted to a dtype, a device, both, or those of another tensor. Returns itself if nothing changes.

        ``t.to(dtype)``, ``t.to(device)``, ``t.to(device, dtype)``, ``t.to(other)``; keywords ``dtype``, ``device``,
        ``non_blocking``, ``copy``, ``memory_format``. A copy between devices is an operation of the graph. With
        ``non_blocking`` nobody waits for that of a pinned tensor, which must not be written until it is done.
        """
        form = kwargs.pop("memory_format", None) or dtypes.preserve_format
        if len(args) == 1 and isinstance(args[0], dtypes.dtype) and not kwargs and form is dtypes.preserve_format:
            return arguments.discarding(self, args[0])
        place, kind, copy = arguments.destination(*args, **kwargs)
        out = self
        if kind is not None and kind is not out.dtype:
            out = arguments.discarding(out, kind)
        if place is not None and place is not (at := out.device):
            target, source = place.resolve(), at.resolve()
            if target != source:
                waits_not = bool(kwargs.get("non_blocking")) or next((a for a in args if isinstance(a, bool)), False)
                out = to_device(out, device=target, source=source, non_blocking=waits_not)
        if form is not dtypes.preserve_format:
            return in_format(self, out, form, copy)
        return out.clone() if copy and out is self else out

    def cpu(self) -> Tensor:
        """A copy on the CPU, or itself if it is there."""
        return self.to(devices.device("cpu"))

    def cuda(self, device: Any = None) -> Tensor:
        """A copy on a CUDA device, or itself if it is there."""
        return self.to(devices.device("cuda", 0) if device is None else devices.device(device))

    @property
    def is_cuda(self) -> bool:
        """Whether the tensor is on a CUDA device."""
        return self.device.type == "cuda"


cut = calling("leafgrad.tensor.view", "cut")
asking.let_subclasses_override(Tensor)
laid_out, in_format = [calling("leafgrad.tensor.formats", name) for name in ("laid_out", "in_format")]
runtime.tensor = Tensor
runtime.view, runtime.detach = [calling("leafgrad.tensor.view", name) for name in ("make", "detach")]
