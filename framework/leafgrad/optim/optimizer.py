"""Optimizer: parameter groups, state, hooks, and the step that its subclasses fill in."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from leafgrad import modes
from leafgrad.lazy import attach
from leafgrad.ops.messages import warn
from leafgrad.optim.bucket import Bucket, Buckets, counting, exact
from leafgrad.optim.hooks import (
    EVERY,
    OptimizerHooks,
    hooked,
    register,
    register_optimizer_step_post_hook as register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook as register_optimizer_step_pre_hook,
)
from leafgrad.tensor.data import tensor
from leafgrad.tensor.handle import RemovableHandle
from leafgrad.tensor.tensor import Tensor

Group = dict[str, Any]
Params = Iterable[Tensor] | Iterable[Group] | Iterable[tuple[str, Tensor]]
Closure = Callable[[], Any]


class Optimizer:
    """Base of all optimizers. A subclass defines ``update``, for parameters taken together, or ``step`` itself.

    Args:
        params: tensors, pairs (name, tensor), or groups: dicts with ``"params"`` and options of their own.
        defaults: options of groups that do not give them.

    Attributes:
        param_groups: a list of dicts: ``"params"`` and the options. Options may be changed between steps.
        state: what is remembered for each parameter.

    Options that all optimizers know, under PyTorch's names: with ``maximize`` they go up instead of down;
    ``foreach``, ``fused`` and ``capturable`` choose how PyTorch does its work, and change nothing here, where all
    parameters are always updated together; with ``differentiable`` steps are recorded, so that gradients flow
    through them (the parameters are then no leaves, e.g. clones of such).

    Raises:
        TypeError: something that is no tensor, or without order. ValueError: no parameters, a tensor that is not a
            leaf, one in two groups, or an ``lr`` that is a tensor of several elements. RuntimeError: ``fused`` together
            with ``foreach`` or ``differentiable``.
    """

    takes_complex = True  # whether complex parameters may be updated as pairs of real numbers
    slots: tuple[str, ...] = ()  # the names of states that have their parameter's shape
    numbers: tuple[str, ...] = ("step",)  # those that are one number for all parameters of a bucket

    # Options that change without changing what a step does: compiled steps read them anew at each call. An optimizer
    # that adds to them reads them through ``option``.

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got a Tensor; "
                "put it in a list"
            )
        if callable(params) and not hasattr(params, "__iter__"):
            name = getattr(params, "__name__", "params")
            of = getattr(params, "__self__", None)
            got = f"{'' if of is None else type(of).__name__ + '.'}{name} itself; call it: {name}()"
            if hasattr(params, "parameters"):
                got = f"a {type(params).__name__}; pass its .parameters()"
            raise TypeError(
                f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got {got}"
            )
        for other in ("foreach", "differentiable"):
            if defaults.get("fused") and defaults.get(other):
                raise RuntimeError(f"`fused` and `{other}` cannot be `True` together; leave one out")
        self.defaults = defaults
        self.state: dict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self._hooks = OptimizerHooks(EVERY)
        self._buckets = Buckets(self.state, self.numbers, self.shelf)
        self._steps = 0
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError(
                "optimizer got an empty parameter list; pass model.parameters() of a model that has some (layers in a "
                "plain list or dict are not found: put them into nn.ModuleList or nn.ModuleDict)"
            )
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in {"step"} & vars(cls).keys():
            setattr(cls, name, hooked(vars(cls)[name]))

    def add_param_group(self, param_group: Group) -> None:
        """Optimize more parameters: a dict with ``"params"`` and options; the defaults serve for the others."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group).__name__}")
        if "params" not in param_group:
            raise KeyError("param_group: expected a key 'params', a list of tensors")
        params = param_group["params"]
        params = [params] if isinstance(params, Tensor) else _ordered(params)
        group = {**self.defaults, **param_group, "params": params}
        if any(isinstance(p, tuple) for p in params):
            if not all(isinstance(p, tuple) for p in params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            group["param_names"] = [name for name, _ in params]
            group["params"] = params = [p for _, p in params]
        for p in params:
            if not isinstance(p, Tensor):
                remedy = "; pass model.parameters()" if hasattr(p, "parameters") else ""
                kind = type(p).__name__
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {kind}{remedy}")
            if p.dtype.is_complex and not self.takes_complex:
                raise NotImplementedError(
                    f"{type(self).__name__}: takes no complex parameters; keep pairs of real numbers, and use "
                    "leafgrad.view_as_complex(p) in the model"
                )
            if not (p.is_leaf or p.retains_grad or self.defaults.get("differentiable")):
                raise ValueError("can't optimize a non-leaf Tensor; optimize the leaves that it was computed from")
        if len(set(params)) < len(params):
            warn("optimizer contains a parameter group with duplicate parameters; list each parameter once")
            group["params"] = list(dict.fromkeys(params))
        if any(("param_names" in group) != ("param_names" in other) for other in self.param_groups):
            raise ValueError("all optimizer param groups should be with/without names")
        if not {p for other in self.param_groups for p in other["params"]}.isdisjoint(params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters: to None, or to zero in place."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    p.grad.detach_()
                    p.grad.zero_()

    # ---- a step -----------------------------------------------------------------------------------------------

    @hooked
    def step(self, closure: Closure | None = None) -> Any:
        """Change the parameters that have a gradient, once.

        Args:
            closure: computes the loss anew, with gradients, and returns it; called first, with recording on.

        Returns:
            What the closure returned, or None.
        """
        loss = None
        if closure is not None:
            with modes.enable_grad():
                loss = closure()
        with modes.enable_grad() if self.defaults.get("differentiable") else modes.no_grad():
            for group in self.param_groups:
                for bucket in self._buckets.of(group):
                    self.update(group, bucket)
        return loss

    def update(self, group: Group, bucket: Bucket) -> None:
        """Change the parameters in ``bucket``, all of which have a gradient, once. Recording is off."""
        raise NotImplementedError(f"{type(self).__name__}: define update(group, bucket) or step(closure)")

    @staticmethod
    def shelf(p: Tensor) -> Any:
        """Parameters are put into one bucket only if this is equal for them."""
        return None

    def gradient(self, group: Group, bucket: Bucket) -> Tensor:
        """The gradients, flat: turned around by ``maximize``, with the penalty of ``weight_decay`` if it is coupled."""
        g = -bucket.gradient() if group.get("maximize") else bucket.gradient()
        if group.get("weight_decay") and not group.get("decoupled_weight_decay"):
            g = g + bucket.values() * option(group, "weight_decay")
        return g

    # ---- hooks ------------------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return new ``(args, kwargs)`` for it."""
        return register(self._hooks.step_pre, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return register(self._hooks.step_post, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before ``state_dict`` is made; with ``prepend``, before the other hooks."""
        return register(self._hooks.save_pre, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` on what ``state_dict`` returns; it may return another one."""
        return register(self._hooks.save_post, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading, on a shallow copy; it may return another one."""
        return register(self._hooks.load_pre, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading."""
        return register(self._hooks.load_post, hook, prepend)

    # ---- saving and printing ----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The state as PyTorch lays it out: parameters are numbers, counted through all groups.

        Returns:
            ``{"state": {number: {name: value}}, "param_groups": [{option: value, "params": [number]}]}``.
        """
        for hook in list(self._hooks.save_pre.values()):
            hook(self)
        number = {p: i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}
        groups = [{**group, "params": [number[p] for p in group["params"]]} for group in self.param_groups]
        state = {number.get(p, p): entry for p, entry in self.state.items() if entry}
        saved: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in list(self._hooks.save_post.values()):
            changed = hook(self, saved)
            saved = saved if changed is None else changed
        return saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state, as a copy; tensors move to the parameters' dtype and device. All of it or nothing.

        Raises:
            ValueError: other groups, numbers of parameters or shapes than this optimizer has.
        """
        state_dict = dict(state_dict)
        for hook in list(self._hooks.load_pre.values()):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        for key in ("param_groups", "state"):
            if key not in state_dict:
                raise KeyError(f"state_dict: expected the keys 'param_groups' and 'state', got {sorted(state_dict)}")
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError(
                f"loaded state dict has a different number of parameter groups: expected {len(self.param_groups)}, "
                f"got {len(saved)}"
            )
        params: dict[Any, Tensor] = {}
        for i, (ours, theirs) in enumerate(zip(self.param_groups, saved, strict=True)):
            if len(ours["params"]) != len(theirs["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                    f"group {i}: expected {len(ours['params'])} parameters, got {len(theirs['params'])}"
                )
            params.update(zip(theirs["params"], ours["params"], strict=True))
        shared: dict[Any, Tensor] = {}
        state: dict[Tensor, dict[str, Any]] = defaultdict(dict)
        for key, entry in state_dict["state"].items():
            if key in params:
                state[params[key]] = self._restored(key, params[key], entry, shared)
            else:
                state[key] = deepcopy(entry)
        options = deepcopy([{k: v for k, v in theirs.items() if k != "params"} for theirs in saved])  # sharing stays
        pairs = zip(self.param_groups, options, strict=True)
        groups = [{**ours, **theirs, "params": ours["params"]} for ours, theirs in pairs]
        self.__setstate__({"state": state, "param_groups": groups})
        if type(self).update is not Optimizer.update:
            for group in self.param_groups:  # now, since a compiled step that makes what it keeps is open
                self._buckets.restore(group)
        for hook in list(self._hooks.load_post.values()):
            hook(self)

    def _restored(self, key: Any, p: Tensor, entry: dict[str, Any], shared: dict[Any, Tensor]) -> dict[str, Any]:
        """A copy of the saved state of one parameter. Parameters whose numbers are equal share them."""
        numbers = tuple([float(entry[name]) for name in self.numbers if name in entry])
        restored = {}
        for name, value in entry.items():
            if name in self.numbers:
                place = name, numbers, exact(p.dtype), p.device
                if place not in shared:
                    kind = exact(p.dtype) if name == "step" else counting()
                    shared[place] = tensor(float(value), dtype=kind, device=p.device)
                restored[name] = shared[place]
            elif value is not None:
                if name in self.slots and tuple(value.shape) != tuple(p.shape):
                    raise ValueError(
                        f"state {name!r} of parameter {key}: expected shape {list(p.shape)}, got {list(value.shape)}"
                    )
                restored[name] = _copied(value, p)
        return restored

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__.setdefault("_hooks", OptimizerHooks(EVERY))
        self.__dict__.setdefault("_steps", 0)
        self._buckets = Buckets(self.state, self.numbers, self.shelf)

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            text += "".join(f"    {k}: {group[k]}\n" for k in sorted(group) if k != "params")
        return text + ")"


def _copied(value: Any, like: Tensor) -> Any:
    """A copy of a saved value, with the dtype and device of ``like`` wherever it holds tensors."""
    if hasattr(value, "__array__") and not isinstance(value, Tensor):
        value = tensor(value.__array__())  # another library's
    if isinstance(value, Tensor):
        floating = value.dtype.is_floating_point and like.dtype.is_floating_point
        floating = floating or (value.dtype.is_complex and like.dtype.is_complex)
        return value.detach().to(like.device, like.dtype if floating else value.dtype, copy=True)
    if isinstance(value, (list, tuple)):
        return type(value)([_copied(v, like) for v in value])
    if isinstance(value, dict):
        return {k: _copied(v, like) for k, v in value.items()}
    return deepcopy(value)


def _ordered(params: Any) -> list[Any]:
    """``params`` as a list, from any iterable with an order."""
    if isinstance(params, (set, frozenset)):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    return list(params)


def option(group: Group, name: str, index: int | None = None) -> Any:
    """A number among the options of ``group`` (one of several with ``index``); a tensor of one element as 0-d."""
    value = group[name] if index is None else group[name][index]
    return value.reshape(()) if isinstance(value, Tensor) and value.ndim else value


def check_pair(name: str, pair: Any) -> None:
    """A ValueError unless ``pair`` has two elements."""
    if len(pair) != 2:
        raise ValueError(f"{name}: expected two numbers, got {pair!r}")


def check_range(name: str, value: Any, low: float, below: float = math.inf) -> None:
    """A ValueError unless ``low <= value < below``; ``name`` is what PyTorch calls it in "Invalid <name>: ..."."""
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(f"Tensor lr must be 1-element, got shape {list(value.shape)} for the {name}")
    if not low <= value < below:
        within = f"at least {low}" if below == math.inf else f"in [{low}, {below})"
        raise ValueError(f"Invalid {name}: {value}; expected it to be {within}")


if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
