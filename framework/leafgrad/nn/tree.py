"""The tree of parameters, buffers and child modules that a Module is: attributes, registration, walking."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from leafgrad import modes
from leafgrad.nn.parameter import Buffer, Parameter
from leafgrad.tensor.tensor import Tensor

# Hooks that every module calls when it registers something: hook(module, name, value) may return another value.
REGISTRATION: dict[str, OrderedDict[int, Callable[..., Any]]] = {
    "parameter": OrderedDict(),
    "buffer": OrderedDict(),
    "module": OrderedDict(),
}


@modes.setting("hooks of registration")
def _hooks() -> tuple[Any, ...]:
    parameter, buffer, module = REGISTRATION.values()
    return (*parameter.values(), *buffer.values(), *module.values())


class Tree:
    """What a Module holds, and how it is reached.

    Parameters, buffers and child modules live in three tables; as attributes they are found by ``__getattr__``.
    """

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]  # Module or None
    _not_persistent: set[str]

    def __init__(self) -> None:
        self.__dict__.update(_parameters={}, _buffers={}, _modules={}, _not_persistent=set())

    # ---- attributes and registration --------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:  # called only where the ordinary look-up finds nothing
        tables = self.__dict__
        if "_parameters" in tables:
            if name in (found := tables["_parameters"]) or name in (found := tables["_modules"]):
                return found[name]
            if name in (found := tables["_buffers"]):
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        tables = self.__dict__
        if isinstance(value, Parameter):
            self._need_init("parameters")
            self._forget(name, but="_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Tree):
            self._need_init("module")
            self._forget(name, but="_modules")
            self._modules[name] = self._registered("module", name, value)
        elif isinstance(value, Buffer):
            self._need_init("buffer")
            self._forget(name, but="_buffers")
            self.register_buffer(name, value, value.persistent)
        elif name in tables.get("_parameters", ()):
            if value is not None:
                raise TypeError(_cannot_assign(value, f"as parameter '{name}'", "nn.Parameter or None expected"))
            self._parameters[name] = None
        elif name in tables.get("_modules", ()):
            if value is not None:
                raise TypeError(_cannot_assign(value, f"as child module '{name}'", "nn.Module or None expected"))
            self._modules[name] = None
        elif name in tables.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(_cannot_assign(value, f"as buffer '{name}'", "Tensor or None expected"))
            self._buffers[name] = value
        elif isinstance(held := getattr(value, "__wrapped__", None), Tree):
            raise TypeError(
                f"cannot assign a compiled {type(held).__name__} as '{name}': its parameters would be missing from "
                f"this module's; assign the {type(held).__name__} itself, and compile what calls this module"
            )
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._not_persistent.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*super().__dir__(), *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[:1].isdigit())

    def _need_init(self, what: str) -> None:
        if "_modules" not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call; begin with super().__init__()")

    def _forget(self, name: str, but: str) -> None:
        """Take ``name`` out of every place but the table ``but``."""
        for table in ("_parameters", "_buffers", "_modules"):
            if table != but:
                self.__dict__[table].pop(name, None)
        self.__dict__.pop(name, None)
        self._not_persistent.discard(name)

    def _check_name(self, kind: str, name: str, table: Mapping[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in table and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def _registered(self, kind: str, name: str, value: Any) -> Any:
        """What is registered in place of ``value`` by the hooks that watch it."""
        for hook in REGISTRATION[kind].values():
            new = hook(self, name, value)
            value = value if new is None else new
        return value

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that belongs to the module's state and is not trained.

        Args:
            name: the attribute under which it can be read.
            tensor: the buffer, or None for none at present.
            persistent: whether ``state_dict`` holds it.

        Raises:
            KeyError: the name is empty, has a dot, or is taken. TypeError: ``tensor`` is not a Tensor.
            AttributeError: ``Module.__init__`` has not been called.
        """
        self._need_init("buffer")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(_cannot_assign(tensor, f"object to buffer '{name}'", "Tensor or None required"))
        self._buffers[name] = self._registered("buffer", name, tensor)
        (self._not_persistent.discard if persistent else self._not_persistent.add)(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register a parameter under a name that may be computed. None reserves the name.

        Raises:
            KeyError: the name is empty, has a dot, or is taken. TypeError: ``param`` is not a Parameter.
            ValueError: ``param`` is not a leaf. AttributeError: ``Module.__init__`` has not been called.
        """
        self._need_init("parameter")
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            what = f"object to parameter '{name}'"
            raise TypeError(_cannot_assign(param, what, "nn.Parameter or None required"))
        if param is not None and not param.is_leaf:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. To express it as a function of another tensor, "
                "compute it in forward()."
            )
        self._parameters[name] = self._registered("parameter", name, param)

    def add_module(self, name: str, module: Any) -> None:
        """Register a child module under a name that may be computed. None reserves the name.

        Raises:
            KeyError: the name is empty, has a dot, or is taken. TypeError: ``module`` is not a Module.
        """
        self._need_init("module")
        if module is not None and not isinstance(module, Tree):
            if isinstance(module, type):
                raise TypeError(f"{module.__name__} is a class: make one of it, {module.__name__}(...)")
            pieces = "; pass modules one by one, or *list" if isinstance(module, (list, tuple)) else ""
            raise TypeError(f"{type(module).__name__} is not a Module subclass{pieces}")
        self._check_name("module", name, self._modules)
        self._modules[name] = self._registered("module", name, module)

    def register_module(self, name: str, module: Any) -> None:
        """The same as ``add_module``."""
        self.add_module(name, module)

    # ---- walking the tree -------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """This module and all below it, parents first, each with its dotted name; ("", self) comes first."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, _join(prefix, name), remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """This module and all below it, each once."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The direct children with their names, each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """The direct children, each once."""
        return (module for _, module in self.named_children())

    def _named(self, table: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules = self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in module.__dict__[table].items():
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield _join(path, name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their dotted names, of this module and, if ``recurse``, of all below it."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their dotted names, of this module and, if ``recurse``, of all below it."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Any:
        """The module below this one with the dotted name ``target``; "" is this one.

        Raises:
            AttributeError: there is no such attribute, or it is not a Module.
        """
        found: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(found, name):
                raise AttributeError(f"{type(found).__name__} has no attribute `{name}`")
            found = getattr(found, name)
            if not isinstance(found, Tree):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return found

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with the dotted name ``target``. AttributeError: there is none."""
        return self._get(target, "_parameters", "an nn.Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with the dotted name ``target``. AttributeError: there is none."""
        return self._get(target, "_buffers", "a buffer")

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Put ``module`` in the place of the one with the dotted name ``target``.

        Args:
            strict: there has to be one already; without it, the last name may be new.

        Raises:
            ValueError: ``target`` is empty. AttributeError: there is no such place. TypeError: not a Module.
        """
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Tree):
            raise TypeError(f"set_submodule: module: expected a Module, got {type(module).__name__}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Tree):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get(self, target: str, table: str, kind: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        if module.__dict__[table].get(name) is None:
            raise AttributeError(f"`{name}` is not {kind}")
        return module.__dict__[table][name]


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _cannot_assign(value: Any, what: str, expected: str) -> str:
    return f"cannot assign '{type(value).__name__}' {what} ({expected})"
